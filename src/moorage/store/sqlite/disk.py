"""What the disk says about a store: whether its files are still there and can be written.

A process goes on writing to a file that was deleted or replaced, and nobody finds what it wrote. So
the files are compared with those that were opened, after each commit and before its answers. A log
that was emptied is a case of its own: without its start, nobody reads what is appended to it.

# log: `store.db-wal`, which holds the commits that are not yet in the database
"""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from pathlib import Path

from moorage.store.errors import UnavailableError

PROBE_FILE = "probe"
PROBE_BYTES = 256 * 1024  # a disk with less is as good as full
LOG_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")

FileId = tuple[int, int]


class DatabaseFiles:
    """The files of a database that is open, for any thread."""

    def __init__(self, database: Path) -> None:
        self._database, self._log_path = database, Path(f"{database}-wal")
        found = database.stat()
        self._id, self._size = _id(found), found.st_size
        self._log_id: FileId | None = None  # None: it has had nothing yet
        self._log = -1
        self._lock = threading.Lock()

    def check(self) -> None:
        """Return if the files are those that were opened, or raise UnavailableError."""
        with self._lock:
            found = _stat(self._database, "the database")
            if _id(found) != self._id:
                raise UnavailableError("the database was replaced while the server ran")
            if found.st_size < self._size:
                raise UnavailableError("the database was truncated while the server ran")
            self._size = found.st_size
            self._check_log()

    def forget_log(self) -> None:
        """Expect the log to begin anew; also closes what is open."""
        with self._lock:
            self._log_id = None
            if self._log >= 0:
                os.close(self._log)
                self._log = -1

    def _check_log(self) -> None:
        if self._log_id is None:
            # Only the database has locks that would be lost when another descriptor is closed.
            with suppress(FileNotFoundError):
                self._log = os.open(self._log_path, os.O_RDONLY | os.O_CLOEXEC)
                found = os.fstat(self._log)
                if found.st_size:
                    self._log_id = _id(found)
                else:
                    os.close(self._log)
                    self._log = -1
            return
        if _id(_stat(self._log_path, "the log of the database")) != self._log_id:
            raise UnavailableError("the log of the database was replaced while the server ran")
        if os.pread(self._log, 4, 0) not in LOG_MAGIC:
            raise UnavailableError("the log of the database was truncated while the server ran")


def disk_trouble(folder: Path) -> str:
    """Return why nothing can be written to a folder, as far as its file system says so."""
    try:
        found = os.statvfs(folder)
    except OSError as error:
        return error.strerror or str(error)
    if found.f_flag & os.ST_RDONLY:
        return "the file system is read-only"
    free = found.f_bfree if os.geteuid() == 0 else found.f_bavail
    if found.f_blocks and free * found.f_frsize < PROBE_BYTES:
        return "the disk is full"
    return ""


def probe(folder: Path) -> None:
    """Return if some space can be had in a folder, or raise OSError."""
    path = folder / PROBE_FILE
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, PROBE_BYTES)
        else:  # macOS
            os.write(handle, bytes(PROBE_BYTES))
            os.fsync(handle)
    finally:
        os.close(handle)
        with suppress(OSError):
            path.unlink()


def _stat(path: Path, what: str) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        is_gone = error.errno in (errno.ENOENT, errno.ENOTDIR)
        fact = (
            "was deleted while the server ran" if is_gone else f"cannot be seen: {error.strerror}"
        )
        raise UnavailableError(f"{what} {fact}") from None


def _id(found: os.stat_result) -> FileId:
    return found.st_dev, found.st_ino
