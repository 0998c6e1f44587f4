"""A command in a container whose streams go through one WebSocket, as Kubernetes does it.

The first byte of each message says what it is:

    0  input       1  output       2  errors
    3  how it ended, as a Status
    4  the size of the terminal, as JSON
  255  the stream of the second byte is at its end (v5)

Who goes away before the command has ended, ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from mooring.kit.heads import Head
from mooring.kit.websocket import (
    NORMAL,
    Kind,
    Reader,
    WebSocketError,
    accept_of,
    closing,
    frame,
    is_key,
)
from mooring.node.runtime.contract import (
    NOT_SUPPORTED,
    ContainerId,
    ExecSession,
    LogRange,
    Runtime,
    RuntimeRefusedError,
)

INPUT, OUTPUT, ERRORS, STATUS, SIZE, CLOSE = 0, 1, 2, 3, 4, 255
PART_BYTES = 32 * 1024
CELLS_MAX = 2**16 - 1
READ_BYTES = 64 * 1024
STALLED_S = 60.0  # for the other side to take what was sent
WEBSOCKET_VERSION = "13"
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")  # the best first


class StreamOptions(Struct, frozen=True):
    """What is to run, and which of its streams are wanted."""

    command: tuple[str, ...] = ()  # none: what the container itself says
    input: bool = False
    output: bool = False
    errors: bool = False
    tty: bool = False


class MessageSocket(Protocol):
    """A WebSocket."""

    def messages(self) -> AsyncIterator[bytes]:
        """Give what the client says, until it goes away."""

    async def send(self, data: bytes) -> None:
        """Send a message; raises OSError when nobody takes it."""

    async def close(self) -> None:
        """Say that it is over."""


class _Size(Struct, rename="pascal"):
    width: int = 0
    height: int = 0


async def converse(
    runtime: Runtime, id_: ContainerId, wanted: StreamOptions, socket: MessageSocket
) -> None:
    """Run what is wanted, and carry its streams until it ends or the client goes away."""
    try:
        session = await _session(runtime, id_, wanted)
    except RuntimeRefusedError as error:
        with suppress(OSError):
            await socket.send(bytes((STATUS,)) + _fault(str(error)))
            await socket.close()
        return
    saying = asyncio.create_task(_say(session, wanted, socket))
    hearing = asyncio.create_task(_hear(session, wanted, socket))
    try:
        await asyncio.wait({saying, hearing}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not saying.done() or saying.cancelled() or saying.exception() is not None:
            await session.kill()
        for task in (saying, hearing):
            task.cancel()
        await asyncio.gather(saying, hearing, return_exceptions=True)
    if not saying.cancelled() and (fault := saying.exception()) is not None:
        raise fault


async def _session(runtime: Runtime, id_: ContainerId, wanted: StreamOptions) -> ExecSession:
    if not wanted.command:
        return await _attached(runtime, id_, wanted)
    return await runtime.execute(id_, wanted.command, tty=wanted.tty, stdin=wanted.input)


async def _attached(runtime: Runtime, id_: ContainerId, wanted: StreamOptions) -> ExecSession:
    """Return what a container says from now on; with input or a terminal byte by byte."""
    if wanted.input or wanted.tty:
        try:
            session = await runtime.attach(id_, stdin=wanted.input, tty=wanted.tty)
            return _LetGo(session)
        except RuntimeRefusedError as error:
            if error.reason != NOT_SUPPORTED:
                raise
    return _Attached(runtime, id_)


async def _say(session: ExecSession, wanted: StreamOptions, socket: MessageSocket) -> None:
    shown = {OUTPUT: wanted.output, ERRORS: wanted.errors}
    async for stream, data in session.output():
        if not shown.get(stream, False):
            continue
        for start in range(0, len(data), PART_BYTES):
            await socket.send(bytes((stream,)) + data[start : start + PART_BYTES])
    code = await session.wait()
    await socket.send(bytes((STATUS,)) + ending_of(code))
    await socket.close()


async def _hear(session: ExecSession, wanted: StreamOptions, socket: MessageSocket) -> None:
    async for message in socket.messages():
        match message[:1], message[1:]:
            case (b"\x00", data) if wanted.input and data:
                await session.write(data)
            case (b"\x04", data) if wanted.tty:
                await _resize(session, data)
            case (b"\xff", b"\x00") if wanted.input:
                await session.close_input()


async def _resize(session: ExecSession, data: bytes) -> None:
    try:
        size = msgspec.json.decode(data, type=_Size)
    except msgspec.DecodeError:
        return
    if 0 < size.width <= CELLS_MAX and 0 < size.height <= CELLS_MAX:
        await session.resize(size.width, size.height)


def ending_of(code: int) -> bytes:
    """Return how a command ended, as a Status."""
    if code == 0:
        return msgspec.json.encode({"metadata": {}, "status": "Success"})
    return _failure(
        "NonZeroExitCode",
        f"command terminated with non-zero exit code: exit status {code}",
        details={"causes": [{"reason": "ExitCode", "message": str(code)}]},
    )


def _fault(text: str) -> bytes:
    message = f"Internal error occurred: {text}"
    details = {"causes": [{"message": text}]}
    return _failure("InternalError", message, details=details, code=500)


def _failure(reason: str, message: str, **more: Any) -> bytes:
    tree = {"metadata": {}, "status": "Failure", "message": message, "reason": reason, **more}
    return msgspec.json.encode(tree)


class _LetGo:
    """A session at a container whose own end is not told as that of a command."""

    def __init__(self, session: ExecSession) -> None:
        self.write, self.close_input = session.write, session.close_input
        self.resize, self.output, self.kill = session.resize, session.output, session.kill
        self._session = session

    async def wait(self) -> int:
        """Return that all went well: how the container ended is in the status of its pod."""
        await self._session.wait()
        return 0


class _Attached:
    """What a container says from now on, as a session that takes nothing."""

    def __init__(self, runtime: Runtime, id_: ContainerId) -> None:
        self._runtime = runtime
        self._id = id_

    async def write(self, data: bytes) -> None:
        """Take input, which goes nowhere."""

    async def close_input(self) -> None:
        """Do nothing."""

    async def resize(self, columns: int, rows: int) -> None:
        """Do nothing."""

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Give what the container says."""
        async for data in self._runtime.logs(self._id, LogRange(follow=True, tail_lines=0)):
            yield OUTPUT, data

    async def wait(self) -> int:
        """Return that all went well: it is not the container's end that is told."""
        return 0

    async def kill(self) -> None:
        """Leave the container alone."""


