"""A node with one pod, whose containers say and do what a script has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.timestamp import Timestamp
from moorage.node.runtime.contract import ContainerId, LogRange, RuntimeRefusedError

UID = "uid-1"
START = datetime(2026, 11, 15, 12, tzinfo=UTC)
LISTENING = ("listener", "terminal")
FLOOD = b"x" * 300_000


def status(name: str, restarts: int = 0, **states: Any) -> dict[str, Any]:
    return {"name": name, "restartCount": restarts, "image": "i", "imageID": "", **states}


def pod(*statuses: dict[str, Any], name: str = "p", namespace: str = "default") -> Pod:
    """Return a pod with containers of these statuses."""
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": UID},
        "spec": {"containers": [_container(each["name"]) for each in statuses]},
        "status": {"containerStatuses": list(statuses)},
    }
    value = decode_tree(tree, Pod).value
    assert isinstance(value, Pod)
    return value


def _container(name: str) -> dict[str, Any]:
    """Return a container; one that listens takes input, one of that name has a terminal."""
    has_terminal = name == "terminal"
    return {"name": name, "image": "i", "stdin": name in LISTENING, "tty": has_terminal}


RUNNING: dict[str, Any] = {"state": {"running": {"startedAt": str(Timestamp(START))}}}
ENDED: dict[str, Any] = {"terminated": {"exitCode": 1, "containerID": "process://1"}}
WAITING: dict[str, Any] = {"state": {"waiting": {"reason": "ContainerCreating"}}}


class FakePods:
    """Pods of a node."""

    def __init__(self, *pods: Pod) -> None:
        self.pods = {(each.metadata.namespace, each.metadata.name): each for each in pods}

    def find(self, namespace: str, name: str) -> Pod | None:
        return self.pods.get((namespace, name))

    def all(self) -> Iterable[Pod]:
        return self.pods.values()


class FakeSession:
    """A command that does what its name says."""

    def __init__(self, command: Sequence[str], *, tty: bool) -> None:
        self.command = list(command)
        self.tty = tty
        self.code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.said: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue()
        self.killed = asyncio.Event()
        match self.command:
            case ["echo", *words]:
                self.say(1, " ".join(words).encode() + b"\n")
                self.end(0)
            case ["complain", text]:
                self.say(1, b"out\n")
                self.say(2, text.encode())
                self.end(0)
            case ["exit", code]:
                self.end(int(code))
            case ["flood"]:
                self.say(1, FLOOD)
                self.end(0)

    def say(self, stream: int, data: bytes) -> None:
        self.said.put_nowait((stream, data))

    def end(self, code: int) -> None:
        self.said.put_nowait(None)
        if not self.code.done():
            self.code.set_result(code)

    async def write(self, data: bytes) -> None:
        self.say(1, data.upper())
        if self.tty and b"\x04" in data:  # the end of input, as one types it
            self.end(0)

    async def close_input(self) -> None:
        self.end(0)

    async def resize(self, columns: int, rows: int) -> None:
        self.say(1, f"{columns}x{rows}".encode())
        if self.command == ["size"]:
            self.end(0)

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        while (said := await self.said.get()) is not None:
            yield said

    async def wait(self) -> int:
        return await self.code

    async def kill(self) -> None:
        self.killed.set()


class FakeRuntime:
    """Logs that were written before, and commands."""

    def __init__(self) -> None:
        self.logs_of: dict[ContainerId, list[bytes]] = {}
        self.more = asyncio.Event()
        self.asked: list[tuple[ContainerId, LogRange]] = []
        self.sessions: list[FakeSession] = []
        self.followed = asyncio.Event()
        self.left = asyncio.Event()

    def write(self, name: str, attempt: int, *lines: bytes) -> None:
        self.logs_of.setdefault(ContainerId(UID, name, attempt), []).extend(lines)
        self.more.set()
        self.more = asyncio.Event()

    async def logs(self, id_: ContainerId, log_range: LogRange) -> AsyncIterator[bytes]:
        self.asked.append((id_, log_range))
        lines = self.logs_of.get(id_)
        if lines is None:
            raise RuntimeRefusedError("Gone", "the log is gone")
        at = 0 if log_range.tail_lines is None else max(len(lines) - log_range.tail_lines, 0)
        left = log_range.bytes_max
        try:
            while True:
                while at < len(lines):
                    line = self._line(lines[at], at, log_range)
                    at += 1
                    yield line if left is None else line[:left]
                    left = None if left is None else max(left - len(line), 0)
                if not log_range.follow:
                    return
                self.followed.set()
                await self.more.wait()
        finally:
            self.left.set()

    @staticmethod
    def _line(line: bytes, at: int, log_range: LogRange) -> bytes:
        moment = Timestamp(START + timedelta(seconds=at))
        if log_range.since is not None and moment < log_range.since:
            return b""
        return f"{moment} ".encode() + line if log_range.has_times else line

    async def execute(
        self,
        id_: ContainerId,
        command: Sequence[str],
        *,
        tty: bool,
        stdin: bool,
    ) -> FakeSession:
        if command[0] == "missing":
            raise RuntimeRefusedError("StartError", f"{id_.name}: no such file: missing")
        session = FakeSession(command, tty=tty)
        self.sessions.append(session)
        return session

    async def attach(self, id_: ContainerId, *, stdin: bool, tty: bool) -> FakeSession:
        assert stdin or tty
        session = FakeSession([id_.name], tty=tty)
        self.sessions.append(session)
        return session
