"""Sysfs trees, in memory or in a folder such as `/sys`, read with bounds.

# entries: where the files, folders and links are; follows no link
# tree: resolves paths in entries, through links, and never leaves them

Paths are relative to the root of sysfs: `devices/system/node/node0/distance`. Every error is a
TreeError with the requested path.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

from moorage.hardware.errors import TreeError

FILE_BYTES_MAX = 65_536
LINKS_MAX = 40  # as many as Linux follows
NAMES_MAX = 65_536


class EntryType(Enum):
    """The type of an entry."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"


class EntryStore(Protocol):
    """Entries by real path; raises OSError if one cannot be read."""

    def sort(self, path: str) -> EntryType | None:
        """Return the type of the entry at a path; None if there is none."""
        ...

    def content(self, path: str, bytes_max: int) -> bytes:
        """Return a file, at most a number of bytes."""
        ...

    def target(self, path: str) -> str:
        """Return the target of a link, as written."""
        ...

    def names(self, path: str, names_max: int) -> list[str]:
        """Return the names in a folder, at most a number of them."""
        ...


class Link(NamedTuple):
    """A symbolic link."""

    target: str


class MemoryEntries:
    """Files and links by path; a folder exists if something is in it."""

    def __init__(self, entries: Mapping[str, str | Link]) -> None:
        self.entries = dict(entries)
        self._folders: dict[str, set[str]] = {"": set()}
        for path in self.entries:
            while path:
                parent, _, name = path.rpartition("/")
                self._folders.setdefault(parent, set()).add(name)
                path = parent

    def sort(self, path: str) -> EntryType | None:
        """Return the type of the entry at a path."""
        if path in self._folders:
            return EntryType.FOLDER
        match self.entries.get(path):
            case Link():
                return EntryType.LINK
            case str():
                return EntryType.FILE
            case _:
                return None

    def content(self, path: str, bytes_max: int) -> bytes:
        """Return a file, at most a number of bytes."""
        text = self.entries[path]
        assert isinstance(text, str)
        return text.encode()[:bytes_max]

    def target(self, path: str) -> str:
        """Return the target of a link."""
        link = self.entries[path]
        assert isinstance(link, Link)
        return link.target

    def names(self, path: str, names_max: int) -> list[str]:
        """Return the names in a folder."""
        return sorted(self._folders[path])[:names_max]


class SysfsTree:
    """Reads entries, following links within them."""

    def __init__(self, store: EntryStore) -> None:
        self._store = store

    def read(self, path: str, bytes_max: int = FILE_BYTES_MAX) -> str:
        """Return the text of a file, or raise TreeError."""
        real = self._resolve(path)
        self._expect(path, real, EntryType.FILE)
        try:
            data = self._store.content(real, bytes_max + 1)
        except OSError as error:
            raise TreeError(path, error.strerror or str(error)) from None
        if len(data) > bytes_max:
            raise TreeError(path, f"larger than {bytes_max:,} bytes, which is all that is read")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise TreeError(path, "not text") from None

    def link(self, path: str) -> str:
        """Return the target of a link, as written, or raise TreeError."""
        folder, _, name = path.rpartition("/")
        real = f"{self._resolve(folder)}/{name}".strip("/")
        self._expect(path, real, EntryType.LINK)
        return self._target(path, real)

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted, or raise TreeError."""
        real = self._resolve(path)
        self._expect(path, real, EntryType.FOLDER)
        try:
            names = self._store.names(real, NAMES_MAX + 1)
        except OSError as error:
            raise TreeError(path, error.strerror or str(error)) from None
        if len(names) > NAMES_MAX:
            raise TreeError(path, f"has more than {NAMES_MAX:,} entries")
        return sorted(names)

    def _resolve(self, path: str) -> str:
        """Return the real path, following links one by one, never out of the tree."""
        place: list[str] = []
        waiting = path.split("/")[::-1]
        links = 0
        while waiting:
            part = waiting.pop()
            if part == "..":
                if not place:
                    raise TreeError(path, "leads out of the tree")
                place.pop()
            elif part not in ("", "."):
                place.append(part)
                real = "/".join(place)
                if self._sort(path, real) is EntryType.LINK:
                    links += 1
                    place.pop()
                    waiting += self._target_parts(path, real, links)[::-1]
        return "/".join(place)

    def _target_parts(self, path: str, real: str, links: int) -> list[str]:
        """Return the parts of a link's target."""
        target = self._target(path, real)
        if links > LINKS_MAX:
            raise TreeError(path, f"goes through more than {LINKS_MAX} links")
        if target.startswith("/"):
            raise TreeError(path, "leads out of the tree")
        return target.split("/")

    def _target(self, path: str, real: str) -> str:
        try:
            return self._store.target(real)
        except OSError as error:
            raise TreeError(path, error.strerror or str(error)) from None

    def _sort(self, path: str, real: str) -> EntryType | None:
        try:
            return self._store.sort(real)
        except OSError as error:
            raise TreeError(path, error.strerror or str(error)) from None

    def _expect(self, path: str, real: str, wanted: EntryType) -> None:
        found = self._sort(path, real)
        if found is None:
            raise TreeError(path, "no such file or directory")
        if found is not wanted:
            raise TreeError(path, f"is not a {wanted.value}")


# --- folders --------------------------------------------------------------------------------------

_ENTRY_TYPES = {
    stat.S_IFREG: EntryType.FILE,
    stat.S_IFDIR: EntryType.FOLDER,
    stat.S_IFLNK: EntryType.LINK,
}


class FolderEntries:
    """Entries below a folder; follows no link itself."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def sort(self, path: str) -> EntryType | None:
        """Return the type of the entry at a path."""
        try:
            mode = self._path(path).lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _ENTRY_TYPES.get(stat.S_IFMT(mode), EntryType.OTHER)

    def content(self, path: str, bytes_max: int) -> bytes:
        """Return a file, at most a number of bytes."""
        with self._path(path).open("rb") as file:
            return file.read(bytes_max)

    def target(self, path: str) -> str:
        """Return the target of a link."""
        return os.readlink(self._path(path))

    def names(self, path: str, names_max: int) -> list[str]:
        """Return the names in a folder, at most a number of them."""
        with os.scandir(self._path(path)) as entries:
            return [entry.name for entry in islice(entries, names_max)]

    def _path(self, path: str) -> Path:
        if "\0" in path:
            raise FileNotFoundError(path)
        return self._root / path


def folder_tree(root: Path | str = "/sys") -> SysfsTree:
    """Return the tree in a folder, by default this machine's sysfs."""
    return SysfsTree(FolderEntries(Path(root)))


def write_entries(root: Path, entries: Mapping[str, str | Link]) -> None:
    """Write files and links into a folder, replacing those of the same names."""
    for path, entry in entries.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        match entry:
            case Link(target):
                place.symlink_to(target)
            case str():
                place.write_text(entry, encoding="utf-8")
