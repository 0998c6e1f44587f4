"""Commands that run in a container of podman: by pipes, or on a terminal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import suppress

from mooring.node.runtime.podman.commands import end

PART_BYTES_MAX = 65_536
PARTS_MAX = 64  # that nobody has taken yet
OUTPUT, ERRORS = 1, 2


class PipeSession:
    """A command with three pipes."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._parts: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue(PARTS_MAX)
        streams = ((OUTPUT, process.stdout), (ERRORS, process.stderr))
        self._readers = [asyncio.create_task(self._read(*each)) for each in streams]

    async def write(self, data: bytes) -> None:
        """Give it input."""
        if self._process.stdin is not None:
            with suppress(ConnectionError):
                self._process.stdin.write(data)
                await self._process.stdin.drain()

    async def close_input(self) -> None:
        """Say that there is no more input."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def resize(self, columns: int, rows: int) -> None:
        """Do nothing: there is no terminal."""

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield what it says."""
        open_streams = len(self._readers)
        while open_streams:
            part = await self._parts.get()
            if part is None:
                open_streams -= 1
            else:
                yield part

    async def wait(self) -> int:
        """Return its exit code when it has ended."""
        return await self._process.wait()

    async def kill(self) -> None:
        """End it."""
        await end(self._process)
        for each in self._readers:
            each.cancel()

    async def _read(self, number: int, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (part := await stream.read(PART_BYTES_MAX)):
            await self._parts.put((number, part))
        await self._parts.put(None)


class Terminal:
    """A terminal of our own, whose other end podman has."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        os.set_blocking(self.ours, False)

    def resize(self, columns: int, rows: int) -> None:
        """Have another size."""
        size = struct.pack("HHHH", rows & 0xFFFF, columns & 0xFFFF, 0, 0)
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, size)

    def let_go(self) -> None:
        """Leave the other end to podman alone, so that we hear when it goes."""
        os.close(self.theirs)


class TerminalSession:
    """A command on a terminal: its output and its errors are one."""

    def __init__(self, process: Process, terminal: Terminal) -> None:
        self._process = process
        self._terminal = terminal
        self._is_open = True

    async def write(self, data: bytes) -> None:
        """Type."""
        while data and self._is_open:
            try:
                data = data[os.write(self._terminal.ours, data) :]
            except BlockingIOError:
                await self._ready(is_output=False)
            except OSError:
                return

    async def close_input(self) -> None:
        """Type the end of input."""
        await self.write(b"\x04")

    async def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal, and have podman pass it on."""
        if self._is_open:
            self._terminal.resize(columns, rows)
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGWINCH)

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield what is on the terminal."""
        while self._is_open:
            try:
                part = os.read(self._terminal.ours, PART_BYTES_MAX)
            except BlockingIOError:
                await self._ready(is_output=True)
                continue
            except OSError:  # nobody has the other end
                part = b""
            if not part:
                self._close()
                return
            yield OUTPUT, part

    async def wait(self) -> int:
        """Return its exit code when it has ended."""
        return await self._process.wait()

    async def kill(self) -> None:
        """End it."""
        await end(self._process)
        self._close()

    async def _ready(self, *, is_output: bool) -> None:
        """Wait until the terminal gives something, or takes something."""
        loop = asyncio.get_running_loop()
        add, remove = (
            (loop.add_reader, loop.remove_reader)
            if is_output
            else (loop.add_writer, loop.remove_writer)
        )
        is_ready = asyncio.Event()
        add(self._terminal.ours, is_ready.set)
        try:
            await is_ready.wait()
        finally:
            remove(self._terminal.ours)

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self._terminal.ours)
