"""Writes to a connection: responses with one call, and all data of one turn together."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from http import HTTPStatus
from typing import Any

GATHERED_BYTES_MAX = 64 * 1024  # more is flushed at once, so that the transport can push back
CLOSE_HEADER = (b"connection", b"close")


class WriteBuffer:
    """A transport that writes once per turn of the event loop.

    Each write is a system call and, with TLS, a record. So the head and the body of a response, or
    the events of one change, are sent together.
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


def respond(cycle: Any, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> bool:
    """Write a whole response, as the messages of ASGI would; False if it must wait.

    `cycle` is uvicorn's of one request and its response.
    """
    if cycle.flow.write_paused or cycle.disconnected or cycle.response_started:
        return False
    lines = [b"%s: %s\r\n" % header for header in (*cycle.default_headers, *headers)]
    # Old versions of uvicorn look at the request's header only when a response begins.
    is_last = not cycle.keep_alive or CLOSE_HEADER in cycle.scope["headers"]
    if is_last:
        lines.append(b"connection: close\r\n")
    head = b"".join(lines)
    if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines):
        return False  # A value has a line break, which ASGI refuses.
    cycle.transport.write(b"%s%s\r\n%s" % (_status_line(status), head, body))
    cycle.response_started = cycle.response_complete = True
    cycle.message_event.set()
    if is_last:
        cycle.keep_alive = False
        cycle.transport.close()
    cycle.on_response()
    return True


@lru_cache(maxsize=64)
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
