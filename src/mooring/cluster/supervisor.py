"""A supervisor that keeps the processes of a cluster running.

    Supervisor(folder, state, processes, …).run()

The first process starts alone, the others once it works. A process works once it prints a line that
begins with its ready prefix. One that exits is restarted with a growing backoff, and each restart
is reported. A process that exits before it was ever ready stops the cluster, and its last output is
the reason.

On stop, processes are terminated in reverse order, the server last, and killed if they take too
long. On Linux they also end when the supervisor is killed.
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
STABLE_S = 30.0  # after running this long, a process counts as stable
STOP_S = 10.0
LINE_BYTES_MAX = 256 * 1024
LAST_LINES = 5
METRICS = "metrics at "
MOOR = (sys.executable, "-m", "mooring.cli.main")
_PR_SET_PDEATHSIG = 1


class ProcessSpec(Struct, frozen=True):
    """One process: its name, its arguments, and the prefix of the line it prints once it works."""

    name: str
    arguments: tuple[str, ...]
    ready_prefix: str


class ProcessFailedError(Exception):
    """A process exited before it worked, with its last line."""


class Supervisor:
    """Keeps the processes of a cluster running."""

    def __init__(
        self,
        folder: StateFolder,
        state: ClusterState,
        specs: tuple[ProcessSpec, ...],
        *,
        report: Callable[[str], None],
        on_working: Callable[[str, str], ProcessSpec | None] = lambda _, __: None,
        program: tuple[str, ...] = MOOR,
        clock: Clock = REAL,
    ) -> None:
        """Take the processes, which are commands of a program.

        `report` prints a line for the user. `on_working` gets the name of a process and its ready
        line, and may replace the process for the next start.
        """
        self.program = program
        self.folder, self.report, self.clock = folder, report, clock
        self._on_working = on_working
        self.state = replace(state, processes=tuple(ProcessState(each.name) for each in specs))
        self._runners = tuple(_Runner(self, each) for each in specs)

    async def run(self, working: Callable[[], None] = lambda: None) -> None:
        """Run all processes until cancelled, or raise ProcessFailedError."""
        self.folder.write(self.state)
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
            self.folder.write(replace(self.state, pid=0))

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

    def update(self, name: str, **changes: object) -> None:
        """Record a change of a process."""
        processes = tuple(
            replace(each, **changes) if each.name == name else each for each in self.state.processes
        )
        self.state = replace(self.state, processes=processes)
        self.folder.write(self.state)

    def mark_working(self, spec: ProcessSpec, line: str) -> ProcessSpec:
        """Record that a process is ready; return the spec for its next restart."""
        if line.startswith("serving at "):
            self.state = replace(self.state, server=line.split()[2].rstrip(";"))
        self.update(spec.name, is_working=True, trouble="")
        return self._on_working(spec.name, line) or spec


class _Runner:
    """Keeps one process running."""

    def __init__(self, supervisor: Supervisor, spec: ProcessSpec) -> None:
        self._supervisor, self._spec = supervisor, spec
        self._process: asyncio.subprocess.Process | None = None
        self._last: list[str] = []
        self._failures = 0
        self._restarts = 0
        self.has_worked = asyncio.Event()

    async def run(self) -> None:
        """Start the process, and restart it whenever it exits."""
        supervisor, clock = self._supervisor, self._supervisor.clock
        log = LogFile(supervisor.folder.log(self._spec.name))
        try:
            while True:
                began = clock.monotonic()
                ending = await self._run_once(log)
                if not self.has_worked.is_set():
                    raise ProcessFailedError(self._failure(ending))
                is_stable = clock.monotonic() - began >= STABLE_S
                self._failures = 1 if is_stable else self._failures + 1
                self._restarts += 1
                name = self._spec.name
                trouble = {"pid": 0, "is_working": False, "metrics": "", "trouble": ending}
                supervisor.update(name, restarts=self._restarts, **trouble)
                delay_s = BACKOFF.delay_s(self._failures)
                supervisor.report(f"{name} ended ({ending}); it is started again in {delay_s:g} s")
                await clock.sleep(delay_s)
        finally:
            log.close()

    async def stop(self, task: asyncio.Task[None]) -> None:
        """Terminate the process, and kill it if it does not exit."""
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

    async def _run_once(self, log: LogFile) -> str:
        """Run the process once, and return how it ended."""
        self._process = process = await asyncio.create_subprocess_exec(
            *self._supervisor.program,
            *self._spec.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the supervisor, which stops processes in order
            preexec_fn=_die_with_parent(),
            limit=LINE_BYTES_MAX,
        )
        self._supervisor.update(self._spec.name, pid=process.pid)
        assert process.stdout is not None
        self._last = []
        while line := await _next_line(process.stdout):
            log.add(line)
            self._read_line(line.decode("utf-8", "replace").rstrip())
        code = await process.wait()
        return f"signal {-code}" if code < 0 else f"exit status {code}"

    def _read_line(self, line: str) -> None:
        self._last = [*self._last[1 - LAST_LINES :], line]
        if line.startswith(METRICS):
            self._supervisor.update(self._spec.name, metrics=line.removeprefix(METRICS))
        elif line.startswith(self._spec.ready_prefix):
            self._spec = self._supervisor.mark_working(self._spec, line)
            if self.has_worked.is_set():
                self._supervisor.report(f"{self._spec.name} is at work again")
            self.has_worked.set()

    def _failure(self, ending: str) -> str:
        said = [line.removeprefix("error: ") for line in self._last if line.strip()]
        return f"{self._spec.name}: {said[-1] if said else ending}"


async def _next_line(stream: asyncio.StreamReader) -> bytes:
    """Return the next line, or part of one that is too long; empty at the end."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await stream.readexactly(error.consumed)


def _die_with_parent() -> Callable[[], None] | None:
    """Return a function that makes a child process end with this one, where possible."""
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None
    parent = os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # the parent was gone before prctl
            os.kill(os.getpid(), signal.SIGTERM)

    return ask
