"""The file of a recording: it grows by frames, and is verified when it is read.

    recording = magic frame …       frame = length(4) CRC-32(4) compressed

    first frame     the header: gates, redaction, how many objects the first state has
    other frames    lines of JSON: a written object, or the key of a removed one,
                    each with revision and time; the initial state comes first

All frames are one zlib stream, flushed at the end of each frame. Small changes take little space,
because objects repeat most of their earlier text. Numbers are big-endian.

A program that is killed leaves an incomplete last frame. Readers skip it, and say so. A damaged
frame before the end is an error that names the frame. Nothing is unpacked beyond the bounds, and
invalid lines are errors.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from moorage.api.codec import decode_json, encode_json
from moorage.api.errors import ApiError
from moorage.api.timestamp import Timestamp
from moorage.insight.errors import ArchiveError, UnknownMomentError
from moorage.insight.history.history import Change, History, Moment, ObjectKey
from moorage.insight.snapshot.snapshot import FIELDS
from moorage.insight.snapshot.unread import UnreadKind

MAGIC: Final = b"\x89MOORREC "
VERSION: Final = 1
_BEGINNING: Final = MAGIC + b"%d\n" % VERSION
UNPACKED_BYTES_MAX: Final = 512 * 1024 * 1024
FRAME_BYTES: Final = 1024 * 1024  # in a frame
FRAME_BYTES_MAX: Final = 16 * 1024 * 1024  # one more object may follow, whose size servers limit
LINES_MAX: Final = 2_000_000
_HEAD: Final = struct.Struct(">II")
_is_version = re.compile(rb"(\d{1,9})\n").match
_STRUCTS: Final[dict[str, Any]] = {each.__name__: each for each in FIELDS}


class Header(Struct, frozen=True, rename="camel"):
    """The facts about a recording as a whole."""

    gates: str
    redacted: bool
    objects: int  # in the initial state
    extensions: bool = True
    unread: tuple[UnreadKind, ...] = ()  # what the recorder could not read


class _Removed(Struct, frozen=True):
    kind: str
    name: str
    namespace: str = ""


class _Line(Struct, frozen=True, omit_defaults=True):
    revision: int
    time: str
    object: Raw = Raw()  # empty: none
    removed: _Removed | None = None


class _Metadata(Struct, frozen=True):
    name: str
    namespace: str = ""


class _Identity(Struct, frozen=True):
    kind: str
    metadata: _Metadata


class RecordedObject(NamedTuple):
    """A written object as JSON, or a removed one, with revision and time."""

    revision: int
    time: Timestamp
    key: ObjectKey
    text: bytes | None  # None: removed
    place: str  # frame and line


# --- writing ------------------------------------------------------------------------------------


class RecordingWriter:
    """Makes the bytes of a recording, frame by frame."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj(6)
        self._lines: list[bytes] = []
        self.pending_bytes = 0  # of the changes that are in no frame yet

    def begin(self, header: Header) -> bytes:
        """Return the beginning of the file."""
        self._lines.append(msgspec.json.encode(header))
        return _BEGINNING + self.frame()

    def add(self, moment: Moment, value: Any) -> None:
        """Add an object that was written, to the next frame."""
        self._add(_Line(moment.revision, str(moment.time), object=Raw(encode_json(value))))

    def add_removed(self, moment: Moment, key: ObjectKey) -> None:
        """Add an object that was removed, to the next frame."""
        kind, namespace, name = key
        gone = _Removed(kind, name, namespace)
        self._add(_Line(moment.revision, str(moment.time), removed=gone))

    def frame(self) -> bytes:
        """Return all additions as one frame, or nothing if there are none."""
        if not self._lines:
            return b""
        text = b"\n".join(self._lines) + b"\n"
        self._lines, self.pending_bytes = [], 0
        packed = self._stream.compress(text) + self._stream.flush(zlib.Z_SYNC_FLUSH)
        return _HEAD.pack(len(packed), zlib.crc32(packed)) + packed

    def _add(self, line: _Line) -> None:
        text = msgspec.json.encode(line)
        self._lines.append(text)
        self.pending_bytes += len(text) + 1


