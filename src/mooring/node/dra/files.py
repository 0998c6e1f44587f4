"""Files that are whole or not there: read with a bound, written aside and put in place."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path


class SaveError(Exception):
    """A file could not be written; the text names it and says why."""


def read_bounded(path: Path, bytes_max: int) -> bytes:
    """Return the content of a file, or raise ValueError if it is too large."""
    with path.open("rb") as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise ValueError(f"it is larger than {bytes_max} bytes")
    return content


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by another that is on the disk, or raise SaveError and leave it as it was."""
    aside = path.with_name(f".{path.name}.new")
    try:
        try:
            aside.unlink(missing_ok=True)  # of a crash
            with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
            _sync_folder(path.parent)
        except OSError:
            aside.unlink(missing_ok=True)  # on a full disk, room for the next try
            raise
    except OSError as error:
        raise SaveError(f"{path} could not be written: {error.strerror or error}") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class SavedFile:
    """A file that follows a state; many who wait for it are served by one write.

    `content` is asked in the event loop when a write begins, so it has all that was changed until
    then. Nothing else in the loop waits for the disk.
    """

    def __init__(
        self,
        path: Path,
        content: Callable[[], bytes],
        write: Callable[[Path, bytes], None] = write_whole,
    ) -> None:
        self.path = path
        self.writes = 0
        self.is_behind = False  # the last write failed
        self._content = content
        self._write = write
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def save(self) -> None:
        """Return once the state of now is on the disk, or raise SaveError."""
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._running))
            self._next.add_done_callback(_look_at)
        # Whoever is cancelled does not cancel the write for the others.
        await asyncio.shield(self._next)

    async def settled(self) -> None:
        """Return once nothing is being written, so that the folder can be left."""
        while tasks := [each for each in (self._running, self._next) if each and not each.done()]:
            await asyncio.wait(tasks)

    async def _after(self, running: asyncio.Task[None] | None) -> None:
        if running is not None:
            await asyncio.wait([running])
        self._running, self._next = self._next, None
        self.writes += 1
        self.is_behind = True
        await asyncio.to_thread(self._write, self.path, self._content())
        self.is_behind = False


def _look_at(task: asyncio.Task[None]) -> None:
    # Whoever waited may be gone; then nobody else wants to know.
    if not task.cancelled():
        task.exception()
