"""Files that are whole or absent: written beside their place, synced, then renamed into it.

    write ─► .NAME.RANDOM.tmp ─► fsync ─► rename to NAME ─► fsync of the folder

A reader sees the old content or the new, and so does the next start after a crash.
`is_durable=False` leaves out both syncs, for files that a start rebuilds anyway.

A file whose sync failed is thrown away: what the disk has of it is unknown, and a second sync that
succeeds would prove nothing. A folder whose sync failed is an error, too: the new name may be lost
with the power, so nobody may take the write for done. Only a file system that cannot sync folders
at all is left in peace.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

PRIVATE_FILE = 0o600  # with secrets, or what only some may see of a cluster
PRIVATE_FOLDER = 0o700
TEMPORARY_SUFFIX = ".tmp"  # of a file that a crash may have left behind
_NAME_MAX = 100  # characters of the name that its temporary file repeats
# How file systems say that folders cannot be synced, or need not be.
_NOT_SYNCED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EACCES, errno.EPERM})


def replace_file(
    path: Path, data: bytes, *, mode: int = PRIVATE_FILE, is_durable: bool = True
) -> None:
    """Replace a file, or raise OSError: then it is as it was, or, if its name is unsynced, new."""
    replace_files({path: data}, mode=mode, is_durable=is_durable)


def replace_files(
    contents: Mapping[Path, bytes], *, mode: int = PRIVATE_FILE, is_durable: bool = True
) -> None:
    """Replace files that belong together: none is replaced before the disk has taken all."""
    written: dict[Path, str] = {}
    try:
        for path, data in contents.items():
            _write_beside(path, data, written, mode=mode, is_durable=is_durable)
        for path, temporary in written.items():
            os.replace(temporary, path)
    except BaseException:
        for temporary in written.values():
            with suppress(OSError):
                os.unlink(temporary)  # on a full disk, space for the next attempt
        raise
    if is_durable:
        for folder in {path.parent for path in written}:
            sync_folder(folder)


def _write_beside(
    path: Path, data: bytes, written: dict[Path, str], *, mode: int, is_durable: bool
) -> None:
    handle, temporary = tempfile.mkstemp(
        prefix=f".{path.name[:_NAME_MAX]}.", suffix=TEMPORARY_SUFFIX, dir=path.parent
    )
    written[path] = temporary
    with open(handle, "wb") as file:
        _set_mode(handle, mode)
        file.write(data)
        file.flush()
        if is_durable:
            os.fsync(handle)


def open_private(path: Path, *, is_new: bool = False) -> BinaryIO:
    """Open an empty file that only its owner can read, or raise OSError; a new one must not exist.

    For files that are written over time; `replace_file` writes all others.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if is_new else os.O_TRUNC)
    handle = os.open(path, flags | getattr(os, "O_BINARY", 0), PRIVATE_FILE)
    _set_mode(handle, PRIVATE_FILE)  # It may have been there.
    return os.fdopen(handle, "wb")


def _set_mode(handle: int, mode: int) -> None:
    if hasattr(os, "fchmod"):  # Windows has no such modes
        os.fchmod(handle, mode)


def sync_folder(folder: Path) -> None:
    """Return once the names in a folder are on disk, where the file system can do that."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows cannot open folders
        return
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _NOT_SYNCED:
            raise


def read_bounded(path: Path, bytes_max: int) -> bytes:
    """Return the content of a file, or raise ValueError if it is larger than allowed."""
    with path.open("rb") as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise ValueError(f"it is larger than {bytes_max} bytes")
    return content
