"""Decodes responses to objects: one, lists, and the lines of a watch.

Unknown fields are not an error: a newer server may have them. Kinds that others own keep them, so
that an update loses nothing; other kinds drop them, as every client does that is older than the
field.

One object that cannot be read must not keep the others of a list or a watch from their readers: it
is an `Unreadable` in its place, as far as it says what it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from moorage.api.catalogue import to_hub
from moorage.api.codec import decode_json, fitting_json
from moorage.api.errors import ApiError
from moorage.client.contract import Added, Bookmark, Event, ObjectList, Removed, Unreadable
from moorage.client.errors import UnreadableError, error_of_status
from moorage.client.rest_mapper import Endpoint
from moorage.kit.bulkhead import cause_text

T = TypeVar("T")

LINE_BYTES_MAX = 16 * 1024 * 1024


class _ListMetadata(Struct):
    resource_version: str = msgspec.field(name="resourceVersion", default="")
    rest: str | None = msgspec.field(name="continue", default="")


class _List(Struct):
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)
    items: list[Raw] | None = None


class _ListOf(Struct, Generic[T]):
    """A list whose items all fit their struct, as most do."""

    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)
    items: list[T] | None = None


class _Line(Struct):
    type: str
    object: Raw


class _LineOf(Struct, Generic[T]):
    """An event whose object fits its struct, as most do."""

    type: str
    object: T


class _Bookmarked(Struct):
    metadata: _ListMetadata


class _Identity(Struct):
    """What an object that cannot be read must say of itself."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Identified(Struct):
    metadata: _Identity


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
_IDENTITIES = msgspec.json.Decoder(_Identified)
_BOOKMARKS = msgspec.json.Decoder(_Bookmarked)

_FAULTS = (ApiError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_object(body: bytes | Raw, endpoint: Endpoint) -> Any:
    """Return an object in the hub version, or raise UnreadableError."""
    kind = endpoint.kind
    try:
        value = decode_json(bytes(body), kind.struct).value
        return value if endpoint.is_hub else _to_hub(value, endpoint)
    except _FAULTS as error:
        raise UnreadableError(f"cannot decode {kind.name}: {error}") from None


def read_plain(body: bytes, struct: type[T]) -> T:
    """Return a response that is not a stored object, or raise UnreadableError."""
    try:
        return decode_json(body, struct).value
    except _FAULTS as error:
        raise UnreadableError(f"cannot decode {struct.__name__}: {error}") from None


def read_list(body: bytes, endpoint: Endpoint) -> ObjectList:
    """Return the objects of a list, or raise UnreadableError."""
    if endpoint.is_hub:
        fits = fitting_json(body, _list_of(endpoint.kind.struct))
        if fits is not None:
            metadata = fits.metadata
            return ObjectList(
                tuple(fits.items or ()), metadata.resource_version, metadata.rest or ""
            )
    try:
        found = _LISTS.decode(body)
    except _FAULTS as error:
        raise UnreadableError(f"cannot decode a list of {endpoint.kind.name}: {error}") from None
    metadata = found.metadata
    items = [_read_item(item, endpoint) for item in found.items or ()]
    values = tuple([each for each in items if not isinstance(each, Unreadable)])
    unreadable = tuple([each for each in items if isinstance(each, Unreadable)])
    return ObjectList(values, metadata.resource_version, metadata.rest or "", unreadable)


def _read_item(body: Raw, endpoint: Endpoint) -> Any:
    """Return an object, or what it says of itself; raise UnreadableError if that is nothing."""
    try:
        return read_object(body, endpoint)
    except Exception as error:  # whatever is wrong with it: the others of the list can be read
        try:
            identity = _IDENTITIES.decode(body).metadata
        except _FAULTS:
            raise UnreadableError(_cause(error)) from None
        return Unreadable(
            struct=endpoint.kind.struct,
            namespace=identity.namespace,
            name=identity.name,
            uid=identity.uid,
            revision=identity.resource_version,
            cause=_cause(error),
            text=bytes(body),
        )


def _cause(error: Exception) -> str:
    return error.message if isinstance(error, UnreadableError) else cause_text(error)


def read_event(line: bytes, endpoint: Endpoint) -> Event | None:
    """Return the event of a line of a watch, or raise its error."""
    if endpoint.is_hub:
        fits = fitting_json(line, _line_of(endpoint.kind.struct))
        if fits is not None and fits.type in _CHANGES:
            return _CHANGES[fits.type](fits.object)
    try:
        found = _LINES.decode(line)
        match found.type:
            case "ADDED" | "MODIFIED":
                item = _read_item(found.object, endpoint)
                return item if isinstance(item, Unreadable) else Added(item)
            case "DELETED":
                item = _read_item(found.object, endpoint)
                if isinstance(item, Unreadable):
                    return msgspec.structs.replace(item, is_gone=True)
                return Removed(item)
            case "BOOKMARK":
                return Bookmark(_BOOKMARKS.decode(found.object).metadata.resource_version)
    except _FAULTS as error:
        raise UnreadableError(f"cannot decode an event of {endpoint.kind.name}: {error}") from None
    if found.type == "ERROR":
        raise error_of_status(bytes(found.object))
    return None  # an unknown type


async def read_lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines of a stream, bounded in length."""
    begun: list[bytes] = []  # parts of an incomplete line
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
                raise UnreadableError(f"an event exceeds {LINE_BYTES_MAX} bytes")


def _to_hub(value: Any, endpoint: Endpoint) -> Any:
    """Convert an object to the hub version; items of lists do not name theirs."""
    kind = endpoint.kind
    if kind.hub_version != value.api_version and value.api_version != kind.api_version:
        value = msgspec.structs.replace(value, api_version=kind.api_version, kind=kind.name)
    return to_hub(value, kind)
