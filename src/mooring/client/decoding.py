"""Answers to objects: one, lists, and the lines of a watch.

Fields that a kind does not have are no error: a newer server may have them. Kinds that others own
keep them, so that writing an object back loses nothing; the rest lets them go, as every client does
that was made before the field.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from mooring.api.catalogue import to_hub
from mooring.api.codec import decode_json, fitting_json
from mooring.api.errors import ApiError
from mooring.client.contract import Added, Bookmark, Event, Page, Removed
from mooring.client.endpoints import Endpoint
from mooring.client.errors import UnreadableError, error_of_status

T = TypeVar("T")

LINE_BYTES_MAX = 16 * 1024 * 1024


class _ListMetadata(Struct):
    resource_version: str = msgspec.field(name="resourceVersion", default="")
    rest: str | None = msgspec.field(name="continue", default="")


class _List(Struct):
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)
    items: list[Raw] | None = None


class _ListOf(Struct, Generic[T]):
    """A list whose items all fit their struct; most do."""

    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)
    items: list[T] | None = None


class _Line(Struct):
    type: str
    object: Raw


class _LineOf(Struct, Generic[T]):
    """An event whose object fits its struct; most do."""

    type: str
    object: T


class _Bookmarked(Struct):
    metadata: _ListMetadata


@lru_cache(maxsize=256)
def _list_of(struct: Any) -> Any:
    return _ListOf[struct]


@lru_cache(maxsize=256)
def _line_of(struct: Any) -> Any:
    return _LineOf[struct]


_CHANGES: dict[str, type[Added] | type[Removed]] = {
    "ADDED": Added,
    "MODIFIED": Added,
    "DELETED": Removed,
}

_LISTS = msgspec.json.Decoder(_List)
_LINES = msgspec.json.Decoder(_Line)
_BOOKMARKS = msgspec.json.Decoder(_Bookmarked)

_FAULTS = (ApiError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_object(body: bytes | Raw, endpoint: Endpoint) -> Any:
    """Return the object in the version that we work with, or raise UnreadableError."""
    kind = endpoint.kind
    try:
        value = decode_json(bytes(body), kind.struct).value
        return value if endpoint.is_hub else _to_hub(value, endpoint)
    except _FAULTS as error:
        raise UnreadableError(f"no {kind.name} that can be read: {error}") from None


def read_plain(body: bytes, struct: type[T]) -> T:
    """Return an answer that is no stored object, or raise UnreadableError."""
    try:
        return decode_json(body, struct).value
    except _FAULTS as error:
        raise UnreadableError(f"no {struct.__name__} that can be read: {error}") from None


def read_list(body: bytes, endpoint: Endpoint) -> Page:
    """Return the objects of a list, or raise UnreadableError."""
    if endpoint.is_hub:
        fits = fitting_json(body, _list_of(endpoint.kind.struct))
        if fits is not None:
            metadata = fits.metadata
            return Page(tuple(fits.items or ()), metadata.resource_version, metadata.rest or "")
    try:
        found = _LISTS.decode(body)
    except _FAULTS as error:
        raise UnreadableError(f"no list of {endpoint.kind.name}: {error}") from None
    metadata = found.metadata
    values = tuple([read_object(item, endpoint) for item in found.items or ()])
    return Page(values, metadata.resource_version, metadata.rest or "")


def read_event(line: bytes, endpoint: Endpoint) -> Event | None:
    """Return what a line of a watch says; raises what it says of an error."""
    if endpoint.is_hub:
        fits = fitting_json(line, _line_of(endpoint.kind.struct))
        if fits is not None and fits.type in _CHANGES:
            return _CHANGES[fits.type](fits.object)
    try:
        found = _LINES.decode(line)
        match found.type:
            case "ADDED" | "MODIFIED":
                return Added(read_object(found.object, endpoint))
            case "DELETED":
                return Removed(read_object(found.object, endpoint))
            case "BOOKMARK":
                return Bookmark(_BOOKMARKS.decode(found.object).metadata.resource_version)
    except _FAULTS as error:
        raise UnreadableError(f"no event of {endpoint.kind.name}: {error}") from None
    if found.type == "ERROR":
        raise error_of_status(bytes(found.object))
    return None  # a type that is not known yet


async def read_lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines of a stream, which are bounded."""
    begun: list[bytes] = []  # of a line whose end has not come
    begun_bytes = 0
    async for part in parts:
        lines = part.split(b"\n")
        last = lines.pop()
        if lines and begun:
            lines[0] = b"".join([*begun, lines[0]])
            begun, begun_bytes = [], 0
        for line in lines:
            if line:
                yield line
        if last:
            begun.append(last)
            begun_bytes += len(last)
            if begun_bytes > LINE_BYTES_MAX:
                raise UnreadableError(f"an event is beyond {LINE_BYTES_MAX} bytes")


def _to_hub(value: Any, endpoint: Endpoint) -> Any:
    """Return an object of another version; items of lists do not say which they are."""
    kind = endpoint.kind
    if kind.hub_version != value.api_version and value.api_version != kind.api_version:
        value = msgspec.structs.replace(value, api_version=kind.api_version, kind=kind.name)
    return to_hub(value, kind)
