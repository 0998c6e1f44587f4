"""Clients that are slow, silent, greedy or gone do not keep the server from others."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth import certificates
from moorage.apiserver.auth.authorizer import AlwaysAllow
from moorage.apiserver.auth.certificates import Pair
from moorage.apiserver.auth.credentials import CredentialsFolder
from moorage.apiserver.http.app import Application
from moorage.apiserver.http.response_writer import WriteBuffer
from moorage.apiserver.http.uvicorn_server import NetworkServer, tls_context
from moorage.apiserver.server import make_application, make_server_context
from moorage.apiserver.settings import Limits
from moorage.kit.connections import PLAIN_HTTP, ConnectionLimits, listen, prepare
from moorage.store.sqlite import open_sqlite
from tests.apiserver.test_secure_server import running as running_securely

WAIT_S = 20
SHORT_S = 0.05
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NOW = Timestamp.parse("2026-11-15T12:00:00Z")

Answer = Callable[[Any, Any, Any], Awaitable[None]]


class Simple:
    """An application that gives what a test wants."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def stop_streams(self) -> None:
        pass

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._answer(scope, receive, send)


async def say_ok(_: Any, __: Any, send: Any) -> None:
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


class Server:
    def __init__(self, network: NetworkServer, serving: asyncio.Task[None]) -> None:
        self.network = network
        self.serving = serving

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.network.port)

    async def told(self, *parts: bytes) -> bytes:
        """Send parts, each by itself, and return all that comes until the server hangs up."""
        reader, writer = await self.connect()
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
            return await reader.read()
        except ConnectionError:  # It has hung up already.
            return b""
        finally:
            writer.close()

    async def until(self, check: Callable[[], bool]) -> None:
        while not check():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def serving(
    application: Any = None, folder: Path | None = None, **manners: Any
) -> AsyncIterator[Server]:
    context = None
    if folder is not None:
        CredentialsFolder(folder).ensure(NOW)
        context = tls_context(folder)
    network = NetworkServer(
        cast("Application", application or Simple(say_ok)),
        "127.0.0.1",
        0,
        context=context,
        manners=ConnectionLimits(**manners),
    )
    task = asyncio.create_task(network.serve())
    server = Server(network, task)
    try:
        async with asyncio.timeout(WAIT_S):
            await server.until(lambda: network.started)
            yield server
    finally:
        network.handle_exit(signal.SIGTERM, None)
        network.handle_exit(signal.SIGTERM, None)
        await asyncio.gather(task, return_exceptions=True)


def tell(*parts: bytes, application: Any = None, **manners: Any) -> bytes:
    async def run() -> bytes:
        async with serving(application, **manners) as server:
            return await server.told(*parts)

    return asyncio.run(run())


# --- headers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parts", [(), (b"G",), (b"GET / HTTP/1.1\r\nHost:", b" x\r\n"), (b"\r\n", b"\r\n")]
)
def test_headers_that_do_not_come_end_the_connection(parts: tuple[bytes, ...]) -> None:
    assert tell(*parts, head_s=SHORT_S) == b""


def test_a_second_request_has_the_same_time() -> None:
    whole = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = tell(whole, b"GET / HT", head_s=0.2)
    assert answer.endswith(b"\r\n\r\nok")
    assert answer.count(b"HTTP/1.1 200 OK") == 1


@pytest.mark.parametrize("size", [1000, 300_000])
def test_headers_that_are_too_large_are_refused(size: int) -> None:
    head = b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * size
    for parts in ((head + b"\r\n\r\n",), (head,), (head[:500], head[500:])):
        answer = tell(*parts, head_bytes_max=900)
        assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n") or (
            size > 100_000 and answer == b""  # what was not read takes the answer with it
        )


def test_what_is_no_http_is_refused() -> None:
    assert tell(b"what is this\r\n\r\n").startswith(b"HTTP/1.1 400 ")


# --- between requests, bodies, answers ----------------------------------------------------------


