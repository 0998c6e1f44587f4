"""WebSocket frames (RFC 6455), without a network: bytes in, messages out.

     0               1               2 …
    +-+-+-+-+-------+-+-------------+------------------+----------+---------+
    |F|  0  | kind  |M| length 7bit | length 16 or 64  | mask 32  | payload |
    +-+-+-+-+-------+-+-------------+------------------+----------+---------+

A message may come in several frames; control frames may come between them. The size of a message
is bounded, and a frame's length is checked before its payload arrives.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

MESSAGE_BYTES_MAX = 1024 * 1024
CONTROL_BYTES_MAX = 125
KEY_BYTES = 16

NORMAL, PROTOCOL_ERROR, BAD_TEXT, TOO_LARGE = 1000, 1002, 1007, 1009
NO_CODE = 1005  # means a close without a code, and is never sent

_SALT: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Opcode(IntEnum):
    """The type of a frame; from CLOSE on they are control frames."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


_KINDS = {int(kind): kind for kind in Opcode}


class WebSocketError(Exception):
    """The peer violates the protocol; `code` is the close code to send."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Message(NamedTuple):
    """A whole message, or a control frame."""

    kind: Opcode  # never CONTINUATION
    data: bytes

    @property
    def close_code(self) -> int:
        """The peer's close code."""
        return int.from_bytes(self.data[:2]) if len(self.data) >= 2 else NO_CODE


def accept_of(key: str) -> str:
    """Return the Sec-WebSocket-Accept for a client's key."""
    return base64.b64encode(hashlib.sha1(key.encode() + _SALT).digest()).decode()  # noqa: S324


def is_key(text: str) -> bool:
    """Return whether a client's key is valid: 16 bytes in base64."""
    try:
        return len(base64.b64decode(text, validate=True)) == KEY_BYTES
    except ValueError:
        return False


def frame(kind: Opcode, data: bytes, *, mask: bytes = b"", is_last: bool = True) -> bytes:
    """Encode a frame; clients pass a mask of four random bytes."""
    size = len(data)
    first = kind | (0x80 if is_last else 0)
    masked = 0x80 if mask else 0
    if size <= CONTROL_BYTES_MAX:
        head = bytes((first, masked | size))
    elif size < 1 << 16:
        head = bytes((first, masked | 126)) + size.to_bytes(2)
    else:
        head = bytes((first, masked | 127)) + size.to_bytes(8)
    return head + mask + _masked(data, mask) if mask else head + data


def closing(code: int, text: str = "") -> bytes:
    """Return the payload of a close frame."""
    return (
        code.to_bytes(2) + text.encode()[: CONTROL_BYTES_MAX - 2].decode(errors="ignore").encode()
    )


class Reader:
    """Decodes bytes into messages, however the bytes are split."""

    def __init__(self, *, from_client: bool, bytes_max: int = MESSAGE_BYTES_MAX) -> None:
        self._from_client = from_client
        self._bytes_max = bytes_max
        self._buffer = bytearray()
        self._message = bytearray()
        self._kind: Opcode | None = None  # of the incomplete message
        self._is_closed = False

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that are complete, or raise WebSocketError; after a close, nothing."""
        self._buffer += data
        while not self._is_closed and (found := self._next_frame()) is not None:
            kind, payload, _ = found
            message = self._control(kind, payload) if kind >= Opcode.CLOSE else self._part(*found)
            if message is not None:
                yield message
        if self._is_closed:
            self._buffer.clear()

    def _next_frame(self) -> tuple[Opcode, bytes, bool] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        kind, is_last = _kind_of(buffer[0]), bool(buffer[0] & 0x80)
        is_masked, size, at = bool(buffer[1] & 0x80), buffer[1] & 0x7F, 2
        if is_masked != self._from_client:
            raise WebSocketError(PROTOCOL_ERROR, "clients must mask frames and servers must not")
        if kind >= Opcode.CLOSE and (size > CONTROL_BYTES_MAX or not is_last):
            raise WebSocketError(PROTOCOL_ERROR, "a control frame is too large or fragmented")
        if size > CONTROL_BYTES_MAX:
            at += 2 if size == 126 else 8
            if len(buffer) < at:
                return None
            size = int.from_bytes(buffer[2:at])
        held = len(self._message) if kind < Opcode.CLOSE else 0
        if held + size > self._bytes_max:
            raise WebSocketError(TOO_LARGE, f"a message is larger than {self._bytes_max} bytes")
        start = at + 4 if is_masked else at
        if len(buffer) < start + size:
            return None
        payload = bytes(buffer[start : start + size])
        if is_masked:
            payload = _masked(payload, bytes(buffer[at:start]))
        del buffer[: start + size]
        return kind, payload, is_last

    def _control(self, kind: Opcode, payload: bytes) -> Message:
        if kind is Opcode.CLOSE:
            if len(payload) == 1:
                raise WebSocketError(PROTOCOL_ERROR, "a close code must have two bytes")
            self._is_closed = True
        return Message(kind, payload)

    def _part(self, kind: Opcode, payload: bytes, is_last: bool) -> Message | None:
        if (kind is Opcode.CONTINUATION) != (self._kind is not None):
            raise WebSocketError(PROTOCOL_ERROR, "a message begins within another")
        whole_kind = kind if self._kind is None else self._kind
        self._message += payload
        if not is_last:
            self._kind = whole_kind
            return None
        data = bytes(self._message)
        self._message.clear()
        self._kind = None
        if whole_kind is Opcode.TEXT:
            _check_text(data)
        return Message(whole_kind, data)


def _kind_of(first: int) -> Opcode:
    if first & 0x70:
        raise WebSocketError(PROTOCOL_ERROR, "reserved bits are set")
    kind = _KINDS.get(first & 0x0F)
    if kind is None:
        raise WebSocketError(PROTOCOL_ERROR, f"unknown opcode {first & 0x0F}")
    return kind


def _check_text(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        raise WebSocketError(BAD_TEXT, "a text message is not valid UTF-8") from None


def _masked(data: bytes, mask: bytes) -> bytes:
    """Return data with the mask applied or removed."""
    size = len(data)
    over = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data) ^ int.from_bytes(over)).to_bytes(size)
