"""Real `moor server` processes for campaigns: started, killed with SIGKILL, started again."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path

from soak._http import Address

START_S_MAX = 60.0
LOOK_EVERY_S = 0.004

_SERVING = re.compile(rb"serving at (https?)://127\.0\.0\.1:(\d+)")


class Server:
    """A server on a folder, with a log of all that its processes say."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.log = folder.with_name(f"{folder.name}.log")
        self.starts = 0
        self.starting_s = 0.0  # all starts together
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._start = 0  # where the log of the process begins
        self._began = 0.0
        self._looked = 0  # so far the log was looked at

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process is not None
        return self._process.pid

    def begin(self) -> None:
        """Start a process; it is not waited for."""
        command = [sys.executable, "-m", "moorage.cli.main", "server", "--port", "0"]
        command += ["--data-dir", str(self.folder), *self._options]
        self._start = self.log.stat().st_size if self.log.exists() else 0
        self._began = time.monotonic()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                command, env=environment(), stdout=log, stderr=log
            )

    async def serving(self) -> Address:
        """Return where the process listens, as soon as it does."""
        assert self._process is not None
        while not (found := _SERVING.search(self._said())):
            assert self._process.poll() is None, f"the server ended:\n{self._said().decode()}"
            waited_s = time.monotonic() - self._began
            assert waited_s < START_S_MAX, f"no server:\n{self._said().decode()}"
            await asyncio.sleep(LOOK_EVERY_S)
        self.starts += 1
        self.starting_s += time.monotonic() - self._began
        is_secure = found[1] == b"https"
        return Address(int(found[2]), client_context(self.folder) if is_secure else None)

    async def start(self) -> Address:
        """Start a process and return where it listens."""
        self.begin()
        return await self.serving()

    def kill(self) -> None:
        """Kill the process; it is gone when this returns."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            status = self._process.wait()
            self._process = None
            assert status == -signal.SIGKILL, f"it ended by itself: {status}\n{self.faults()}"

    def faults(self) -> str:
        """Return new errors in the log, each once."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        at = text.find("Traceback", self._looked)
        self._looked = len(text)
        return text[max(at - 300, 0) : at + 6000] if at >= 0 else ""

    def memory_bytes(self) -> int:
        """Return how much memory the process has."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", text)
        assert found is not None
        return int(found[1]) * 1024

    def processor_s(self) -> float:
        """Return how long the process has had a processor."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _said(self) -> bytes:
        with self.log.open("rb") as log:
            log.seek(self._start)
            return log.read()


def client_context(folder: Path) -> ssl.SSLContext:
    """Return how the administrator of a server connects to it."""
    pki = folder / "pki"
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return context


def environment() -> dict[str, str]:
    """Return an environment in which Python caches bytecode: there are many starts."""
    environment = dict(os.environ)
    if environment.pop("PYTHONDONTWRITEBYTECODE", ""):
        environment["PYTHONPYCACHEPREFIX"] = str(Path(sys.prefix) / "bytecode")
    return environment
