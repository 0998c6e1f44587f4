"""Whole bodies, and events of a watch.

body:     "k8s\\0" unknown
unknown:  1 typeMeta {1 apiVersion, 2 kind}, 2 raw, 3 contentEncoding, 4 contentType
frame:    length in four bytes, big-endian, then the message WatchEvent {1 type, 2 object {1 raw}},
          in which raw is the body of the object
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from moorage.api.errors import ProtobufError
from moorage.api.field_path import render
from moorage.api.protobuf.reader import ReadBudget, Tree, reader_of
from moorage.api.protobuf.wire import LENGTH, WireError, WireFields, delimited, tag_of
from moorage.api.protobuf.writer import writer_of
from moorage.api.raw_json import to_raw_tree
from moorage.api.schema import find_kind

MAGIC = b"k8s\x00"
BYTES_MAX = 64 * 1024 * 1024

_UNKNOWN = WireFields(
    type_meta=tag_of(1, LENGTH),
    raw=tag_of(2, LENGTH),
    content_encoding=tag_of(3, LENGTH),
    content_type=tag_of(4, LENGTH),
)
_TYPE_META = WireFields(api_version=tag_of(1, LENGTH), kind=tag_of(2, LENGTH))
_NONE = (0, 0)


class ProtobufBody(NamedTuple):
    """The content of a body: the object as in JSON, with apiVersion and kind.

    JSON inside an object (parameters of drivers, managed fields) is msgspec.Raw in the tree: its
    text is kept as it came.
    """

    api_version: str
    kind: str
    tree: Tree

    @property
    def json(self) -> bytes:
        """The object as JSON text, for whatever reads requests in JSON."""
        return msgspec.json.encode(self.tree)


def decode(
    data: bytes, *, api_version: str = "", kind: str = "", bytes_max: int = BYTES_MAX
) -> ProtobufBody:
    """Return the object of a body, or raise ProtobufError.

    api_version and kind are those of the request; they are used if the body has none.
    """
    try:
        raw, said = _open(data, bytes_max)
        said = (said[0] or api_version, said[1] or kind)
        message = _message(*said)
        tree: Tree = {"apiVersion": said[0], "kind": said[1]}
        reader_of(message).read(tree, data, *raw, ReadBudget())
    except WireError as fault:
        raise _error(fault) from None
    return ProtobufBody(*said, tree)


def encode(tree: Tree) -> bytes:
    """Return the body of an object that a tree describes, or raise ProtobufError."""
    try:
        said = (_text(tree, "apiVersion"), _text(tree, "kind"))
        return seal(*said, writer_of(_message(*said)).write(tree))
    except WireError as fault:
        raise _error(fault) from None


def encode_object(value: Struct) -> bytes:
    """Return the body of an object."""
    return encode(to_raw_tree(value))


def seal(api_version: str, kind: str, raw: bytes) -> bytes:
    """Return a body around the bytes of an object's message."""
    type_meta = b"\x0a" + delimited(api_version.encode()) + b"\x12" + delimited(kind.encode())
    return b"".join(
        (MAGIC, b"\x0a", delimited(type_meta), b"\x12", delimited(raw), b"\x1a\x00\x22\x00")
    )


def is_protobuf(data: bytes) -> bool:
    """Whether data looks like a body in protobuf."""
    return data.startswith(MAGIC)


def _open(data: bytes, bytes_max: int) -> tuple[tuple[int, int], tuple[str, str]]:
    """Return where the object is, and its apiVersion and kind."""
    if len(data) > bytes_max:
        raise WireError(f"more than {bytes_max} bytes")
    if not is_protobuf(data):
        raise WireError("not an object in protobuf: it does not begin with k8s and a zero")
    if len(data) == len(MAGIC):
        raise WireError("the body is empty")
    unknown = _UNKNOWN.read(data, len(MAGIC), len(data))
    said = _TYPE_META.read(data, *unknown.get("type_meta", _NONE))
    try:
        texts = [data[slice(*said.get(name, _NONE))].decode() for name in ("api_version", "kind")]
    except UnicodeDecodeError:
        raise WireError("apiVersion or kind is not valid UTF-8") from None
    return unknown.get("raw", _NONE), (texts[0], texts[1])


def _message(api_version: str, kind: str) -> str:
    for name, value in (("apiVersion", api_version), ("kind", kind)):
        if not value:
            raise WireError(f"not a Kubernetes object: {name} is not set")
    message = find_kind(api_version, kind)
    if message is None:
        raise WireError(f'no protobuf form for kind "{kind[:64]}" in version "{api_version[:64]}"')
    return message


def _text(tree: Any, name: str) -> str:
    value = tree.get(name) if isinstance(tree, dict) else None
    return value if isinstance(value, str) else ""


def _error(fault: WireError) -> ProtobufError:
    place = tuple(reversed(fault.place))
    where = render(place)
    return ProtobufError(f"{where}: {fault.fact}" if where else fault.fact, place)


# --- events of a watch -------------------------------------------------------------------------


LENGTH_BYTES = 4

_EVENT = WireFields(type=tag_of(1, LENGTH), object=tag_of(2, LENGTH))
_OBJECT = WireFields(raw=tag_of(1, LENGTH))


class WatchEvent(NamedTuple):
    """What happened (ADDED, MODIFIED, DELETED, BOOKMARK, ERROR) and to which object."""

    type: str
    object: ProtobufBody


def encode_event(event_type: str, body: bytes) -> bytes:
    """Return the frame of an event; body is what `encode` gave for its object."""
    raw = b"\x0a" + delimited(body)
    message = b"\x0a" + delimited(event_type.encode()) + b"\x12" + delimited(raw)
    return len(message).to_bytes(LENGTH_BYTES, "big") + message


def split_events(data: bytes, *, bytes_max: int = BYTES_MAX) -> tuple[list[bytes], bytes]:
    """Return the messages of all whole frames, and the bytes after them."""
    messages: list[bytes] = []
    at = 0
    while at + LENGTH_BYTES <= len(data):
        size = int.from_bytes(data[at : at + LENGTH_BYTES], "big")
        if size > bytes_max:
            raise ProtobufError(f"an event of {size} bytes, more than {bytes_max}")
        stop = at + LENGTH_BYTES + size
        if stop > len(data):
            break
        messages.append(data[at + LENGTH_BYTES : stop])
        at = stop
    return messages, data[at:]


def decode_event(message: bytes) -> WatchEvent:
    """Return the event of a message, without the length in front, or raise ProtobufError."""
    try:
        event = _EVENT.read(message, 0, len(message))
        low, high = _OBJECT.read(message, *event.get("object", _NONE)).get("raw", _NONE)
        event_type = message[slice(*event.get("type", _NONE))].decode()
    except WireError as fault:
        raise ProtobufError(fault.fact) from None
    except UnicodeDecodeError:
        raise ProtobufError("type: the text is not valid UTF-8", ("type",)) from None
    return WatchEvent(event_type, decode(message[low:high]))
