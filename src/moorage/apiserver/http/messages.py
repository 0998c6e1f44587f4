"""HTTP messages apart from any network: paths, requests, responses, and documents with ETags.

/api/v1/…                    the core group
/apis/GROUP/VERSION/…        any other group
…/namespaces/NS/RESOURCE[/NAME[/SUBRESOURCE]]
…/RESOURCE[/NAME[/SUBRESOURCE]]
…/watch/…                    a watch of the rest: deprecated, as `?watch=true` does the same
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Self

import msgspec
from msgspec import Struct

NOT_FOUND_TEXT = "404 page not found\n"
JSON = "application/json"
PLAIN_TEXT = "text/plain; charset=utf-8"

Headers = tuple[tuple[str, str], ...]

NO_CACHE: Headers = (("Cache-Control", "no-cache, private"),)


# --- requests -------------------------------------------------------------------------------------


class Request(Struct, frozen=True):
    """A request of a client."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}  # with names in lower case
    body: bytes = b""
    certificate: bytes | None = None  # of the client, verified by TLS
    all_headers: tuple[tuple[str, str], ...] = ()  # with repeated headers
    uri: str = ""  # the path and the query as sent
    client: str = ""  # the address of the client
    gone: Callable[[], Awaitable[None]] | None = None  # returns when the client has gone

    @property
    def accept(self) -> str:
        """The Accept header."""
        return self.headers.get("accept", "")


class Target(NamedTuple):
    """A resource, an object or a subresource."""

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_path(path: str) -> Target | None:
    """Return the target of a path below /api or /apis; None if it is not a resource."""
    match path.strip("/").split("/"):
        case ["api", version, *rest] if rest:
            return _target("", version, rest)
        case ["apis", group, version, *rest] if rest:
            return _target(group, version, rest)
    return None


def without_watch(path: str) -> str | None:
    """Return the path that a deprecated watch path watches; None for other paths."""
    match path.strip("/").split("/"):
        case ["api", version, "watch", *rest] if rest:
            return "/".join(("", "api", version, *rest))
        case ["apis", group, version, "watch", *rest] if rest:
            return "/".join(("", "apis", group, version, *rest))
    return None


def _target(group: str, version: str, rest: list[str]) -> Target | None:
    match rest:
        case ["namespaces", namespace, resource, *more] if not _is_of_namespace(rest):
            return _named(Target(group, version, resource, namespace), more)
        case [resource, *more]:
            found = _named(Target(group, version, resource), more)
            if found is not None and found.resource == "namespaces" and found.name:
                # A namespace itself counts as in the namespace.
                return found._replace(namespace=found.name)
            return found
    return None


def _is_of_namespace(rest: list[str]) -> bool:
    """Return whether a path below a namespace is a subresource of the namespace itself."""
    return len(rest) == 3 and rest[2] in ("status", "finalize")


def _named(target: Target, more: list[str]) -> Target | None:
    match more:
        case []:
            return target
        case [name]:
            return target._replace(name=name)
        case [name, subresource]:
            return target._replace(name=name, subresource=subresource)
        case [name, "proxy", *_]:  # the rest is a path of the node
            return target._replace(name=name, subresource="proxy")
    return None


# --- responses ------------------------------------------------------------------------------------


class Response(NamedTuple):
    """A complete response."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: Headers = NO_CACHE
    user: str = ""  # who asked, if it is known


class StreamingResponse(NamedTuple):
    """A response that goes on until either side ends it."""

    chunks: AsyncIterator[bytes]
    content_type: str = JSON
    headers: Headers = NO_CACHE
    # Receives the client's data after an upgrade. Then the chunks are all bytes of the connection,
    # including the response head, and the connection speaks HTTP no more.
    upstream: Callable[[bytes], Awaitable[None]] | None = None
    user: str = ""  # who asked, if it is known

    @property
    def status(self) -> int:
        """The status code."""
        return 200 if self.upstream is None else 101


def text_response(text: str, status: int = 200) -> Response:
    """Return a plain text response."""
    more = (("X-Content-Type-Options", "nosniff"),)
    return Response(text.encode(), status, PLAIN_TEXT, NO_CACHE + more)


class ClosingStream:
    """Chunks of another stream; calls `ended` once when it is closed.

    Its owner must close it, begun or not.
    """

    def __init__(self, chunks: AsyncIterator[bytes], ended: Callable[[], None]) -> None:
        self._chunks = chunks
        self._ended: Callable[[], None] | None = ended

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._chunks)

    async def aclose(self) -> None:
        """Close the stream."""
        try:
            close = getattr(self._chunks, "aclose", None)
            if close is not None:
                await close()
        finally:
            ended, self._ended = self._ended, None
            if ended is not None:
                ended()


# --- documents ------------------------------------------------------------------------------------


class Document(NamedTuple):
    """A document that the server has ready, with its headers."""

    body: bytes
    content_type: str = JSON
    etag: str = ""
    cache_control: str = "no-cache, private"

    def is_known(self, if_none_match: str) -> bool:
        """Return whether an If-None-Match header names this content."""
        tags = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
        return bool(self.etag) and ("*" in tags or self.etag in tags)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the response."""
        headers = {"Cache-Control": self.cache_control, "Content-Type": self.content_type}
        return {**headers, "ETag": self.etag, "Vary": "Accept"} if self.etag else headers


def content_hash(body: bytes) -> str:
    """Return the hash of a content."""
    return hashlib.sha512(body).hexdigest().upper()


def plain(tree: Any) -> Document:
    """Return a JSON document without an ETag."""
    return Document(msgspec.json.encode(tree))


def tagged(
    tree: Any, content_type: str = JSON, cache_control: str = "no-cache, private"
) -> Document:
    """Return a JSON document with an ETag, so that clients can cache it."""
    body = msgspec.json.encode(tree)
    return Document(body, content_type, f'"{content_hash(body)}"', cache_control)
