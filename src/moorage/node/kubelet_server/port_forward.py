"""Port-forward: connections to ports of a pod, as SPDY streams in one connection.

    client ── WebSocket (SPDY/3.1+portforward.k8s.io) or SPDY/3.1 ── node ─┬─ localhost:80
                                                                           └─ localhost:80

For each forwarded connection the client opens two streams with one `requestID`: `error`, on which
the node reports errors, and `data`. Pods have the machine's network, so a port of a pod is one of
the machine. As in Kubernetes, streams have no windows: a program that does not read holds up its
whole connection, for a minute at most.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, Protocol

from msgspec import Struct, field

from moorage.kit import spdy
from moorage.kit.http_head import Head
from moorage.kit.websocket import is_key
from moorage.node.kubelet_server.streaming import (
    READ_BYTES,
    STALLED_S,
    WEBSOCKET_VERSION,
    accepting,
)

PROTOCOL: Final = "portforward.k8s.io"
TUNNEL: Final = f"SPDY/3.1+{PROTOCOL}"
SPDY: Final = "spdy/3.1"
STREAMS_MAX: Final = 512  # of one client: two for each connection
PAIR_S: Final = 30.0  # to open the second of two streams
CONNECT_S: Final = 10.0
HOSTS: Final = ("127.0.0.1", "::1")  # as localhost in a pod


class ByteChannel(Protocol):
    """The connection to the client, in messages of any size."""

    def messages(self) -> AsyncIterator[bytes]:
        """Yield the data of the client until it disconnects."""

    async def send(self, data: bytes) -> None:
        """Send data; raises OSError if the client does not receive it."""

    async def close(self) -> None:
        """Say that nothing follows."""


class RawChannel:
    """A connection that was upgraded to SPDY itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield what the client sends."""
        with suppress(OSError):
            while data := await self._reader.read(READ_BYTES):
                yield data

    async def send(self, data: bytes) -> None:
        """Send data."""
        self._writer.write(data)
        async with asyncio.timeout(STALLED_S):
            await self._writer.drain()

    async def close(self) -> None:
        """Nothing: the end of the connection says it."""


# --- upgrade --------------------------------------------------------------------------------------


def is_tunnel_request(head: Head) -> bool:
    """Return whether a request wants SPDY in a WebSocket."""
    headers = head.headers
    return (
        head.upgrade == "websocket"
        and headers.get("sec-websocket-version") == WEBSOCKET_VERSION
        and is_key(headers.get("sec-websocket-key", ""))
        and head.has("sec-websocket-protocol", TUNNEL.lower())
    )


def upgrade_fault(head: Head) -> str:
    """Return why a request cannot become a connection for ports; "" if it can."""
    if not head.upgrade:
        return "Upgrade request required"
    if is_tunnel_request(head):
        return ""
    offered = head.headers.get("x-stream-protocol-version", "")
    if head.upgrade == SPDY and (not offered or head.has("x-stream-protocol-version", PROTOCOL)):
        return ""
    return f"only {TUNNEL} over WebSocket and SPDY/3.1 with {PROTOCOL} are spoken here"


def upgrading(head: Head) -> bytes:
    """Return the response that upgrades the connection."""
    if is_tunnel_request(head):
        return accepting(head, TUNNEL)
    lines = (
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: SPDY/3.1",
        "Connection: Upgrade",
        f"X-Stream-Protocol-Version: {PROTOCOL}",
    )
    return "\r\n".join((*lines, "", "")).encode("latin-1")


# --- streams --------------------------------------------------------------------------------------


class _Pair(Struct, eq=False):
    """The two streams of a forwarded connection, and the connection once both are there."""

    port: int
    error: int = 0
    data: int = 0
    writer: asyncio.StreamWriter | None = None
    waiting: list[spdy.Data] = field(default_factory=list)  # until it is connected
    is_open: asyncio.Event = field(default_factory=asyncio.Event)  # both streams are
    is_settled: asyncio.Event = field(default_factory=asyncio.Event)  # connected, or never will be
    task: asyncio.Task[None] | None = None


class PortForwarder:
    """Forwards the connections of one client."""

    def __init__(self, channel: ByteChannel, pod: str, uid: str) -> None:
        self._channel = channel
        self._pod, self._uid = pod, uid
        self._writer = spdy.FrameWriter()
        self._pairs: dict[str, _Pair] = {}
        self._streams: dict[int, tuple[str, _Pair]] = {}
        self._last_stream = 0

    async def run(self) -> None:
        """Forward until the client disconnects."""
        reader = spdy.Reader()
        try:
            async for message in self._channel.messages():
                for frame in reader.feed(message):
                    await self._take(frame)
        except spdy.SpdyError:
            with suppress(OSError):
                await self._channel.send(spdy.goaway_frame(self._last_stream))
        except OSError:
            pass
        finally:
            tasks = [each.task for each in self._pairs.values() if each.task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._channel.close()

    async def _take(self, frame: spdy.Frame) -> None:
        match frame:
            case spdy.SynStream():
                await self._open(frame)
            case spdy.Data(stream=stream):
                await self._pass_on(stream, frame)
            case spdy.Reset(stream=stream):
                self._forget(stream)
            case spdy.Ping():
                await self._channel.send(spdy.ping_frame(frame.number))

    async def _open(self, frame: spdy.SynStream) -> None:
        stream, headers = frame.stream, frame.headers
        is_new = stream % 2 == 1 and stream > self._last_stream
        self._last_stream = max(stream, self._last_stream)
        port, kind = _port(headers.get("port", "")), headers.get("streamtype", "")
        is_right = is_new and port and kind in ("error", "data")
        if not is_right or len(self._streams) >= STREAMS_MAX:
            status = spdy.REFUSED_STREAM if is_right else spdy.PROTOCOL_ERROR
            await self._channel.send(spdy.reset_frame(stream, status))
            return
        # Old clients have no ids; their streams follow each other.
        default = str(stream if kind == "error" else stream - 2)
        name = headers.get("requestid", default)[:64]
        pair = self._pairs.setdefault(name, _Pair(port))
        if pair.error if kind == "error" else pair.data:
            await self._channel.send(spdy.reset_frame(stream, spdy.PROTOCOL_ERROR))
            return
        if kind == "error":
            pair.error = stream
        else:
            pair.data = stream
        self._streams[stream] = name, pair
        await self._channel.send(self._writer.syn_reply(stream))
        if pair.task is None:
            pair.task = asyncio.create_task(self._serve(name, pair))
        if pair.error and pair.data:
            pair.is_open.set()

    async def _pass_on(self, stream: int, frame: spdy.Data) -> None:
        found = self._streams.get(stream)
        if found is None:
            return  # the rest of a stream that was reset here
        _, pair = found
        if stream != pair.data:
            return
        if pair.writer is None:
            pair.waiting.append(frame)
            if sum(len(each.data) for each in pair.waiting) > spdy.FRAME_BYTES_MAX:
                await pair.is_settled.wait()
            return
        await self._write(pair.writer, frame)

    async def _write(self, writer: asyncio.StreamWriter, frame: spdy.Data) -> None:
        with suppress(OSError, RuntimeError):  # the program has closed its side
            writer.write(frame.data)
            if frame.is_last:
                writer.write_eof()
            async with asyncio.timeout(STALLED_S):
                await writer.drain()

    def _forget(self, stream: int) -> None:
        """End a connection whose data the client no longer wants."""
        found = self._streams.get(stream)
        if found is not None and stream == found[1].data and found[1].task is not None:
            found[1].task.cancel()

    # --- one connection -------------------------------------------------------------------------

    async def _serve(self, name: str, pair: _Pair) -> None:
        try:
            async with asyncio.timeout(PAIR_S):
                await pair.is_open.wait()
            fault = await self._forward(pair)
            if fault:
                text = f"error forwarding port {pair.port} to pod {self._pod}, uid {self._uid}: "
                await self._channel.send(spdy.data_frame(pair.error, f"{text}{fault}".encode()))
        except OSError:  # the client, or the time for its streams
            pass
        finally:
            pair.is_settled.set()
            for stream in filter(None, (pair.data, pair.error)):
                self._streams.pop(stream, None)
            self._pairs.pop(name, None)
            if pair.writer is not None:
                pair.writer.close()
            with suppress(OSError):
                for stream in filter(None, (pair.data, pair.error)):
                    await self._channel.send(spdy.data_frame(stream, b"", is_last=True))

    async def _forward(self, pair: _Pair) -> str:
        """Transfer data until the program closes its side; return the error, if any."""
        try:
            reader, writer = await _connect(pair.port)
        except OSError as error:
            return _dial_fault(pair.port, error)
        for frame in pair.waiting:
            await self._write(writer, frame)
        pair.waiting.clear()
        pair.writer = writer
        pair.is_settled.set()
        try:
            while data := await reader.read(READ_BYTES // 2):
                await self._channel.send(spdy.data_frame(pair.data, data))
        except ConnectionError as error:
            return str(error)
        return ""


async def _connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection to a port of localhost, in its first version that listens."""
    failed: OSError | None = None
    for host in HOSTS:
        try:
            async with asyncio.timeout(CONNECT_S):
                return await asyncio.open_connection(host, port)
        except OSError as error:
            failed = failed or error
    assert failed is not None
    raise failed


def _dial_fault(port: int, error: OSError) -> str:
    why = os.strerror(error.errno).lower() if error.errno else "i/o timeout"
    return f"failed to connect to localhost:{port}: dial tcp 127.0.0.1:{port}: connect: {why}"


def _port(text: str) -> int:
    """Return the number of a port, or 0 for an invalid one."""
    is_number = text.isascii() and text.isdigit() and len(text) < 6
    return int(text) if is_number and int(text) < 1 << 16 else 0
