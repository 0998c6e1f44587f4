"""Waiting for changes in a folder, by inotify."""

from __future__ import annotations

import asyncio
import ctypes
import os
from contextlib import suppress
from pathlib import Path

from mooring.kit.clock import Clock

UNWATCHED_S = 1.0  # between looks, where inotify cannot be had
_MODIFY, _MOVED_TO, _CREATE, _DELETE, _DELETE_SELF = 0x2, 0x80, 0x100, 0x200, 0x400
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class FolderWatch:
    """Tells that something in a folder changed since it was last asked."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._changed = asyncio.Event()
        self._descriptor = -1

    def __enter__(self) -> FolderWatch:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(_FLAGS)
        if self._descriptor < 0:  # there are too many
            return self
        wanted = _MODIFY | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF
        libc.inotify_add_watch(self._descriptor, os.fsencode(self._folder), wanted)
        asyncio.get_running_loop().add_reader(self._descriptor, self._ready)
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)

    async def changed(self) -> None:
        """Return when something has changed, perhaps already."""
        if self._descriptor < 0:
            await self._clock.sleep(UNWATCHED_S)
            return
        await self._changed.wait()
        self._changed.clear()

    def _ready(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._descriptor, 64 * 1024)
        self._changed.set()
