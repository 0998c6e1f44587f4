"""Writing to a connection once a turn of the event loop, however many parts there are to write.

Each write is a call of the system and, with TLS, a record of its own. The head and the body of an
answer, or the events of one change, go out together.
"""

from __future__ import annotations

import asyncio
from typing import Any

GATHERED_BYTES_MAX = 64 * 1024  # beyond that it is the transport that says when to wait


class CorkedTransport:
    """A transport that gathers what is written until the turn of the event loop is over."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def bare(self) -> asyncio.Transport:
        """The transport itself, for who writes past this; what is gathered goes first."""
        self.flush()
        return self._transport

    def write(self, data: bytes) -> None:
        """Have data written soon."""
        if not data:
            return
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size > GATHERED_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        """Write all that is gathered."""
        if self._parts:
            parts, self._parts, self._size = self._parts, [], 0
            self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def close(self) -> None:
        """Write all that is gathered, then close."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
