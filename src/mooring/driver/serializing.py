"""Who may work now: one call at a time, also of two instances of a driver that run side by side.

instance.lock    held while a driver runs: by one, or by several that were told of each other
serialize.lock   held during a call, by drivers that run beside their next version
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from mooring.driver.calling import in_thread, to_the_end
from mooring.driver.errors import StartError

INSTANCE_LOCK, SERIALIZE_LOCK = "instance.lock", "serialize.lock"


@contextmanager
def only_instance(folder: Path, *, shares: bool) -> Iterator[None]:
    """Be the only driver in a folder, or one of those that share it; raises StartError if not."""
    path = folder / INSTANCE_LOCK
    with _opened(path) as handle:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shares else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            raise StartError(
                f"another driver runs with the folder {folder}; "
                "two may run side by side only if each has its --pod-uid"
            ) from None
        yield


class Turns:
    """Lets calls in one after the other."""

    def __init__(self, lock_file: Path | None) -> None:
        self._lock = asyncio.Lock()
        self._lock_file = lock_file  # None: there is no other instance

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Wait for our turn, and have it."""
        async with self._lock:
            if self._lock_file is None:
                yield
                return
            with _opened(self._lock_file) as handle:
                # The file is not closed while a thread still waits for it.
                await to_the_end(in_thread(fcntl.flock, handle, fcntl.LOCK_EX))
                yield


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a lock file; closing it lets the lock go."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from None
    try:
        yield handle
    finally:
        os.close(handle)
