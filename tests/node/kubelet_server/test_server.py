"""The kubelet server: access, answers, and cleanup after clients."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth import certificates
from moorage.apiserver.auth.credentials import (
    ADMIN,
    KUBELET_CLIENT,
    CredentialsFolder,
    write_node_folder,
)
from moorage.kit.connections import ConnectionLimits
from moorage.kit.http_head import Head, parse_head
from moorage.kit.websocket import NORMAL, Message, Opcode, Reader, frame
from moorage.node.kubelet_server import KubeletServer, RequestHandler, TlsFiles
from moorage.node.kubelet_server.streaming import read_stream_options
from moorage.node.runtime.contract import Runtime
from tests.node.kubelet_server.fakes import (
    ENDED,
    RUNNING,
    WAITING,
    FakePods,
    FakeRuntime,
    pod,
    status,
)

NOW = Timestamp(datetime.now(UTC).replace(microsecond=0))  # TLS itself looks at the clock
WAIT_S = 20.0
MASK = b"\1\2\3\4"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


class Certificates(NamedTuple):
    """Those of a server, and of a node."""

    pki: Path
    files: TlsFiles

    def context(self, client: str, folder: Path | None = None) -> ssl.SSLContext:
        """Return how a client comes; without a certificate if it has no name."""
        context = ssl.create_default_context(cafile=str(self.pki / "ca.crt"))
        folder = folder or self.pki
        if client:
            context.load_cert_chain(folder / f"{client}.crt", folder / f"{client}.key")
        return context


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    CredentialsFolder(folder / "pki").ensure(NOW)
    node = write_node_folder(
        folder / "node",
        node="n1",
        hosts=("127.0.0.1",),
        server="https://127.0.0.1:1",
        pki=folder / "pki",
        now=NOW,
    )
    return Certificates(folder / "pki", TlsFiles(node.certificate, node.key, node.authority))


class Visitor:
    """A client of an endpoint."""

    def __init__(self, endpoint: KubeletServer, made: Certificates, runtime: FakeRuntime) -> None:
        self._endpoint = endpoint
        self._made = made
        self.runtime = runtime

    @asynccontextmanager
    async def connected(
        self, client: str = KUBELET_CLIENT, folder: Path | None = None
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self._endpoint.port, ssl=self._made.context(client, folder)
        )
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def get(self, path: str, client: str = KUBELET_CLIENT) -> tuple[int, bytes]:
        return await self.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), client)

    async def send(self, raw: bytes, client: str = KUBELET_CLIENT) -> tuple[int, bytes]:
        """Return the code and the body of an answer."""
        async with self.connected(client) as (reader, writer):
            writer.write(raw)
            answer = await asyncio.wait_for(reader.read(), WAIT_S)
        head, _, body = answer.partition(b"\r\n\r\n")
        parsed = parse_head(head + b"\r\n\r\n")
        if "chunked" in parsed.headers.get("transfer-encoding", ""):
            body = _unchunked(body)
        return int(parsed.first[1]), body

    @asynccontextmanager
    async def conversing(
        self, query: str, protocol: str = "v5.channel.k8s.io"
    ) -> AsyncIterator[Conversation]:
        async with self.connected() as (reader, writer):
            writer.write(upgrade(f"/exec/default/p/main?{query}", protocol))
            head = parse_head(await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_S))
            yield Conversation(head, reader, writer)


class Conversation:
    """The client's side of a WebSocket."""

    def __init__(
        self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.head = head
        self._reader = reader
        self._frames = Reader(from_client=False)
        self.writer = writer

    def say(self, data: bytes, kind: Opcode = Opcode.BINARY) -> None:
        self.writer.write(frame(kind, data, mask=MASK))

    async def heard(self) -> list[Message]:
        """Return all that is said to the end."""
        found: list[Message] = []
        while data := await asyncio.wait_for(self._reader.read(65536), WAIT_S):
            found += self._frames.feed(data)
        return found


def upgrade(path: str, protocol: str, *, method: str = "GET") -> bytes:
    lines = (
        f"{method} {path} HTTP/1.1",
        "Host: x",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {KEY}",
        f"Sec-WebSocket-Protocol: {protocol}",
    )
    return "\r\n".join((*lines, "", "")).encode()


def _unchunked(body: bytes) -> bytes:
    whole = b""
    while True:
        size, _, rest = body.partition(b"\r\n")
        if int(size, 16) == 0:
            assert rest == b"\r\n"
            return whole
        whole, body = whole + rest[: int(size, 16)], rest[int(size, 16) + 2 :]


def visit(
    made: Certificates,
    scenario: Callable[[Visitor], Awaitable[Any]],
    manners: ConnectionLimits | None = None,
) -> Any:
    """Play a scenario with an endpoint; at its end nothing of it is left."""

    async def run() -> Any:
        runtime = FakeRuntime()
        runtime.write("main", 1, b"one\n", b"two\n")
        main = status("main", 1, lastState=ENDED, **RUNNING)
        pods = FakePods(pod(main, status("new", **WAITING)))
        answering = RequestHandler(pods, cast("Runtime", runtime), metrics=lambda: "up 1\n")
        endpoint = KubeletServer(answering, made.files, manners or ConnectionLimits())
        await endpoint.listen("127.0.0.1", 0)
        try:
            return await asyncio.wait_for(scenario(Visitor(endpoint, made, runtime)), WAIT_S)
        finally:
            await endpoint.close()

    return asyncio.run(run())


# --- who is let in --------------------------------------------------------------------------------


def test_only_the_server_is_let_in(made: Certificates) -> None:
    async def scenario(visitor: Visitor) -> None:
        assert await visitor.get("/healthz") == (200, b"ok")
        assert await visitor.get("/healthz", "") == (401, b"Unauthorized")
        refused = (403, b"Forbidden (user=kubernetes-admin)")
        assert await visitor.get("/containerLogs/default/p/main", ADMIN) == refused
        assert visitor.runtime.asked == []

    visit(made, scenario)


def test_the_certificate_of_another_authority_is_not_let_in(
    made: Certificates, tmp_path: Path
) -> None:
    CredentialsFolder(tmp_path).ensure(NOW)

    async def scenario(visitor: Visitor) -> None:
        answer = b""
        with suppress(ssl.SSLError, ConnectionError):
            async with visitor.connected(folder=tmp_path) as (reader, writer):
                writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
                answer = await reader.read()
        assert answer == b""

    visit(made, scenario)


def test_a_serving_certificate_is_for_its_hosts_only(made: Certificates) -> None:
    names = certificates.names_of(made.files.certificate.read_bytes())
    assert names == {"127.0.0.1"}


# --- pages ----------------------------------------------------------------------------------------


def test_pages(made: Certificates) -> None:
    async def scenario(visitor: Visitor) -> None:
        assert await visitor.get("/metrics") == (200, b"up 1\n")
        _, body = await visitor.get("/pods")
        assert [each["metadata"]["name"] for each in json.loads(body)["items"]] == ["p"]
        assert (await visitor.get("/nothing"))[0] == 404
        assert (await visitor.send(b"PUT /healthz HTTP/1.1\r\n\r\n"))[0] == 405
        assert (await visitor.send(b"nonsense\r\n\r\n"))[0] == 400
        huge = b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000 + b"\r\n\r\n"
        assert (await visitor.send(huge))[0] == 400

    visit(made, scenario)


def test_no_more_connections_than_allowed(made: Certificates) -> None:
    async def scenario(visitor: Visitor) -> None:
        async with visitor.connected() as (_, writer):
            writer.write(b"GET /containerLogs/default/p/main?follow=true HTTP/1.1\r\n\r\n")
            await visitor.runtime.followed.wait()
            with pytest.raises(ConnectionError):
                await visitor.get("/healthz")

    visit(made, scenario, ConnectionLimits(connections_max=1))


def test_who_says_nothing_is_not_waited_for(made: Certificates) -> None:
    async def scenario(visitor: Visitor) -> None:
        async with visitor.connected() as (reader, _):
            assert await reader.read() == b""

    visit(made, scenario, ConnectionLimits(head_s=0.05))


# --- logs -----------------------------------------------------------------------------------------

LOG = "/containerLogs/default"


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        ("/p/main", 200, "one\ntwo\n"),
        ("/p/main?tailLines=1", 200, "two\n"),
        ("/p/other", 404, 'container "other" not found in pod "p"'),
        ("/q/main", 404, 'pod "q" does not exist'),
        ("/p/new", 400, 'container "new" in pod "p" is waiting to start: ContainerCreating'),
        ("/p/main?tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("/p/main?tailLines=-1", 422, '{"message": "Invalid request."}'),
        ("/p/main?limitBytes=0", 422, '{"message": "Invalid request."}'),
        ("/p/main?stream=Stdout", 400, 'unable to return the given log stream: "Stdout"'),
    ],
)
def test_logs(made: Certificates, path: str, code: int, text: str) -> None:
    assert visit(made, lambda visitor: visitor.get(LOG + path)) == (code, text.encode())


