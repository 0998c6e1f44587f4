"""The agent's connections to the shim: one for requests and changes, one for each exec session.

The client starts a shim if there is none, and reconnects when it is lost. Every request can be
repeated, so a request whose response was lost is sent again.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import moorage
from moorage.kit.clock import REAL, Clock
from moorage.node.runtime.contract import RuntimeRefusedError
from moorage.node.runtime.shim.protocol import (
    INPUT,
    MESSAGE,
    PROTOCOL,
    FrameError,
    Frames,
    frame,
    message_frame,
    read_message,
)
from moorage.node.runtime.shim.shim import ANOTHER_ONE, SOCKET

TRIES_MAX = 100
RETRY_S = 0.05
CHUNK_BYTES = 256 * 1024
UNAVAILABLE = "RuntimeUnavailable"
# Without `site`, which the shim does not need; so the path of this package is an argument.
_PROGRAM = (
    "import json, sys; sys.path.insert(0, sys.argv[1]); "
    "from moorage.node.runtime.shim.shim import main; "
    "sys.exit(main(json.loads(sys.argv[2])))"
)

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
ShimState = dict[str, Any]
SESSION_CHUNK_BYTES = 64 * 1024
UNREAD_FRAMES_MAX = 64
LOST_CODE = 137  # the exit code of a command whose shim was lost: it was killed


class ShimLostError(ConnectionError):
    """The shim went away before it responded."""


class ShimClient:
    """The connection to the shim of a folder, for requests and changes."""

    def __init__(
        self,
        folder: Path,
        *,
        on_state: Callable[[ShimState], None],
        on_lost: Callable[[], None],
        options: dict[str, Any] | None = None,
        clock: Clock = REAL,
    ) -> None:
        """Take callbacks for changed states (all, after a new connection) and for a lost shim."""
        self._folder, self._clock = folder, clock
        self._on_state, self._on_lost = on_state, on_lost
        self._options = {"folder": str(folder), **(options or {})}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._opening = asyncio.Lock()
        self.controllers: tuple[str, ...] = ()
        self.shim_pid = 0
        self.has_greeted = False  # containers that existed before are no change
        self.is_closed = False

    @property
    def is_open(self) -> bool:
        """Whether a shim is connected."""
        return self._writer is not None

    async def ask(self, question: str, **fields: Any) -> Any:
        """Return the shim's response, or raise RuntimeRefusedError."""
        for _ in range(TRIES_MAX):
            await self.ensure()
            with suppress(ShimLostError):
                return await self._ask_once(question, **fields)
        raise RuntimeRefusedError(UNAVAILABLE, f"the shim of {self._folder} does not stay up")

    async def ensure(self) -> None:
        """Connect to the shim, if it is not connected."""
        async with self._opening:
            if self._writer is not None:
                return
            for _ in range(TRIES_MAX):
                reader, writer = await self.connect()
                self._writer, self.is_closed = writer, False
                self._reading = asyncio.create_task(self._read(reader, writer))
                try:
                    await self._greet()
                except ShimLostError:
                    continue
                except RuntimeRefusedError:
                    await self.close()
                    raise
                return
            raise RuntimeRefusedError(UNAVAILABLE, f"the shim of {self._folder} does not stay up")

    async def close(self) -> None:
        """Disconnect; the shim stays with its containers."""
        self.is_closed = True
        writer, reading = self._writer, self._reading
        if writer is not None:
            writer.close()
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def connect(self) -> Stream:
        """Return a new connection to the shim, which is started if there is none."""
        for _ in range(TRIES_MAX):
            with suppress(FileNotFoundError, ConnectionError, BlockingIOError):
                return await self._open()
            if not await self._start_shim():
                await self._clock.sleep(RETRY_S)  # another agent is starting it, or one is ending
        raise RuntimeRefusedError(UNAVAILABLE, f"the shim of {self._folder} does not answer")

    async def _open(self) -> Stream:
        # Through the folder's descriptor: the path of a socket has at most 107 bytes.
        descriptor = os.open(self._folder, os.O_PATH | os.O_CLOEXEC)
        try:
            return await asyncio.open_unix_connection(f"/proc/self/fd/{descriptor}/{SOCKET}")
        finally:
            os.close(descriptor)

    async def _start_shim(self) -> bool:
        source = str(Path(moorage.__file__).parents[1])
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", "-c", _PROGRAM, source, json.dumps(self._options)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            cwd="/",
        )
        _, said = await process.communicate()
        if process.returncode not in (0, ANOTHER_ONE):
            words = said.decode(errors="replace").strip().splitlines()[-1:]
            text = f"the shim of {self._folder} cannot be started: {' '.join(words)}"
            raise RuntimeRefusedError(UNAVAILABLE, text)
        return process.returncode == 0

    async def _greet(self) -> None:
        hello = await self._ask_once("hello")
        if hello["protocol"] != PROTOCOL:
            raise RuntimeRefusedError(
                UNAVAILABLE,
                f"process {hello['pid']} keeps the containers of {self._folder} and is of another "
                "version; end it with SIGTERM when its containers may end",
            )
        self.controllers, self.shim_pid = tuple(hello["controllers"]), hello["pid"]
        for state in await self._ask_once("watch"):
            self._on_state(state)
        self.has_greeted = True

    async def _ask_once(self, question: str, **fields: Any) -> Any:
        if self._writer is None:
            raise ShimLostError
        self._number += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[self._number] = answer
        try:
            self._writer.write(message_frame({"n": self._number, "ask": question, **fields}))
            return await answer
        finally:
            self._answers = {n: each for n, each in self._answers.items() if each is not answer}

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = Frames()
        try:
            while data := await reader.read(CHUNK_BYTES):
                for _, payload in frames.feed(data):
                    self._take(read_message(payload))
        except (ConnectionError, FrameError):
            pass
        finally:
            writer.close()
            self._writer = None
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(ShimLostError())
            self._on_lost()

    def _take(self, message: dict[str, Any]) -> None:
        if "changed" in message:
            self._on_state(message["changed"])
            return
        answer = self._answers.get(message.get("n", 0))
        if answer is None or answer.done():
            return  # the caller has given up
        if "refused" in message:
            answer.set_exception(RuntimeRefusedError(*message["refused"]))
        else:
            answer.set_result(message.get("ok"))


