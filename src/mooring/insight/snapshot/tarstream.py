"""The archive's outer form: a gzipped tar of plain files, in one way only.

    archive = gzip( file … end )        file = header(512) content padding(to 512)

Anybody's tar can read it. We write it the same way every time, and read nothing else: no links,
no folders, no long names, no second gzip stream. A hostile archive is refused at the first block
that is not ours, before what it claims to hold is unpacked.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

BLOCK: Final = 512
NAME_MAX: Final = 100
_CHUNK_BYTES: Final = 64 * 1024
_PIECE_BYTES: Final = 16 * 1024

_GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"  # no name, no time, any system
_END: Final = bytes(2 * BLOCK)
_is_octal = re.compile(rb"[0-7]{1,11}[\0 ]?").fullmatch


class ArchiveError(ValueError):
    """An archive that cannot be used; the message gives the fact."""


class Member(NamedTuple):
    """One file of an archive."""

    name: str
    content: bytes


# --- writing ------------------------------------------------------------------------------


def pack(members: Iterable[Member]) -> bytes:
    """Return the archive of the members; the same members give the same bytes."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    parts = [_GZIP_HEADER]
    checksum = size = 0
    for piece in _pieces(members):
        checksum = zlib.crc32(piece, checksum)
        size += len(piece)
        parts.append(compressor.compress(piece))
    parts.append(compressor.flush())
    parts.append(checksum.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little"))
    return b"".join(parts)


def _pieces(members: Iterable[Member]) -> Iterator[bytes]:
    for member in members:
        yield _header(member.name, len(member.content))
        yield member.content
        yield bytes(-len(member.content) % BLOCK)
    yield _END


def _header(name: str, size: int) -> bytes:
    """Return the ustar header of a plain file that belongs to nobody and is of no time."""
    assert len(name) < NAME_MAX
    fields = (
        name.encode().ljust(NAME_MAX, b"\0"),
        b"0000644\0",  # mode
        b"0000000\0" * 2,  # owner and group
        b"%011o\0" % size,
        b"%011o\0" % 0,  # time
        b" " * 8,  # checksum, as if it were blank
        b"0",  # a plain file
        bytes(100),  # no link
        b"ustar\x0000",
    )
    block = b"".join(fields).ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


# --- reading ------------------------------------------------------------------------------


def unpack(data: bytes, *, bytes_max: int) -> Iterator[Member]:
    """Yield the members as they are unpacked, or raise ArchiveError."""
    stream = _Stream(data, bytes_max)
    while True:
        block = stream.read(BLOCK)
        if block == bytes(BLOCK):
            break
        name, size = _read_header(block)
        if size > bytes_max:
            raise stream.too_large()
        content = stream.read(size)
        stream.read(-size % BLOCK)
        yield Member(name, content)
    stream.finish()


def _read_header(block: bytes) -> tuple[str, int]:
    checksum = block[148:156].rstrip(b"\0 ")
    blank = sum(block) - sum(block[148:156]) + 8 * ord(" ")
    if not _is_octal(checksum) or int(checksum, 8) != blank:
        raise ArchiveError("not a tar of moor snapshot: the checksum of a header is wrong")
    name = block[:NAME_MAX].rstrip(b"\0").decode("ascii", "replace")
    if block[156:157] not in (b"0", b"\0") or any(block[345:500]):
        raise ArchiveError(f"{name!r} is not a plain file; links, folders and the like are refused")
    size = block[124:136]
    if not _is_octal(size):
        raise ArchiveError(f"{name!r} has no size that can be read")
    return name, int(size.rstrip(b"\0 "), 8)


class _Stream:
    """What gzip packed, unpacked no further than it is read."""

    def __init__(self, data: bytes, bytes_max: int) -> None:
        self._unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._data = memoryview(data)
        self._fed = 0
        self._bytes_max = bytes_max
        self._left = bytes_max

    def read(self, size: int) -> bytes:
        """Return exactly so many bytes."""
        parts: list[bytes] = []
        missing = size
        while missing:
            part = self._more(min(missing, _CHUNK_BYTES))
            if not part:
                raise ArchiveError("cut off: the file ends before the archive does")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def finish(self) -> None:
        """Check that nothing follows but the end, and that all of it was whole."""
        while part := self._more(_CHUNK_BYTES):
            if part.strip(b"\0"):
                raise ArchiveError("there is something after the end of the tar")
        if not self._unpacker.eof:
            raise ArchiveError("cut off: the file ends before the archive does")
        if self._unpacker.unused_data or self._fed < len(self._data):
            raise ArchiveError("there is something after the end of the archive")

    def too_large(self) -> ArchiveError:
        """Return the error for an archive that holds more than is read."""
        return ArchiveError(f"holds more than {self._bytes_max:,} bytes, which is all that is read")

    def _more(self, size_max: int) -> bytes:
        if self._unpacker.eof:
            return b""
        part = b""
        # Fed in small pieces, for what is left of a piece is copied every time.
        while not part and not self._unpacker.eof:
            piece = self._unpacker.unconsumed_tail or self._next_piece()
            try:
                part = self._unpacker.decompress(piece, size_max)
            except zlib.error as error:
                raise ArchiveError(f"not a whole gzip file: {error}") from None
            if not piece and not part:
                break
        self._left -= len(part)
        if self._left < 0:
            raise self.too_large()
        return part

    def _next_piece(self) -> bytes:
        piece = bytes(self._data[self._fed : self._fed + _PIECE_BYTES])
        self._fed += len(piece)
        return piece
