"""A real etcd, in a folder of its own, on unix sockets: no port is taken."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc

import dev

START_S_MAX = 30
ELECTION = ["--heartbeat-interval=10", "--election-timeout=100"]  # allows leases of a second


def find_etcd() -> str | None:
    """Return where etcd is: what `dev.py test` fetched, or the machine's own."""
    return str(dev.ETCD) if dev.ETCD.exists() else shutil.which("etcd")


class EtcdServer:
    """One member that is a cluster; can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = f"unix:{folder}/client:0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        etcd = find_etcd()
        assert etcd is not None
        urls = ["--listen-client-urls=unix://client:0", "--advertise-client-urls=unix://client:0"]
        urls += ["--listen-peer-urls=unix://peer:0", "--initial-cluster=default=unix://peer:0"]
        urls += ["--initial-advertise-peer-urls=unix://peer:0"]
        options = [f"--data-dir={self.folder}/data", "--logger=zap", "--log-level=error"]
        for name in ("client:0", "peer:0"):
            (self.folder / name).unlink(missing_ok=True)
        with (self.folder / "log").open("ab") as log:
            command = [etcd, *urls, *options, *ELECTION]
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        self._wait()

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _wait(self) -> None:
        with contextlib.closing(grpc.insecure_channel(self.target)) as channel:
            try:
                grpc.channel_ready_future(channel).result(timeout=START_S_MAX)
            except grpc.FutureTimeoutError:
                log = (self.folder / "log").read_text(errors="replace")
                raise AssertionError(f"etcd does not start:\n{log}") from None


@contextlib.contextmanager
def running_etcd() -> Iterator[EtcdServer]:
    """Run an etcd in a folder with a short name: unix sockets have bounds."""
    with tempfile.TemporaryDirectory(prefix="etcd-", ignore_cleanup_errors=True) as folder:
        server = EtcdServer(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.kill()
