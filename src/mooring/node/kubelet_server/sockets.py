"""WebSocket messages on a connection that was accepted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from mooring.kit.heads import Head
from mooring.kit.websocket import (
    NORMAL,
    Kind,
    Reader,
    WebSocketError,
    accept_of,
    closing,
    frame,
    is_key,
)

READ_BYTES = 64 * 1024
STALLED_S = 60.0  # for the other side to take what was sent
VERSION = "13"
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")  # the best first


def chosen_protocol(head: Head) -> str | None:
    """Return what will be spoken, None if the client wants to speak nothing that we know."""
    headers = head.headers
    is_ours = head.upgrade == "websocket" and headers.get("sec-websocket-version") == VERSION
    if not is_ours or not is_key(headers.get("sec-websocket-key", "")):
        return None
    return next((each for each in PROTOCOLS if head.has("sec-websocket-protocol", each)), None)


def accepting(head: Head, protocol: str) -> bytes:
    """Return the answer with which the connection becomes a WebSocket."""
    lines = (
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Accept: {accept_of(head.headers['sec-websocket-key'])}",
        f"Sec-WebSocket-Protocol: {protocol}",
    )
    return "\r\n".join((*lines, "", "")).encode("latin-1")


class Socket:
    """The server's side of a WebSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = Reader(from_client=True)

    async def messages(self) -> AsyncIterator[bytes]:
        """Give what the client says, until it closes or does not keep to the protocol."""
        try:
            while data := await self._reader.read(READ_BYTES):
                for kind, payload in self._frames.feed(data):
                    match kind:
                        case Kind.PING:
                            await self._send(Kind.PONG, payload)
                        case Kind.CLOSE:
                            return
                        case Kind.BINARY | Kind.TEXT:
                            yield payload
        except WebSocketError as error:
            await self.close(error.code, str(error))
        except OSError:
            return

    async def send(self, data: bytes) -> None:
        """Send a message; raises OSError when nobody takes it."""
        await self._send(Kind.BINARY, data)

    async def close(self, code: int = NORMAL, text: str = "") -> None:
        """Say that it is over."""
        with suppress(OSError):
            await self._send(Kind.CLOSE, closing(code, text))

    async def _send(self, kind: Kind, data: bytes) -> None:
        self._writer.write(frame(kind, data))
        async with asyncio.timeout(STALLED_S):  # TimeoutError is an OSError
            await self._writer.drain()