def write_recording(
    changes: Iterable[Change], *, gates: str, redacted: bool = False, extensions: bool = True
) -> bytes:
    """Return the recording of changes, with a frame for each; the first is the initial state."""
    writer = RecordingWriter()
    parts: list[bytes] = []
    for change in changes:
        if not parts:
            parts.append(writer.begin(Header(gates, redacted, len(change.written), extensions)))
        moment = Moment(change.revision, change.time)
        for key in change.removed:
            writer.add_removed(moment, key)
        for value in change.written:
            writer.add(moment, value)
            if writer.pending_bytes >= FRAME_BYTES:
                parts.append(writer.frame())
        parts.append(writer.frame())
    return b"".join(parts)


# --- reading ------------------------------------------------------------------------------------


class Recording(NamedTuple):
    """The content of a recording."""

    header: Header
    objects: tuple[RecordedObject, ...]
    torn: str = ""  # why the last frame was skipped, if it was

    def lines(self, at: str = "") -> Iterator[tuple[str, bytes]]:
        """Yield the objects at a moment as JSON, with their places; by default the last."""
        state: dict[ObjectKey, RecordedObject] = {}
        for each in self.objects[: self._position(at)]:
            if each.text is None:
                state.pop(each.key, None)
            else:
                state[each.key] = each
        for each in state.values():
            assert each.text is not None
            yield each.place, each.text

    def history(self) -> History:
        """Return the changes as a history, or raise ArchiveError for invalid objects."""
        return History(_changes(self.objects))

    def moment(self, at: str = "") -> Moment:
        """Return the moment of a revision or time, or raise UnknownMomentError."""
        last = self.objects[self._position(at) - 1]
        return Moment(last.revision, last.time)

    def _position(self, at: str) -> int:
        """Return how many of the objects were written or removed by then."""
        if not at:
            return len(self.objects)
        if at.isascii() and at.isdigit():
            revision = int(at[:30])
            found = sum(each.revision <= revision for each in self.objects)
        else:
            try:
                time = Timestamp.parse(at)
            except ApiError:
                fact = f"{at[:60]!r} is neither a revision nor a time such as 2026-01-31T12:00:00Z"
                raise UnknownMomentError(fact) from None
            found = sum(not time < each.time for each in self.objects)
            # All entries of a revision, which have the same time.
        first = self.objects[0]
        if not found:
            begun = f"which begins at revision {first.revision} ({first.time})"
            raise UnknownMomentError(f"{at} is before the recording, {begun}")
        return max(found, self.header.objects)


def is_recording(data: bytes) -> bool:
    """Return whether data begins like a recording, of any version."""
    return data.startswith(MAGIC)


def read_recording(data: bytes, *, bytes_max: int = UNPACKED_BYTES_MAX) -> Recording:
    """Return the recording, or raise ArchiveError that names the frame it cannot use."""
    found = _is_version(data, len(MAGIC)) if data.startswith(MAGIC) else None
    if found is None:
        raise ArchiveError("not a recording of `moor record`")
    if int(found[1]) != VERSION:
        fact = f"a recording of format version {int(found[1])}"
        raise ArchiveError(f"{fact}; this moor reads version {VERSION}")
    frames = _Frames(data, found.end(), bytes_max)
    first = next(iter(frames), None)
    if first is None:
        raise ArchiveError(f"a recording without a whole frame: {frames.torn or 'it is empty'}")
    header = _read_header(first)
    objects = tuple(_read_objects(frames))
    if len(objects) < header.objects or not objects:
        fact = f"{len(objects):,} of {header.objects:,} objects of the first state"
        raise ArchiveError(f"the recording ends early: it has {fact}")
    return Recording(header, objects, frames.torn)


