"""Something happened in a folder: told by Linux, if it is Linux."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import logging
import os
from pathlib import Path

LOG = logging.getLogger(__name__)

_CREATE, _DELETE, _MOVED_FROM, _MOVED_TO = 0x100, 0x200, 0x40, 0x80
_DELETE_SELF, _MOVE_SELF, _ONLY_FOLDERS = 0x400, 0x800, 0x0100_0000
_MASK = _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS
_READ_BYTES = 65536
_GONE = (errno.ENOENT, errno.ENOTDIR)  # meanwhile


class FolderEvents:
    """Sets `happened` when something comes to a watched folder, or goes from it."""

    def __init__(self) -> None:
        self.happened = asyncio.Event()
        self._descriptor = -1
        try:
            self._library = ctypes.CDLL(None, use_errno=True)
            self._descriptor = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError):
            return
        if self.is_available:
            asyncio.get_running_loop().add_reader(self._descriptor, self._drain)

    @property
    def is_available(self) -> bool:
        """Whether events are told at all."""
        return self._descriptor >= 0

    def watch(self, folder: Path) -> None:
        """Tell what happens in a folder; to ask again changes nothing.

        Where that is refused, as when a machine has too many watches, no more events are told.
        """
        if not self.is_available:
            return
        refusal = _add_watch(self._library, self._descriptor, folder)
        if refusal not in (0, *_GONE):
            text = "%s cannot be watched: %s; it is looked at now and then"
            LOG.warning(text, folder, os.strerror(refusal))
            self.close()

    def close(self) -> None:
        """Tell nothing more."""
        if self.is_available:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _drain(self) -> None:
        # What happened is not read: the folder itself says it.
        with contextlib.suppress(BlockingIOError):
            os.read(self._descriptor, _READ_BYTES)
        self.happened.set()


def _add_watch(library: ctypes.CDLL, descriptor: int, folder: Path) -> int:
    """Return the number of the error; 0 if there is none."""
    watch = library.inotify_add_watch(descriptor, os.fsencode(folder), _MASK)
    return ctypes.get_errno() if watch < 0 else 0
