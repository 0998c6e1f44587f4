"""The processes of a cluster, kept running.

    Supervisor(parts, …).run()

The first part starts alone, and the others when it is at work. A part is at work when it says a
line that begins with its word. One that ends is started again, after a delay that grows while it
does not stay up; each time that is told. A part that ends before it was ever at work ends the
whole: it cannot be right.

Told to stop, parts are asked to end in reverse order, the server last, and killed if they take too
long. Parts end with us, also when we are killed, where the system knows how (Linux).
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from mooring.cluster.state_folder import ClusterState, LogFile, ProcessState, StateFolder
from mooring.kit.backoff import Backoff
from mooring.kit.clock import REAL, Clock

BACKOFF = Backoff(first_s=0.2, longest_s=30.0, factor=2.0)
STEADY_S = 30.0  # after so long a part counts as well
STOP_S = 10.0
LINE_BYTES_MAX = 256 * 1024
LAST_LINES = 5
METRICS = "metrics at "
MOOR = (sys.executable, "-m", "mooring.cli.main")
_PR_SET_PDEATHSIG = 1


class ProcessSpec(Struct, frozen=True):
    """One process: its name, its command, and the word that says that it is at work."""

    name: str
    arguments: tuple[str, ...]
    word: str


class ProcessFailedError(Exception):
    """A part that never came to work; the text has its last words."""


class Supervisor:
    """Keeps the parts of a cluster running."""

    def __init__(
        self,
        folder: StateFolder,
        state: ClusterState,
        parts: tuple[ProcessSpec, ...],
        *,
        tell: Callable[[str], None],
        on_working: Callable[[str, str], ProcessSpec | None] = lambda _, __: None,
        program: tuple[str, ...] = MOOR,
        clock: Clock = REAL,
    ) -> None:
        """Take the parts, which are commands of a program.

        `on_working` gets a part's name and words, and may replace the part.
        """
        self.program = program
        self._folder, self._tell, self._clock = folder, tell, clock
        self._on_working = on_working
        self._state = replace(state, processes=tuple(ProcessState(each.name) for each in parts))
        self._runners = tuple(_Runner(self, each) for each in parts)

    @property
    def state(self) -> ClusterState:
        """What runs right now."""
        return self._state

    async def run(self, working: Callable[[], None] = lambda: None) -> None:
        """Run all parts until cancelled, or raise PartFailedError."""
        self._folder.write(self._state)
        tasks: list[asyncio.Task[None]] = []
        try:
            first, *others = self._runners
            for runners in ([first], others):
                tasks += [asyncio.create_task(runner.run()) for runner in runners]
                for runner in runners:
                    await self._until_working(runner, tasks)
            working()
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                await task
        finally:
            for runner, task in reversed(list(zip(self._runners, tasks, strict=False))):
                await runner.stop(task)
            self._folder.write(replace(self._state, pid=0))

    async def _until_working(self, runner: _Runner, tasks: list[asyncio.Task[None]]) -> None:
        waiting = asyncio.create_task(runner.has_worked.wait())
        try:
            await asyncio.wait({waiting, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        for task in tasks:
            if task.done():
                await task

    # --- for the runners --------------------------------------------------------------------------

    def note(self, name: str, **changes: object) -> None:
        """Note what became of a part."""
        processes = tuple(
            replace(each, **changes) if each.name == name else each
            for each in self._state.processes
        )
        self._state = replace(self._state, processes=processes)
        self._folder.write(self._state)

    def works(self, part: ProcessSpec, line: str) -> ProcessSpec:
        """Note that a part is at work; return it as it is to be started next time."""
        if line.startswith("serving at "):
            self._state = replace(self._state, server=line.split()[2].rstrip(";"))
        self.note(part.name, is_working=True, trouble="")
        return self._on_working(part.name, line) or part

    def say(self, text: str) -> None:
        """Tell whoever looks."""
        self._tell(text)

    @property
    def folder(self) -> StateFolder:
        """Where the files are."""
        return self._folder

    @property
    def clock(self) -> Clock:
        """What time it is."""
        return self._clock


class _Runner:
    """Keeps one part running."""

    def __init__(self, supervisor: Supervisor, part: ProcessSpec) -> None:
        self._supervisor, self._part = supervisor, part
        self._process: asyncio.subprocess.Process | None = None
        self._last: list[str] = []
        self._failures = 0
        self._restarts = 0
        self.has_worked = asyncio.Event()

    async def run(self) -> None:
        """Start the part, and start it again whenever it ends."""
        supervisor, clock = self._supervisor, self._supervisor.clock
        log = LogFile(supervisor.folder.log(self._part.name))
        try:
            while True:
                began = clock.monotonic()
                how = await self._once(log)
                if not self.has_worked.is_set():
                    raise ProcessFailedError(self._last_words(how))
                is_steady = clock.monotonic() - began >= STEADY_S
                self._failures = 1 if is_steady else self._failures + 1
                self._restarts += 1
                name = self._part.name
                trouble = {"pid": 0, "is_working": False, "metrics": "", "trouble": how}
                supervisor.note(name, restarts=self._restarts, **trouble)
                delay_s = BACKOFF.delay_s(self._failures)
                supervisor.say(f"{name} ended ({how}); it is started again in {delay_s:g} s")
                await clock.sleep(delay_s)
        finally:
            log.close()

    async def stop(self, task: asyncio.Task[None]) -> None:
        """Ask the part to end; kill it if it does not."""
        process = self._process
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _once(self, log: LogFile) -> str:
        """Run the part once, and return how it ended."""
        self._process = process = await asyncio.create_subprocess_exec(
            *self._supervisor.program,
            *self._part.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us; we end the parts in order
            preexec_fn=_end_with_parent(),
            limit=LINE_BYTES_MAX,
        )
        self._supervisor.note(self._part.name, pid=process.pid)
        assert process.stdout is not None
        self._last = []
        while line := await _line(process.stdout):
            log.add(line)
            self._hear(line.decode("utf-8", "replace").rstrip())
        code = await process.wait()
        return f"signal {-code}" if code < 0 else f"exit status {code}"

    def _hear(self, line: str) -> None:
        self._last = [*self._last[1 - LAST_LINES :], line]
        if line.startswith(METRICS):
            self._supervisor.note(self._part.name, metrics=line.removeprefix(METRICS))
        elif line.startswith(self._part.word):
            self._part = self._supervisor.works(self._part, line)
            if self.has_worked.is_set():
                self._supervisor.say(f"{self._part.name} is at work again")
            self.has_worked.set()

    def _last_words(self, how: str) -> str:
        said = [line.removeprefix("error: ") for line in self._last if line.strip()]
        return f"{self._part.name}: {said[-1] if said else how}"


async def _line(stream: asyncio.StreamReader) -> bytes:
    """Return the next line, or a piece of one that is too long; nothing at the end."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await stream.readexactly(error.consumed)


def _end_with_parent() -> Callable[[], None] | None:
    """Return what a new process does to end when we do, where that is possible."""
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None
    parent = os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # we were gone before it was asked
            os.kill(os.getpid(), signal.SIGTERM)

    return ask
