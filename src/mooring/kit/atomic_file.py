"""Files that are whole or absent: written beside their place, synced, then renamed into it.

    write ─► .NAME.RANDOM.tmp ─► fsync ─► rename to NAME ─► fsync of the folder

A reader sees the old content or the new, and so does the next start after a crash.
`is_durable=False` leaves out both syncs, for files that a start rebuilds anyway.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

PRIVATE_FILE = 0o600
TEMPORARY_SUFFIX = ".tmp"  # of a file that a crash may have left behind
_NAME_MAX = 100  # characters of the name that its temporary file repeats


def replace_file(
    path: Path, data: bytes, *, mode: int = PRIVATE_FILE, is_durable: bool = True
) -> None:
    """Replace a file, or raise OSError and leave it as it was."""
    handle, temporary = tempfile.mkstemp(
        prefix=f".{path.name[:_NAME_MAX]}.", suffix=TEMPORARY_SUFFIX, dir=path.parent
    )
    try:
        with open(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.write(data)
            file.flush()
            if is_durable:
                os.fsync(handle)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # on a full disk, space for the next attempt
        raise
    if is_durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Return once the names in a folder are on disk, where the file system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_bounded(path: Path, bytes_max: int) -> bytes:
    """Return the content of a file, or raise ValueError if it is larger than allowed."""
    with path.open("rb") as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise ValueError(f"it is larger than {bytes_max} bytes")
    return content
