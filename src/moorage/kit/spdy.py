"""SPDY/3.1 frames, without a network: bytes in, frames out. Kubernetes' streaming uses it.

    control  |1| version 15 | type 16 | flags 8 | length 24 | payload
    data     |0| stream id 31         | flags 8 | length 24 | payload

A block of headers is compressed with one zlib stream for the whole connection, so blocks must be
read in order, including those that are not needed. Sizes of frames and blocks are bounded.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

VERSION: Final = 3
FRAME_BYTES_MAX: Final = 1024 * 1024
HEADERS_BYTES_MAX: Final = 64 * 1024
HEADERS_MAX: Final = 100

FIN: Final = 0x01
PROTOCOL_ERROR, INVALID_STREAM, REFUSED_STREAM, CANCEL = 1, 2, 3, 5

# The preset dictionary of the protocol: words with their lengths, then plain text.
_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language "
    "accept-ranges age allow authorization cache-control connection content-base content-encoding "
    "content-language content-length content-location content-md5 content-range content-type date "
    "etag expect expires from host if-match if-modified-since if-none-match if-range "
    "if-unmodified-since last-modified location max-forwards pragma proxy-authenticate "
    "proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
)
_LAST_WORDS: Final = "version HTTP/1.1 url public set-cookie keep-alive origin"
_TEXT: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, "
    "Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _sized(text: str) -> bytes:
    data = text.encode()
    return len(data).to_bytes(4) + data


DICTIONARY: Final = (
    b"".join(_sized(each) for each in (*_WORDS.split(), "200 OK", *_LAST_WORDS.split()))
    + _TEXT.encode()
)


class ControlType(IntEnum):
    """The type of a control frame."""

    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    PING = 6
    GOAWAY = 7
    HEADERS = 8


class SpdyError(Exception):
    """The peer violates the protocol."""


class SynStream(NamedTuple):
    """The peer opens a stream."""

    stream: int
    headers: Mapping[str, str]  # names in lower case
    is_last: bool  # the peer sends no data


class Data(NamedTuple):
    """Data of a stream."""

    stream: int
    data: bytes
    is_last: bool


class Reset(NamedTuple):
    """The peer ends a stream at once."""

    stream: int
    status: int


class Ping(NamedTuple):
    """The peer expects the same number back."""

    number: int


class GoAway(NamedTuple):
    """The peer opens no more streams."""


Frame = SynStream | Data | Reset | Ping | GoAway


class Reader:
    """Decodes bytes into frames, however the bytes are split."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete, or raise SpdyError."""
        self._buffer += data
        while len(self._buffer) >= 8:
            size = int.from_bytes(self._buffer[5:8])
            if size > FRAME_BYTES_MAX:
                raise SpdyError(f"a frame is larger than {FRAME_BYTES_MAX} bytes")
            if len(self._buffer) < 8 + size:
                return
            head, payload = bytes(self._buffer[:8]), bytes(self._buffer[8 : 8 + size])
            del self._buffer[: 8 + size]
            frame = self._control(head, payload) if head[0] & 0x80 else _data(head, payload)
            if frame is not None:
                yield frame

    def _control(self, head: bytes, payload: bytes) -> Frame | None:
        if int.from_bytes(head[:2]) & 0x7FFF != VERSION:
            raise SpdyError("it is not SPDY/3")
        kind, is_last = int.from_bytes(head[2:4]), bool(head[4] & FIN)
        match kind:
            case ControlType.SYN_STREAM:
                return SynStream(_stream(payload, 10), self._headers(payload[10:]), is_last)
            case ControlType.SYN_REPLY | ControlType.HEADERS:
                _stream(payload, 4)
                self._headers(payload[4:])
            case ControlType.RST_STREAM:
                return Reset(_stream(payload, 8), int.from_bytes(payload[4:8]))
            case ControlType.PING:
                return Ping(_number(payload, 4))
            case ControlType.GOAWAY:
                return GoAway()
        return None  # settings and windows: as in Kubernetes, the connection itself is the window

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(block, HEADERS_BYTES_MAX)
        except zlib.error:
            raise SpdyError("a block of headers cannot be decompressed") from None
        if self._inflate.unconsumed_tail:
            raise SpdyError(f"a block of headers is larger than {HEADERS_BYTES_MAX} bytes")
        return _read_headers(plain)


def _data(head: bytes, payload: bytes) -> Data:
    return Data(int.from_bytes(head[:4]), payload, bool(head[4] & FIN))


def _stream(payload: bytes, least: int) -> int:
    found = _number(payload, least) & 0x7FFFFFFF
    if not found:
        raise SpdyError("stream id zero is disallowed")
    return found


def _number(payload: bytes, least: int) -> int:
    if len(payload) < least:
        raise SpdyError("a control frame is too short")
    return int.from_bytes(payload[:4])


def _read_headers(plain: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 4

    def text() -> str:
        nonlocal at
        size = int.from_bytes(plain[at : at + 4])
        start, at = at + 4, at + 4 + size
        if at > len(plain):
            raise SpdyError("a block of headers ends too early")
        return plain[start:at].decode("utf-8", "replace")

    if len(plain) < 4 or (count := int.from_bytes(plain[:4])) > HEADERS_MAX:
        raise SpdyError(f"a block has no number of headers, or more than {HEADERS_MAX}")
    for _ in range(count):
        name = text().lower()
        found[name] = text()
    return found


class FrameWriter:
    """Encodes frames of one connection."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def syn_stream(
        self, stream: int, headers: Mapping[str, str], *, is_last: bool = False
    ) -> bytes:
        """Return the frame that opens a stream."""
        numbers = stream.to_bytes(4) + bytes(6)  # without another stream, of priority 0
        return _control(
            ControlType.SYN_STREAM, numbers + self._block(headers), FIN if is_last else 0
        )

    def syn_reply(self, stream: int) -> bytes:
        """Return the frame that accepts a stream."""
        return _control(ControlType.SYN_REPLY, stream.to_bytes(4) + self._block({}))

    def _block(self, headers: Mapping[str, str]) -> bytes:
        pairs = b"".join(_sized(name.lower()) + _sized(value) for name, value in headers.items())
        plain = len(headers).to_bytes(4) + pairs
        return self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def data_frame(stream: int, data: bytes, *, is_last: bool = False) -> bytes:
    """Return a frame with data, or with its end."""
    return stream.to_bytes(4) + bytes((FIN if is_last else 0,)) + len(data).to_bytes(3) + data


def reset_frame(stream: int, status: int) -> bytes:
    """Return the frame that ends a stream at once."""
    return _control(ControlType.RST_STREAM, stream.to_bytes(4) + status.to_bytes(4))


def ping_frame(number: int) -> bytes:
    """Return a ping, or the answer to one."""
    return _control(ControlType.PING, number.to_bytes(4))


def goaway_frame(last_stream: int) -> bytes:
    """Return the frame before the end of a connection."""
    return _control(ControlType.GOAWAY, last_stream.to_bytes(4) + bytes(4))


def _control(kind: ControlType, payload: bytes, flags: int = 0) -> bytes:
    head = (0x8000 | VERSION).to_bytes(2) + kind.to_bytes(2)
    return head + bytes((flags,)) + len(payload).to_bytes(3) + payload
