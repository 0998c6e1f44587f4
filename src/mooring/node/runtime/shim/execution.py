"""A command that runs beside a container, with its streams on a connection of its own."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any, NoReturn, Protocol

from mooring.node.runtime.shim import child, system
from mooring.node.runtime.shim.child import Forked, Streams, Theirs
from mooring.node.runtime.shim.container import Container, RefusalError, Stage
from mooring.node.runtime.shim.frames import ERRORS, OUTPUT
from mooring.node.runtime.shim.launches import MARKER, Launch
from mooring.node.runtime.shim.loop import READ, WRITE

CHUNK_BYTES = 32 * 1024
WAITING_BYTES_MAX = 256 * 1024  # in either direction, until the faster side has to wait
DRAIN_BYTES_MAX = 1024 * 1024
END_OF_INPUT = b"\x04"  # on a terminal


class Peer(Protocol):
    """The connection of a command."""

    @property
    def waiting_bytes(self) -> int:
        """What it has not taken yet."""

    def send(self, channel: int, payload: bytes) -> None:
        """Send bytes of a stream."""

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message."""

    def finish(self) -> None:
        """Close it once all is sent."""

    def hold(self, *, is_held: bool) -> None:
        """Take no more input for now, or again."""


class Execution:
    """One command."""

    def __init__(self, container: Container, peer: Peer, number: int) -> None:
        self._container, self._peer, self._number = container, peer, number
        self._home = container.home
        self._outputs: dict[int, int] = {}  # descriptor: channel
        self._paused: set[int] = set()
        self._input: int | None = None
        self._waiting = bytearray()
        self._is_input_over = False
        self._is_terminal = False
        self._forked: Forked | None = None
        self._pid = 0

    def start(self, command: tuple[str, ...], *, tty: bool, stdin: bool) -> None:
        """Run the command, or raise RefusalError; the peer is told once it runs."""
        launch = self._container.launch
        if self._container.stage is not Stage.RUNNING or launch is None:
            raise RefusalError(
                "ContainerNotRunning", f"container {self._container.record.key} is not running"
            )
        self._is_terminal = tty
        try:
            with Theirs() as theirs:
                streams = self._open_streams(theirs, tty=tty, stdin=stdin)
                self._forked = child.fork(lambda _: self._become(launch, streams, command))
        except OSError:
            self._close()
            raise
        self._pid = self._forked.pid
        self._home.adopt(self._pid, self._ended)
        self._container.beside[self._pid] = self.kill
        self._home.loop.watch(self._forked.report.fileno(), READ, self._reported)
        self._forked.go()

    def feed(self, data: bytes) -> None:
        """Give it input."""
        if self._input is not None and not self._is_input_over:
            self._waiting += data
            self._write()

    def control(self, message: dict[str, Any]) -> None:
        """Do what its user asks."""
        match message.get("ask"):
            case "close_input" if self._input is not None:
                self._is_input_over = True
                if self._is_terminal:
                    self._waiting += END_OF_INPUT
                self._write()
            case "resize" if self._is_terminal:
                for descriptor in self._outputs:
                    child.resize(descriptor, message)
            case "kill":
                self.kill()

    def kill(self) -> None:
        """End it, with all in its process group."""
        if self._pid:
            for call in (os.killpg, os.kill):  # it may not have its group yet
                with suppress(ProcessLookupError, PermissionError):
                    call(self._pid, signal.SIGKILL)

    def abandoned(self) -> None:
        """End it, as nobody listens any more."""
        self.kill()

    def flushed(self) -> None:
        """Say on, as the peer has taken what was said."""
        for descriptor in list(self._paused):
            self._paused.discard(descriptor)
            self._watch(descriptor)

    def _become(self, launch: Launch, streams: Streams, command: tuple[str, ...]) -> NoReturn:
        child.take_streams(streams)
        doors = self._container.cgroup.doors
        child.take_limits(doors=doors, cpus=launch.cpus, memory_nodes=launch.memory_nodes)
        child.take_groups(launch.groups)
        self._enter_namespaces()
        environment = {**launch.environment, MARKER: self._container.marker}
        limits = self._home.descriptor_limits
        child.run_program(command, environment, launch.folder, limits)

    def _enter_namespaces(self) -> None:
        """See what the container sees."""
        folder = f"/proc/{self._container.pid}"
        if os.stat(f"{folder}/ns/mnt").st_ino == os.stat("/proc/self/ns/mnt").st_ino:
            return
        root = os.open(f"{folder}/root", os.O_PATH | os.O_CLOEXEC)
        mounts = os.open(f"{folder}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        if not self._home.is_root:
            users = os.open(f"{folder}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
            system.enter(users, system.CLONE_NEWUSER)
        system.enter(mounts, system.CLONE_NEWNS)
        os.chdir(root)
        os.chroot(".")

    def _open_streams(self, theirs: Theirs, *, tty: bool, stdin: bool) -> Streams:
        if tty:
            ours, terminal = theirs.terminal()
            self._add_output(ours, OUTPUT)
            self._input = ours if stdin else None
            return Streams(terminal, terminal, terminal, is_terminal=True)
        if stdin:
            self._input, reading = theirs.input()
            os.set_blocking(self._input, False)
        else:
            reading = theirs.nothing()
        writers = []
        for channel in (OUTPUT, ERRORS):
            descriptor, writer = theirs.output()
            self._add_output(descriptor, channel)
            writers.append(writer)
        return Streams(reading, writers[0], writers[1])

    def _add_output(self, descriptor: int, channel: int) -> None:
        os.set_blocking(descriptor, False)
        self._outputs[descriptor] = channel

    def _reported(self) -> None:
        if (forked := self._forked) is None:
            return
        heard = forked.heard()
        if not heard.is_over:
            return
        self._forked = None
        self._home.loop.forget(forked.report.fileno())
        forked.report.close()
        if heard.failure is not None:
            refused = ["StartError", heard.failure.text]
            self._peer.tell({"n": self._number, "refused": refused})
            return
        self._peer.tell({"n": self._number, "ok": {}})
        for descriptor in self._outputs:
            self._watch(descriptor)

    def _watch(self, descriptor: int) -> None:
        """Watch what concerns a descriptor now; a terminal is one for both directions."""
        reads = descriptor in self._outputs and descriptor not in self._paused
        writes = descriptor == self._input and bool(self._waiting)
        events = (READ if reads else 0) | (WRITE if writes else 0)
        if events:
            self._home.loop.watch(descriptor, events, lambda: self._ready(descriptor))
        else:
            self._home.loop.forget(descriptor)

    def _ready(self, descriptor: int) -> None:
        if descriptor == self._input and self._waiting:
            self._write()
        if descriptor in self._outputs and descriptor not in self._paused:
            self._read(descriptor)

    def _read(self, descriptor: int) -> int:
        """Send what the command says; return how much it was."""
        try:
            data = os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""  # of a terminal whose other end is closed
        if data:
            self._peer.send(self._outputs[descriptor], data)
        if not data or self._peer.waiting_bytes > WAITING_BYTES_MAX:
            if data:
                self._paused.add(descriptor)
            self._home.loop.forget(descriptor)
        return len(data)

    def _write(self) -> None:
        if self._input is None:
            return
        try:
            if self._waiting:
                count = os.write(self._input, self._waiting[:CHUNK_BYTES])
                del self._waiting[:count]
        except BlockingIOError:
            pass
        except OSError:  # it reads no more
            self._waiting.clear()
            self._is_input_over = True
        self._peer.hold(is_held=len(self._waiting) > WAITING_BYTES_MAX)
        if self._is_input_over and not self._waiting and not self._is_terminal:
            self._home.loop.forget(self._input)
            os.close(self._input)
            self._input = None
            return
        self._watch(self._input)

    def _ended(self, status: int) -> None:
        while self._forked is not None:  # what it reported is there, as it has ended
            self._reported()
        for descriptor in self._outputs:
            left = DRAIN_BYTES_MAX  # others may hold the stream, and say on
            while left > 0 and (count := self._read(descriptor)):
                left -= count
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        code = 128 + number if number else os.WEXITSTATUS(status)
        self._peer.tell({"exited": code})
        self._peer.finish()
        self._close()
        del self._container.beside[self._pid]
        self._pid = 0
        self._container.sweep()

    def _close(self) -> None:
        for descriptor in {*self._outputs, *([] if self._input is None else [self._input])}:
            self._home.loop.forget(descriptor)
            os.close(descriptor)
        self._outputs, self._input = {}, None
        self._paused.clear()
