"""How podman is called: few at once, each with its time, and never more output than we can hold."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from mooring.node.runtime.contract import RuntimeRefusedError

AT_ONCE_MAX = 8
COMMAND_S_MAX = 60.0
OUTPUT_BYTES_MAX = 16 * 1024 * 1024
ERRORS_BYTES_MAX = 64 * 1024
LINE_BYTES_MAX = 1024 * 1024


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    output: bytes
    errors: str

    @property
    def why(self) -> str:
        """What podman says went wrong: its last words, mostly."""
        lines = [line for line in self.errors.splitlines() if line.strip()]
        told = next((each for each in reversed(lines) if each.startswith("Error:")), "")
        return (told or "; ".join(lines[-3:]))[:1024].removeprefix("Error: ")


class Podman:
    """The command, with what always comes before its verb."""

    def __init__(self, command: Sequence[str] = ("podman",)) -> None:
        self._command = tuple(command)
        self._places = asyncio.Semaphore(AT_ONCE_MAX)

    async def run(self, line: Sequence[str], timeout_s: float = COMMAND_S_MAX) -> Done:
        """Return what a command said when it has ended; one that hangs is killed."""
        async with self._places, self.open(line, errors=PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            try:
                async with asyncio.timeout(timeout_s):
                    output, errors = await asyncio.gather(
                        _bounded(process.stdout, OUTPUT_BYTES_MAX),
                        _bounded(process.stderr, ERRORS_BYTES_MAX),
                    )
                    code = await process.wait()
            except TimeoutError:
                text = f"podman {line[0]} did not end within {timeout_s:g} s"
                raise RuntimeRefusedError("CreateContainerError", text) from None
        return Done(code, output, errors.decode(errors="replace"))

    @asynccontextmanager
    async def open(
        self, line: Sequence[str], *, stdin: int = DEVNULL, errors: int = STDOUT
    ) -> AsyncIterator[Process]:
        """Have a command that runs; it is killed when it is left."""
        process = await self.spawn(line, stdin=stdin, stdout=PIPE, stderr=errors)
        try:
            yield process
        finally:
            await end(process)

    async def spawn(self, line: Sequence[str], *, stdin: int, stdout: int, stderr: int) -> Process:
        """Start a command; whoever does so ends it."""
        try:
            return await asyncio.create_subprocess_exec(
                *(*self._command, *line),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                limit=LINE_BYTES_MAX,
                start_new_session=True,  # an interrupt of the agent is none of podman's
            )
        except (OSError, ValueError) as error:
            text = f"{self._command[0]} cannot be started: {error}"
            raise RuntimeRefusedError("CreateContainerError", text) from None


async def end(process: Process) -> None:
    """Kill a command that still runs."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
    await asyncio.shield(process.wait())


async def _bounded(stream: asyncio.StreamReader, bytes_max: int) -> bytes:
    """Read all, and keep the first part of it."""
    kept = bytearray()
    while part := await stream.read(65_536):
        kept += part[: max(bytes_max - len(kept), 0)]
    return bytes(kept)
