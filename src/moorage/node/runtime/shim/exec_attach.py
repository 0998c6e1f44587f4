"""Commands executed in a container, and clients attached to it: each has a connection of its own.

    peer ──► ExecCommand ──► standard input of a new process in the container's namespaces
         ◄──             ◄── its output, and its exit code

    peer ──► Attachment ──► the container's own standard input, shared by all attached
         ◄──            ◄── the container's output, from now on

A command waits for a slow peer. A container never does: a peer that falls too far behind is
detached. With `stdinOnce`, the container's input ends when the first client detaches.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any, NoReturn, Protocol

from moorage.node.runtime.shim import container_process, linux
from moorage.node.runtime.shim.container import Container, ContainerStage, ShimRefusalError
from moorage.node.runtime.shim.container_io import (
    INPUT_CHUNK_BYTES,
    WAITING_BYTES_MAX,
    StandardInput,
    read_available,
)
from moorage.node.runtime.shim.container_process import ForkedChild, StandardStreams, open_streams
from moorage.node.runtime.shim.linux import READ
from moorage.node.runtime.shim.protocol import MARKER, Launch

BEHIND_BYTES_MAX = 1024 * 1024  # that an attached peer may leave unread before it is detached
DRAIN_BYTES_MAX = 1024 * 1024


class Peer(Protocol):
    """The connection of a command or an attached client."""

    @property
    def waiting_bytes(self) -> int:
        """How many bytes it has not received yet."""

    def send(self, channel: int, payload: bytes) -> None:
        """Send bytes of a stream."""

    def send_message(self, message: dict[str, Any]) -> None:
        """Send a message."""

    def finish(self) -> None:
        """Close it once all is sent."""

    def hold(self, *, is_held: bool) -> None:
        """Stop or resume reading from it."""


class ExecCommand:
    """One command that runs beside a container."""

    def __init__(self, container: Container, peer: Peer, number: int) -> None:
        self._container, self._peer, self._number = container, peer, number
        self._host = container.host
        self._outputs: dict[int, int] = {}  # descriptor: channel
        self._paused: set[int] = set()
        self._input: StandardInput | None = None
        self._is_terminal = False
        self._forked: ForkedChild | None = None
        self._pid = 0

    def start(self, command: tuple[str, ...], *, tty: bool, stdin: bool) -> None:
        """Run the command, or raise ShimRefusalError; the peer hears when it runs."""
        launch = _running(self._container).launch
        assert launch is not None
        self._is_terminal = tty
        with open_streams(tty=tty, stdin=stdin) as (streams, ours):
            self._forked = container_process.fork(lambda _: self._become(launch, streams, command))
        self._outputs = ours.outputs
        for descriptor in self._outputs:
            os.set_blocking(descriptor, False)
        if ours.input is not None:
            self._input = StandardInput(self._host.loop, ours.input, is_terminal=tty)
            self._input.on_drained.append(lambda: self._peer.hold(is_held=False))
        self._pid = self._forked.pid
        self._host.adopt(self._pid, self._ended)
        self._container.commands[self._pid] = self.kill
        self._host.loop.watch(self._forked.report.fileno(), READ, self._reported)
        self._forked.go()

    def feed(self, data: bytes) -> None:
        """Send input; a peer that sends faster than the command reads has to wait."""
        if self._input is not None:
            self._input.feed(data)
            self._peer.hold(is_held=self._input.is_full)

    def control(self, message: dict[str, Any]) -> None:
        """Carry out a request of the peer."""
        match message.get("ask"):
            case "close_input" if self._input is not None:
                self._input.end()
            case "resize" if self._is_terminal:
                for descriptor in self._outputs:
                    container_process.resize(descriptor, message)
            case "kill":
                self.kill()

    def kill(self) -> None:
        """Kill it, with all in its process group."""
        if self._pid:
            for call in (os.killpg, os.kill):  # it may not have its group yet
                with suppress(ProcessLookupError, PermissionError):
                    call(self._pid, signal.SIGKILL)

    def abandoned(self) -> None:
        """Kill it, since its peer is gone."""
        self.kill()

    def flushed(self) -> None:
        """Read on, since the peer has received what was sent."""
        for descriptor in self._paused:
            self._watch(descriptor)
        self._paused.clear()

    def _become(
        self, launch: Launch, streams: StandardStreams, command: tuple[str, ...]
    ) -> NoReturn:
        container_process.take_streams(streams)
        container_process.take_limits(launch, self._container.cgroup.process_files)
        self._enter_namespaces()
        environment = {**launch.environment, MARKER: self._container.marker}
        limits = self._host.descriptor_limits
        container_process.run_program(launch, command, environment, limits)

    def _enter_namespaces(self) -> None:
        """See the file system as the container does."""
        folder = f"/proc/{self._container.pid}"
        if os.stat(f"{folder}/ns/mnt").st_ino == os.stat("/proc/self/ns/mnt").st_ino:
            return
        root = os.open(f"{folder}/root", os.O_PATH | os.O_CLOEXEC)
        mounts = os.open(f"{folder}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        if not self._host.is_root:
            users = os.open(f"{folder}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
            linux.enter(users, linux.CLONE_NEWUSER)
        linux.enter(mounts, linux.CLONE_NEWNS)
        os.chdir(root)
        os.chroot(".")

    def _reported(self) -> None:
        if (forked := self._forked) is None:
            return
        report = forked.receive()
        if not report.is_over:
            return
        self._forked = None
        self._host.loop.forget(forked.report.fileno())
        forked.report.close()
        if report.failure is not None:
            refused = ["StartError", report.failure.text]
            self._peer.send_message({"n": self._number, "refused": refused})
            return
        self._peer.send_message({"n": self._number, "ok": {}})
        for descriptor in self._outputs:
            self._watch(descriptor)

    def _watch(self, descriptor: int) -> None:
        self._host.loop.watch(descriptor, READ, lambda: self._read(descriptor))

    def _read(self, descriptor: int) -> int:
        """Send the command's output; return the number of bytes."""
        data = read_available(descriptor, INPUT_CHUNK_BYTES)
        if data is None:
            return 0
        if data:
            self._peer.send(self._outputs[descriptor], data)
        if not data or self._peer.waiting_bytes > WAITING_BYTES_MAX:
            if data:
                self._paused.add(descriptor)
            self._host.loop.forget(descriptor)
        return len(data)

    def _ended(self, status: int) -> None:
        while self._forked is not None:  # its whole report is there, as it has ended
            self._reported()
        for descriptor in self._outputs:
            left = DRAIN_BYTES_MAX  # processes elsewhere may hold the stream, and write on
            while left > 0 and (count := self._read(descriptor)):
                left -= count
        self._peer.send_message({"exited": linux.exit_code(status)[0]})
        self._peer.finish()
        for descriptor in self._outputs:
            self._host.loop.forget(descriptor)
            os.close(descriptor)
        if self._input is not None:
            self._input.close()
        self._outputs, self._input = {}, None
        self._paused.clear()
        del self._container.commands[self._pid]
        self._pid = 0
        self._container.sweep()


