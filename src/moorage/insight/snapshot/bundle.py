"""The files of any tar or zip: read from bytes, within bounds.

    bytes ─ gzip? ─ tar: header, content, …                 ─┬─ Bundle
          └ zip: directory at the end ─ header, content, …  ─┘

Nothing is written, and the name of a member is only printed, so a hostile name does no harm. Links
and devices are left out. Of a zip that unpacks to more than it says, and of a tar that is longer
than it says, no more is unpacked than is read.

    # wanted: a file that the caller would read, by its name
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator
from struct import Struct as Layout
from typing import BinaryIO, Final, NamedTuple

from moorage.insight.errors import ArchiveError
from moorage.insight.snapshot.archive import BLOCK, Member

ENTRIES_MAX: Final = 100_000  # files, folders, links and headers
FILES_MAX: Final = 20_000  # that are wanted
FILE_BYTES_MAX: Final = 64 * 1024 * 1024
BYTES_MAX: Final = 256 * 1024 * 1024  # of all used files
STREAM_BYTES_MAX: Final = 1024 * 1024 * 1024  # of a tar, with unused files
NAME_SHOWN_MAX: Final = 255
GZIP_MAGIC: Final = b"\x1f\x8b"

_CHUNK_BYTES: Final = 64 * 1024
_NAME_MAX: Final = 4096  # as long as paths can be
_HEADER_BYTES_MAX: Final = 64 * 1024  # of one extended header
_HEADERS_BYTES_MAX: Final = 64 * 1024 * 1024  # of all extended headers
_RECORD_BYTES_MIN: Final = len(b"5 a=\n")
_OCTAL: Final = re.compile(rb"[0-7]{1,12}")
_PAX_RECORD: Final = re.compile(rb"([0-9]{1,7}) (path|size)=")
_MORE: Final = "which is all that is read"


class Bundle(NamedTuple):
    """The wanted files of a bundle, and the wanted names that are links or devices."""

    files: tuple[Member, ...]
    left_out: tuple[str, ...]


Wanted = Callable[[str], bool]


def is_bundle(data: bytes) -> bool:
    """Return whether the first bytes are those of a zip, a tar or a gzipped tar."""
    if data.startswith((_ZIP_FILE, _ZIP_END)):
        return True
    if not data.startswith(GZIP_MAGIC):
        return _is_tar_header(data[:BLOCK])
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return _is_tar_header(file.read(BLOCK))
    except (OSError, EOFError, zlib.error):
        return False


def read_bundle(data: bytes, wanted: Wanted) -> Bundle:
    """Return the wanted files of a zip, a tar or a gzipped tar, or raise ArchiveError."""
    try:
        if data.startswith((_ZIP_FILE, _ZIP_END)):
            return _read(_zip_entries(data), wanted)
        if not data.startswith(GZIP_MAGIC):
            return _read(_tar_entries(_Stream(io.BytesIO(data))), wanted)
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return _read(_tar_entries(_Stream(file)), wanted)
    except (OSError, EOFError, zlib.error) as error:
        raise ArchiveError(f"not a whole archive: {error}") from None


class _Entry(NamedTuple):
    """A member: `content` reads it, unless it is no plain file."""

    name: str
    content: Callable[[], bytes] | None
    is_folder: bool = False


def _read(entries: Iterator[_Entry], wanted: Wanted) -> Bundle:
    files: list[Member] = []
    left_out: list[str] = []
    left = BYTES_MAX
    for number, entry in enumerate(entries):
        if number >= ENTRIES_MAX:
            raise ArchiveError(f"has more than {ENTRIES_MAX:,} members, {_MORE}")
        if entry.is_folder or not wanted(entry.name):
            continue
        if len(files) + len(left_out) >= FILES_MAX:
            raise ArchiveError(f"has more than {FILES_MAX:,} files to read, {_MORE}")
        if entry.content is None:
            left_out.append(_shown(entry.name))
            continue
        files.append(Member(_shown(entry.name), entry.content()))
        left -= len(files[-1].content)
        if left < 0:
            raise ArchiveError(f"has more than {BYTES_MAX // 2**20} MiB to read, {_MORE}")
    return Bundle(tuple(files), tuple(left_out))


def _shown(name: str) -> str:
    """Return a name for messages: short, and without terminal control characters."""
    letters = (letter if letter.isprintable() else ascii(letter)[1:-1] for letter in name[:1024])
    shown = "".join(letters)
    return shown if len(shown) <= NAME_SHOWN_MAX else f"{shown[: NAME_SHOWN_MAX - 1]}…"


def _text(name: bytes, otherwise: str = "latin-1") -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name.decode(otherwise)


def _too_large(name: str) -> ArchiveError:
    return ArchiveError(f"{_shown(name)}: larger than {FILE_BYTES_MAX // 2**20} MiB, {_MORE}")


# --- tar ----------------------------------------------------------------------------------

_FILES: Final = (b"\0", b"0", b"7")  # the last: contiguous
_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL = b"L", b"K", b"x", b"g"
_FOLDER: Final = b"5"


class _Stream:
    """A tar, read from front to back."""

    def __init__(self, file: BinaryIO | gzip.GzipFile) -> None:
        self._file = file
        self._left = STREAM_BYTES_MAX

    def read(self, size: int) -> bytes:
        """Return exactly `size` bytes."""
        parts: list[bytes] = []
        while size:
            part = self._file.read(min(size, _CHUNK_BYTES))
            if not part:
                raise ArchiveError("cut off: the file ends before the archive does")
            self._spend(len(part))
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def finish(self) -> None:
        """Read to the end, where gzip checks that the file is complete."""
        while part := self._file.read(_CHUNK_BYTES):
            self._spend(len(part))

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ArchiveError(f"holds more than {STREAM_BYTES_MAX // 2**30} GiB, {_MORE}")

    def skip(self, size: int) -> None:
        """Skip `size` bytes."""
        while size:
            piece = min(size, _CHUNK_BYTES)
            self.read(piece)
            size -= piece


def _tar_entries(stream: _Stream) -> Iterator[_Entry]:
    """Yield the members; read the content of one before asking for the next."""
    long_name = ""
    long_size: int | None = None
    extra_left = _HEADERS_BYTES_MAX
    while (block := stream.read(BLOCK)) != bytes(BLOCK):
        if not _is_tar_header(block):
            raise ArchiveError("the checksum of a header is wrong")
        kind, size = block[156:157], _tar_size(block[124:136])
        if kind in (_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL):
            extra_left -= size
            if size > _HEADER_BYTES_MAX or extra_left < 0:
                raise ArchiveError("a name is longer than any name")
            content = _tar_extra(stream, size)
            if kind == _LONG_NAME:
                long_name = _text(content.rstrip(b"\0"))
            elif kind == _PAX:
                name, long_size = _pax(content)
                long_name = name or long_name
            # Every header counts as a member, so that their number is bounded.
            yield _Entry("", None, is_folder=True)
            continue
        name = long_name or _tar_name(block)
        if len(name) > _NAME_MAX:
            raise ArchiveError("a name is longer than any name")
        body = _Body(stream, name, size if long_size is None else long_size)
        content_of = body.content if kind in _FILES else None
        yield _Entry(body.name, content_of, is_folder=kind == _FOLDER)
        body.finish()
        long_name, long_size = "", None
    stream.finish()


class _Body:
    """The content of a member of a tar, read or skipped."""

    def __init__(self, stream: _Stream, name: str, size: int) -> None:
        self.name = name
        self._stream = stream
        self._size = size
        self._left = size + -size % BLOCK

    def content(self) -> bytes:
        if self._size > FILE_BYTES_MAX:
            raise _too_large(self.name)
        self._left -= self._size
        return self._stream.read(self._size)

    def finish(self) -> None:
        self._stream.skip(self._left)


def _is_tar_header(block: bytes) -> bool:
    checksum = block[148:156].strip(b"\0 ")
    if len(block) != BLOCK or not _OCTAL.fullmatch(checksum):
        return False
    return int(checksum, 8) == sum(block) - sum(block[148:156]) + 8 * ord(" ")


def _tar_size(field: bytes) -> int:
    """Return a size, written in octal digits or, by GNU tar, in binary."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b"\0 ")
    if not _OCTAL.fullmatch(digits):
        raise ArchiveError("a member has no size that can be read")
    return int(digits, 8)


