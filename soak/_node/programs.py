"""The processes of a node: a cluster, an agent and drivers; each can be killed and started."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from soak._servers import environment

LOOK_EVERY_S = 0.01
START_S_MAX = 60.0
NODE = "node-1"
TICKS = os.sysconf("SC_CLK_TCK")


class Program:
    """A command that runs, with a log of all that its processes say."""

    def __init__(
        self,
        name: str,
        log: Path,
        command: list[str],
        ready: str,
        *,
        cwd: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.log = name, log
        self._cwd, self._variables = cwd, variables or {}
        self.starts = 0
        self._command, self._ready = command, ready
        self._process: subprocess.Popen[bytes] | None = None
        self._from = 0  # where the log of the process begins

    @property
    def pid(self) -> int:
        """The number of the process; 0 if there is none."""
        return self._process.pid if self.is_alive and self._process is not None else 0

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def is_killed(self) -> bool:
        """Whether it was killed, and not started again."""
        return self.starts > 0 and self._process is None

    def start(self) -> None:
        """Start it; it is not waited for."""
        assert not self.is_alive
        self.starts += 1
        self._from = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                self._command,
                stdout=log,
                stderr=log,
                cwd=self._cwd,
                env={**environment(), **self._variables},
            )

    async def wait_ready(self) -> None:
        """Wait until it says that it is ready."""
        end_s = time.monotonic() + START_S_MAX
        while self._ready not in self.said():
            assert self.is_alive, f"{self.name} ended:\n{self.said()[-3000:]}"
            assert time.monotonic() < end_s, f"{self.name} is not ready:\n{self.said()[-3000:]}"
            await asyncio.sleep(LOOK_EVERY_S)

    async def wait_ended(self) -> int:
        """Return its exit status, once it has one."""
        assert self._process is not None
        end_s = time.monotonic() + START_S_MAX
        while (status := self._process.poll()) is None:
            assert time.monotonic() < end_s, f"{self.name} does not end"
            await asyncio.sleep(LOOK_EVERY_S)
        return status

    def kill(self) -> None:
        """Kill it, if it was not killed already; it is gone when this returns."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            status = self._process.wait()
            self._process = None
            assert status == -signal.SIGKILL, f"{self.name} ended: {status}\n{self.said()[-3000:]}"

    def stop(self) -> None:
        """Have it end, by itself if it can."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def forget(self) -> None:
        """Take that it has ended."""
        self._process = None

    def said(self) -> str:
        """Return the output of the process."""
        with self.log.open("rb") as log:
            log.seek(self._from)
            return log.read().decode(errors="replace")

    def faults(self) -> str:
        """Return a traceback of any of its processes, if there is one."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        at = text.find("Traceback")
        return text[max(at - 500, 0) : at + 4000] if at >= 0 else ""


class Site:
    """A folder with a cluster, one node and its drivers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root, self.cdi = folder / "k", folder / "cdi"
        self.kubeconfig = folder / "a" / "kubeconfig"
        self.credentials = folder / "n"
        self.cluster = self._moor(
            "cluster", "logs: ", "up", "--port", "0", "--data-dir", folder / "a"
        )
        self.agent = self._moor(
            "agent",
            "running pods of node",
            *("node", "--node-name", NODE, "--credentials", self.credentials, "--port", "0"),
            *("--root-dir", self.root, "--cdi-dir", self.cdi, "--max-pods", "600"),
            *("--metrics-bind-address", "0"),
        )
        self.drivers: dict[str, Program] = {}

    async def start(self) -> None:
        """Start the cluster and the agent."""
        self.cdi.mkdir()
        self.cluster.start()
        await self.cluster.wait_ready()
        made = self._moor(
            *("credentials", "", "kubeconfig", "--data-dir", self.folder / "a", "--node", NODE),
            *("--folder", self.credentials, "--host", "127.0.0.1"),
        )
        made.start()
        assert await made.wait_ended() == 0, made.said()
        self.agent.start()
        await self.agent.wait_ready()

    def add_driver(self, name: str, *options: str) -> Program:
        """Return a driver of `soak._node.driver`, not started yet."""
        command = [sys.executable, "-m", "soak._node.driver", name, *options]
        command += ["--kubeconfig", str(self.kubeconfig), "--node-name", NODE]
        command += ["--kubelet-dir", str(self.root), "--cdi-dir", str(self.cdi)]
        found = Program(name, self.folder / f"{name}.log", command, "driver is registered")
        self.drivers[name] = found
        return found

    def stop(self) -> None:
        """End everything, with all containers."""
        for each in (*self.drivers.values(), self.agent):
            each.stop()
        shim = self.shim_pid
        if shim:
            os.kill(shim, signal.SIGTERM)  # it ends its containers
        self.cluster.stop()
        end_s = time.monotonic() + START_S_MAX
        while self.shim_pid and time.monotonic() < end_s:
            time.sleep(LOOK_EVERY_S)

    @property
    def shim_pid(self) -> int:
        """The process that keeps the containers; 0 if there is none."""
        try:
            pid = int((self.root / "containers" / "keeper.pid").read_text())
        except (FileNotFoundError, ValueError):
            return 0
        return pid if _is_python(pid) else 0

    def journal(self, driver: str) -> Path:
        """Return where a driver keeps its journal."""
        return self.folder / f"{driver}.journal"

    def trap(self, driver: str) -> Path:
        """Return where a driver looks for its trap."""
        return self.folder / f"{driver}.trap"

    def checkpoint(self, driver: str) -> Path:
        """Return the path of a driver's checkpoint."""
        return self.root / "plugins" / driver / "checkpoint.json"

    def _moor(self, name: str, ready: str, *arguments: object) -> Program:
        command = [sys.executable, "-m", "moorage.cli.main", *map(str, arguments)]
        return Program(name, self.folder / f"{name}.log", command, ready)


def _is_python(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return status != "Z" and b"runtime.shim" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def processor_s(pid: int) -> float:
    """Return how long a process has had a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mb(pid: int) -> float:
    """Return how much memory a process has."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1000
