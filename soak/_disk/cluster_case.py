"""A real `moor up` on a small file system that becomes full, and other troubles of its disk.

The data of the cluster and its output are on a tmpfs. In each cycle the disk gets into trouble
while writers write ConfigMaps:

    full       all space is taken, or all but a little
    limit      the server's files may not grow: writes fail as those beyond a quota do
    handles    the server gets no more descriptors
    away       the folder of the store is moved away, and back later

Meanwhile some processes are killed. Then the trouble ends. The laws:

1. `moor up` goes on, and in the end all of its processes work again by themselves;
2. /readyz says that nothing can be written (not for `handles`), and is ok again; /livez stays ok;
3. a ConfigMap is as its last answered write made it, or as one whose outcome was unknown; one that
   was refused never happened;
4. pods that ran go on, without a restart; new ones run;
5. no log has a traceback, and the store finds nothing wrong with itself in the end.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from moorage.cluster.state_folder import StateFolder
from moorage.store.sqlite import check
from soak._http import Address, Connection, LostError, Reply
from soak._node.programs import Program
from soak._servers import client_context

DISK_BYTES = 96 * 1024 * 1024
WRITERS = 4
SIZES = (10, 300, 300, 3000)
LEFT_BYTES = (0, 0, 4096, 70_000)  # on a disk that is full
TROUBLES = ("full", "full", "full", "limit", "handles", "away")
HELD_S_MAX = 3.0
KILL_SHARE = 0.6
WAIT_S_MAX = 120.0
LOOK_EVERY_S = 0.05
WRITE_EVERY_S = 0.02  # slowly: the history of the store is kept for minutes
CONFIG_MAPS, PODS = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods"
STOPS_WRITES = ("full", "limit", "away")
PARTS = ("control-plane", "server", "scheduler", "controllers", "node", "driver")


class NoMountError(Exception):
    """No file system can be mounted here."""


class SmallDisk:
    """A tmpfs of a few megabytes."""

    def __init__(self, path: Path, size: int = DISK_BYTES) -> None:
        self.path = path
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._size = size

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Mount it during a block, or raise NoMountError."""
        self.path.mkdir()
        path, options = os.fsencode(self.path), f"size={self._size}".encode()
        if self._libc.mount(b"tmpfs", path, b"tmpfs", 0, options):
            raise NoMountError(os.strerror(ctypes.get_errno()))
        try:
            yield
        finally:
            lazily = 2
            self._libc.umount2(path, lazily)

    def fill(self, left: int) -> None:
        """Take all space but a little."""
        with (self.path / "filler").open("wb", buffering=0) as file:
            while True:
                free = os.statvfs(self.path)
                size = free.f_bfree * free.f_frsize - left
                if size <= 0:
                    return
                try:
                    os.posix_fallocate(file.fileno(), 0, file.seek(0, os.SEEK_END) + size)
                    file.seek(0, os.SEEK_END)
                except OSError:  # somebody else was faster
                    continue

    def free(self) -> None:
        """Give the space back."""
        (self.path / "filler").unlink(missing_ok=True)


@dataclass
class ConfigMapWriter:
    """Writes one ConfigMap again and again, and knows what it may hold."""

    name: str
    random: Random
    number: int = 0
    answered: int = 0
    answers: int = 0
    unknown: set[int] = field(default_factory=set)
    refused: int = 0
    is_there: bool = False

    async def run(self, cluster: Cluster) -> None:
        """Write until cancelled."""
        while True:
            with suppress(LostError):
                async with cluster.connected() as connection:
                    while True:
                        await self._write(connection)
            await asyncio.sleep(LOOK_EVERY_S)

    async def _write(self, connection: Connection) -> None:
        self.number += 1
        text = "x" * self.random.choice(SIZES)
        head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.name}}
        body = {**head, "data": {"n": str(self.number), "text": text}}
        self.unknown.add(self.number)
        if self.is_there:
            reply = await connection.ask("PUT", f"{CONFIG_MAPS}/{self.name}", body)
        else:
            reply = await connection.ask("POST", CONFIG_MAPS, body)
        self._answer(reply)
        await asyncio.sleep(WRITE_EVERY_S if reply.status < 300 else LOOK_EVERY_S)

    def _answer(self, reply: Reply) -> None:
        if reply.status in (200, 201, 409):
            self.is_there = True
        if reply.status in (200, 201):
            self.answered, self.unknown = self.number, set()
            self.answers += 1
        elif reply.status == 409 or "the disk is full: " in reply.json["message"]:
            self.unknown.discard(self.number)  # it did not happen
            self.refused += 1
        else:
            assert reply.status in (429, 503), f"{self.name}: {reply.status} {reply.body[:500]!r}"

    def check(self, found: Any | None) -> None:
        """Raise if the ConfigMap is not as an answer or an unknown write made it."""
        number = 0 if found is None else int(found["data"]["n"])
        possible = {self.answered, *self.unknown}
        assert number in possible, f"{self.name}: holds {number}, possible: {sorted(possible)}"


