"""Sysfs trees in real folders: `/sys` itself, or one that was written."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from mooring.hardware.tree import Link, Sort, Tree

_SORTS = {stat.S_IFREG: Sort.FILE, stat.S_IFDIR: Sort.FOLDER, stat.S_IFLNK: Sort.LINK}


class FolderStore:
    """Entries below a folder; never follows a link itself."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def sort(self, path: str) -> Sort | None:
        """Return what stands at a path."""
        try:
            mode = self._path(path).lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _SORTS.get(stat.S_IFMT(mode), Sort.OTHER)

    def content(self, path: str, bytes_max: int) -> bytes:
        """Return a file, or so much of it."""
        with self._path(path).open("rb") as file:
            return file.read(bytes_max)

    def target(self, path: str) -> str:
        """Return where a link leads."""
        return os.readlink(self._path(path))

    def names(self, path: str, names_max: int) -> list[str]:
        """Return the names in a folder, or so many of them."""
        with os.scandir(self._path(path)) as entries:
            return [entry.name for entry in islice(entries, names_max)]

    def _path(self, path: str) -> Path:
        if "\0" in path:
            raise FileNotFoundError(path)
        return self._root / path


def folder_tree(root: Path | str = "/sys") -> Tree:
    """Return the tree in a folder; by default the one of this machine."""
    return Tree(FolderStore(Path(root)))


def write_entries(root: Path, entries: Mapping[str, str | Link]) -> None:
    """Write files and links into a folder, instead of those of the same names."""
    for path, entry in entries.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        match entry:
            case Link(target):
                place.symlink_to(target)
            case str():
                place.write_text(entry, encoding="utf-8")
