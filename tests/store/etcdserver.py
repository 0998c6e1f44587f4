"""A real etcd, in a folder of its own, on unix sockets: no port is taken."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import grpc

import dev
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.credentials import CredentialsFolder

START_S_MAX = 30
ELECTION = ["--heartbeat-interval=10", "--election-timeout=100"]  # allows leases of a second


def free_port() -> int:
    """Return a port that nobody listens at."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port: int = listener.getsockname()[1]
        return port


def find_etcd() -> str | None:
    """Return where etcd is: what `dev.py test` fetched, or the machine's own."""
    return str(dev.ETCD) if dev.ETCD.exists() else shutil.which("etcd")


class EtcdServer:
    """One member that is a cluster; can be killed and started again.

    With TLS it listens at a port, for certificates are for addresses.
    """

    def __init__(self, folder: Path, tls_port: int = 0) -> None:
        self.folder = folder
        self.target = f"unix:{folder}/client:0"
        self.url = f"https://127.0.0.1:{tls_port}"
        self._has_tls = bool(tls_port)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        etcd = find_etcd()
        assert etcd is not None
        urls = ["--listen-client-urls=unix://client:0", "--advertise-client-urls=unix://client:0"]
        urls += ["--listen-peer-urls=unix://peer:0", "--initial-cluster=default=unix://peer:0"]
        urls += ["--initial-advertise-peer-urls=unix://peer:0"]
        options = [f"--data-dir={self.folder}/data", "--logger=zap", "--log-level=error"]
        if self._has_tls:
            urls[:2] = [f"--listen-client-urls={self.url}", f"--advertise-client-urls={self.url}"]
            options += [f"--cert-file={self.folder}/server.crt", "--client-cert-auth"]
            options += [f"--key-file={self.folder}/server.key"]
            options += [f"--trusted-ca-file={self.folder}/ca.crt"]
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

    def _channel(self) -> grpc.Channel:
        if not self._has_tls:
            return grpc.insecure_channel(self.target)
        files = ("ca.crt", "admin.key", "admin.crt")
        credentials = grpc.ssl_channel_credentials(*((self.folder / f).read_bytes() for f in files))
        return grpc.secure_channel(self.url.removeprefix("https://"), credentials)

    def _wait(self) -> None:
        with contextlib.closing(self._channel()) as channel:
            try:
                grpc.channel_ready_future(channel).result(timeout=START_S_MAX)
            except grpc.FutureTimeoutError:
                log = (self.folder / "log").read_text(errors="replace")
                raise AssertionError(f"etcd does not start:\n{log}") from None


@contextlib.contextmanager
def running_etcd(*, has_tls: bool = False) -> Iterator[EtcdServer]:
    """Run an etcd in a folder with a short name: unix sockets have bounds."""
    with tempfile.TemporaryDirectory(prefix="etcd-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if has_tls:
            CredentialsFolder(folder).ensure(Timestamp(datetime.now(UTC)))
        server = EtcdServer(folder, free_port() if has_tls else 0)
        try:
            server.start()
            yield server
        finally:
            server.kill()
