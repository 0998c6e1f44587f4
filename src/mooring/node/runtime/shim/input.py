"""The standard input of a container: what is told it waits here until it is read."""

from __future__ import annotations

import os

from mooring.node.runtime.shim.loop import WRITE, Call, Loop

CHUNK_BYTES = 32 * 1024
WAITING_BYTES_MAX = 256 * 1024  # until whoever tells something has to wait
END_OF_INPUT = b"\x04"  # on a terminal


class Input:
    """The end of a pipe or terminal that is ours; closed when the container has ended."""

    def __init__(self, loop: Loop, descriptor: int, *, is_terminal: bool) -> None:
        os.set_blocking(descriptor, False)
        self._loop, self._is_terminal = loop, is_terminal
        self._descriptor: int | None = descriptor
        self._waiting = bytearray()
        self._is_over = False
        self.on_room: list[Call] = []  # called when more may be told

    @property
    def is_full(self) -> bool:
        """Whether no more should be told for now."""
        return len(self._waiting) > WAITING_BYTES_MAX

    def feed(self, data: bytes) -> None:
        """Tell something; nothing once it is at its end."""
        if self._descriptor is not None and not self._is_over:
            self._waiting += data
            self._write()

    def end(self) -> None:
        """Say that no more comes, after what waits."""
        if self._descriptor is None or self._is_over:
            return
        self._is_over = True
        if self._is_terminal:
            self._waiting += END_OF_INPUT
        self._write()

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            self._loop.forget(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None
        self._waiting.clear()

    def _write(self) -> None:
        if self._descriptor is None:
            return
        try:
            while self._waiting:
                count = os.write(self._descriptor, self._waiting[:CHUNK_BYTES])
                del self._waiting[:count]
        except BlockingIOError:
            self._loop.watch(self._descriptor, WRITE, self._write)
        except OSError:  # it reads no more
            self.close()
        else:
            self._loop.forget(self._descriptor)
            if self._is_over:
                self.close()
        if not self.is_full:
            for call in tuple(self.on_room):
                call()
