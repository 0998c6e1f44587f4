"""A snapshot as one file: written the same way every time, and checked when it is read.

    archive = gzip( file … end )        file = header(512) content padding(to 512)

    manifest.json           format, version, gates, and the objects, size and SHA-256 of every
                            other member
    objects/FIELD.jsonl     the objects of one field of the snapshot, in order, one per line

Any tar can read it. Moorage always writes the same bytes for the same objects and accepts nothing
else: no links, folders or long names, no second gzip stream. A hostile archive is refused at the
first block that is not ours, before its content is unpacked.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from moorage.api.codec import encode_json
from moorage.api.gates import Gates
from moorage.insight.errors import ArchiveError
from moorage.insight.snapshot.snapshot import OBJECT_FIELDS, Snapshot
from moorage.insight.snapshot.unread import UnreadKind

FORMAT: Final = "moorage-snapshot"
VERSION: Final = 1
MANIFEST: Final = "manifest.json"
UNPACKED_BYTES_MAX: Final = 512 * 1024 * 1024
MANIFEST_BYTES_MAX: Final = 1024 * 1024
OBJECTS_BYTES_MAX: Final = UNPACKED_BYTES_MAX - 2 * MANIFEST_BYTES_MAX  # with headers and padding
_is_member_name = re.compile(r"objects/[a-z_]{1,40}\.jsonl").fullmatch
BLOCK: Final = 512
NAME_MAX: Final = 100
_CHUNK_BYTES: Final = 64 * 1024
_PIECE_BYTES: Final = 16 * 1024
_GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"  # no name, no time, any system
_END: Final = bytes(2 * BLOCK)
_is_octal = re.compile(rb"[0-7]{1,11}[\0 ]?").fullmatch


class Member(NamedTuple):
    """One file of an archive."""

    name: str
    content: bytes


class Contents(Struct, frozen=True, rename="camel"):
    """The manifest's entry for a member."""

    name: str
    kinds: dict[str, int]
    bytes: int
    sha256: str


