"""One container in the keeper: from its launch to its end.

    STARTING ─► RUNNING ─► ENDING ─► ENDED
        └────────────────────┘

It is ENDING when its first process has ended: all others are killed then, as the kernel does when
the first process of a container ends. It is ENDED when no member is left and its record says so.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Any, NoReturn, Protocol

from mooring.node.runtime.shim import child, processes
from mooring.node.runtime.shim.cgroups import Cgroup, Cgroups
from mooring.node.runtime.shim.child import Failure, Forked, Streams, Theirs
from mooring.node.runtime.shim.frames import ERRORS, OUTPUT
from mooring.node.runtime.shim.input import Input
from mooring.node.runtime.shim.launches import MARKER, Key, Launch
from mooring.node.runtime.shim.logfile import Lines, LogFile
from mooring.node.runtime.shim.loop import READ, Call, Loop, Timer
from mooring.node.runtime.shim.processes import Process
from mooring.node.runtime.shim.records import Record, Records

CHUNK_BYTES = 64 * 1024
DRAIN_BYTES_MAX = 16 * 1024 * 1024
SETUP_S_MAX = 30.0  # for mounts that hang
SWEEP_S_FIRST, SWEEP_S_MAX = 0.01, 1.0
RECORD_RETRY_S = 5.0
_CHANNELS = {b"stdout": OUTPUT, b"stderr": ERRORS}
START_ERROR_CODE = 128  # as containerd has it


class Stage(Enum):
    """How far a container is."""

    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"
    ENDED = "exited"


class RefusalError(Exception):
    """A container that could not be had, and why."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


Answer = Callable[["Container | RefusalError"], None]


def cgroup_name(key: Key) -> str:
    """Return what the cgroup of a container is called."""
    return str(key).replace("/", "_")


class Home(Protocol):
    """What containers share: the keeper."""

    loop: Loop
    records: Records
    cgroups: Cgroups
    staging: str
    boot: str
    mark: str  # of this keeper, in the markers of members
    descriptor_limits: tuple[int, int]
    is_root: bool

    def adopt(self, pid: int, ended: Callable[[int], None]) -> None:
        """Have something called with the status of a child when it has ended."""

    def members(self, container: Container) -> list[Process]:
        """Return the processes of a container that are alive."""

    def changed(self, container: Container) -> None:
        """Tell whoever wants to know."""

    def dropped(self, container: Container) -> None:
        """Forget a container that never was."""


class Listener(Protocol):
    """Somebody who is attached to a container."""

    def said(self, channel: int, data: bytes) -> None:
        """Hear a part of its output."""

    def ended(self) -> None:
        """Hear that it has ended."""


