"""A command that runs in a container, at the agent's end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from mooring.node.runtime.contract import RuntimeRefusedError
from mooring.node.runtime.shim.frames import (
    INPUT,
    MESSAGE,
    FrameError,
    Frames,
    frame,
    message_frame,
    read_message,
)

CHUNK_BYTES = 64 * 1024
UNREAD_FRAMES_MAX = 64
LOST_CODE = 137  # of a command whose keeper was lost: it was killed


class ProcessSession:
    """One command and its streams. Whoever opens it reads its output, or nothing goes on."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._output: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue(UNREAD_FRAMES_MAX)
        self._reading = asyncio.create_task(self._read(reader))

    async def begin(self, request: dict[str, Any]) -> None:
        """Ask for the command; return when it runs, or raise RuntimeRefusedError."""
        self._writer.write(message_frame({"n": 1, "ask": "execute", **request}))
        try:
            await self._started
        except BaseException:
            self._reading.cancel()
            self._writer.close()
            raise

    async def write(self, data: bytes) -> None:
        """Give it input; nothing when it has ended."""
        for start in range(0, len(data), CHUNK_BYTES):
            await self._send(frame(INPUT, data[start : start + CHUNK_BYTES]))

    async def close_input(self) -> None:
        """Say that there is no more input."""
        await self._send(message_frame({"ask": "close_input"}))

    async def resize(self, columns: int, rows: int) -> None:
        """Change the size of its terminal."""
        await self._send(message_frame({"ask": "resize", "columns": columns, "rows": rows}))

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield what it says: 1 and its output, 2 and its errors."""
        while (item := await self._output.get()) is not None:
            yield item
        self._output.put_nowait(None)  # whoever asks again is told so, too

    async def wait(self) -> int:
        """Return its exit code when it has ended."""
        return await asyncio.shield(self._exit_code)

    async def kill(self) -> None:
        """End it."""
        await self._send(message_frame({"ask": "kill"}))

    async def close(self) -> None:
        """Listen no longer; the command is ended."""
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
            while data := await reader.read(CHUNK_BYTES):
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
            lost = RuntimeRefusedError("RuntimeUnavailable", "the keeper went away")
            self._started.set_exception(lost)
        if not self._exit_code.done():
            self._exit_code.set_result(code)