def test_a_log_that_breaks_off_does_not_look_whole(made: Certificates) -> None:
    async def scenario(visitor: Visitor) -> None:
        async with visitor.connected() as (reader, writer):
            writer.write(b"GET /containerLogs/default/p/main?previous=1 HTTP/1.1\r\n\r\n")
            with suppress(OSError):
                assert not (await reader.read()).endswith(b"0\r\n\r\n")

    visit(made, scenario)


# --- commands -------------------------------------------------------------------------------------


def test_a_command_and_its_streams(made: Certificates) -> None:
    async def scenario(visitor: Visitor) -> None:
        async with visitor.conversing("command=complain&command=no&output=1&error=1") as said:
            assert said.head.first[1] == "101"
            assert said.head.headers["sec-websocket-protocol"] == "v5.channel.k8s.io"
            *said_before, ending, close = await said.heard()
        assert [data for _, data in said_before] == [b"\1out\n", b"\2no"]
        assert ending.data[:1] == b"\3"
        assert json.loads(ending.data[1:])["status"] == "Success"
        assert (close.kind, close.close_code) == (Opcode.CLOSE, NORMAL)

    visit(made, scenario)


def test_streams_that_nobody_wants_are_not_sent(made: Certificates) -> None:
    async def scenario(visitor: Visitor) -> None:
        async with visitor.conversing("command=complain&command=no&error=1") as said:
            data = [message.data for message in await said.heard()]
        assert data[0] == b"\2no"

    visit(made, scenario)