class Container:
    """A container that runs, or did."""

    def __init__(self, home: Home, record: Record, stage: Stage = Stage.ENDED) -> None:
        self.home, self.record, self.stage = home, record, stage
        self.launch: Launch | None = None
        self.cgroup = Cgroup(())
        self.namespace: int | None = None  # its mount namespace, held so that its number stays
        self.namespace_number = 0
        self.beside: dict[int, Call] = {}  # commands run beside it, and how to end them
        self._log: LogFile | None = None
        self._outputs: dict[int, tuple[bytes, Lines]] = {}
        self.input: Input | None = None  # if it was started with one
        self.attached: set[Listener] = set()
        self._forked: Forked | None = None
        self._failure: Failure | None = None
        self._status: int | None = None
        self._answers: list[Answer] = []
        self._on_end: list[Call] = []
        self._timers: list[Timer] = []
        self._sweep_s = SWEEP_S_FIRST

    @property
    def pid(self) -> int:
        """Its first process."""
        return self.record.pid

    @property
    def marker(self) -> str:
        """What its members have in their environment."""
        return f"{self.record.key}@{self.home.mark}"

    @property
    def has_first_process(self) -> bool:
        """Whether its first process has not been reaped."""
        return self.stage in (Stage.STARTING, Stage.RUNNING)

    def state(self) -> dict[str, Any]:
        """Return what is told of it."""
        record = self.record
        note = self.launch.note if self.launch is not None and record.is_running else ""
        hidden = ("digest", "boot", "pid_started")
        told = {name: value for name, value in record._asdict().items() if name not in hidden}
        return {**told, "message": record.message or note}

    # --- start ---------------------------------------------------------------------------------

    def start(self, launch: Launch, answer: Answer) -> None:
        """Start it, and answer once it runs or cannot."""
        self.launch, self.stage = launch, Stage.STARTING
        self._answers.append(answer)
        try:
            self._begin(launch)
        except OSError as error:
            about = f"{error.filename}: " if error.filename else ""
            self._failure = Failure(False, f"{about}{error.strerror or error}")
            if self._forked is not None:
                os.close(self._forked.word)  # it ends by itself
            else:
                self._refuse(self._failure.text)

    def when_started(self, answer: Answer) -> None:
        """Answer once it runs, or at once."""
        if self.stage is Stage.STARTING:
            self._answers.append(answer)
        else:
            answer(self)

    def _begin(self, launch: Launch) -> None:
        folder = self.home.records.folder_of(launch.key)
        os.makedirs(folder, exist_ok=True)
        self._log = LogFile(folder)
        self.cgroup = self.home.cgroups.make(cgroup_name(launch.key), launch)
        environment = {**launch.environment, MARKER: self.marker}
        with Theirs() as theirs:
            streams = self._open_streams(launch, theirs)
            self._forked = child.fork(lambda told: self._become(launch, streams, environment, told))
        pid = self._forked.pid
        self.home.adopt(pid, self._reaped)
        self.home.loop.watch(self._forked.report.fileno(), READ, self._reported)
        self._timers.append(self.home.loop.call_later(SETUP_S_MAX, self._took_too_long))
        self._write_down(launch, pid)
        self._forked.go()

    def _write_down(self, launch: Launch, pid: int) -> None:
        found = processes.process(pid)
        self.record = Record(
            launch.key,
            digest=launch.digest,
            boot=self.home.boot,
            pid=pid,
            pid_started=found.started if found is not None else 0,
            started=time.time(),
        )
        self.home.records.write(self.record)

    def _become(
        self,
        launch: Launch,
        streams: Streams,
        environment: dict[str, str],
        told: socket.socket,
    ) -> NoReturn:
        child.take_streams(streams)
        doors = self.cgroup.doors
        child.take_limits(doors=doors, cpus=launch.cpus, memory_nodes=launch.memory_nodes)
        child.take_groups(launch.groups)
        staging, is_root = self.home.staging, self.home.is_root
        child.take_mounts(launch.mounts, told, staging=staging, is_root=is_root)
        limits = self.home.descriptor_limits
        child.run_program(launch.command, environment, launch.folder, limits)

    def _open_streams(self, launch: Launch, theirs: Theirs) -> Streams:
        if launch.tty:
            ours, terminal = theirs.terminal()
            self._read_from(ours, b"stdout")
            if launch.stdin:
                self.input = Input(self.home.loop, os.dup(ours), is_terminal=True)
            return Streams(terminal, terminal, terminal, is_terminal=True)
        if launch.stdin:  # open, until somebody is attached and says something
            writing, reading = theirs.input()
            self.input = Input(self.home.loop, writing, is_terminal=False)
        else:
            reading = theirs.nothing()
        writers = []
        for name in (b"stdout", b"stderr"):
            descriptor, writer = theirs.output()
            self._read_from(descriptor, name)
            writers.append(writer)
        return Streams(reading, writers[0], writers[1])

    def _reported(self) -> None:
        if (forked := self._forked) is None:
            return
        heard = forked.heard()
        if heard.namespace is not None:
            self.namespace = heard.namespace
            self.namespace_number = os.fstat(heard.namespace).st_ino
        if not heard.is_over:
            return
        self._forked = None
        self.home.loop.forget(forked.report.fileno())
        forked.report.close()
        self._cancel_timers()
        self._failure = self._failure or heard.failure
        if self._failure is not None or self.stage is not Stage.STARTING:
            return  # its end tells the rest
        self.stage = Stage.RUNNING
        self._answer(self)
        self.home.changed(self)

    def _took_too_long(self) -> None:
        self._failure = Failure(False, f"mounts and limits took longer than {SETUP_S_MAX:.0f} s")
        self._answer(RefusalError("CreateContainerError", self._failure.text))
        self.kill()  # which may take as long as what it hangs in

    def _refuse(self, text: str) -> None:
        """Leave nothing of it, and say why."""
        self._close()
        self.stage = Stage.ENDED
        self.home.records.remove(self.record.key)
        self.home.dropped(self)
        self._answer(RefusalError("CreateContainerError", text))
        self._tell_end()

    def _answer(self, what: Container | RefusalError) -> None:
        answers, self._answers = self._answers, []
        for answer in answers:
            answer(what)

    # --- output --------------------------------------------------------------------------------

    def _read_from(self, descriptor: int, stream: bytes) -> None:
        os.set_blocking(descriptor, False)
        self._outputs[descriptor] = stream, Lines()
        self.home.loop.watch(descriptor, READ, lambda: self._read(descriptor))

    def _read(self, descriptor: int) -> int:
        """Take what there is from a stream into the log; return how much."""
        stream, lines = self._outputs[descriptor]
        try:
            data = os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""  # of a terminal whose other end is closed
        if not data:
            self.home.loop.forget(descriptor)
            return 0
        assert self._log is not None
        self._log.write(stream, lines.feed(data))
        for each in tuple(self.attached):
            each.said(_CHANNELS[stream], data)
        return len(data)

    def terminals(self) -> tuple[int, ...]:
        """Return its terminal, if it has one."""
        is_terminal = self.launch is not None and self.launch.tty
        return tuple(self._outputs) if is_terminal else ()

    def _drain(self) -> None:
        for descriptor, (stream, lines) in self._outputs.items():
            left = DRAIN_BYTES_MAX  # others may hold the stream, and say on
            while left > 0 and (count := self._read(descriptor)):
                left -= count
            assert self._log is not None
            self._log.write(stream, lines.end())

    # --- end -----------------------------------------------------------------------------------

    def stop(self, grace_s: float, done: Call) -> None:
        """Ask it to end, kill it after a while, and call back when it has ended."""
        if self.stage is Stage.ENDED:
            done()
            return
        self._on_end.append(done)
        if grace_s <= 0 or self.stage is Stage.STARTING:
            self.kill()
        elif self.stage is Stage.RUNNING:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGTERM)
            self._timers.append(self.home.loop.call_later(grace_s, self.kill))

    def kill(self) -> None:
        """Kill its first process; the others follow."""
        if self.has_first_process and self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # ours until it is reaped

    def _reaped(self, status: int) -> None:
        while self._forked is not None:  # what it reported is there, as it has ended
            self._reported()
        self._cancel_timers()
        self.stage, self._status = Stage.ENDING, status
        for end in list(self.beside.values()):
            end()
        self.sweep()

    def sweep(self) -> None:
        """Kill who is left, or be at the end."""
        if self.stage is not Stage.ENDING:
            return
        left = self.home.members(self)
        if not left and not self.beside:
            self._finish()
            return
        self.cgroup.kill()
        for each in left:
            processes.kill(each)
        self._cancel_timers()
        self._timers.append(self.home.loop.call_later(self._sweep_s, self.sweep))
        self._sweep_s = min(self._sweep_s * 2, SWEEP_S_MAX)

    def _finish(self) -> None:
        if self._failure is not None and not self._failure.is_program:
            self._refuse(self._failure.text)
            return
        self._drain()
        self.record = self._final_record()
        self._close()
        self.stage = Stage.ENDED
        self._keep_record()
        self._answer(self)
        self.home.changed(self)
        self._tell_end()

    def _final_record(self) -> Record:
        assert self._status is not None
        now = max(time.time(), self.record.started)
        if self._failure is not None:
            return self.record._replace(
                finished=now,
                exit_code=START_ERROR_CODE,
                reason="StartError",
                message=f"failed to start container: {self._failure.text}",
            )
        number = os.WTERMSIG(self._status) if os.WIFSIGNALED(self._status) else 0
        code = 128 + number if number else os.WEXITSTATUS(self._status)
        reason = "Completed" if code == 0 else "Error"
        if code and self.cgroup.oom_kills():
            reason = "OOMKilled"
        return self.record._replace(finished=now, exit_code=code, signal=number, reason=reason)

    def _keep_record(self) -> None:
        try:
            self.home.records.write(self.record)
        except FileNotFoundError:
            pass  # it was removed
        except OSError:  # a full disk; until there is room the keeper knows it by heart
            self.home.loop.call_later(RECORD_RETRY_S, self._keep_record)

    def _close(self) -> None:
        self._cancel_timers()
        for listener in tuple(self.attached):
            listener.ended()
        if self.input is not None:
            self.input.close()
        for descriptor in self._outputs:
            self.home.loop.forget(descriptor)
            os.close(descriptor)
        if self.namespace is not None:
            os.close(self.namespace)
        if self._log is not None:
            self._log.close()
        if not self.cgroup.remove():
            self.home.loop.call_later(SWEEP_S_MAX, self.cgroup.remove)
        self._outputs, self.namespace, self._log = {}, None, None
        self.input = None
        self.launch, self.cgroup = None, Cgroup(())

    def _tell_end(self) -> None:
        calls, self._on_end = self._on_end, []
        for call in calls:
            call()

    def _cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
