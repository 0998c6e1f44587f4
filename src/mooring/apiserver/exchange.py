"""One exchange over HTTP: what was asked, and the answer, apart from any network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import NamedTuple

from msgspec import Struct

from mooring.apiserver.negotiation import JSON

NO_CACHE = (("Cache-Control", "no-cache, private"),)
PLAIN = "text/plain; charset=utf-8"

Headers = tuple[tuple[str, str], ...]


class Request(Struct, frozen=True):
    """What a client asks."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}  # with names in lower case
    body: bytes = b""
    certificate: bytes | None = None  # that the client showed, and TLS has checked
    all_headers: tuple[tuple[str, str], ...] = ()  # those that come more than once, too
    uri: str = ""  # the path and the query, as they were sent
    client: str = ""  # the address of who asks

    @property
    def accept(self) -> str:
        """The forms that the client accepts."""
        return self.headers.get("accept", "")


class Answer(NamedTuple):
    """A whole answer."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: Headers = NO_CACHE


class Streaming(NamedTuple):
    """An answer that goes on until somebody ends it."""

    chunks: AsyncIterator[bytes]
    content_type: str = JSON
    headers: Headers = NO_CACHE
    # Takes what the client sends from now on. With it the chunks are all that goes over the
    # connection, heads and all, and no HTTP is spoken on it any more.
    upstream: Callable[[bytes], Awaitable[None]] | None = None

    @property
    def status(self) -> int:
        """How the request was answered."""
        return 200 if self.upstream is None else 101


def text_answer(text: str, status: int = 200) -> Answer:
    """Return an answer for people to read."""
    more = (("X-Content-Type-Options", "nosniff"),)
    return Answer(text.encode(), status, PLAIN, NO_CACHE + more)
