"""Changes in folders, reported by inotify where Linux has it."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import logging
import os
from pathlib import Path

LOG = logging.getLogger(__name__)

_MODIFY, _CREATE, _DELETE, _MOVED_FROM, _MOVED_TO = 0x2, 0x100, 0x200, 0x40, 0x80
_DELETE_SELF, _MOVE_SELF, _ONLY_FOLDERS = 0x400, 0x800, 0x0100_0000
_MASK = _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS
_READ_BYTES = 65536
_GONE = (errno.ENOENT, errno.ENOTDIR)  # removed meanwhile


class FolderEvents:
    """Sets `happened` when an entry of a watched folder appears, goes or, if wanted, is written."""

    def __init__(self, *, includes_writes: bool = False) -> None:
        self._mask = _MASK | (_MODIFY if includes_writes else 0)
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
        """Whether there are events; otherwise the caller has to poll."""
        return self._descriptor >= 0

    def watch(self, folder: Path) -> None:
        """Watch a folder, if it is not watched already.

        If that is refused, as on a machine with too many watches, there are no more events.
        """
        if not self.is_available:
            return
        refusal = _add_watch(self._library, self._descriptor, folder, self._mask)
        if refusal not in (0, *_GONE):
            text = "%s cannot be watched: %s; polling it instead"
            LOG.warning(text, folder, os.strerror(refusal))
            self.close()

    def close(self) -> None:
        """Stop watching."""
        if self.is_available:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _drain(self) -> None:
        # Events are dropped: a look at the folder says more.
        with contextlib.suppress(BlockingIOError):
            os.read(self._descriptor, _READ_BYTES)
        self.happened.set()


def _add_watch(library: ctypes.CDLL, descriptor: int, folder: Path, mask: int) -> int:
    """Return the error number, 0 for success."""
    watch = library.inotify_add_watch(descriptor, os.fsencode(folder), mask)
    return ctypes.get_errno() if watch < 0 else 0
