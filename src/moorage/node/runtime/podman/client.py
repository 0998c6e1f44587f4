"""Podman as a subprocess: bounded calls, image pulls, and exec sessions.

Few commands run at once, each with a timeout and bounded output. Images follow the pull policy:

    Always            each time
    IfNotPresent      if the image is not here
    Never             never
    a pull fails      ErrImagePull, then ImagePullBackOff: 10 s, 20 s, … 5 minutes
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from tempfile import NamedTemporaryFile
from typing import NamedTuple
from weakref import WeakValueDictionary

from moorage.kit.backoff import Backoff
from moorage.kit.clock import Clock
from moorage.node.runtime.contract import ContainerSpec, RuntimeRefusedError
from moorage.node.runtime.podman.command_line import checked_image
from moorage.node.runtime.podman.security_options import (
    check_image_user,
    image_user,
    needs_image_user,
)

AT_ONCE_MAX = 8
COMMAND_S_MAX = 60.0
OUTPUT_BYTES_MAX = 16 * 1024 * 1024
ERRORS_BYTES_MAX = 64 * 1024
LINE_BYTES_MAX = 1024 * 1024
PART_BYTES_MAX = 65_536
PARTS_MAX = 64  # that are not read yet
OUTPUT, ERRORS = 1, 2
ALWAYS, NEVER = "Always", "Never"
PULL_S_MAX = 600.0
FAILURES_MAX = 1024  # images whose failures are kept
BACKOFF = Backoff(first_s=10.0, longest_s=300.0)


class CommandResult(NamedTuple):
    """A command that has ended."""

    code: int
    output: bytes
    errors: str

    @property
    def why(self) -> str:
        """What podman says went wrong, mostly its last line."""
        lines = [line for line in self.errors.splitlines() if line.strip()]
        last = next((each for each in reversed(lines) if each.startswith("Error:")), "")
        return (last or "; ".join(lines[-3:]))[:1024].removeprefix("Error: ")


class Podman:
    """The podman command, with its global options."""

    def __init__(self, command: Sequence[str] = ("podman",)) -> None:
        self._command = tuple(command)
        self._places = asyncio.Semaphore(AT_ONCE_MAX)

    async def run(self, line: Sequence[str], timeout_s: float = COMMAND_S_MAX) -> CommandResult:
        """Return the result of a command; one that hangs is killed."""
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
        return CommandResult(code, output, errors.decode(errors="replace"))

    @asynccontextmanager
    async def open(
        self, line: Sequence[str], *, stdin: int = DEVNULL, errors: int = STDOUT
    ) -> AsyncIterator[Process]:
        """Run a command for as long as a block lasts."""
        process = await self.spawn(line, stdin=stdin, stdout=PIPE, stderr=errors)
        try:
            yield process
        finally:
            await end(process)

    async def spawn(self, line: Sequence[str], *, stdin: int, stdout: int, stderr: int) -> Process:
        """Start a command; the caller ends it."""
        try:
            return await asyncio.create_subprocess_exec(
                *(*self._command, *line),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                limit=LINE_BYTES_MAX,
                start_new_session=True,  # so that an interrupt of the agent does not reach podman
            )
        except (OSError, ValueError) as error:
            text = f"{self._command[0]} cannot be started: {error}"
            raise RuntimeRefusedError("CreateContainerError", text) from None


@contextmanager
def file_for_podman(text: str) -> Iterator[str]:
    """Give the path of a temporary file that only we and podman read; empty if text is."""
    if not text:
        yield ""
        return
    with NamedTemporaryFile(prefix="moor-") as file:
        file.write(text.encode())
        file.flush()
        yield file.name


async def end(process: Process) -> None:
    """Kill a command that still runs."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
    await asyncio.shield(process.wait())


async def _bounded(stream: asyncio.StreamReader, bytes_max: int) -> bytes:
    """Read everything, and keep the first part."""
    kept = bytearray()
    while part := await stream.read(65_536):
        kept += part[: max(bytes_max - len(kept), 0)]
    return bytes(kept)


# --- sessions -------------------------------------------------------------------------------------


