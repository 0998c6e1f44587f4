"""WriteBuffer: what a connection writes in one turn of the event loop goes out together."""

from __future__ import annotations

import asyncio
from typing import Any

GATHERED_BYTES_MAX = 64 * 1024  # more is flushed at once, so that the transport can push back


class WriteBuffer:
    """A transport that writes once in a turn of the event loop.

    Each write is a system call and, with TLS, a record. So the head and the body of a response, or
    the events of one change, go out together.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def bare(self) -> asyncio.Transport:
        """The transport itself, after a flush."""
        self.flush()
        return self._transport

    def write(self, data: bytes) -> None:
        """Buffer data until the end of this turn."""
        if not data:
            return
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size > GATHERED_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        """Write the buffer."""
        if self._parts:
            parts, self._parts, self._size = self._parts, [], 0
            if not self._transport.is_closing():  # a closed TLS transport cannot be written to
                self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def close(self) -> None:
        """Flush and close."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