class Cluster:
    """`moor up` with its data on a disk."""

    def __init__(self, disk: SmallDisk, *, is_isolated: bool) -> None:
        self.data = disk.path / "data"
        words = ("up", "--port", "0", "--data-dir", str(self.data), "--node-name", "n1")
        mode = ("--isolate",) if is_isolated else ()
        command = [sys.executable, "-m", "moorage.cli.main", *words, "--drivers", "cpu", *mode]
        self.up = Program("up", disk.path / "up.out", command, "node n1: ")
        self._port = 0

    async def start(self) -> None:
        """Start it, and wait until it works."""
        self.up.start()
        await self.up.wait_ready()
        state = StateFolder(self.data).read()
        assert state is not None
        self._port = int(state.server.rpartition(":")[2])

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Connection]:
        """Yield a connection as the administrator, or raise LostError."""
        connection = await Connection.open(Address(self._port, client_context(self.data)))
        try:
            yield connection
        finally:
            connection.cut()

    async def ask(self, method: str, path: str, body: Any = None) -> Reply:
        """Return the answer to one request; 0 if there is none."""
        try:
            async with self.connected() as connection:
                return await connection.ask(method, path, body)
        except (LostError, TimeoutError) as error:
            return Reply(0, {}, str(error).encode())

    def parts(self) -> dict[str, int]:
        """Return the processes that run, by name."""
        found: dict[str, int] = {}
        for pid in _children(self.up.pid):
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if b"moorage.cli.main" in words:
                    found[words[words.index(b"moorage.cli.main") + 1].decode()] = pid
        return found

    def is_working(self) -> bool:
        """Return whether its record says that all processes work, and they are those that run."""
        state = StateFolder(self.data).read()
        pids = set(self.parts().values())
        is_working = state is not None and state.is_working
        return is_working and {each.pid for each in state.processes} == pids  # type: ignore[union-attr]

    def tracebacks(self) -> str:
        """Return a part of a log with a traceback, if there is one."""
        for path in (self.up.log, *sorted((self.data / "log").iterdir())):
            text = path.read_text(errors="replace")
            if (at := text.find("Traceback")) >= 0:
                return f"{path.name}: {text[max(at - 500, 0) : at + 3000]}"
        return ""


@dataclass(frozen=True)
class ClusterCase:
    """Some cycles of trouble of one cluster."""

    seed: int
    number: int
    cycles: int

    def outcomes(self) -> Counter[str]:
        """Return the counts; raise when a law is broken, or NoMountError."""
        with tempfile.TemporaryDirectory(prefix="d") as folder:
            disk = SmallDisk(Path(folder) / "d")
            with disk.mounted():
                cluster = Cluster(disk, is_isolated=self.number % 2 == 1)
                try:
                    return asyncio.run(_Run(self, disk, cluster).run())
                finally:
                    disk.free()
                    cluster.up.stop()