def test_pings_are_answered(made: Certificates) -> None:
    async def scenario(visitor: Visitor) -> None:
        async with visitor.conversing("command=cat&input=1&output=1") as said:
            said.say(b"are you there", Opcode.PING)
            said.say(b"\0text")
            said.say(b"\xff\0")
            heard = await said.heard()
        assert Message(Opcode.PONG, b"are you there") in heard
        assert Message(Opcode.BINARY, b"\1TEXT") in heard

    visit(made, scenario)


@pytest.mark.parametrize(
    "last",
    [
        frame(Opcode.CLOSE, b"", mask=MASK),
        frame(Opcode.BINARY, b"not masked"),
        frame(Opcode.BINARY, b"x" * 2_000_000, mask=MASK)[:5000],
        b"",
    ],
)
def test_who_goes_away_or_talks_nonsense_ends_the_command(made: Certificates, last: bytes) -> None:
    async def scenario(visitor: Visitor) -> None:
        async with visitor.conversing("command=cat&input=1&output=1") as said:
            said.writer.write(last)
            if last:
                await said.writer.drain()
                heard = await said.heard()
                assert all(message.kind is Opcode.CLOSE for message in heard)
        [session] = visitor.runtime.sessions
        await session.killed.wait()

    visit(made, scenario)


def test_sizes_that_are_none_are_overlooked(made: Certificates) -> None:
    async def scenario(visitor: Visitor) -> None:
        async with visitor.conversing("command=size&output=1&tty=1") as said:
            for size in ("{", '{"Width":-1,"Height":2}', '{"Width":70000,"Height":2}', "[]"):
                said.say(b"\4" + size.encode())
            said.say(b"\4" + b'{"Width":80,"Height":25}')
            heard = await said.heard()
        assert heard[0].data == b"\x0180x25"

    visit(made, scenario)


NO_SPDY = "only WebSocket is spoken here, with v5.channel.k8s.io or v4.channel.k8s.io; SPDY is not"


@pytest.mark.parametrize(
    ("path", "protocol", "code", "text"),
    [
        ("/exec/default/p/new?command=sh&output=1", "v5.channel.k8s.io", 500,
         'container not found ("new")'),
        ("/exec/default/q/main?command=sh&output=1", "v5.channel.k8s.io", 404,
         "pod does not exist"),
        ("/exec/default/p/main?output=1", "v5.channel.k8s.io", 400,
         "you must specify at least 1 command for exec"),
        ("/exec/default/p/main?command=sh", "v5.channel.k8s.io", 400,
         "you must specify at least 1 of stdin, stdout, stderr"),
        ("/exec/default/p/main?command=sh&output=1", "v9.channel.k8s.io", 400,
         NO_SPDY),
    ],
)  # fmt: skip
def test_why_there_is_no_conversation(
    made: Certificates, path: str, protocol: str, code: int, text: str
) -> None:
    answer = visit(made, lambda visitor: visitor.send(upgrade(path, protocol)))
    assert answer == (code, text.encode())


@given(st.lists(st.tuples(st.sampled_from(["command", "input", "output", "tty", "error", "x"]),
                          st.sampled_from(["1", "true", "0", "", "a"]))))  # fmt: skip
def test_a_terminal_has_one_stream(fields: list[tuple[str, str]]) -> None:
    wanted = read_stream_options(fields)
    assert not (wanted.tty and wanted.errors)
    assert list(wanted.command) == [value for name, value in fields if name == "command"]


@settings(max_examples=15)
@given(st.binary(max_size=400))
def test_whatever_is_sent_the_endpoint_goes_on(made: Certificates, noise: bytes) -> None:
    async def scenario(visitor: Visitor) -> None:
        async with visitor.conversing("command=cat&input=1&output=1") as said:
            said.writer.write(noise)
        [session] = visitor.runtime.sessions
        async with visitor.connected() as (_, writer):
            writer.write(noise)
        assert await visitor.get("/healthz") == (200, b"ok")
        if not session.code.done():
            await session.killed.wait()

    visit(made, scenario)