class _Frames:
    """The unpacked frames of a recording, in order; an incomplete last one is skipped and noted."""

    def __init__(self, data: bytes, position: int, bytes_max: int) -> None:
        self._data = memoryview(data)
        self._position = position
        self._bytes_left = bytes_max
        self._stream = zlib.decompressobj()
        self.number = 0  # of the last frame that was returned
        self.torn = ""

    def __iter__(self) -> Iterator[bytes]:
        while (text := self._next()) is not None:
            yield text

    def _next(self) -> bytes | None:
        begin, end = self._position + _HEAD.size, len(self._data)
        if self._position == end:
            return None
        place = f"frame {self.number + 1} at byte {self._position:,}"
        if begin > end:
            self.torn = f"{place} is not whole"
            return None
        length, checksum = _HEAD.unpack_from(self._data, self._position)
        if length > end - begin:
            self.torn = f"{place} is not whole"
            return None
        packed = self._data[begin : begin + length]
        if zlib.crc32(packed) != checksum:
            if begin + length == end:
                self.torn = f"{place} is not what was written: its checksum differs"
                return None
            raise ArchiveError(f"{place} is not what was written: its checksum differs")
        self.number += 1
        self._position = begin + length
        return self._unpacked(packed, place)

    def _unpacked(self, packed: memoryview, place: str) -> bytes:
        most = min(FRAME_BYTES_MAX, self._bytes_left)
        try:
            text = self._stream.decompress(packed, most + 1)
        except zlib.error as error:
            raise ArchiveError(f"{place} cannot be unpacked: {error}") from None
        if len(text) > most:
            what = "a frame" if most == FRAME_BYTES_MAX else "a recording"
            raise ArchiveError(f"{place} has more than is read of {what} ({most:,} bytes)")
        if self._stream.eof or self._stream.unconsumed_tail or self._stream.unused_data:
            raise ArchiveError(f"{place} has data after the end of its content")
        self._bytes_left -= len(text)
        return text


def _read_header(text: bytes) -> Header:
    try:
        return msgspec.json.decode(text, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ArchiveError(f"frame 1, the header, cannot be read: {error}") from None


def _read_objects(frames: _Frames) -> Iterator[RecordedObject]:
    count, revision, time = 0, 0, Timestamp.parse("0001-01-01T00:00:00Z")
    for text in frames:
        for number, line in enumerate(text.splitlines(), start=1):
            place = f"frame {frames.number}:{number}"
            found = _read_line(line, place)
            if found.revision < revision:
                fact = f"revision {found.revision} comes after {revision}"
                raise ArchiveError(f"{place}: {fact}; revisions only grow")
            # Clocks may go backwards; the order of changes stays.
            time = max(time, found.time)
            revision, count = found.revision, count + 1
            if count > LINES_MAX:
                raise ArchiveError(f"{place}: more than {LINES_MAX:,} changes")
            yield found._replace(time=time)


_LINE = msgspec.json.Decoder(_Line)
_IDENTITY = msgspec.json.Decoder(_Identity)


def _read_line(line: bytes, place: str) -> RecordedObject:
    try:
        read = _LINE.decode(line)
        time = Timestamp.parse(read.time)
        text = bytes(read.object)
        if bool(text) == (read.removed is not None):
            raise ArchiveError(f"{place}: must have either object or removed")
        if read.removed is not None:
            key = (read.removed.kind, read.removed.namespace, read.removed.name)
            return RecordedObject(read.revision, time, key, None, place)
        found = _IDENTITY.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ApiError) as error:
        raise ArchiveError(f"{place} is no change: {error}") from None
    if found.kind not in _STRUCTS:
        raise ArchiveError(f"{place}: {found.kind[:60]!r} is no kind of a recording")
    key = (found.kind, found.metadata.namespace, found.metadata.name)
    return RecordedObject(read.revision, time, key, text, place)


def _changes(objects: Iterable[RecordedObject]) -> Iterator[Change]:
    """Yield a change for each revision; of several writes of an object, the last counts."""
    revision, time = -1, Timestamp.parse("0001-01-01T00:00:00Z")
    at_once: dict[ObjectKey, RecordedObject] = {}
    for each in objects:
        if each.revision != revision and at_once:
            yield _change(revision, time, at_once.values())
            at_once = {}
        if not at_once:
            revision, time = each.revision, each.time
        at_once.pop(each.key, None)
        at_once[each.key] = each
    if at_once:
        yield _change(revision, time, at_once.values())


def _change(revision: int, time: Timestamp, objects: Iterable[RecordedObject]) -> Change:
    written: list[Any] = []
    removed: list[ObjectKey] = []
    for each in objects:
        if each.text is None:
            removed.append(each.key)
            continue
        try:
            written.append(decode_json(each.text, _STRUCTS[each.key[0]]).value)
        except (ApiError, RecursionError) as error:
            kind, namespace, name = each.key
            what = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
            raise ArchiveError(f"{each.place}: {what} cannot be read: {error}") from None
    return Change(revision, time, tuple(written), tuple(removed))
