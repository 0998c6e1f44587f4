"""A supervisor that keeps the processes of a cluster running.

    Supervisor(folder, state, processes, …).run()

The first process starts alone, the others once it works. A process works once it prints a line that
begins with its ready prefix. One that exits is restarted with a growing backoff, and each restart
is reported. A process that exits before it was ever ready stops the cluster, and its last output is
the reason. After that nothing stops it but a request: also a process that cannot be started, files
that cannot be written and a terminal that is gone are reported, and tried again.

A process may have several parts (`control_plane`): each has its own state and log, and a line that
begins with `NAME: ` is of that part. A part that fails is begun again by its process.

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

from moorage.cluster.state_folder import ClusterState, LogFile, ProcessState, StateFolder
from moorage.kit.backoff import Backoff
from moorage.kit.clock import REAL, Clock

BACKOFF = Backoff(first_s=0.2, longest_s=30.0, factor=2.0)
STABLE_S = 30.0  # after running this long, a process counts as stable
STOP_S = 10.0
REWRITE_S = 2.0  # before a state that could not be written is written again
LINE_BYTES_MAX = 256 * 1024
LAST_LINES = 5
METRICS = "metrics at "
RESTARTING = "restarting: "  # a part reports this, with the cause
MOOR = (sys.executable, "-m", "moorage.cli.main")
_PR_SET_PDEATHSIG = 1


class PartSpec(Struct, frozen=True):
    """A part of a process: its name, and the prefix of the line that it prints when it works."""

    name: str
    ready_prefix: str


class ProcessSpec(Struct, frozen=True):
    """One process: its name, its arguments, and the prefix of the line it prints once it works."""

    name: str
    arguments: tuple[str, ...]
    ready_prefix: str
    more: tuple[PartSpec, ...] = ()  # parts besides the one with the name of the process

    @property
    def parts(self) -> tuple[PartSpec, ...]:
        """All parts; there is at least one."""
        return PartSpec(self.name, self.ready_prefix), *self.more

    @property
    def title(self) -> str:
        """The names of all parts."""
        return ", ".join(each.name for each in self.parts)


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
        parts = tuple(ProcessState(part.name) for each in specs for part in each.parts)
        self.state = replace(state, processes=parts)
        self._runners = tuple(_Runner(self, each) for each in specs)
        self._is_outdated = asyncio.Event()  # the state's file is

    async def run(self, working: Callable[[], None] = lambda: None) -> None:
        """Run all processes until cancelled, or raise ProcessFailedError."""
        self._write_state()
        tasks: list[asyncio.Task[None]] = []
        rewriting = asyncio.create_task(self._rewrite_state())
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
            rewriting.cancel()
            self.state = replace(self.state, pid=0)
            self._write_state()

    async def _until_working(self, runner: _Runner, tasks: list[asyncio.Task[None]]) -> None:
        waiting = asyncio.create_task(runner.has_worked.wait())
        try:
            await asyncio.wait({waiting, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        for task in tasks:
            if task.done():
                await task

    def _write_state(self) -> None:
        was_outdated = self._is_outdated.is_set()
        try:
            self.folder.write(self.state)
        except OSError as error:
            self._is_outdated.set()
            if not was_outdated:
                what = f"the state cannot be written: {error.strerror or error}"
                self.report(f"{what}; it is tried again every {REWRITE_S:g} s")
        else:
            self._is_outdated.clear()
            if was_outdated:
                self.report("the state is written again")

    async def _rewrite_state(self) -> None:
        while True:
            await self._is_outdated.wait()
            await self.clock.sleep(REWRITE_S)
            self._write_state()

    # --- for the runners --------------------------------------------------------------------------

    def update(self, name: str, **changes: object) -> None:
        """Record a change of a process."""
        processes = tuple(
            replace(each, **changes) if each.name == name else each for each in self.state.processes
        )
        self.state = replace(self.state, processes=processes)
        self._write_state()

    def mark_working(self, spec: ProcessSpec, line: str, *, is_first: bool) -> ProcessSpec:
        """Record that the first part of a process is ready; return the spec for its next restart.

        Dependent preparations may fail only the first time: later, their results exist already.
        """
        if line.startswith("serving at "):
            self.state = replace(self.state, server=line.split()[2].rstrip(";"))
        self.update(spec.name, is_working=True, trouble="")
        try:
            return self._on_working(spec.name, line) or spec
        except Exception as error:
            if is_first:
                raise
            self.report(f"{spec.name}: {_text(error)}; what was written before is used")
            return spec


class _Runner:
    """Keeps one process running."""

    def __init__(self, supervisor: Supervisor, spec: ProcessSpec) -> None:
        self._supervisor, self._spec = supervisor, spec
        self._process: asyncio.subprocess.Process | None = None
        self._last: list[str] = []
        self._failures = 0
        self._restarts = dict.fromkeys((each.name for each in spec.parts), 0)
        self._late = set(self._restarts)  # parts that have not worked yet
        self.has_worked = asyncio.Event()

    async def run(self) -> None:
        """Start the process, and restart it whenever it exits."""
        supervisor, clock = self._supervisor, self._supervisor.clock
        logs = {name: LogFile(supervisor.folder.log(name)) for name in self._restarts}
        try:
            while True:
                began = clock.monotonic()
                ending = await self._run_guarded(logs)
                if not self.has_worked.is_set():
                    raise ProcessFailedError(self._failure(ending))
                is_stable = clock.monotonic() - began >= STABLE_S
                self._failures = 1 if is_stable else self._failures + 1
                for part in self._spec.parts:
                    self._note_end(part, ending, pid=0)
                delay_s = BACKOFF.delay_s(self._failures)
                about = f"{self._spec.title} ended ({ending})"
                supervisor.report(f"{about}; it is started again in {delay_s:g} s")
                await clock.sleep(delay_s)
        finally:
            for log in logs.values():
                log.close()

    def _note_end(self, part: PartSpec, cause: str, **changes: object) -> None:
        """Record that a part failed and restarts."""
        name = part.name
        self._restarts[name] += 1
        trouble = {"is_working": False, "metrics": "", "trouble": cause, **changes}
        self._supervisor.update(name, restarts=self._restarts[name], **trouble)

    async def stop(self, task: asyncio.Task[None]) -> None:
        """Terminate the process, and kill it if it does not exit."""
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self._end()

    async def _end(self) -> None:
        process = self._process
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

    async def _run_guarded(self, logs: dict[str, LogFile]) -> str:
        """Run the process once, and return how it ended, or why it could not be run."""
        try:
            return await self._run_once(logs)
        except Exception as error:  # whatever it is, the other processes go on
            await self._end()
            if not self.has_worked.is_set():
                raise ProcessFailedError(f"{self._spec.name}: {_text(error)}") from None
            return _text(error)

    async def _run_once(self, logs: dict[str, LogFile]) -> str:
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
        for part in self._spec.parts:
            self._supervisor.update(part.name, pid=process.pid)
        assert process.stdout is not None
        self._last = []
        while line := await _next_line(process.stdout):
            part, text = self._part_of(line)
            self._add_line(logs[part.name], part, text)
            self._read_line(part, text.decode("utf-8", "replace").rstrip())
        code = await process.wait()
        return f"signal {-code}" if code < 0 else f"exit status {code}"

    def _part_of(self, line: bytes) -> tuple[PartSpec, bytes]:
        """Return the part that wrote a line, and the line without its name."""
        for part in self._spec.more:
            name = f"{part.name}: ".encode()
            if line.startswith(name):
                return part, line[len(name) :]
        return self._spec.parts[0], line

    def _add_line(self, log: LogFile, part: PartSpec, line: bytes) -> None:
        before = log.trouble
        log.add(line)
        if log.trouble and not before:
            about = f"the log of {part.name} cannot be written"
            self._supervisor.report(f"{about}: {log.trouble}; its lines are lost meanwhile")

    def _read_line(self, part: PartSpec, line: str) -> None:
        self._last = [*self._last[1 - LAST_LINES :], line]
        if line.startswith(METRICS):
            self._supervisor.update(part.name, metrics=line.removeprefix(METRICS))
        elif part.name != self._spec.name and line.startswith(RESTARTING):
            cause = line.removeprefix(RESTARTING)
            self._note_end(part, cause)
            self._supervisor.report(f"{part.name} ended ({cause}); it is started again")
        elif line.startswith(part.ready_prefix):
            self._mark_working(part, line)

    def _mark_working(self, part: PartSpec, line: str) -> None:
        supervisor, is_first = self._supervisor, part.name in self._late
        if part.name == self._spec.name:
            self._spec = supervisor.mark_working(self._spec, line, is_first=is_first)
        else:
            supervisor.update(part.name, is_working=True, trouble="")
        if not is_first:
            supervisor.report(f"{part.name} is at work again")
        self._late.discard(part.name)
        if not self._late:
            self.has_worked.set()

    def _failure(self, ending: str) -> str:
        said = [line.removeprefix("error: ") for line in self._last if line.strip()]
        return f"{self._spec.name}: {said[-1] if said else ending}"


def _text(error: Exception) -> str:
    """Return what an error says in one line."""
    text = error.strerror if isinstance(error, OSError) else None
    return text or str(error) or type(error).__name__


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
