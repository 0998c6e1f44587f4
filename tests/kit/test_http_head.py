"""Heads of HTTP messages: read as they are meant, refused when they are none."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.kit.http_head import Head, HeadError, parse_head, read_head


def test_a_request() -> None:
    head = parse_head(b"GET /a?b HTTP/1.1\r\nHost: x\r\nUpgrade: WebSocket\r\n"
                      b"Connection: keep-alive, Upgrade\r\nx-a: 1\r\nX-A: 2\r\n\r\n")  # fmt: skip
    assert head.first == ("GET", "/a?b", "HTTP/1.1")
    assert head.headers["x-a"] == "1, 2"
    assert head.upgrade == "websocket"


def test_an_answer() -> None:
    assert parse_head(b"HTTP/1.1 404 Not Found\r\n\r\n").first == ("HTTP/1.1", "404", "Not Found")
    assert parse_head(b"HTTP/1.1 101\r\nUpgrade: x\r\n\r\n").upgrade == ""


NO_HEADS = [
    b"",
    b"GET\r\n\r\n",
    b"GET  /\r\n\r\n",
    b"GET / HTTP/1.1\r\nx\r\n\r\n",
    b"GET / HTTP/1.1\r\nx : 1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 101,
]


@pytest.mark.parametrize("raw", NO_HEADS)
def test_what_is_no_head_is_refused(raw: bytes) -> None:
    with pytest.raises(HeadError):
        parse_head(raw)


@given(st.binary(max_size=300))
def test_whatever_comes_is_a_head_or_refused(raw: bytes) -> None:
    with suppress(HeadError):
        assert isinstance(parse_head(raw), Head)


def test_heads_are_bounded() -> None:
    async def read(data: bytes) -> Head | None:
        reader = asyncio.StreamReader(limit=100)
        reader.feed_data(data)
        reader.feed_eof()
        return await read_head(reader)

    assert asyncio.run(read(b"GET / HT")) is None
    with pytest.raises(HeadError, match="too large"):
        asyncio.run(read(b"GET / HTTP/1.1\r\nx: " + b"y" * 200 + b"\r\n\r\n"))
