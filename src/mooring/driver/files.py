"""Files that are there as a whole or not at all, and folders that may hold what is not ours."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

BYTES_MAX = 64 * 1024 * 1024  # of a file that is read
TEMPORARY = ".tmp"


class Files:
    """What a driver does with files; tests put one in its place whose disk is full."""

    def write(self, path: Path, data: bytes, mode: int = 0o644, *, lasts: bool = True) -> None:
        """Put a file in place, by a rename; one that lasts is on the disk then."""
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            prefix=f".{path.name[:100]}.", suffix=TEMPORARY, dir=path.parent
        )
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), mode)
                if lasts:
                    os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        if lasts:
            _keep_folder(path.parent)

    def append(self, path: Path, data: bytes, *, lasts: bool = True) -> None:
        """Add to the end of a file that is there; what lasts is on the disk then."""
        handle = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(handle, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            if lasts:
                os.fdatasync(handle)
        finally:
            os.close(handle)

    def read(self, path: Path) -> bytes | None:
        """Return what is in a file; None if it is not there."""
        try:
            with path.open("rb") as file:
                data = file.read(BYTES_MAX + 1)
        except FileNotFoundError:
            return None
        if len(data) > BYTES_MAX:
            raise OSError(f"{path} has more than {BYTES_MAX} bytes")
        return data

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""
        path.unlink(missing_ok=True)

    def remove_folder(self, path: Path) -> None:
        """Remove a folder with all that is in it, if it is there."""
        with suppress(FileNotFoundError):
            shutil.rmtree(path)

    def names(self, folder: Path) -> list[str]:
        """Return what is in a folder, sorted; nothing if it is not there."""
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []


def _keep_folder(folder: Path) -> None:
    """Have the disk keep the names in a folder, where file systems can."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)
