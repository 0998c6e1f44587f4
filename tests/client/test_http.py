"""The HTTP transport with servers that misbehave, and connections used again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from moorage.api.core import ConfigMap
from moorage.client.api_client import ApiClient
from moorage.client.contract import Added, Request
from moorage.client.errors import (
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
    UnreadableError,
)
from moorage.client.http.connection import ClientBounds
from moorage.client.http.credentials import ExpiringAuth, RenewedCredentials, RequestAuth
from moorage.client.http.pool import HttpTransport, address_of
from moorage.client.writes import Create
from moorage.kit.clock import ManualClock
from tests.client.servers import config_map, until

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
GET = Request("GET", "/x")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


async def request_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            await reader.readexactly(int(line.split(b":")[1]))
    return head


@asynccontextmanager
async def answering(serve: Serve, **bounds: Any) -> AsyncIterator[HttpTransport]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connections_max = bounds.pop("connections_max", 4)
    source = bounds.pop("credentials", None)
    transport = HttpTransport(
        address_of(f"http://127.0.0.1:{port}"),
        bounds=ClientBounds(**bounds),
        connections_max=connections_max,
        credentials=RenewedCredentials(source) if source else None,
    )
    try:
        async with asyncio.timeout(20):
            yield transport
    finally:
        await transport.close()
        server.close()
        await server.wait_closed()


def play(serve: Serve, scenario: Callable[[HttpTransport], Awaitable[None]], **bounds: Any) -> None:
    async def run() -> None:
        async with answering(serve, **bounds) as transport:
            await scenario(transport)

    asyncio.run(run())


def saying(*answers: bytes) -> Serve:
    """Answer each request of a connection with the next of these, and then close."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await request_of(reader)
            writer.write(answer)
            await writer.drain()

    return serve


def test_a_connection_is_used_again() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            await request_of(reader)
            writer.write(OK)

    async def scenario(transport: HttpTransport) -> None:
        for _ in range(5):
            assert (await transport.send(GET)).body == b"{}"
        assert connections == 1

    play(serve, scenario)


def test_a_connection_that_waited_long_is_not_used() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            await request_of(reader)
            writer.write(OK)

    async def scenario(transport: HttpTransport) -> None:
        for _ in range(3):
            assert (await transport.send(GET)).body == b"{}"
        assert connections == 3

    play(serve, scenario, idle_connection_s=-1.0)


def test_no_more_connections_than_may_be() -> None:
    open_now, most = 0, 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now, most
        while True:
            await request_of(reader)
            open_now += 1
            most = max(most, open_now)
            await asyncio.sleep(0)
            open_now -= 1
            writer.write(OK)

    async def scenario(transport: HttpTransport) -> None:
        answers = await asyncio.gather(*(transport.send(GET) for _ in range(50)))
        assert {answer.status for answer in answers} == {200}
        assert most <= 4

    play(serve, scenario)


def test_a_connection_that_the_server_closed_is_no_error_for_a_read() -> None:
    async def scenario(transport: HttpTransport) -> None:
        for _ in range(4):
            assert (await transport.send(GET)).status == 200

    play(saying(OK), scenario)


def test_a_write_is_not_sent_twice() -> None:
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await request_of(reader)
        writer.write(OK)
        await request_of(reader)
        asked += 1

    async def scenario(transport: HttpTransport) -> None:
        await transport.send(GET)
        with pytest.raises(UnavailableError):
            await transport.send(Request("POST", "/x", body=b"{}"))
        assert asked == 1

    play(serve, scenario)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", UnavailableError),
        (b"nonsense\r\n\r\n", UnreadableError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}", UnavailableError),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, UnreadableError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2000, UnreadableError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", UnreadableError),
    ],
)
def test_answers_that_are_none(answer: bytes, error: type[Exception]) -> None:
    async def scenario(transport: HttpTransport) -> None:
        with pytest.raises(error):
            await transport.send(GET)

    play(saying(answer), scenario, body_bytes_max=1000)


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    async def scenario(transport: HttpTransport) -> None:
        assert (await transport.send(GET)).body == b"{}"

    play(saying(b"HTTP/1.1 200 OK\r\n\r\n{}"), scenario)


def test_what_comes_before_the_answer_is_passed_over() -> None:
    async def scenario(transport: HttpTransport) -> None:
        assert (await transport.send(GET)).status == 200

    play(saying(b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK), scenario)


def test_a_server_that_says_nothing() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def scenario(transport: HttpTransport) -> None:
        with pytest.raises(UnavailableError, match="no response within"):
            await transport.send(GET)

    play(serve, scenario, request_s=0.02)


def test_no_server_at_all() -> None:
    async def run() -> None:
        transport = HttpTransport(address_of("http://127.0.0.1:1"))
        with pytest.raises(UnavailableError, match=r"reach 127\.0\.0\.1:1: Connection refused$"):
            await transport.send(GET)

    asyncio.run(run())


STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_a_stream_on_which_nothing_comes_is_given_up() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(STREAM + b"2\r\nab\r\n")
        await reader.read()

    async def scenario(transport: HttpTransport) -> None:
        async with transport.stream(GET) as parts:
            assert await anext(parts) == b"ab"
            with pytest.raises(UnavailableError, match="no data for"):
                await anext(parts)

    play(serve, scenario, idle_stream_s=0.02)


def test_a_stream_that_is_cut_off_gives_what_came_before() -> None:
    async def scenario(transport: HttpTransport) -> None:
        async with transport.stream(GET) as parts:
            assert await anext(parts) == b"ab"
            with pytest.raises(UnavailableError, match="closed"):
                await anext(parts)

    play(saying(STREAM + b"2\r\nab\r\n"), scenario)


def test_a_stream_waits_for_its_reader() -> None:
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await request_of(reader)
        writer.write(STREAM)
        for _ in range(640):
            writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            await writer.drain()
            sent += 1
        writer.write(b"0\r\n\r\n")

    async def scenario(transport: HttpTransport) -> None:
        async with transport.stream(GET) as parts:
            before = -1
            while sent != before or sent == 0:  # until the server cannot send any more
                before = sent
                await asyncio.sleep(0.05)
            assert sent < 600
            total = 0
            async for part in parts:
                total += len(part)
            assert total == 640 * 65536

    play(serve, scenario)


def test_a_refused_stream_says_why() -> None:
    body = b'{"kind":"Status","message":"no","reason":"Expired","code":410}'
    head = b"HTTP/1.1 410 Gone\r\nContent-Length: %d\r\n\r\n" % len(body)

    async def scenario(transport: HttpTransport) -> None:
        client = ApiClient(transport)
        with pytest.raises(Exception, match="no") as refused:
            await anext(client.watch(ConfigMap, after="1"))
        assert type(refused.value).__name__ == "ExpiredError"

    play(saying(head + body), scenario)


def test_credentials_that_a_watch_was_refused_for_are_renewed() -> None:
    given = iter(["old", "new"])

    async def give() -> ExpiringAuth:
        return ExpiringAuth(RequestAuth(f"Authorization: Bearer {next(given)}\r\n"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await request_of(reader)
        if b"Bearer new" not in head:
            writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            return
        line = b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'
        writer.write(STREAM + b"%x\r\n%s\r\n" % (len(line), line))
        await reader.read()

    async def scenario(transport: HttpTransport) -> None:
        client = ApiClient(transport)
        with pytest.raises(UnauthorizedError):
            await anext(client.watch(ConfigMap, after="1"))
        watch = client.watch(ConfigMap, after="1")
        event = await anext(watch)
        assert isinstance(event, Added)
        assert event.value.metadata.name == "a"
        await watch.aclose()

    play(serve, scenario, credentials=give)


def test_a_line_without_an_end_is_bounded() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(STREAM)
        for _ in range(20):
            writer.write(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
            await writer.drain()
        await reader.read()

    async def scenario(transport: HttpTransport) -> None:
        with pytest.raises(UnreadableError, match="exceeds"):
            await anext(ApiClient(transport).watch(ConfigMap, after="1"))

    play(serve, scenario)


@pytest.mark.parametrize(
    "line",
    [b"nonsense", b"{}", b'{"type":"ADDED","object":5}', b'{"type":"ADDED","object":{"data":5}}'],
)
def test_an_event_that_is_none(line: bytes) -> None:
    chunk = b"%x\r\n%s\n\r\n" % (len(line) + 1, line)

    async def scenario(transport: HttpTransport) -> None:
        with pytest.raises(UnreadableError):
            await anext(ApiClient(transport).watch(ConfigMap, after="1"))

    play(saying(STREAM + chunk), scenario)


def test_a_server_that_is_busy_is_asked_again_when_it_says() -> None:
    busy = b"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"
    made = b'{"metadata":{"name":"one","namespace":"default"}}'
    answer = b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s" % (len(made), made)

    async def scenario(transport: HttpTransport) -> None:
        clock = ManualClock()
        client = ApiClient(transport, clock=clock)
        writing = asyncio.create_task(client.write(Create(config_map("one"))))
        for _ in range(2):
            await until(lambda: clock.waiting)
            await clock.advance(6.9)
            assert clock.waiting
            await clock.advance(0.1)
        assert (await writing).metadata.name == "one"

    play(saying(busy, busy, answer), scenario)


def test_a_server_that_stays_busy() -> None:
    busy = b"HTTP/1.1 429 Too Many\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nbusy"

    async def scenario(transport: HttpTransport) -> None:
        with pytest.raises(TooManyRequestsError, match="busy"):
            await ApiClient(transport).list(ConfigMap)

    play(saying(*[busy] * 10), scenario)


def test_whoever_stops_waiting_leaves_the_connection_to_nobody() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await request_of(reader)
        if b"/slow" in head:
            await reader.read()
        writer.write(OK)

    async def scenario(transport: HttpTransport) -> None:
        slow = asyncio.create_task(transport.send(Request("GET", "/slow")))
        await asyncio.sleep(0.01)
        slow.cancel()
        assert (await transport.send(GET)).body == b"{}"

    play(serve, scenario, connections_max=1)