def test_an_idle_connection_ends() -> None:
    assert tell(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", idle_s=SHORT_S).endswith(b"ok")


def with_application(
    folder: Path, limits: Limits, scenario: Callable[[Server], Awaitable[bytes]]
) -> bytes:
    async def run() -> bytes:
        async with open_sqlite(folder) as store:
            application = make_application(make_server_context(store), AlwaysAllow(), limits=limits)
            async with serving(application) as server:
                return await scenario(server)

    return asyncio.run(run())


def test_a_body_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n".encode()

    async def scenario(server: Server) -> bytes:
        return await server.told(head, b"{")

    answer = with_application(tmp_path, Limits(request_s=SHORT_S), scenario)
    assert answer.startswith(b"HTTP/1.1 504 ")  # and the connection has ended


def test_a_body_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n".encode()

    async def scenario(server: Server) -> bytes:
        return await server.told(head)

    answer = with_application(tmp_path, Limits(body_bytes_max=1000), scenario)
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_bodies_together_have_a_bound(tmp_path: Path) -> None:
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n".encode()

    async def scenario(server: Server) -> bytes:
        _, first = await server.connect()
        first.write(head + b"x" * 800)
        application: Any = server.network._application
        await server.until(lambda: application._bodies_bytes == 800)
        answer = await server.told(head + b"x" * 800)
        first.close()
        await server.until(lambda: application._bodies_bytes == 0)
        return answer

    limits = Limits(body_bytes_max=1000, bodies_bytes_max=1000)
    assert with_application(tmp_path, limits, scenario).startswith(b"HTTP/1.1 429 ")


def test_a_client_that_does_not_take_its_answer_is_cut_off() -> None:
    async def much(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(1000):
            await send({"type": "http.response.body", "body": b"x" * 2**16, "more_body": True})

    async def run() -> None:
        async with serving(Simple(much), stalled_s=SHORT_S) as server:
            _, writer = await server.connect()
            state = server.network.server_state
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await server.until(lambda: bool(state.tasks))
            await server.until(lambda: not state.connections and not state.tasks)
            writer.close()

    asyncio.run(run())


# --- coming in ----------------------------------------------------------------------------------


def test_there_are_only_so_many_connections() -> None:
    async def run() -> None:
        async with serving(connections_max=1) as server:
            reader, writer = await server.connect()
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            assert await server.told() == b""
            assert server.network.door.turned_away == 1
            writer.close()
            await server.until(lambda: not server.network.server_state.connections)
            assert (await server.told(b"GET / HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 200")

    asyncio.run(run())


@pytest.mark.parametrize("begun", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"])
def test_a_handshake_has_its_time(tmp_path: Path, begun: bytes) -> None:
    async def run() -> bytes:
        async with serving(folder=tmp_path, handshake_s=SHORT_S) as server:
            return await server.told(begun)

    assert asyncio.run(run()) == b""


def test_plain_http_at_a_port_with_tls_is_told_so(tmp_path: Path) -> None:
    async def run() -> bytes:
        async with serving(folder=tmp_path) as server:
            return await server.told(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")

    assert asyncio.run(run()) == PLAIN_HTTP


def test_peers_that_are_gone_are_noticed_by_tcp() -> None:
    with socket.socket() as connection:
        prepare(connection, ConnectionLimits(probe_s=30))
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000


def test_a_port_that_is_taken_is_named() -> None:
    async def run() -> None:
        async with serving() as server:
            with pytest.raises(OSError, match=f"127.0.0.1:{server.network.port}: Address already"):
                await listen("127.0.0.1", server.network.port, 1)

    asyncio.run(run())


def test_a_certificate_that_has_expired_is_not_authenticated(tmp_path: Path) -> None:
    async def scenario(server: Any) -> None:
        authority: Pair = server.pair("ca")
        long_ago = Timestamp.parse("2020-01-01T00:00:00Z")
        life = timedelta(days=1)
        groups = ("system:masters",)
        old = certificates.client_certificate(authority, "ann", groups, long_ago, life=life)
        code, answer = await server.ask("/api/v1/nodes", old)
        assert (code, answer["reason"]) == (401, "Unauthorized")
        assert (await server.ask("/api/v1/nodes", server.pair("admin")))[0] == 200

    running_securely(tmp_path, scenario)


# --- stopping -----------------------------------------------------------------------------------


def stopping(signals: int, *, is_released: bool, stop_s: float) -> bytes:
    """Stop a server while it answers a request; return what the client gets."""

    async def run() -> bytes:
        begun, released = asyncio.Event(), asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            begun.set()
            await released.wait()
            await say_ok(scope, receive, send)

        async with serving(Simple(slow), stop_s=stop_s) as server:
            asking = asyncio.create_task(server.told(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
            await begun.wait()
            for _ in range(signals):
                server.network.handle_exit(signal.SIGTERM, None)
            if is_released:
                await server.until(lambda: not server.network.door.sockets[0].fileno() >= 0)
                assert not server.serving.done()
                released.set()
            else:
                await server.serving
                return b""
            answer = await asking
            await server.serving
            return answer

    return asyncio.run(run())


def test_a_request_that_was_begun_is_answered_before_the_server_stops() -> None:
    assert stopping(1, is_released=True, stop_s=WAIT_S).endswith(b"ok")


def test_a_server_does_not_wait_for_ever_for_requests() -> None:
    stopping(1, is_released=False, stop_s=SHORT_S)


def test_a_server_that_is_told_twice_stops_at_once() -> None:
    stopping(2, is_released=False, stop_s=10 * WAIT_S)


# --- whatever comes -----------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        b"GET / HTTP/1.1\r\n",
        b"POST / HTTP/1.1\r\n",
        b"Host: x\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: -1\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Expect: 100-continue\r\n",
        b"Connection: upgrade\r\nUpgrade: websocket\r\n",
        b"\r\n",
        b"hello",
        b"5\r\nhello\r\n0\r\n\r\n",
        b"\x00\xff",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ]
)


@settings(max_examples=20)
@given(st.lists(st.one_of(PIECES, st.binary(max_size=20)), max_size=8))
def test_whatever_is_sent_the_connection_ends_and_others_are_answered(pieces: list[bytes]) -> None:
    async def run() -> bytes:
        application = Simple(read_and_say_ok)
        async with serving(application, head_s=SHORT_S, idle_s=SHORT_S, stop_s=SHORT_S) as server:
            await server.told(*pieces)
            return await server.told(b"GET / HTTP/1.0\r\n\r\n")

    assert asyncio.run(run()).startswith(b"HTTP/1.1 200 OK")


async def read_and_say_ok(scope: Any, receive: Any, send: Any) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(SHORT_S):  # as the real one has
            while (await receive()).get("more_body", False):
                pass
    await say_ok(scope, receive, send)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"400 Bad Request: missing required Host header"),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            b"400 Bad Request: too many Host headers",
        ),
        (b"GET / HTTP/1.1\r\nhost: a\r\nConnection: close\r\n\r\n", b"ok"),
        (b"GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n", b"ok"),
        (b"GET / HTTP/1.0\r\n\r\n", b"ok"),
    ],
)
def test_a_request_names_one_host_as_in_go(head: bytes, expected: bytes) -> None:
    async def answer() -> bytes:
        async with serving(Simple(say_ok)) as server:
            return await server.told(head)

    told = asyncio.run(answer())
    assert told.endswith(b"\r\n\r\n" + expected)
    status = b"200 OK" if expected == b"ok" else expected
    assert told.startswith(b"HTTP/1.1 " + status + b"\r\n")


def test_nothing_is_written_to_a_connection_that_closes_meanwhile() -> None:
    """A TLS transport that was closed twice has no protocol any more, and writing to it fails."""

    class Closing(asyncio.Transport):
        is_closed = False
        written = b""

        def is_closing(self) -> bool:
            return self.is_closed

        def write(self, data: Any) -> None:
            assert not self.is_closed
            self.written += data

    async def run() -> bytes:
        transport = Closing()
        buffer = WriteBuffer(transport)
        buffer.write(b"before")
        await asyncio.sleep(0)
        buffer.write(b"after")
        transport.is_closed = True
        buffer.flush()
        return transport.written

    assert asyncio.run(run()) == b"before"


def test_a_response_is_written_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written: list[bytes] = []
    write = WriteBuffer.write

    def noted(self: WriteBuffer, data: bytes) -> None:
        written.append(data)
        write(self, data)

    monkeypatch.setattr(WriteBuffer, "write", noted)

    async def scenario(server: Server) -> bytes:
        return await server.told(b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")

    answer = with_application(tmp_path, Limits(), scenario)
    assert written == [answer]
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(body) in head
    assert head.endswith(b"connection: close")