class PipeSession:
    """A command with three pipes."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._parts: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue(PARTS_MAX)
        streams = ((OUTPUT, process.stdout), (ERRORS, process.stderr))
        self._readers = [asyncio.create_task(self._read(*each)) for each in streams]

    async def write(self, data: bytes) -> None:
        """Send input."""
        if self._process.stdin is not None:
            with suppress(ConnectionError):
                self._process.stdin.write(data)
                await self._process.stdin.drain()

    async def close_input(self) -> None:
        """Close its input."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def resize(self, columns: int, rows: int) -> None:
        """Do nothing: there is no terminal."""

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield its output."""
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
        """Kill it."""
        await end(self._process)
        for each in self._readers:
            each.cancel()

    async def _read(self, number: int, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (part := await stream.read(PART_BYTES_MAX)):
            await self._parts.put((number, part))
        await self._parts.put(None)


class Terminal:
    """A terminal whose other end podman has."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        os.set_blocking(self.ours, False)

    def resize(self, columns: int, rows: int) -> None:
        """Change its size."""
        size = struct.pack("HHHH", rows & 0xFFFF, columns & 0xFFFF, 0, 0)
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, size)

    def let_go(self) -> None:
        """Close our copy of podman's end, so that we notice when podman closes its own."""
        os.close(self.theirs)


class TerminalSession:
    """A command on a terminal: stdout and stderr are one stream."""

    def __init__(self, process: Process, terminal: Terminal) -> None:
        self._process = process
        self._terminal = terminal
        self._is_open = True

    async def write(self, data: bytes) -> None:
        """Type input."""
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
        """Change the size of the terminal, and notify podman."""
        if self._is_open:
            self._terminal.resize(columns, rows)
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGWINCH)

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield the terminal's output."""
        while self._is_open:
            try:
                part = os.read(self._terminal.ours, PART_BYTES_MAX)
            except BlockingIOError:
                await self._ready(is_output=True)
                continue
            except OSError:  # the other end is closed
                part = b""
            if not part:
                self._close()
                return
            yield OUTPUT, part

    async def wait(self) -> int:
        """Return its exit code when it has ended."""
        return await self._process.wait()

    async def kill(self) -> None:
        """Kill it."""
        await end(self._process)
        self._close()

    async def _ready(self, *, is_output: bool) -> None:
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


# --- images ---------------------------------------------------------------------------------------


class _Failure(NamedTuple):
    times: int
    until_s: float
    text: str


class ImageService:
    """Pulls images, with a backoff after failures."""

    def __init__(self, podman: Podman, clock: Clock) -> None:
        self._podman = podman
        self._clock = clock
        self._failures: dict[str, _Failure] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def have(self, image: str, policy: str) -> None:
        """Ensure that an image is present, or raise RuntimeRefusedError."""
        checked_image(image)
        async with self._turns.setdefault(image, asyncio.Lock()):
            if policy != ALWAYS and await self._is_here(image):
                return
            if policy == NEVER:
                text = f'Container image "{image}" is not present with pull policy of Never'
                raise RuntimeRefusedError("ErrImageNeverPull", text)
            await self._pull(image)

    async def _is_here(self, image: str) -> bool:
        return (await self._podman.run(["image", "exists", image])).code == 0

    async def user_of(self, spec: ContainerSpec) -> int | str | CommandResult | None:
        """Return the user of an image, None if it does not matter, or why podman cannot say.

        Raise RuntimeRefusedError for a user that the container must not run as.
        """
        if not needs_image_user(spec.security):
            return None
        line = ["image", "inspect", "--format={{.User}}", checked_image(spec.image)]
        done = await self._podman.run(line)
        if done.code:
            return done
        user = image_user(done.output.decode(errors="replace"))
        check_image_user(spec, user)
        return user

    async def _pull(self, image: str) -> None:
        last = self._failures.get(image)
        if last is not None and self._clock.monotonic() < last.until_s:
            text = f'Back-off pulling image "{image}": ErrImagePull: {last.text}'
            raise RuntimeRefusedError("ImagePullBackOff", text)
        done = await self._podman.run(["pull", "--quiet", image], PULL_S_MAX)
        if done.code == 0:
            self._failures.pop(image, None)
            return
        text = f'failed to pull image "{image}": {done.why}'
        self._note(image, 1 if last is None else last.times + 1, text)
        raise RuntimeRefusedError("ErrImagePull", text)

    def _note(self, image: str, count: int, text: str) -> None:
        until_s = self._clock.monotonic() + BACKOFF.delay_s(count)
        self._failures.pop(image, None)
        while len(self._failures) >= FAILURES_MAX:
            del self._failures[next(iter(self._failures))]  # the oldest
        self._failures[image] = _Failure(count, until_s, text)


def default_policy(image: str) -> str:
    """Return the default pull policy: an image that may change is pulled each time."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return ALWAYS if not digest and tag in ("", "latest") else "IfNotPresent"
