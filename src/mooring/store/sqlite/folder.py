"""The folder of a store: where its files are, and that one server has it at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from mooring.store.errors import FolderError, LockedError

DATABASE = "store.db"
LOCK = "lock"


class Folder:
    """A folder that is locked as long as this is open; the kernel unlocks it if we are killed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = -1

    @property
    def database(self) -> Path:
        """Return where the database is."""
        return self.path / DATABASE

    def lock(self) -> None:
        """Make the folder if need be and lock it, or raise FolderError."""
        try:
            make_folder(self.path)
            self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise FolderError(self.path, f"cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._lock, 20, 0).decode(errors="replace").strip() or "?"
            self.unlock()
            raise LockedError(self.path, f"in use by process {holder}; stop it first") from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def unlock(self) -> None:
        """Let others have the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        self.lock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.unlock()


def make_folder(path: Path) -> None:
    """Make a folder that only its owner reads, for it will hold secrets."""
    if not path.is_dir():
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(path.parent)


def make_file(path: Path) -> None:
    """Make an empty file that only its owner reads, if there is none; SQLite's follow its mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def sync_file(path: Path) -> None:
    """Return once the content of a file is on disk."""
    _sync(path, os.O_RDWR)


def sync_folder(path: Path) -> None:
    """Return once the names in a folder are on disk."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
