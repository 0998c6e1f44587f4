"""WebSocket frames: messages survive any fragmentation, and nothing else arrives."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.kit.websocket import (
    BAD_TEXT,
    NO_CODE,
    NORMAL,
    PROTOCOL_ERROR,
    TOO_LARGE,
    Message,
    Opcode,
    Reader,
    WebSocketError,
    accept_of,
    closing,
    frame,
    is_key,
)

MASKS = st.binary(min_size=4, max_size=4)
DATA = st.binary(max_size=300) | st.integers(65_000, 66_000).map(lambda size: b"x" * size)
MASK = b"\1\2\3\4"


def read(*parts: bytes, from_client: bool = True, bytes_max: int = 1000) -> list[Message]:
    reader = Reader(from_client=from_client, bytes_max=bytes_max)
    return [message for part in parts for message in reader.feed(part)]


def refused(*parts: bytes, from_client: bool = True) -> int:
    with pytest.raises(WebSocketError) as caught:
        read(*parts, from_client=from_client)
    return caught.value.code


@given(st.lists(DATA, max_size=4), MASKS, st.integers(1, 5000))
def test_messages_come_out_as_they_were_sent(sent: list[bytes], mask: bytes, cut: int) -> None:
    stream = b"".join(frame(Opcode.BINARY, data, mask=mask) for data in sent)
    parts = [stream[at : at + cut] for at in range(0, len(stream), cut)]
    assert [data for _, data in read(*parts, bytes_max=2**17)] == sent


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=5), st.binary(max_size=125))
def test_a_message_in_frames_is_one_message(parts: list[bytes], ping: bytes) -> None:
    sent = b""
    for at, part in enumerate(parts):
        kind = Opcode.CONTINUATION if at else Opcode.BINARY
        sent += frame(kind, part, is_last=at == len(parts) - 1)
        sent += frame(Opcode.PING, ping)
    found = read(sent, from_client=False)
    assert [m.data for m in found if m.kind is Opcode.BINARY] == [b"".join(parts)]
    assert [m.data for m in found if m.kind is Opcode.PING] == [ping] * len(parts)


@given(st.lists(st.binary(max_size=200)), st.booleans())
def test_whatever_comes_is_messages_or_refused(parts: list[bytes], from_client: bool) -> None:
    with suppress(WebSocketError):
        found = read(*parts, from_client=from_client, bytes_max=100)
        assert all(len(message.data) <= 125 for message in found)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(Opcode.BINARY, b"bare"), PROTOCOL_ERROR),
        (b"\xc2" + frame(Opcode.BINARY, b"", mask=MASK)[1:], PROTOCOL_ERROR),  # a reserved bit
        (b"\x83" + frame(Opcode.BINARY, b"", mask=MASK)[1:], PROTOCOL_ERROR),  # no such kind
        (frame(Opcode.CONTINUATION, b"of nothing", mask=MASK), PROTOCOL_ERROR),
        (frame(Opcode.BINARY, b"a", mask=MASK, is_last=False) * 2, PROTOCOL_ERROR),
        (frame(Opcode.PING, b"x" * 126, mask=MASK), PROTOCOL_ERROR),
        (frame(Opcode.PING, b"", mask=MASK, is_last=False), PROTOCOL_ERROR),
        (frame(Opcode.CLOSE, b"x", mask=MASK), PROTOCOL_ERROR),
        (frame(Opcode.TEXT, b"\xff", mask=MASK), BAD_TEXT),
        (frame(Opcode.BINARY, b"x" * 1001, mask=MASK), TOO_LARGE),
        (b"\x82\xff" + b"\xff" * 8, TOO_LARGE),  # said, not sent
    ],
)
def test_what_is_against_the_protocol_is_refused(sent: bytes, code: int) -> None:
    assert refused(sent) == code


def test_the_parts_of_a_message_are_bounded_together() -> None:
    part = frame(Opcode.CONTINUATION, b"x" * 600, mask=MASK, is_last=False)
    assert refused(frame(Opcode.BINARY, b"", mask=MASK, is_last=False), part, part) == TOO_LARGE


def test_masked_frames_of_servers_are_refused() -> None:
    assert refused(frame(Opcode.BINARY, b"x", mask=MASK), from_client=False) == PROTOCOL_ERROR


def test_nothing_comes_after_a_close() -> None:
    close = frame(Opcode.CLOSE, closing(NORMAL, "done"), mask=MASK)
    [message] = read(close + frame(Opcode.BINARY, b"late", mask=MASK), close)
    assert (message.kind, message.close_code) == (Opcode.CLOSE, NORMAL)
    [bare] = read(frame(Opcode.CLOSE, b"", mask=MASK))
    assert bare.close_code == NO_CODE


def test_a_reason_is_cut_to_whole_characters() -> None:
    payload = closing(NORMAL, "ä" * 100)
    assert len(payload) <= 125
    assert payload[2:].decode() == "ä" * 61


def test_the_key_of_a_client() -> None:
    assert accept_of("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # RFC 6455
    assert is_key("dGhlIHNhbXBsZSBub25jZQ==")
    assert not is_key("short")
    assert not is_key("")
