"""Port-forward: connections of a client become connections to ports of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from moorage.kit import spdy
from moorage.kit.http_head import parse_head
from moorage.node.kubelet_server.port_forward import (
    STREAMS_MAX,
    TUNNEL,
    PortForwarder,
    upgrade_fault,
    upgrading,
)

WAIT_S = 20.0
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


class FakeClient:
    """A client, and its channel."""

    def __init__(self) -> None:
        self._sent: asyncio.Queue[bytes] = asyncio.Queue()
        self._frames: asyncio.Queue[spdy.Frame] = asyncio.Queue()
        self._reader = spdy.Reader()
        self._writer = spdy.FrameWriter()
        self._next = 1
        self.is_closed = False

    # The node's side.

    async def messages(self) -> AsyncIterator[bytes]:
        while data := await self._sent.get():
            yield data

    async def send(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            self._frames.put_nowait(frame)

    async def close(self) -> None:
        self.is_closed = True

    # The client's side.

    def put(self, data: bytes) -> None:
        self._sent.put_nowait(data)

    def open(self, **headers: str) -> int:
        stream, self._next = self._next, self._next + 2
        self.put(self._writer.syn_stream(stream, headers))
        return stream

    def forward(self, port: int | str, name: str = "0") -> tuple[int, int]:
        """Open the two streams of a connection."""
        more = {"port": str(port), "requestID": name}
        return self.open(streamType="error", **more), self.open(streamType="data", **more)

    async def frame(self) -> spdy.Frame:
        return await asyncio.wait_for(self._frames.get(), WAIT_S)

    async def read_all(self, stream: int) -> bytes:
        """Return the data of a stream until its end."""
        found = b""
        while True:
            match await self.frame():
                case spdy.Data(stream=number, data=data, is_last=is_last) if number == stream:
                    found += data
                    if is_last:
                        return found


@asynccontextmanager
async def shouting() -> AsyncIterator[int]:
    """Serve: what comes goes back in capitals, once it is complete."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def play(scenario: Callable[[FakeClient, int], Awaitable[None]]) -> None:
    async def run() -> None:
        client = FakeClient()
        async with shouting() as port:
            task = asyncio.create_task(PortForwarder(client, "default/p", "uid-1").run())
            await scenario(client, port)
            client.put(b"")
            await asyncio.wait_for(task, WAIT_S)
            assert client.is_closed

    asyncio.run(run())


def test_data_goes_both_ways_and_ends_with_the_program() -> None:
    async def scenario(client: FakeClient, port: int) -> None:
        error, data = client.forward(port)
        client.put(spdy.data_frame(data, b"hello ") + spdy.data_frame(data, b"you"))
        client.put(spdy.data_frame(data, b"", is_last=True))
        assert await client.read_all(data) == b"HELLO YOU"
        assert await client.read_all(error) == b""

    play(scenario)


def test_connections_are_separate() -> None:
    async def scenario(client: FakeClient, port: int) -> None:
        pairs = [client.forward(port, str(number)) for number in range(5)]
        for number, (_, data) in reversed([*enumerate(pairs)]):
            client.put(spdy.data_frame(data, f"text {number}".encode(), is_last=True))
            assert await client.read_all(data) == f"TEXT {number}".encode()

    play(scenario)


def test_streams_of_old_clients_have_no_names() -> None:
    async def scenario(client: FakeClient, port: int) -> None:
        client.open(streamType="error", port=str(port))
        data = client.open(streamType="data", port=str(port))
        client.put(spdy.data_frame(data, b"a", is_last=True))
        assert await client.read_all(data) == b"A"

    play(scenario)


def test_a_port_where_nobody_listens_is_said() -> None:
    async def scenario(client: FakeClient, port: int) -> None:
        error, _ = client.forward(1)
        assert (await client.read_all(error)).decode() == (
            "error forwarding port 1 to pod default/p, uid uid-1: failed to connect to "
            "localhost:1: dial tcp 127.0.0.1:1: connect: connection refused"
        )
        # The connection goes on.
        _, data = client.forward(port, "1")
        client.put(spdy.data_frame(data, b"b", is_last=True))
        assert await client.read_all(data) == b"B"

    play(scenario)


def test_a_stream_that_cannot_be_is_reset() -> None:
    async def scenario(client: FakeClient, port: int) -> None:
        for headers in (
            {"streamType": "data"},
            {"streamType": "data", "port": "0"},
            {"streamType": "data", "port": "65536"},
            {"streamType": "data", "port": "a"},
            {"streamType": "other", "port": str(port)},
        ):
            stream = client.open(**headers)
            assert await client.frame() == spdy.Reset(stream, spdy.PROTOCOL_ERROR)
        more = {"streamType": "error", "port": str(port), "requestID": "0"}
        client.open(**more)
        again = client.open(**more)
        assert await client.frame() == spdy.Reset(again, spdy.PROTOCOL_ERROR)

    play(scenario)


def test_streams_are_bounded() -> None:
    async def scenario(client: FakeClient, port: int) -> None:
        for number in range(STREAMS_MAX):
            client.open(streamType="error", port=str(port), requestID=str(number))
        last = client.open(streamType="data", port=str(port), requestID="0")
        assert await client.frame() == spdy.Reset(last, spdy.REFUSED_STREAM)

    play(scenario)


def test_a_reset_ends_the_connection_and_pings_are_answered() -> None:
    async def scenario(client: FakeClient, port: int) -> None:
        error, data = client.forward(port)
        client.put(spdy.ping_frame(9))
        assert await client.frame() == spdy.Ping(9)
        client.put(spdy.reset_frame(data, spdy.CANCEL))
        assert await client.read_all(error) == b""

    play(scenario)


def test_a_client_that_violates_the_protocol_is_left() -> None:
    async def run() -> None:
        client = FakeClient()
        task = asyncio.create_task(PortForwarder(client, "default/p", "uid-1").run())
        client.put(bytes.fromhex("8002000600000004") + bytes(4))
        await asyncio.wait_for(task, WAIT_S)
        assert (await client.frame(), client.is_closed) == (spdy.GoAway(), True)

    asyncio.run(run())


def test_both_ways_to_upgrade() -> None:
    def fault(*lines: str) -> str:
        raw = "\r\n".join(("GET / HTTP/1.1", "Connection: Upgrade", *lines, "", ""))
        return upgrade_fault(parse_head(raw.encode()))

    socket = ("Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {KEY}")
    protocol = "X-Stream-Protocol-Version: portforward.k8s.io"
    assert fault(*socket, f"Sec-WebSocket-Protocol: {TUNNEL}") == ""
    assert fault("Upgrade: SPDY/3.1", protocol) == ""
    assert "Upgrade request required" in fault()
    assert "spoken here" in fault(*socket, "Sec-WebSocket-Protocol: v4.channel.k8s.io")
    assert "spoken here" in fault("Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v2.k8s.io")
    raw = f"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n{protocol}\r\n\r\n"
    assert b"Upgrade: SPDY/3.1\r\n" in upgrading(parse_head(raw.encode()))
