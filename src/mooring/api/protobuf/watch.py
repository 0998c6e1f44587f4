"""Events of a watch in protobuf: each has its length, four bytes, in front.

    frame:  length, big-endian, then the message WatchEvent {1 type, 2 object {1 raw}}

raw is the body of the object, with its own `k8s\\0`.
"""

from __future__ import annotations

from typing import NamedTuple

from mooring.api.errors import ProtobufError
from mooring.api.protobuf.envelope import BYTES_MAX, Body, decode
from mooring.api.protobuf.wire import LENGTH, Shape, WireError, delimited, tag_of

LENGTH_BYTES = 4

_EVENT = Shape(type=tag_of(1, LENGTH), object=tag_of(2, LENGTH))
_OBJECT = Shape(raw=tag_of(1, LENGTH))
_NONE = (0, 0)


class WatchEvent(NamedTuple):
    """What happened (ADDED, MODIFIED, DELETED, BOOKMARK, ERROR) and to which object."""

    type: str
    object: Body


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
