"""Exec and attach: the streams of a command or container in one WebSocket, as in Kubernetes.

The first byte of each message is its channel:

    0  stdin       1  stdout       2  stderr
    3  the final Status
    4  the size of the terminal, as JSON
  255  the stream of the second byte is closed (v5)

A client that goes away before the command has ended kills it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from moorage.kit.http_head import Head
from moorage.kit.websocket import (
    NORMAL,
    Opcode,
    Reader,
    WebSocketError,
    accept_of,
    closing,
    frame,
    is_key,
)
from moorage.node.runtime.contract import (
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
STALLED_S = 60.0  # for the client to receive a message
WEBSOCKET_VERSION = "13"
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")  # in order of preference


class StreamOptions(Struct, frozen=True):
    """What to run, and which of its streams are requested."""

    command: tuple[str, ...] = ()  # none: attach to the container itself
    input: bool = False
    output: bool = False
    errors: bool = False
    tty: bool = False


class MessageSocket(Protocol):
    """A WebSocket."""

    def messages(self) -> AsyncIterator[bytes]:
        """Yield the client's messages, until it goes away."""

    async def send(self, data: bytes) -> None:
        """Send a message; raises OSError if the client does not receive it."""

    async def close(self) -> None:
        """Close it."""


class _Size(Struct, rename="pascal"):
    width: int = 0
    height: int = 0


async def converse(
    runtime: Runtime, id_: ContainerId, options: StreamOptions, socket: MessageSocket
) -> None:
    """Run a command or attach, and carry the streams until it ends or the client goes away."""
    try:
        session = await _session(runtime, id_, options)
    except RuntimeRefusedError as error:
        with suppress(OSError):
            await socket.send(bytes((STATUS,)) + _fault(str(error)))
            await socket.close()
        return
    sending = asyncio.create_task(_send_output(session, options, socket))
    receiving = asyncio.create_task(_receive_input(session, options, socket))
    try:
        await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not sending.done() or sending.cancelled() or sending.exception() is not None:
            await session.kill()
        for task in (sending, receiving):
            task.cancel()
        await asyncio.gather(sending, receiving, return_exceptions=True)
    if not sending.cancelled() and (fault := sending.exception()) is not None:
        raise fault


async def _session(runtime: Runtime, id_: ContainerId, options: StreamOptions) -> ExecSession:
    if not options.command:
        return await _attached(runtime, id_, options)
    return await runtime.execute(id_, options.command, tty=options.tty, stdin=options.input)


async def _attached(runtime: Runtime, id_: ContainerId, options: StreamOptions) -> ExecSession:
    """Return a session with the container itself; byte by byte with input or a terminal."""
    if options.input or options.tty:
        try:
            session = await runtime.attach(id_, stdin=options.input, tty=options.tty)
            return _AttachedSession(session)
        except RuntimeRefusedError as error:
            if error.reason != NOT_SUPPORTED:
                raise
    return _LogSession(runtime, id_)


async def _send_output(session: ExecSession, options: StreamOptions, socket: MessageSocket) -> None:
    requested = {OUTPUT: options.output, ERRORS: options.errors}
    async for stream, data in session.output():
        if not requested.get(stream, False):
            continue
        for start in range(0, len(data), PART_BYTES):
            await socket.send(bytes((stream,)) + data[start : start + PART_BYTES])
    code = await session.wait()
    await socket.send(bytes((STATUS,)) + status_of_exit(code))
    await socket.close()


async def _receive_input(
    session: ExecSession, options: StreamOptions, socket: MessageSocket
) -> None:
    async for message in socket.messages():
        match message[:1], message[1:]:
            case (b"\x00", data) if options.input and data:
                await session.write(data)
            case (b"\x04", data) if options.tty:
                await _resize(session, data)
            case (b"\xff", b"\x00") if options.input:
                await session.close_input()


async def _resize(session: ExecSession, data: bytes) -> None:
    try:
        size = msgspec.json.decode(data, type=_Size)
    except msgspec.DecodeError:
        return
    if 0 < size.width <= CELLS_MAX and 0 < size.height <= CELLS_MAX:
        await session.resize(size.width, size.height)


def status_of_exit(code: int) -> bytes:
    """Return the Status for an exit code."""
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


class _AttachedSession:
    """An attached session: the container's end is not the exit code of a command."""

    def __init__(self, session: ExecSession) -> None:
        self.write, self.close_input = session.write, session.close_input
        self.resize, self.output, self.kill = session.resize, session.output, session.kill
        self._session = session

    async def wait(self) -> int:
        """Return success: the pod's status says how the container ended."""
        await self._session.wait()
        return 0


class _LogSession:
    """The log of a container from now on, as a session without input."""

    def __init__(self, runtime: Runtime, id_: ContainerId) -> None:
        self._runtime = runtime
        self._id = id_

    async def write(self, data: bytes) -> None: ...

    async def close_input(self) -> None: ...

    async def resize(self, columns: int, rows: int) -> None: ...

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        async for data in self._runtime.logs(self._id, LogRange(follow=True, tail_lines=0)):
            yield OUTPUT, data

    async def wait(self) -> int:
        """Return success, whatever the container does."""
        return 0

    async def kill(self) -> None: ...


def read_stream_options(fields: Sequence[tuple[str, str]]) -> StreamOptions:
    """Return the options of a query, with the kubelet's parameter names."""
    flags = {name for name, value in fields if value.lower() in ("1", "true")}
    return StreamOptions(
        command=tuple(value for name, value in fields if name == "command"),
        input="input" in flags,
        output="output" in flags,
        # A terminal has only one stream.
        errors="error" in flags and "tty" not in flags,
        tty="tty" in flags,
    )


# --- WebSocket ------------------------------------------------------------------------------------


def chosen_protocol(head: Head) -> str | None:
    """Return the protocol to use, None if the client offers none that we support."""
    headers = head.headers
    is_ours = (
        head.upgrade == "websocket" and headers.get("sec-websocket-version") == WEBSOCKET_VERSION
    )
    if not is_ours or not is_key(headers.get("sec-websocket-key", "")):
        return None
    return next((each for each in PROTOCOLS if head.has("sec-websocket-protocol", each)), None)


def accepting(head: Head, protocol: str) -> bytes:
    """Return the response that upgrades the connection to a WebSocket."""
    lines = (
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Accept: {accept_of(head.headers['sec-websocket-key'])}",
        f"Sec-WebSocket-Protocol: {protocol}",
    )
    return "\r\n".join((*lines, "", "")).encode("latin-1")


class WebSocket:
    """The server's side of a WebSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = Reader(from_client=True)

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield the client's messages, until it closes or violates the protocol."""
        try:
            while data := await self._reader.read(READ_BYTES):
                for kind, payload in self._frames.feed(data):
                    match kind:
                        case Opcode.PING:
                            await self._send(Opcode.PONG, payload)
                        case Opcode.CLOSE:
                            return
                        case Opcode.BINARY | Opcode.TEXT:
                            yield payload
        except WebSocketError as error:
            await self.close(error.code, str(error))
        except OSError:
            return

    async def send(self, data: bytes) -> None:
        """Send a message; raises OSError if the client does not receive it."""
        await self._send(Opcode.BINARY, data)

    async def close(self, code: int = NORMAL, text: str = "") -> None:
        """Send a close frame."""
        with suppress(OSError):
            await self._send(Opcode.CLOSE, closing(code, text))

    async def _send(self, kind: Opcode, data: bytes) -> None:
        self._writer.write(frame(kind, data))
        async with asyncio.timeout(STALLED_S):  # TimeoutError is an OSError
            await self._writer.drain()
