"""A driver on the SDK: publishing devices, preparing claims, and how much memory it needs.

The server runs in a process of its own, as users run it: with TLS and roles. Goals: 10,000 devices
in 3 s, one slice for one device that changes, 80 MB.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from moorage.api.core import Node
from moorage.api.meta import ObjectMeta
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.errors import UnavailableError
from moorage.client.writes import Create
from moorage.driver import (
    Claim,
    ClaimName,
    ContainerEdits,
    Device,
    DeviceAttribute,
    Driver,
    Prepared,
)
from moorage.driver.scaffold import scaffold
from moorage.driver.serving import serving
from moorage.driver.settings import Settings

DEVICES = 10_000
NODE = "node-1"
WAIT_S = 60.0


class Lamps(Driver):
    """Many devices, with a few attributes each."""

    name = "lamp.example.com"

    def __init__(self) -> None:
        self.lamps = [_lamp(number, "white") for number in range(DEVICES)]

    def devices(self) -> list[Device]:
        """Return all of them."""
        return list(self.lamps)

    def prepare(self, claim: Claim) -> Iterable[Prepared]:
        """Set the environment variable that names a container's lamps."""
        return [
            Prepared(each, ContainerEdits(env=(f"LAMP={each.name}",))) for each in claim.devices
        ]

    def unprepare(self, claim: ClaimName) -> None:
        """Do nothing."""


def _lamp(number: int, colour: str) -> Device:
    texts = {"model": "first", "serial": f"serial-{number}", "colour": colour, "socket": "e27"}
    attributes = {name: DeviceAttribute(string_value=text) for name, text in texts.items()}
    return Device(name=f"lamp-{number}", attributes=attributes)


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # sockets need short paths
        folder = Path(name)
        with _server(folder / "server") as kubeconfig:
            asyncio.run(_measure(folder, kubeconfig))
            _print_memory(folder, kubeconfig)


async def _measure(folder: Path, kubeconfig: Path) -> None:
    async with http_client(load_rest_config(str(kubeconfig))) as client:
        await _make_node(client)
        await _print_publishing(folder, client)


async def _make_node(client: ApiClient) -> None:
    """Make the node, as soon as the server can be reached."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                await client.write(Create(Node(metadata=ObjectMeta(name=NODE))))
                return
            except UnavailableError:
                await asyncio.sleep(0.1)


async def _print_publishing(folder: Path, client: ApiClient) -> None:
    driver = Lamps()
    settings = Settings(node_name=NODE, kubelet_dir=folder / "k", cdi_dir=folder / "cdi")
    started = time.perf_counter()
    async with serving(driver, settings, client) as running:
        await running.wait_published()
        took_s = time.perf_counter() - started
        print(f"{DEVICES:,} devices: {running.written} slices in {took_s:.2f} s (goal: 3)")
        driver.lamps[DEVICES // 2] = _lamp(DEVICES // 2, "red")
        before, started = running.written, time.perf_counter()
        running.republish()
        await running.wait_published()
        took_ms = (time.perf_counter() - started) * 1000
        print(f"one changes: {running.written - before} slice in {took_ms:.0f} ms (goal: 1 slice)")


def _print_memory(folder: Path, kubeconfig: Path) -> None:
    """Run a new driver as a program, and look at it once it serves."""
    program = folder / "driver.py"
    program.write_text(scaffold("small.example.com")["driver.py"], encoding="utf-8")
    command = [sys.executable, str(program), "--kubelet-dir", str(folder / "k")]
    environment = {**os.environ, "NODE_NAME": NODE, "KUBECONFIG": str(kubeconfig)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        _wait_for(folder / "k" / "plugins_registry" / "small.example.com-reg.sock")
        time.sleep(2)  # it publishes and watches by then
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        print(f"a new driver: {pages * os.sysconf('SC_PAGE_SIZE') / 1e6:.0f} MB (goal: 80)")
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _server(folder: Path) -> Iterator[Path]:
    """Run a server, and give its kubeconfig."""
    command = [sys.executable, "-m", "moorage.cli.main", "server", "--port", "0"]
    process = subprocess.Popen(  # noqa: S603
        [*command, "--data-dir", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(folder / "kubeconfig")
        yield folder / "kubeconfig"
    finally:
        process.terminate()
        process.wait()


def _wait_for(path: Path) -> None:
    end = time.monotonic() + WAIT_S
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"{path} does not come")
        time.sleep(0.05)
