"""One container in the shim, from its launch to its end.

    STARTING ─► RUNNING ─► ENDING ─► ENDED
        └────────────────────┘

A container is ENDING when its first process has ended: all others are killed then, as the kernel
does in a PID namespace. It is ENDED when no member is left and its record states it.
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

from moorage.node.runtime.shim import container_process, linux
from moorage.node.runtime.shim.cgroup_manager import Cgroup, CgroupManager
from moorage.node.runtime.shim.container_io import ContainerOutput, OutputListener, StandardInput
from moorage.node.runtime.shim.container_process import (
    ForkedChild,
    StandardStreams,
    StartFailure,
    open_streams,
)
from moorage.node.runtime.shim.linux import READ, Callback, EventLoop, LoopTimer, Process
from moorage.node.runtime.shim.protocol import MARKER, ContainerKey, Launch, Record, Records

SETUP_S_MAX = 30.0  # for mounts that hang
SWEEP_S_FIRST, SWEEP_S_MAX = 0.01, 1.0
RECORD_RETRY_S = 5.0
START_ERROR_CODE = 128  # as in containerd


class ContainerStage(Enum):
    """How far a container is."""

    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"
    ENDED = "exited"


class ShimRefusalError(Exception):
    """The shim cannot carry out the request; `reason` is one word."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


StartCallback = Callable[["Container | ShimRefusalError"], None]


def cgroup_name(key: ContainerKey) -> str:
    """Return the name of a container's cgroup."""
    return str(key).replace("/", "_")


class ContainerHost(Protocol):
    """What containers need of the shim."""

    loop: EventLoop
    records: Records
    cgroups: CgroupManager
    staging: str
    boot: str
    mark: str  # of this shim, part of every marker
    descriptor_limits: tuple[int, int]
    is_root: bool

    def adopt(self, pid: int, ended: Callable[[int], None]) -> None:
        """Call back with the wait status of a child when it has ended."""

    def members(self, container: Container) -> list[Process]:
        """Return the live processes of a container."""

    def changed(self, container: Container) -> None:
        """Notify whoever watches containers."""

    def dropped(self, container: Container) -> None:
        """Forget a container that never started."""