class Manifest(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The content of an archive."""

    format: str
    version: int
    gates: str
    extensions: bool
    redacted: bool
    anonymised: bool
    members: tuple[Contents, ...]
    unread: tuple[UnreadKind, ...] = ()  # what the writer could not read


class _Version(Struct, frozen=True):
    """The part of a manifest that all versions share."""

    format: str = ""
    version: int = 0


class Archive(NamedTuple):
    """An archive that was read: its manifest and its members."""

    manifest: Manifest
    members: tuple[Member, ...]

    def lines(self) -> Iterator[tuple[str, bytes]]:
        """Yield all objects as JSON, each with its place in the archive."""
        for member in self.members:
            for number, line in enumerate(member.content.splitlines(), start=1):
                yield f"{member.name}:{number}", line


# --- snapshots --------------------------------------------------------------------------


def write_archive(
    snapshot: Snapshot,
    *,
    gates: Gates,
    extensions: bool = True,
    redacted: bool = False,
    anonymised: bool = False,
) -> bytes:
    """Return the archive of a snapshot, or raise ArchiveError if it is too large to be read.

    The flags record how the snapshot was changed.
    """
    members: list[Member] = []
    contents: list[Contents] = []
    for field in sorted(OBJECT_FIELDS):
        objects = getattr(snapshot, field)
        if not objects:
            continue
        content = b"".join(map(_line, objects))
        members.append(Member(f"objects/{field}.jsonl", content))
        kinds = Counter(each.kind for each in objects)
        contents.append(_contents(members[-1], dict(sorted(kinds.items()))))
    if sum(len(member.content) for member in members) > OBJECTS_BYTES_MAX:
        raise ArchiveError(f"the objects have more than {OBJECTS_BYTES_MAX:,} bytes")
    manifest = Manifest(
        format=FORMAT,
        version=VERSION,
        gates=str(gates),
        extensions=extensions,
        redacted=redacted,
        anonymised=anonymised,
        members=tuple(contents),
        unread=snapshot.unread.kinds,
    )
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    return pack([Member(MANIFEST, text), *members])


def _line(value: Struct) -> bytes:
    text = encode_json(value)
    # Raw values are written as they were read, and may contain newlines.
    return (msgspec.json.format(text, indent=-1) if b"\n" in text else text) + b"\n"


def _contents(member: Member, kinds: dict[str, int]) -> Contents:
    digest = hashlib.sha256(member.content).hexdigest()
    return Contents(member.name, kinds, len(member.content), digest)


def is_snapshot(data: bytes) -> bool:
    """Return whether data begins like a snapshot archive, complete or not."""
    try:
        first = next(unpack(data, bytes_max=MANIFEST_BYTES_MAX), None)
        return (
            first is not None
            and first.name == MANIFEST
            and msgspec.json.decode(first.content, type=_Version).format == FORMAT
        )
    except (ArchiveError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def read_archive(data: bytes, *, bytes_max: int = UNPACKED_BYTES_MAX) -> Archive:
    """Return the archive, or raise ArchiveError if it is incomplete, foreign or unsafe."""
    members = unpack(data, bytes_max=bytes_max)
    first = next(members, None)
    if first is None or first.name != MANIFEST:
        raise ArchiveError(f"not a snapshot: {MANIFEST} is not its first member")
    manifest = _read_manifest(first.content)
    expected = {each.name: each for each in manifest.members}
    found = tuple(_checked(member, expected) for member in members)
    if expected:
        raise ArchiveError(f"{next(iter(expected))} is missing, which the manifest names")
    return Archive(manifest, found)


def _read_manifest(text: bytes) -> Manifest:
    if len(text) > MANIFEST_BYTES_MAX:
        raise ArchiveError(f"{MANIFEST} is larger than any manifest")
    try:
        said = msgspec.json.decode(text, type=_Version)
        if said.format != FORMAT:
            raise ArchiveError(f"not a snapshot: {MANIFEST} does not say {FORMAT}")
        if said.version != VERSION:
            raise ArchiveError(
                f"a snapshot of format version {said.version}; this moor reads version {VERSION}"
            )
        return msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ArchiveError(f"{MANIFEST} cannot be read: {error}") from None


def _checked(member: Member, expected: dict[str, Contents]) -> Member:
    """Return the member, if it matches the manifest."""
    if not _is_member_name(member.name):
        raise ArchiveError(f"{member.name[:100]!r} is not the name of a member")
    said = expected.pop(member.name, None)
    if said is None:
        raise ArchiveError(f"{member.name} is not in the manifest, or there twice")
    if hashlib.sha256(member.content).hexdigest() != said.sha256:
        raise ArchiveError(f"{member.name} is not what was written: its SHA-256 differs")
    return member


# --- writing a tar ----------------------------------------------------------------------


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
    """Return the ustar header of a plain file without owner and time."""
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


# --- reading a tar ----------------------------------------------------------------------


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
    """The content of a gzip file, decompressed only as far as it is read."""

    def __init__(self, data: bytes, bytes_max: int) -> None:
        self._unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._data = memoryview(data)
        self._fed = 0
        self._bytes_max = bytes_max
        self._left = bytes_max

    def read(self, size: int) -> bytes:
        """Return exactly `size` bytes."""
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
        """Check that nothing follows the end, and that the file is complete."""
        while part := self._more(_CHUNK_BYTES):
            if part.strip(b"\0"):
                raise ArchiveError("there is something after the end of the tar")
        if not self._unpacker.eof:
            raise ArchiveError("cut off: the file ends before the archive does")
        if self._unpacker.unused_data or self._fed < len(self._data):
            raise ArchiveError("there is something after the end of the archive")

    def too_large(self) -> ArchiveError:
        return ArchiveError(f"holds more than {self._bytes_max:,} bytes, which is all that is read")

    def _more(self, size_max: int) -> bytes:
        if self._unpacker.eof:
            return b""
        part = b""
        # Fed in small pieces, because the rest of a piece is copied every time.
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