def _tar_name(block: bytes) -> str:
    name = _text(block[:100].partition(b"\0")[0])
    prefix = _text(block[345:500].partition(b"\0")[0]) if block[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _tar_extra(stream: _Stream, size: int) -> bytes:
    content = stream.read(size)
    stream.skip(-size % BLOCK)
    return content


def _pax(content: bytes) -> tuple[str, int | None]:
    """Return the name and size that an extended header gives the next member, if any.

    record = length " " key "=" value newline; the length counts the whole record
    """
    name, size = "", None
    at = 0
    while at < len(content):
        length, _, rest = content[at : at + 32].partition(b" ")
        if not length.isdigit() or not rest or int(length) < _RECORD_BYTES_MIN:
            raise ArchiveError("an extended header cannot be read")
        if found := _PAX_RECORD.match(content, at):
            value = content[found.end() : at + int(length) - 1]
            if found[2] == b"path":
                name = _text(value)
            elif value.isdigit() and len(value) <= 15:
                size = int(value)
        at += int(length)
    return name, size


# --- zip ----------------------------------------------------------------------------------

_ZIP_FILE, _ZIP_ENTRY, _ZIP_END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_END: Final = Layout("<4s4H2IH")  # signature, disks and counts, size and place of entries, comment
_ENTRY: Final = Layout("<4s2H2H2H3I5H2I")
_FILE: Final = Layout("<4s5H3I2H")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED: Final = 1  # a flag
_COMMENT_MAX: Final = 0xFFFF
_LARGE: Final = 0xFFFFFFFF  # the number is in the zip64 record
_TYPE_MASK, _REGULAR = 0o170000, 0o100000


def _zip_entries(data: bytes) -> Iterator[_Entry]:
    """Yield the members, in the order of the directory."""
    end_at = data.rfind(_ZIP_END, max(0, len(data) - _END.size - _COMMENT_MAX))
    if end_at < 0 or len(data) - end_at < _END.size:
        raise ArchiveError("cut off: the directory of the zip is missing")
    _, _, _, _, count, _, at, _ = _END.unpack_from(data, end_at)
    if at == _LARGE:
        raise ArchiveError("a zip of the large format (zip64), which is not read")
    for _ in range(count):
        if data[at : at + 4] != _ZIP_ENTRY or len(data) - at < _ENTRY.size:
            raise ArchiveError("the directory of the zip is not whole")
        entry, at = _zip_entry(data, at)
        yield entry


def _zip_entry(data: bytes, at: int) -> tuple[_Entry, int]:
    """Return the member at an offset of the directory, and the offset of the next."""
    fields = _ENTRY.unpack_from(data, at)
    _, _, _, flags, method, _, _, checksum, packed, size = fields[:10]
    name_size, extra_size, comment_size, _, _, attributes, file_at = fields[10:]
    start = at + _ENTRY.size
    name = _text(data[start : start + name_size], "cp437")

    def content() -> bytes:
        if flags & _ENCRYPTED:
            raise ArchiveError(f"{_shown(name)}: encrypted")
        if size > FILE_BYTES_MAX:
            raise _too_large(name)
        unpacked = _inflated(_zip_body(data, file_at, packed, name), method, size, name)
        if len(unpacked) != size or zlib.crc32(unpacked) != checksum:
            raise ArchiveError(f"{_shown(name)}: not what was packed: its size or checksum differs")
        return unpacked

    type_ = (attributes >> 16) & _TYPE_MASK
    is_file = type_ in (0, _REGULAR)
    entry = _Entry(name, content if is_file else None, is_folder=name.endswith("/"))
    return entry, start + name_size + extra_size + comment_size


def _zip_body(data: bytes, at: int, packed: int, name: str) -> bytes:
    if data[at : at + 4] != _ZIP_FILE or len(data) - at < _FILE.size:
        raise ArchiveError(f"{_shown(name)}: not where the directory of the zip has it")
    *_, name_size, extra_size = _FILE.unpack_from(data, at)
    start = at + _FILE.size + name_size + extra_size
    return data[start : start + packed]


def _inflated(body: bytes, method: int, size: int, name: str) -> bytes:
    if method == _STORED:
        return body
    if method != _DEFLATED:
        raise ArchiveError(f"{_shown(name)}: packed in a way that is not read ({method})")
    # One byte more than declared: enough to detect a larger content without unpacking it.
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(body, size + 1)
