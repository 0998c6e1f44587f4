"""The programs of a cluster, in a folder whose surroundings are watched.

    FOLDER/1/2/3/4/5/s   the state of all programs: data, node, CDI files, credentials, logs
    FOLDER/1/2/3/4/5/…   their home, working and temporary directories
    FOLDER/free          where pods may have host paths
    FOLDER/…/canary      files at each level, which nobody may touch

Everything outside of `s`, `free` and `found` (which has what broke a law) must stay as it is.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from moorage.cluster.cluster_processes import ClusterPlan, kubeconfig_of, on_server_ready
from soak._hostile.users import STATIC, token_file, token_of
from soak._hostile.values import LEVELS
from soak._http import Address, Connection, LostError
from soak._node.programs import Program, Site, processor_s, resident_mb
from soak._servers import client_context

NODE = "good"
FOUND = "found"  # the folder of requests that broke a law
DRIVER = "lamp.example.com"
REPOSITORY = Path(__file__).parents[2]
# Programs of ours have no business there.
ELSEWHERE = (Path("/etc"),)
_SERVING = re.compile(r"serving at https://127\.0\.0\.1:(\d+)")
_PYTHON = re.compile(
    rb"Traceback \(most recent|object has no attribute|<class '|' object is not |NoneType"
    rb"|not subscriptable"
    rb"|(?:Attribute|Key|Type|Index|Value|Assertion|Recursion|Unicode\w*|ZeroDivision|Overflow|Runtime"
    rb"|Validation|Decode|OS|NotImplemented|Name|Memory)Error\b|exception was never retrieved"
    rb"|<[\w.]+ object at 0x|unhashable|unexpected keyword|positional argument"
)  # fmt: skip


def python_text(data: bytes) -> bytes:
    """Return text that only Python writes, if there is any."""
    found = _PYTHON.search(data)
    return b"" if found is None else data[max(found.start() - 200, 0) : found.end() + 1500]


class HostileSite:
    """A server, a scheduler, controllers, a node and its driver."""

    def __init__(self, folder: Path, random: Random, *, kept_s: int = 60) -> None:
        """Take an empty folder; the server keeps events and history for so long."""
        self.folder, self._kept_s = folder, kept_s
        self.base = folder.joinpath(*(str(n + 1) for n in range(LEVELS)))
        self.state, self.free, self.logs = self.base / "s", folder / "free", self.base / "s" / "l"
        self.data = self.state / "d"
        for path in (self.logs, self.free, *(self.base / name for name in ("home", "tmp", "cwd"))):
            path.mkdir(parents=True)
        self.tokens = {name: token_of(random, name) for name in STATIC}
        self.kills: Counter[str] = Counter()
        self.serving = asyncio.Event()
        self.port = 0
        self._used_s = 0.0  # the processor's time of servers that were killed
        self._programs: dict[str, Program] = {}
        self._read_logs: Counter[str] = Counter()
        self._peak_mb: Counter[str] = Counter()
        self._node = Site(self.state)
        self._put_canaries()

    # --- programs -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the server, and then all the others."""
        tokens = self.state / "tokens.csv"
        tokens.write_text(token_file(self.tokens))
        await self._start_server()
        alone = ("--leader-elect=false", "--metrics-bind-address", "0")
        pki = self.data / "pki"
        self._moor(
            "scheduler",
            "scheduling at ",
            "--kubeconfig",
            kubeconfig_of(self.data, "scheduler"),
            *alone,
        )
        self._moor(
            *("controllers", "controlling at ", "--kubeconfig"),
            *(
                kubeconfig_of(self.data, "controller-manager"),
                "--root-ca-file",
                pki / "ca.crt",
                *alone,
            ),
        )
        credentials, cdi = self.state / "n", self.state / "cdi"
        cdi.mkdir()
        made = self._program(
            *("kubeconfig", "", "kubeconfig", "--data-dir", self.data, "--node", NODE),
            *("--folder", credentials, "--host", "127.0.0.1"),
        )
        made.start()
        assert await made.wait_ended() == 0, made.said()
        self._moor(
            *("node", "running pods of node", "--node-name", NODE, "--credentials", credentials),
            *("--port", "0", "--root-dir", self._node.root, "--cdi-dir", cdi, "--max-pods", "50"),
            *("--metrics-bind-address", "0"),
        )
        self._programs["driver"] = self._driver(cdi)
        for name in ("scheduler", "controllers", "node"):
            self._programs[name].start()
        for name in ("scheduler", "controllers", "node"):
            await self._programs[name].wait_ready()
        await self._restart("driver")

    async def _start_server(self) -> None:
        server = self._moor(
            *("server", "serving at ", "--data-dir", self.data, "--port", self.port),
            *("--token-auth-file", self.state / "tokens.csv"),
            *("--event-ttl", f"{self._kept_s}s", "--etcd-compaction-interval", f"{self._kept_s}s"),
        )
        server.start()
        await server.wait_ready()
        line = next(line for line in server.said().splitlines() if line.startswith("serving at "))
        found = _SERVING.search(line)
        assert found is not None, line
        if not self.port:
            on_server_ready(ClusterPlan(self.data), line)
        self.port = int(found[1])
        self.serving.set()

    def _moor(self, name: str, ready: str, *arguments: object) -> Program:
        self._programs[name] = self._program(name, ready, name, *arguments)
        return self._programs[name]

    def _program(self, name: str, ready: str, *arguments: object) -> Program:
        command = [sys.executable, "-m", "moorage.cli.main", *map(str, arguments)]
        return Program(
            name,
            self.logs / f"{name}.log",
            command,
            ready,
            cwd=self.base / "cwd",
            variables=self._variables(),
        )

    def _driver(self, cdi: Path) -> Program:
        kubeconfig = self.data / "kubeconfig"
        command = [sys.executable, "-m", "soak._node.driver", DRIVER, "--devices", "8"]
        command += ["--kubeconfig", str(kubeconfig), "--node-name", NODE]
        command += ["--kubelet-dir", str(self._node.root), "--cdi-dir", str(cdi)]
        command += ["--journal", str(self.state / "journal")]
        return Program("driver", self.logs / "driver.log", command, "driver is registered",
                       cwd=self.base / "cwd", variables=self._variables())  # fmt: skip

    def _variables(self) -> dict[str, str]:
        return {
            "HOME": str(self.base / "home"),
            "TMPDIR": str(self.base / "tmp"),
            "PYTHONPATH": str(REPOSITORY),
        }

    async def kill(self, name: str) -> None:
        """Kill a program, whatever it does, and start it again."""
        if name == "server":
            self.serving.clear()
            self._used_s += self.processor_s()
        self._programs[name].kill()
        self.kills[name] += 1
        if name == "server":
            await self._start_server()
        else:
            await self._restart(name)

    async def _restart(self, name: str) -> None:
        self._programs[name].start()
        await self._programs[name].wait_ready()

    async def settle(self) -> None:
        """Start what was killed, and wait until all works: the killer was stopped at any point."""
        for name, program in self._programs.items():
            if not program.is_alive and program.is_killed:
                await (self._start_server() if name == "server" else self._restart(name))
            else:
                await program.wait_ready()
        self.serving.set()

    def stop(self) -> None:
        """End everything, with all containers."""
        for name in ("driver", "node", "scheduler", "controllers"):
            if name in self._programs:
                self._programs[name].stop()
        self._node.stop()
        if "server" in self._programs:
            self._programs["server"].stop()

    def ended(self) -> Iterator[str]:
        """Yield which programs have ended by themselves."""
        for name, program in self._programs.items():
            if program.starts and not program.is_alive:
                yield f"{name} ended by itself:\n{program.said()[-2000:]}"

    def pid(self, name: str) -> int:
        """Return the process of a program."""
        return self._programs[name].pid

    def folders(self) -> dict[str, Path]:
        """Return where the programs keep what."""
        return {"store": self.data, "node": self._node.root, "CDI": self.state / "cdi"}

    def processor_s(self) -> float:
        """Return how long the server has had a processor; 0 if it is being started."""
        pid = self._programs["server"].pid
        return processor_s(pid) if pid else 0.0

    def all_processor_s(self) -> float:
        """Return how long all processes of the server have had a processor."""
        return self._used_s + self.processor_s()

    def memory_mb(self) -> dict[str, tuple[int, int]]:
        """Return how much memory each program has, and had at most."""
        found = {}
        for name, program in self._programs.items():
            try:
                now = round(resident_mb(program.pid)) if program.pid else 0
            except (FileNotFoundError, ProcessLookupError, IndexError):
                now = 0  # it is just being killed
            self._peak_mb[name] = max(self._peak_mb[name], now)
            found[name] = (now, self._peak_mb[name])
        return found

    # --- connections --------------------------------------------------------------------------

    def admin(self) -> Address:
        """Return how the administrator connects."""
        return Address(self.port, client_context(self.data))

    def address(self) -> Address:
        """Return how all others connect, who are known by their tokens."""
        context = ssl.create_default_context(cafile=str(self.data / "pki" / "ca.crt"))
        return Address(self.port, context)

    async def connect(self, address: Address) -> Connection:
        """Return a connection, as soon as the server serves."""
        while True:
            await self.serving.wait()
            try:
                return await Connection.open(address)
            except LostError:
                await asyncio.sleep(0.05)

    # --- logs and files -----------------------------------------------------------------------

    def new_log_faults(self) -> Iterator[str]:
        """Yield what Python wrote into a log since the last look."""
        for path in sorted(self.logs.glob("*.log")):
            with path.open("rb") as log:
                log.seek(self._read_logs[path.name])
                text = log.read()
            whole = text.rfind(b"\n") + 1
            self._read_logs[path.name] += whole
            if found := python_text(text[:whole]):
                yield f"{path.name}: {found.decode(errors='replace')}"

    def log_bytes(self) -> int:
        """Return how much the programs have written to their logs."""
        return sum(path.stat().st_size for path in self.logs.glob("*.log"))

    def _put_canaries(self) -> None:
        for path in (self.folder, *self.base.relative_to(self.folder).parents, self.base):
            target = self.folder / path / "canary"
            target.write_text(str(target))

    def surroundings(self) -> dict[str, str]:
        """Return what there is outside of the state folder, with its contents."""
        found: dict[str, str] = {}
        allowed = {self.state, self.free, self.folder / FOUND}
        for parent, folders, files in os.walk(self.folder):
            folders[:] = [name for name in folders if Path(parent, name) not in allowed]
            for name in (*folders, *files):
                found[str(Path(parent, name))] = _described(Path(parent, name))
        for top in ELSEWHERE:
            for parent, _, files in os.walk(top):
                found[parent] = _described(Path(parent), is_deep=False)
                for name in files:
                    found[str(Path(parent, name))] = _described(Path(parent, name), is_deep=False)
        return found


def _described(path: Path, *, is_deep: bool = True) -> str:
    try:
        status = path.lstat()
        is_file = is_deep and path.is_file() and not path.is_symlink()
        content = path.read_bytes() if is_file else b""
    except OSError as error:
        return str(error)
    # The time of a folder changes with what is in it, also if that is allowed.
    time_ns = 0 if path.is_dir() and is_deep else status.st_mtime_ns
    return f"{status.st_mode:o} {status.st_uid} {time_ns} {content!r}"