# --- sessions -------------------------------------------------------------------------------------


class ProcessSession:
    """One command and its streams. The caller must read its output, or the command blocks."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._output: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue(UNREAD_FRAMES_MAX)
        self._reading = asyncio.create_task(self._read(reader))

    async def begin(self, request: dict[str, Any]) -> None:
        """Send the request; return when the command runs, or raise RuntimeRefusedError."""
        self._writer.write(message_frame({"n": 1, "ask": "execute", **request}))
        try:
            await self._started
        except BaseException:
            self._reading.cancel()
            self._writer.close()
            raise

    async def write(self, data: bytes) -> None:
        """Send input; ignored once the command has ended."""
        for start in range(0, len(data), SESSION_CHUNK_BYTES):
            await self._send(frame(INPUT, data[start : start + SESSION_CHUNK_BYTES]))

    async def close_input(self) -> None:
        """Close its input."""
        await self._send(message_frame({"ask": "close_input"}))

    async def resize(self, columns: int, rows: int) -> None:
        """Change the size of its terminal."""
        await self._send(message_frame({"ask": "resize", "columns": columns, "rows": rows}))

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield its output as channel and bytes: 1 is stdout, 2 stderr."""
        while (item := await self._output.get()) is not None:
            yield item
        self._output.put_nowait(None)  # for a second reader

    async def wait(self) -> int:
        """Return its exit code when it has ended."""
        return await asyncio.shield(self._exit_code)

    async def kill(self) -> None:
        """Kill it."""
        await self._send(message_frame({"ask": "kill"}))

    async def close(self) -> None:
        """Close the session; the shim kills the command."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _send(self, data: bytes) -> None:
        if self._exit_code.done():
            return
        with suppress(ConnectionError):
            self._writer.write(data)
            await self._writer.drain()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        frames, code = Frames(), LOST_CODE
        try:
            while data := await reader.read(SESSION_CHUNK_BYTES):
                for channel, payload in frames.feed(data):
                    if channel != MESSAGE:
                        await self._output.put((channel, payload))
                        continue
                    message = read_message(payload)
                    code = message.get("exited", code)
                    self._take(message)
        except (ConnectionError, FrameError):
            pass
        finally:
            self._writer.close()
            self._end(code)
        await self._output.put(None)

    def _take(self, message: dict[str, Any]) -> None:
        if self._started.done():
            return
        if "refused" in message:
            self._started.set_exception(RuntimeRefusedError(*message["refused"]))
        else:
            self._started.set_result(None)

    def _end(self, code: int) -> None:
        if not self._started.done():
            lost = RuntimeRefusedError("RuntimeUnavailable", "the shim went away")
            self._started.set_exception(lost)
        if not self._exit_code.done():
            self._exit_code.set_result(code)