class Attachment:
    """One attached client."""

    def __init__(self, container: Container, peer: Peer, number: int, *, stdin: bool) -> None:
        self._container, self._peer, self._number = container, peer, number
        self._input = container.input if stdin else None

    def start(self) -> None:
        """Receive the container's output, or raise ShimRefusalError if it does not run."""
        _running(self._container)
        self._peer.send_message({"n": self._number, "ok": {}})
        self._container.attached.add(self)
        if self._input is not None:
            self._input.on_drained.append(self._resume)

    def receive(self, channel: int, data: bytes) -> None:
        """Pass on output of the container."""
        self._peer.send(channel, data)
        if self._peer.waiting_bytes > BEHIND_BYTES_MAX:
            self._detach()

    def ended(self) -> None:
        """Detach; the pod's status says how the container ended."""
        self._detach()

    def feed(self, data: bytes) -> None:
        """Send the container input; a peer that sends faster than it reads has to wait."""
        if self._input is not None:
            self._input.feed(data)
            self._peer.hold(is_held=self._input.is_full)

    def control(self, message: dict[str, Any]) -> None:
        """Carry out a request of the peer."""
        match message.get("ask"):
            case "close_input":
                self._end_input()
            case "resize":
                for descriptor in self._container.terminals():
                    container_process.resize(descriptor, message)
            case "kill":
                self._detach()

    def abandoned(self) -> None:
        """Detach, since the peer is gone."""
        self._container.attached.discard(self)
        self._end_input()

    def flushed(self) -> None:
        """Do nothing: the container does not wait."""

    def _detach(self) -> None:
        self.abandoned()
        self._peer.send_message({"exited": 0})
        self._peer.finish()

    def _end_input(self) -> None:
        """Send no more input; with `stdinOnce` nobody does."""
        launch = self._container.launch
        if self._input is not None:
            if self._resume in self._input.on_drained:
                self._input.on_drained.remove(self._resume)
            if launch is not None and launch.stdin_once:
                self._input.end()

    def _resume(self) -> None:
        self._peer.hold(is_held=False)


def _running(container: Container) -> Container:
    if container.stage is not ContainerStage.RUNNING or container.launch is None:
        raise ShimRefusalError(
            "ContainerNotRunning", f"container {container.record.key} is not running"
        )
    return container
