"""A recording gives back what was written, loses a torn last frame only, and is hostile-safe."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.insight.errors import ArchiveError, UnknownMomentError
from moorage.insight.history import History
from moorage.insight.history.recording import (
    FRAME_BYTES_MAX,
    MAGIC,
    is_recording,
    read_recording,
    write_recording,
)
from tests.insight.history.changes import change, claim, node, pod, refused

CHANGES = [
    change(3, node(), pod()),
    change(5, pod("web", refused())),
    change(8, claim("gpu-0"), pod(node="a")),
    change(9, removed=(("Pod", "team", "web"),)),
]
DATA = write_recording(CHANGES, gates="", redacted=True)
HEAD = struct.Struct(">II")


def frames(data: bytes = DATA) -> list[int]:
    """Return where frames begin, and the end."""
    position = data.index(b"\n") + 1
    found = [position]
    while position < len(data):
        position += HEAD.size + HEAD.unpack_from(data, position)[0]
        found.append(position)
    return found


def recording(*payloads: bytes) -> bytes:
    """Return a recording with these texts as frames, whatever they are."""
    stream, data = zlib.compressobj(), MAGIC + b"1\n"
    for text in payloads:
        packed = stream.compress(text) + stream.flush(zlib.Z_SYNC_FLUSH)
        data += HEAD.pack(len(packed), zlib.crc32(packed)) + packed
    return data


def test_a_recording_gives_back_its_history() -> None:
    assert is_recording(DATA)
    found = read_recording(DATA)
    history, expected = found.history(), History(CHANGES)
    assert found.header.redacted
    assert not found.torn
    assert history.moments == expected.moments
    assert history.marks == expected.marks
    for moment in expected.moments:
        assert history.snapshot(moment.revision) == expected.snapshot(moment.revision)


@given(st.integers(0, len(DATA)))
def test_a_torn_tail_loses_the_last_frame_only(length: int) -> None:
    whole = sum(end <= length for end in frames()[1:]) - 1  # the first one is the header
    try:
        found = read_recording(DATA[:length])
    except ArchiveError:
        assert whole < 1  # not even the first state
        return
    assert [moment.revision for moment in found.history().moments] == [3, 5, 8, 9][:whole]
    assert bool(found.torn) == (length not in frames())


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_a_damaged_byte_is_an_error_or_a_torn_last_frame(position: int, flip: int) -> None:
    damaged = bytearray(DATA)
    damaged[position] ^= flip
    try:
        found = read_recording(bytes(damaged))
    except ArchiveError:
        return
    expected = [3, 5, 8, 9]
    revisions = [moment.revision for moment in found.history().moments]
    assert found.torn
    assert revisions == expected[: len(revisions)]


def test_a_damaged_frame_is_named() -> None:
    damaged = bytearray(DATA)
    damaged[frames()[2] + HEAD.size] ^= 1
    with pytest.raises(ArchiveError, match=f"frame 3 at byte {frames()[2]} is not what was"):
        read_recording(bytes(damaged))


def test_a_small_change_costs_little() -> None:
    pods = [pod(f"web-{n}") for n in range(50)]
    changes = [change(1, *pods), *(change(2 + n, pod("web-7", node=str(n))) for n in range(100))]
    first = len(write_recording(changes[:1], gates=""))
    assert (len(write_recording(changes, gates="")) - first) / 100 < 120


HEADER = b'{"gates":"","redacted":false,"objects":1}'
OBJECT = b'{"revision":2,"time":"2026-03-01T12:00:00Z","object":%s}'
POD = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b"}}'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a recording"),
        (MAGIC + b"7\n", "format version 7; this moor reads version 1"),
        (MAGIC + b"1\n", "without a whole frame: it is empty"),
        (recording(b"[]"), "frame 1, the header, cannot be read"),
        (recording(HEADER), "ends early: it has 0 of 1 objects"),
        (recording(HEADER, b"nonsense"), "frame 2:1 is no change"),
        (recording(HEADER, OBJECT % b"[" * 100_000), "frame 2:1 is no change"),
        (recording(HEADER, OBJECT % POD + b"\n" + OBJECT % b"7"), "frame 2:2 is no change"),
        (recording(HEADER, OBJECT % POD.replace(b"Pod", b"Secret")), "'Secret' is no kind"),
        (recording(HEADER, b'{"revision":2,"time":"2026-03-01T12:00:00Z"}'), "either object or"),
        (recording(HEADER, OBJECT % POD, (OBJECT % POD).replace(b":2,", b":1,")), "frame 3:1: rev"),
        (recording(HEADER, b" " * (FRAME_BYTES_MAX + 1)), "frame 2 .* more than is read of a fra"),
        (MAGIC + b"1\n" + HEAD.pack(3, zlib.crc32(b"abc")) + b"abc", "frame 1 .* unpacked"),
    ],
)
def test_what_is_no_recording_is_refused_with_its_place(data: bytes, message: str) -> None:
    with pytest.raises(ArchiveError, match=message):
        read_recording(data)


def test_all_frames_together_are_bounded() -> None:
    with pytest.raises(ArchiveError, match="more than is read of a recording"):
        read_recording(DATA, bytes_max=500)


def test_an_object_that_does_not_decode_is_named() -> None:
    odd = POD.replace(b'"kind"', b'"spec":7,"kind"')
    with pytest.raises(ArchiveError, match="frame 2:1: Pod b/a cannot be read"):
        read_recording(recording(HEADER, OBJECT % odd)).history()


@pytest.mark.parametrize(
    ("moment", "names"),
    [
        ("3", ["a", "web"]),
        ("8", ["a", "web", "gpus"]),
        ("2026-03-01T12:00:05Z", ["a", "web"]),
        ("", ["a", "gpus"]),
        ("99999", ["a", "gpus"]),
    ],
)
def test_the_objects_of_a_moment(moment: str, names: list[str]) -> None:
    lines = [text for _, text in read_recording(DATA).lines(moment)]
    found = [text.split(b'"name":"')[1].split(b'"')[0].decode() for text in lines]
    assert found == names


@pytest.mark.parametrize("moment", ["2", "2026-03-01T12:00:02Z", "yesterday"])
def test_a_moment_that_is_not_recorded_is_an_error(moment: str) -> None:
    with pytest.raises(UnknownMomentError, match=r"before the recording|neither a revision"):
        list(read_recording(DATA).lines(moment))
