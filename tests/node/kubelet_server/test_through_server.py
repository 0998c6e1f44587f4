"""From a client through the server to a node, over TLS: bytes pass, and bad nodes harm nobody."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

from moorage.apiserver.audit.auditor import Rotation
from moorage.apiserver.auth.credentials import ADMIN, NodeFolder, write_node_folder
from moorage.apiserver.server import _now, serve
from moorage.apiserver.settings import Auditing, Limits, Settings
from moorage.kit.http_head import Head, read_head
from moorage.kit.websocket import Message, Opcode, Reader, frame
from moorage.node.kubelet_server import KubeletServer, RequestHandler, TlsFiles
from moorage.node.runtime.contract import Runtime
from tests.apiserver.test_secure_server import Running, running
from tests.node.kubelet_server.fakes import RUNNING, FakePods, FakeRuntime, pod, status

PODS = "/api/v1/namespaces/default/pods"
MASK = b"\1\2\3\4"
WAIT_S = 20.0


class Town(Running):
    """A server, and what is needed to set up its nodes."""

    def node_folder(self, *hosts: str) -> NodeFolder:
        return write_node_folder(
            self.folder / "node",
            node="n1",
            hosts=hosts or ("127.0.0.1",),
            server=f"https://127.0.0.1:{self.port}",
            pki=self.folder / "pki",
            now=_now(),
        )

    async def make(self, path: str, body: dict[str, Any]) -> None:
        code, answer = await self.ask(path, self.pair(ADMIN), body=body)
        assert code == 201, answer

    async def place(self, port: int) -> None:
        """Have a node at a port, and a pod on it."""
        daemons = {"kubeletEndpoint": {"Port": port}}
        addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
        seen = {"addresses": addresses, "daemonEndpoints": daemons}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": seen}
        await self.make("/api/v1/nodes", node)
        spec = {"containers": [{"name": "main", "image": "i"}], "nodeName": "n1"}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
        await self.make(PODS, made)

    async def get(self, path: str) -> tuple[int, Any]:
        return await self.ask(f"{PODS}/p/{path}", self.pair(ADMIN))

    @asynccontextmanager
    async def upgraded(
        self, path: str
    ) -> AsyncIterator[tuple[Head, asyncio.StreamReader, asyncio.StreamWriter]]:
        context = ssl.create_default_context(cafile=str(self.folder / "pki" / "ca.crt"))
        pki = self.folder / "pki"
        context.load_cert_chain(pki / f"{ADMIN}.crt", pki / f"{ADMIN}.key")
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context)
        lines = (
            f"GET {PODS}/p/{path} HTTP/1.1",
            "Host: x",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Protocol: v5.channel.k8s.io",
        )
        try:
            writer.write("\r\n".join((*lines, "", "")).encode())
            head = await asyncio.wait_for(read_head(reader), WAIT_S)
            assert head is not None
            yield head, reader, writer
        finally:
            writer.transport.abort()


def play(folder: Path, scenario: Callable[[Town], Awaitable[None]], **options: Any) -> None:
    async def in_town(found: Running) -> None:
        await scenario(Town(*found))

    running(folder, in_town, **options)


@asynccontextmanager
async def endpoint(town: Town) -> AsyncIterator[FakeRuntime]:
    """Have a node that is as it should be."""
    runtime = FakeRuntime()
    runtime.write("main", 0, b"one\n", b"two\n")
    pods = FakePods(pod(status("main", **RUNNING)))
    made = town.node_folder()
    files = TlsFiles(made.certificate, made.key, made.authority)
    opened = KubeletServer(RequestHandler(pods, cast("Runtime", runtime)), files)
    await opened.listen("127.0.0.1", 0)
    try:
        await town.place(opened.port)
        yield runtime
    finally:
        await opened.close()


async def heard(reader: asyncio.StreamReader) -> list[Message]:
    frames = Reader(from_client=False)
    found: list[Message] = []
    while data := await asyncio.wait_for(reader.read(65536), WAIT_S):
        found += frames.feed(data)
    return found


# --- what passes ----------------------------------------------------------------------------------


def test_a_conversation_passes_and_is_noted(tmp_path: Path) -> None:
    async def scenario(town: Town) -> None:
        async with endpoint(town):
            query = "command=cat&stdin=true&stdout=true&container=main"
            async with town.upgraded(f"exec?{query}") as (head, reader, writer):
                assert head.first[1] == "101"
                assert head.headers["sec-websocket-protocol"] == "v5.channel.k8s.io"
                for message in (b"\0" + b"x" * 200_000, b"\xff\0"):
                    writer.write(frame(Opcode.BINARY, message, mask=MASK))
                said = await heard(reader)
        whole = b"".join(data[1:] for _, data in said if data[:1] == b"\1")
        assert whole == b"X" * 200_000
        assert said[-1].close_code == 1000

    audit = tmp_path / "audit.log"
    play(tmp_path, scenario, auditing=Auditing(str(audit), rotation=Rotation()))
    noted = [json.loads(line) for line in audit.read_text().splitlines()]
    stages = [
        (each["stage"], each.get("responseStatus", {}).get("code"))
        for each in noted
        if each.get("objectRef", {}).get("subresource") == "exec"
    ]
    assert stages == [("ResponseStarted", 101), ("ResponseComplete", 101)]


def test_a_log_passes(tmp_path: Path) -> None:
    async def scenario(town: Town) -> None:
        async with endpoint(town):
            code, body = await town.get("log?tailLines=1")
            assert code == 200
            assert b"two\n" in body
            assert b"one" not in body

    play(tmp_path, scenario)


def test_who_goes_away_ends_the_command_at_the_node(tmp_path: Path) -> None:
    async def scenario(town: Town) -> None:
        async with endpoint(town) as runtime:
            async with town.upgraded("exec?command=cat&stdin=1&stdout=1") as (head, _, _):
                assert head.first[1] == "101"
            [session] = runtime.sessions
            await asyncio.wait_for(session.killed.wait(), WAIT_S)

    play(tmp_path, scenario)


def test_a_server_that_stops_ends_conversations(tmp_path: Path) -> None:
    async def run() -> None:
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        settings = Settings(tmp_path, port=0, has_rbac=True)
        serving = asyncio.create_task(serve(settings, started.set_result))
        port = urlsplit(await started).port
        assert port is not None
        town = Town(port, tmp_path)
        async with endpoint(town) as runtime:
            async with town.upgraded("exec?command=cat&stdin=1&stdout=1") as (_, reader, _):
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)
                assert await reader.read() == b""
            await runtime.sessions[0].killed.wait()

    asyncio.run(asyncio.wait_for(run(), WAIT_S))


def test_with_too_many_streams_the_node_is_left_alone(tmp_path: Path) -> None:
    async def scenario(town: Town) -> None:
        async with endpoint(town) as runtime:
            code, _ = await town.get("log?follow=true")
            assert code == 429
            assert runtime.asked
            await runtime.left.wait()
            async with town.upgraded("exec?command=cat&stdin=1&stdout=1") as (head, _, _):
                assert head.first[1] == "429"
            await runtime.sessions[0].killed.wait()

    play(tmp_path, scenario, limits=Limits(watches_max=0))


# --- bad nodes ------------------------------------------------------------------------------------


@asynccontextmanager
async def answering(town: Town, answer: bytes, *hosts: str) -> AsyncIterator[None]:
    """Have a node that answers always the same, and goes away."""
    made = town.node_folder(*hosts)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        await town.place(server.sockets[0].getsockname()[1])
        yield


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"", "error dialing backend: EOF"),
        (b"nonsense\r\n\r\n", "error dialing backend: the first line is not HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "invalid upgrade response: status code 200"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://x\r\n\r\n",
         "invalid upgrade response: status code 302"),
        (b"HTTP/1.1 101 " + b"x" * 70_000, "error dialing backend: the headers are too large"),
    ],
)  # fmt: skip
def test_nodes_that_answer_an_upgrade_with_nonsense(
    tmp_path: Path, answer: bytes, text: str
) -> None:
    async def scenario(town: Town) -> None:
        async with (
            answering(town, answer),
            town.upgraded("exec?command=sh&stdout=1") as (head, reader, _),
        ):
            assert head.first[1] == "500"
            body = await reader.readexactly(int(head.headers["content-length"]))
            assert json.loads(body)["message"] == text

    play(tmp_path, scenario)


def test_the_refusal_of_a_node_is_passed_on(tmp_path: Path) -> None:
    refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"

    async def scenario(town: Town) -> None:
        async with (
            answering(town, refusal),
            town.upgraded("exec?command=sh&stdout=1") as (head, reader, _),
        ):
            assert head.first[1] == "403"
            assert await reader.readexactly(2) == b"no"

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (b"", 500, "the connection was closed"),
        (b"nonsense\r\n\r\n", 500, "the answer is no HTTP"),
        (b"HTTP/1.1 500 x\r\nContent-Length: 4\r\n\r\nsick", 500, "Internal error occurred: sick"),
        (b"HTTP/1.1 404 x\r\nContent-Length: 4\r\n\r\ngone", 404,
         "the server could not find the requested resource ( pods/log p)"),
        (b"HTTP/1.1 302 x\r\nLocation: http://x\r\nContent-Length: 0\r\n\r\n", 500,
         "the node answered 302"),
    ],
)  # fmt: skip
def test_nodes_that_give_no_log(tmp_path: Path, answer: bytes, code: int, text: str) -> None:
    async def scenario(town: Town) -> None:
        async with answering(town, answer):
            found, body = await town.get("log")
            assert found == code
            assert text in body["message"]

    play(tmp_path, scenario)


def test_a_log_that_breaks_off_says_so(tmp_path: Path) -> None:
    begun = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n"

    async def scenario(town: Town) -> None:
        async with answering(town, begun):
            code, body = await town.get("log")
            assert code == 200
            assert b"one\n" in body
            assert b"error: the log breaks off here: the connection was closed" in body

    play(tmp_path, scenario)


def test_a_node_with_a_certificate_for_another_host_is_not_trusted(tmp_path: Path) -> None:
    async def scenario(town: Town) -> None:
        async with answering(town, b"", "other.example"):
            code, body = await town.get("log")
            assert code == 500
            assert "tls: failed to verify certificate: x509: IP address mismatch" in body["message"]

    play(tmp_path, scenario)