class Container:
    """A container that runs, or ran."""

    def __init__(
        self, host: ContainerHost, record: Record, stage: ContainerStage = ContainerStage.ENDED
    ) -> None:
        self.host, self.record, self.stage = host, record, stage
        self.launch: Launch | None = None
        self.cgroup = Cgroup(())
        self.namespace: int | None = None  # a descriptor, so that its inode stays in use
        self.namespace_number = 0
        self.commands: dict[int, Callback] = {}  # pids of executed commands, and how to kill them
        self._output: ContainerOutput | None = None
        self.input: StandardInput | None = None  # None unless it was started with stdin
        self.attached: set[OutputListener] = set()
        self._forked: ForkedChild | None = None
        self._failure: StartFailure | None = None
        self._status: int | None = None
        self._answers: list[StartCallback] = []
        self._on_end: list[Callback] = []
        self._timers: list[LoopTimer] = []
        self._sweep_s = SWEEP_S_FIRST

    @property
    def pid(self) -> int:
        """The pid of its first process."""
        return self.record.pid

    @property
    def marker(self) -> str:
        """The value that its members have in their environment."""
        return f"{self.record.key}@{self.host.mark}"

    @property
    def has_first_process(self) -> bool:
        """Whether its first process has not been reaped."""
        return self.stage in (ContainerStage.STARTING, ContainerStage.RUNNING)

    def state(self) -> dict[str, Any]:
        """Return its state, as sent to the agent."""
        record = self.record
        note = self.launch.note if self.launch is not None and record.is_running else ""
        hidden = ("digest", "boot", "pid_started")
        fields = {name: value for name, value in record._asdict().items() if name not in hidden}
        return {**fields, "message": record.message or note}

    # --- start ------------------------------------------------------------------------------------

    def start(self, launch: Launch, answer: StartCallback) -> None:
        """Start it, and call back once it runs or cannot."""
        self.launch, self.stage = launch, ContainerStage.STARTING
        self._answers.append(answer)
        try:
            self._begin(launch)
        except OSError as error:
            about = f"{error.filename}: " if error.filename else ""
            self._failure = StartFailure(False, f"{about}{error.strerror or error}")
            if self._forked is not None:
                os.close(self._forked.word)  # it ends by itself
            else:
                self._refuse(self._failure.text)

    def when_started(self, answer: StartCallback) -> None:
        """Call back once it runs, or at once."""
        if self.stage is ContainerStage.STARTING:
            self._answers.append(answer)
        else:
            answer(self)

    def _begin(self, launch: Launch) -> None:
        folder = self.host.records.folder_of(launch.key)
        os.makedirs(folder, exist_ok=True)
        self._output = output = ContainerOutput(self.host.loop, folder, self.attached)
        self.cgroup = self.host.cgroups.make(cgroup_name(launch.key), launch)
        environment = {**launch.environment, MARKER: self.marker}
        with open_streams(tty=launch.tty, stdin=launch.stdin) as (streams, ours):
            self._forked = container_process.fork(
                lambda report_socket: self._become(launch, streams, environment, report_socket)
            )
        for descriptor, channel in ours.outputs.items():
            output.add(descriptor, channel)
        if ours.input is not None:  # open until a client attaches and sends something
            self.input = StandardInput(self.host.loop, ours.input, is_terminal=launch.tty)
        pid = self._forked.pid
        self.host.adopt(pid, self._reaped)
        self.host.loop.watch(self._forked.report.fileno(), READ, self._reported)
        self._timers.append(self.host.loop.call_later(SETUP_S_MAX, self._took_too_long))
        self._write_down(launch, pid)
        self._forked.go()

    def _write_down(self, launch: Launch, pid: int) -> None:
        found = linux.process(pid)
        self.record = Record(
            launch.key,
            digest=launch.digest,
            boot=self.host.boot,
            pid=pid,
            pid_started=found.started if found is not None else 0,
            started=time.time(),
        )
        self.host.records.write(self.record)

    def _become(
        self,
        launch: Launch,
        streams: StandardStreams,
        environment: dict[str, str],
        report_socket: socket.socket,
    ) -> NoReturn:
        container_process.take_streams(streams)
        container_process.take_limits(launch, self.cgroup.process_files)
        staging, is_root = self.host.staging, self.host.is_root
        container_process.take_mounts(launch, report_socket, staging=staging, is_root=is_root)
        limits = self.host.descriptor_limits
        container_process.run_program(launch, launch.command, environment, limits)

    def _reported(self) -> None:
        if (forked := self._forked) is None:
            return
        report = forked.receive()
        if report.namespace is not None:
            self.namespace = report.namespace
            self.namespace_number = os.fstat(report.namespace).st_ino
        if not report.is_over:
            return
        self._forked = None
        self.host.loop.forget(forked.report.fileno())
        forked.report.close()
        self._cancel_timers()
        self._failure = self._failure or report.failure
        if self._failure is not None or self.stage is not ContainerStage.STARTING:
            return  # reported when it has been reaped
        self.stage = ContainerStage.RUNNING
        self._answer(self)
        self.host.changed(self)

    def _took_too_long(self) -> None:
        self._failure = StartFailure(
            False, f"mounts and limits took longer than {SETUP_S_MAX:.0f} s"
        )
        self._answer(ShimRefusalError("CreateContainerError", self._failure.text))
        self.kill()  # takes as long as the kernel needs

    def _refuse(self, text: str) -> None:
        """Remove all traces, and report why."""
        self._close()
        self.stage = ContainerStage.ENDED
        self.host.records.remove(self.record.key)
        self.host.dropped(self)
        self._answer(ShimRefusalError("CreateContainerError", text))
        self._notify_end()

    def _answer(self, what: Container | ShimRefusalError) -> None:
        answers, self._answers = self._answers, []
        for answer in answers:
            answer(what)

    def terminals(self) -> tuple[int, ...]:
        """Return its terminal, if it has one."""
        if self._output is None or self.launch is None or not self.launch.tty:
            return ()
        return self._output.descriptors

    # --- end --------------------------------------------------------------------------------------

    def stop(self, grace_s: float, done: Callback) -> None:
        """Send SIGTERM, kill it after the grace period, and call back when it has ended."""
        if self.stage is ContainerStage.ENDED:
            done()
            return
        self._on_end.append(done)
        if grace_s <= 0 or self.stage is ContainerStage.STARTING:
            self.kill()
        elif self.stage is ContainerStage.RUNNING:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGTERM)
            self._timers.append(self.host.loop.call_later(grace_s, self.kill))

    def kill(self) -> None:
        """Kill its first process; the others follow."""
        if self.has_first_process and self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # the pid is its own until it is reaped

    def _reaped(self, status: int) -> None:
        while self._forked is not None:  # its whole report is there, as it has ended
            self._reported()
        self._cancel_timers()
        self.stage, self._status = ContainerStage.ENDING, status
        for end in list(self.commands.values()):
            end()
        self.sweep()

    def sweep(self) -> None:
        """Kill remaining members, or finish if there are none."""
        if self.stage is not ContainerStage.ENDING:
            return
        left = self.host.members(self)
        if not left and not self.commands:
            self._finish()
            return
        self.cgroup.kill()
        for each in left:
            linux.kill(each)
        self._cancel_timers()
        self._timers.append(self.host.loop.call_later(self._sweep_s, self.sweep))
        self._sweep_s = min(self._sweep_s * 2, SWEEP_S_MAX)

    def _finish(self) -> None:
        if self._failure is not None and not self._failure.is_program:
            self._refuse(self._failure.text)
            return
        if self._output is not None:
            self._output.drain()
        self.record = self._final_record()
        self._close()
        self.stage = ContainerStage.ENDED
        self._keep_record()
        self._answer(self)
        self.host.changed(self)
        self._notify_end()

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
        code, number = linux.exit_code(self._status)
        reason = "Completed" if code == 0 else "Error"
        if code and self.cgroup.oom_kills():
            reason = "OOMKilled"
        return self.record._replace(finished=now, exit_code=code, signal=number, reason=reason)

    def _keep_record(self) -> None:
        try:
            self.host.records.write(self.record)
        except FileNotFoundError:
            pass  # it was removed
        except OSError:  # a full disk; the shim has it in memory until then
            self.host.loop.call_later(RECORD_RETRY_S, self._keep_record)

    def _close(self) -> None:
        self._cancel_timers()
        for listener in tuple(self.attached):
            listener.ended()
        if self.input is not None:
            self.input.close()
        if self._output is not None:
            self._output.close()
        if self.namespace is not None:
            os.close(self.namespace)
        if not self.cgroup.remove():
            self.host.loop.call_later(SWEEP_S_MAX, self.cgroup.remove)
        self._output = self.input = self.namespace = None
        self.launch, self.cgroup = None, Cgroup(())

    def _notify_end(self) -> None:
        calls, self._on_end = self._on_end, []
        for call in calls:
            call()

    def _cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