def read_stream_options(fields: Sequence[tuple[str, str]]) -> StreamOptions:
    """Return what a query asks for, in the words of kubelets."""
    flags = {name for name, value in fields if value.lower() in ("1", "true")}
    return StreamOptions(
        command=tuple(value for name, value in fields if name == "command"),
        input="input" in flags,
        output="output" in flags,
        # A terminal has but one stream.
        errors="error" in flags and "tty" not in flags,
        tty="tty" in flags,
    )


# ---- from mooring.node.kubelet_server.sockets: WebSocket messages on a connection that was accepted.


def chosen_protocol(head: Head) -> str | None:
    """Return what will be spoken, None if the client wants to speak nothing that we know."""
    headers = head.headers
    is_ours = (
        head.upgrade == "websocket" and headers.get("sec-websocket-version") == WEBSOCKET_VERSION
    )
    if not is_ours or not is_key(headers.get("sec-websocket-key", "")):
        return None
    return next((each for each in PROTOCOLS if head.has("sec-websocket-protocol", each)), None)


def accepting(head: Head, protocol: str) -> bytes:
    """Return the answer with which the connection becomes a WebSocket."""
    lines = (
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Accept: {accept_of(head.headers['sec-websocket-key'])}",
        f"Sec-WebSocket-Protocol: {protocol}",
    )
    return "\r\n".join((*lines, "", "")).encode("latin-1")


class Socket:
    """The server's side of a WebSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = Reader(from_client=True)

    async def messages(self) -> AsyncIterator[bytes]:
        """Give what the client says, until it closes or does not keep to the protocol."""
        try:
            while data := await self._reader.read(READ_BYTES):
                for kind, payload in self._frames.feed(data):
                    match kind:
                        case Kind.PING:
                            await self._send(Kind.PONG, payload)
                        case Kind.CLOSE:
                            return
                        case Kind.BINARY | Kind.TEXT:
                            yield payload
        except WebSocketError as error:
            await self.close(error.code, str(error))
        except OSError:
            return

    async def send(self, data: bytes) -> None:
        """Send a message; raises OSError when nobody takes it."""
        await self._send(Kind.BINARY, data)

    async def close(self, code: int = NORMAL, text: str = "") -> None:
        """Say that it is over."""
        with suppress(OSError):
            await self._send(Kind.CLOSE, closing(code, text))

    async def _send(self, kind: Kind, data: bytes) -> None:
        self._writer.write(frame(kind, data))
        async with asyncio.timeout(STALLED_S):  # TimeoutError is an OSError
            await self._writer.drain()
