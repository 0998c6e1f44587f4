"""The pages by which programs are watched."""

from __future__ import annotations

import asyncio

import pytest

from mooring.cluster.status_server import ListenAddress, health_pages, parse_listen_address, serving


async def asked(url: str, request: bytes) -> bytes:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    try:
        return await reader.read()
    finally:
        writer.close()


def answers(request: bytes, troubles: list[str] | None = None) -> tuple[bytes, bytes]:
    """Return the first line and the body that a request gets."""

    async def run() -> bytes:
        pages = health_pages({"/metrics": lambda: "a_total 1\n"}, lambda: troubles or [])
        async with asyncio.timeout(10), serving(ListenAddress("127.0.0.1", 0), pages) as url:
            return await asked(url, request)

    head, _, body = asyncio.run(run()).partition(b"\r\n\r\n")
    return head.split(b"\r\n", 1)[0], body


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (b"GET /metrics HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK", b"a_total 1\n"),
        (b"GET /healthz?verbose HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK", b"ok"),
        (b"GET /readyz HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 OK", b"ok"),
        (b"GET /x HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 Not Found", b"404 page not found\n"),
        (b"POST /x HTTP/1.1\r\n\r\n", b"HTTP/1.1 405 Method Not Allowed", b"405 "),
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400 Bad Request", b"400 "),
        (b"x" * 20_000, b"", b""),
    ],
)
def test_what_is_answered(request_: bytes, status: bytes, body: bytes) -> None:
    found = answers(request_)
    assert found[0] == status
    assert found[1].startswith(body)


def test_a_program_with_troubles_is_not_ready_and_says_why() -> None:
    status, body = answers(b"GET /readyz HTTP/1.1\r\n\r\n", ["Pod: forbidden"])
    assert status == b"HTTP/1.1 503 Service Unavailable"
    assert body == b"Pod: forbidden\n"


def test_where_to_listen() -> None:
    assert parse_listen_address("127.0.0.1:10259") == ListenAddress("127.0.0.1", 10259)
    assert parse_listen_address("[::1]:0") == ListenAddress("::1", 0)
    assert parse_listen_address(":8080") == ListenAddress("127.0.0.1", 8080)
    assert parse_listen_address("0") is None
    for text in ("nonsense", "1.2.3.4:x", "1.2.3.4:70000"):
        with pytest.raises(ValueError, match="no address such as"):
            parse_listen_address(text)
