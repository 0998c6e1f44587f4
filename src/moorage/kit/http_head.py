"""HTTP/1.1 for connections that carry one exchange and are then upgraded or closed.

Heads are read with bounds and without a body; a small response is written as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

HEAD_BYTES_MAX = 32 * 1024
HEADERS_MAX = 100
END = b"\r\n\r\n"


class HeadError(Exception):
    """The bytes are not the head of an HTTP message; the text says why."""


class Head(NamedTuple):
    """The head of a request or of a response."""

    first: tuple[str, str, str]  # GET /path HTTP/1.1, or HTTP/1.1 404 Not Found
    headers: Mapping[str, str]  # names in lower case; repeated headers are joined by commas
    raw: bytes = b""

    def has(self, name: str, word: str) -> bool:
        """Return whether a header lists a token, ignoring case."""
        return word in [each.strip().lower() for each in self.headers.get(name, "").split(",")]

    @property
    def upgrade(self) -> str:
        """The protocol that the client asks to switch to; "" if it stays HTTP."""
        protocol = self.headers.get("upgrade", "").strip().lower()
        return protocol if self.has("connection", "upgrade") else ""


def parse_head(raw: bytes) -> Head:
    """Return a head, or raise HeadError."""
    first, *lines = raw.removesuffix(END).decode("latin-1").split("\r\n")
    parts = first.split(" ", 2)
    if len(parts) == 2 and first.startswith("HTTP/"):  # a response need not have a reason phrase
        parts.append("")
    if len(parts) != 3 or not all(parts[:2]):
        raise HeadError("the first line is not HTTP")
    if len(lines) > HEADERS_MAX:
        raise HeadError(f"there are more than {HEADERS_MAX} headers")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip():
            raise HeadError("a header has no name")
        earlier = headers.get(name)
        headers[name] = value.strip() if earlier is None else f"{earlier}, {value.strip()}"
    return Head((parts[0], parts[1], parts[2]), headers, raw)


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """Read a head; return None if the peer closes before its end, or raise HeadError.

    The reader's limit bounds its size.
    """
    try:
        return parse_head(await reader.readuntil(END))
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise HeadError("the headers are too large") from None


def response(body: bytes, code: int, type_: str) -> bytes:
    """Return a complete response, after which the connection is closed."""
    lines = (
        f"HTTP/1.1 {code} {HTTPStatus(code).phrase}",
        f"Content-Type: {type_}",
        f"Content-Length: {len(body)}",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode() + body
