"""The heads of HTTP/1.1 messages: the first line and the headers, bounded, without a body.

For connections that carry one exchange and are then something else, or over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

HEAD_BYTES_MAX = 32 * 1024
HEADERS_MAX = 100
END = b"\r\n\r\n"


class HeadError(Exception):
    """What came is no head; the text says why."""


class Head(NamedTuple):
    """The beginning of a request, or of an answer."""

    first: tuple[str, str, str]  # GET /path HTTP/1.1, or HTTP/1.1 404 Not Found
    headers: Mapping[str, str]  # names in lower case; those that come twice are joined by commas
    raw: bytes = b""

    def has(self, name: str, word: str) -> bool:
        """Return whether a header lists a word, in whatever case."""
        return word in [each.strip().lower() for each in self.headers.get(name, "").split(",")]

    @property
    def upgrade(self) -> str:
        """The protocol that is to be spoken from now on; "" if it stays HTTP."""
        wanted = self.headers.get("upgrade", "").strip().lower()
        return wanted if self.has("connection", "upgrade") else ""


def parse_head(raw: bytes) -> Head:
    """Return a head, or raise HeadError."""
    first, *lines = raw.removesuffix(END).decode("latin-1").split("\r\n")
    parts = first.split(" ", 2)
    if len(parts) == 2 and first.startswith("HTTP/"):  # an answer need not have words
        parts.append("")
    if len(parts) != 3 or not all(parts[:2]):
        raise HeadError("the first line is not that of HTTP")
    if len(lines) > HEADERS_MAX:
        raise HeadError(f"there are more than {HEADERS_MAX} headers")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip():
            raise HeadError("a header has no name")
        held = headers.get(name)
        headers[name] = value.strip() if held is None else f"{held}, {value.strip()}"
    return Head((parts[0], parts[1], parts[2]), headers, raw)


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """Return the head that comes, None if the other side goes away before, or raise HeadError.

    How large it may be is the limit of the reader.
    """
    try:
        return parse_head(await reader.readuntil(END))
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise HeadError("the headers are too large") from None