class _Run:
    """The course of a case."""

    def __init__(self, case: ClusterCase, disk: SmallDisk, cluster: Cluster) -> None:
        self._random = Random(f"{case.seed}/{case.number}")  # noqa: S311
        self._cycles, self._disk, self._cluster = case.cycles, disk, cluster
        self._counts: Counter[str] = Counter()
        self._writers = [
            ConfigMapWriter(f"w{n}", Random(f"{case.seed}/{case.number}/{n}"))  # noqa: S311
            for n in range(WRITERS)
        ]

    async def run(self) -> Counter[str]:
        """Return the counts, or raise what is wrong."""
        await self._cluster.start()
        await self._run_pod("first")
        async with asyncio.TaskGroup() as tasks:
            writing = [tasks.create_task(each.run(self._cluster)) for each in self._writers]
            for number in range(self._cycles):
                await self._cycle(number)
            for task in writing:
                task.cancel()
        await self._look_at_the_end()
        return self._counts

    async def _cycle(self, number: int) -> None:
        trouble = self._random.choice(TROUBLES)
        self._counts[f"troubles: {trouble}"] += 1
        with self._in_trouble(trouble):
            if trouble in STOPS_WRITES:
                await self._until("not ready", self._is_not_ready)
                assert (await self._cluster.ask("GET", "/livez")).status == 200
            if self._random.random() < KILL_SHARE:
                self._kill_some()
            await asyncio.sleep(self._random.random() * HELD_S_MAX)
            assert self._cluster.up.is_alive, f"{trouble} ended it:\n{self._cluster.up.said()}"
        answers = [each.answers for each in self._writers]
        await self._until("ready", self._is_ready)
        await self._until("working", self._works)
        for writer, before in zip(self._writers, answers, strict=True):
            await self._until("writing", lambda w=writer, b=before: _answer(w.answers > b))
        await self._run_pod(f"p{number}")
        assert not (log := self._cluster.tracebacks()), log

    @contextmanager
    def _in_trouble(self, trouble: str) -> Iterator[None]:
        store, away = self._cluster.data / "store", self._cluster.data / "away"
        server = self._cluster.parts()["server"]
        match trouble:
            case "full":
                self._disk.fill(self._random.choice(LEFT_BYTES))
            case "limit":
                resource.prlimit(server, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
            case "handles":
                hard = resource.prlimit(server, resource.RLIMIT_NOFILE)[1]
                resource.prlimit(server, resource.RLIMIT_NOFILE, (20, hard))
            case "away":
                store.rename(away)
        try:
            yield
        finally:
            self._disk.free()
            if away.exists():
                away.rename(store)
            with suppress(ProcessLookupError):
                limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
                resource.prlimit(server, resource.RLIMIT_FSIZE, limit)
                hard = resource.prlimit(server, resource.RLIMIT_NOFILE)[1]
                resource.prlimit(server, resource.RLIMIT_NOFILE, (min(hard, 4096), hard))

    def _kill_some(self) -> None:
        found = self._cluster.parts()
        names = [name for name in PARTS if name in found]
        for name in self._random.sample(names, min(len(names), self._random.choice((1, 1, 2)))):
            with suppress(ProcessLookupError):
                os.kill(found[name], signal.SIGKILL)
            self._counts["kills"] += 1

    async def _is_not_ready(self) -> str:
        reply = await self._cluster.ask("GET", "/readyz")
        is_told = reply.status == 500 and b"[-]store-writable failed: " in reply.body
        return "" if is_told else f"/readyz: {reply.status} {reply.body!r}"

    async def _is_ready(self) -> str:
        reply = await self._cluster.ask("GET", "/readyz")
        return "" if reply.status == 200 else f"/readyz: {reply.status} {reply.body!r}"

    async def _works(self) -> str:
        return "" if self._cluster.is_working() else f"{StateFolder(self._cluster.data).read()}"

    async def _run_pod(self, name: str) -> None:
        """Run a pod for good, and remove the one of the cycle before."""
        spec = {
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "i", "command": ["sleep", "100000"]}],
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        await self._until(f"pod {name}", lambda: self._created(body))
        await self._until(f"pod {name}", lambda: self._runs(name))
        self._counts["pods that ran"] += 1
        if name != "first":
            await self._until(f"pod {name}", lambda: self._deleted(name))

    async def _created(self, body: Any) -> str:
        reply = await self._cluster.ask("POST", PODS, body)
        return "" if reply.status in (201, 409) else f"{reply.status} {reply.body!r}"

    async def _deleted(self, name: str) -> str:
        reply = await self._cluster.ask("DELETE", f"{PODS}/{name}")
        return "" if reply.status in (200, 202, 404) else f"{reply.status} {reply.body!r}"

    async def _runs(self, name: str) -> str:
        reply = await self._cluster.ask("GET", f"{PODS}/{name}")
        is_running = reply.status == 200 and reply.json["status"].get("phase") == "Running"
        return "" if is_running else f"{reply.status} {reply.body[-800:]!r}"

    async def _until(self, what: str, look: Any) -> None:
        """Wait until nothing is missing any more."""
        end_s = time.monotonic() + WAIT_S_MAX
        while missing := await look():
            said = self._cluster.up.said()[-2000:]
            assert self._cluster.up.is_alive, f"`moor up` ended:\n{said}"
            assert time.monotonic() < end_s, f"not {what}: {missing}\n{said}"
            await asyncio.sleep(LOOK_EVERY_S)

    async def _look_at_the_end(self) -> None:
        for writer in self._writers:
            reply = await self._cluster.ask("GET", f"{CONFIG_MAPS}/{writer.name}")
            writer.check(reply.json if reply.status == 200 else None)
            self._counts["answered writes"] += writer.answers
            self._counts["writes refused"] += writer.refused
        first = (await self._cluster.ask("GET", f"{PODS}/first")).json["status"]
        [container] = first["containerStatuses"]
        assert (first["phase"], container["restartCount"]) == ("Running", 0), first
        self._cluster.up.stop()
        assert not (log := self._cluster.tracebacks()), log
        findings = check(self._cluster.data / "store")
        assert not findings, findings[0]


async def _answer(is_there: bool) -> str:
    return "" if is_there else "no answer"


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
