"""SPDY frames: they survive any fragmentation, and nothing else arrives."""

from __future__ import annotations

import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.kit.spdy import (
    DICTIONARY,
    FRAME_BYTES_MAX,
    Data,
    Frame,
    FrameWriter,
    GoAway,
    Ping,
    Reader,
    Reset,
    SpdyError,
    SynStream,
    data_frame,
    goaway_frame,
    ping_frame,
    reset_frame,
)

STREAMS = st.integers(1, 2**31 - 1)
HEADERS = st.dictionaries(st.text("abc-", min_size=1, max_size=9), st.text(max_size=30), max_size=5)


def read(*parts: bytes) -> list[Frame]:
    reader = Reader()
    return [frame for part in parts for frame in reader.feed(part)]


def test_the_dictionary_is_that_of_the_protocol() -> None:
    # Compressed data names the dictionary by this sum, which RFC 1950 defines.
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


@given(
    st.lists(st.tuples(STREAMS, HEADERS, st.binary(max_size=99)), max_size=5), st.integers(1, 99)
)
def test_frames_come_out_as_they_were_sent(
    sent: list[tuple[int, dict[str, str], bytes]], cut: int
) -> None:
    writer = FrameWriter()
    stream = b"".join(
        writer.syn_stream(number, headers)
        + writer.syn_reply(number)  # which nobody waits for
        + data_frame(number, data)
        + data_frame(number, b"", is_last=True)
        for number, headers, data in sent
    )
    parts = [stream[at : at + cut] for at in range(0, len(stream), cut)]
    assert read(*parts) == [
        each
        for number, headers, data in sent
        for each in (
            SynStream(number, headers, False),
            Data(number, data, False),
            Data(number, b"", True),
        )
    ]


def test_other_frames() -> None:
    settings = bytes.fromhex("8003000400000004") + bytes(4)
    found = read(settings + ping_frame(7) + reset_frame(3, 5) + goaway_frame(9))
    assert found == [Ping(7), Reset(3, 5), GoAway()]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (bytes.fromhex("8002000600000004") + bytes(4), "not SPDY/3"),
        (bytes.fromhex("0000000100") + (FRAME_BYTES_MAX + 1).to_bytes(3), "larger than"),
        (bytes.fromhex("80030001000000040000"[:16]) + bytes(4), "too short"),
        (bytes.fromhex("8003000300000008") + bytes(8), "zero"),
        (bytes.fromhex("800300010000000c") + bytes.fromhex("00000001") + bytes(8), "decompress"),
    ],
)
def test_what_violates_the_protocol_is_an_error(raw: bytes, words: str) -> None:
    with pytest.raises(SpdyError, match=words):
        read(raw)


def test_a_block_of_headers_that_grows_is_refused() -> None:
    bomb = FrameWriter().syn_stream(1, {"a": "x" * 10_000_000})
    assert len(bomb) < 20_000
    with pytest.raises(SpdyError, match="larger than 65536"):
        read(bomb)
    many = FrameWriter().syn_stream(1, {str(each): "" for each in range(101)})
    with pytest.raises(SpdyError, match="more than 100"):
        read(many)


@given(st.binary(max_size=200))
def test_no_bytes_do_anything_else(raw: bytes) -> None:
    with suppress(SpdyError):
        read(raw)
