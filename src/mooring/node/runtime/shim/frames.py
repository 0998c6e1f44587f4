"""Messages on the socket: a length, a channel, and so many bytes.

Channel MESSAGE has JSON, the others what a command reads and says.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

HEADER = struct.Struct(">IB")
MESSAGE, OUTPUT, ERRORS, INPUT = range(4)
PAYLOAD_BYTES_MAX = 8 * 1024 * 1024
PROTOCOL = 1  # of what is said; keepers of another one are not understood


class FrameError(ValueError):
    """Bytes that are not what we speak."""


def frame(channel: int, payload: bytes) -> bytes:
    """Return the bytes of one frame."""
    return HEADER.pack(len(payload), channel) + payload


def message_frame(message: dict[str, Any]) -> bytes:
    """Return the bytes of one message."""
    return frame(MESSAGE, json.dumps(message, separators=(",", ":")).encode())


def read_message(payload: bytes) -> dict[str, Any]:
    """Return what a payload says, or raise FrameError."""
    try:
        message = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"not a message: {error}") from None
    if not isinstance(message, dict):
        raise FrameError("not a message: no object")
    return message


class Frames:
    """Takes bytes as they come, and gives whole frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the frames that are complete now, or raise FrameError."""
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            length, channel = HEADER.unpack_from(self._buffer)
            if length > PAYLOAD_BYTES_MAX or channel > INPUT:
                raise FrameError(f"a frame of {length} bytes on channel {channel}")
            end = HEADER.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[HEADER.size : end])
            del self._buffer[:end]
            yield channel, payload
