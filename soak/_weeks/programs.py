"""Real programs through as many pods as fit into the time: each is measured after each window.

Namespaces with workloads come and go on one node with a driver, which is killed and started in
each window. Events and history are kept for seconds only, so that hours of either are not what
grows.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from pathlib import Path
from random import Random

from soak._hostile.site import DRIVER, HostileSite
from soak._http import Connection
from soak._weeks.growth import Growths
from soak._weeks.workloads import Tree, Workloads, media

CALM_S_MAX = 90.0
KEPT_S = 5
LOOK_EVERY_S = 0.1
PROGRAMS = ("server", "scheduler", "controllers", "node")


class ProgramWeeks:
    """A cluster of processes, measured after each window."""

    def __init__(self, random: Random, *, windows: int, rounds: int) -> None:
        self.growths = Growths()
        self.counts: Counter[str] = Counter()
        self._random, self._windows, self._rounds = random, windows, rounds

    async def run(self, folder: Path) -> None:
        """Let namespaces come and go."""
        site = HostileSite(folder, self._random, kept_s=KEPT_S)
        try:
            await site.start()
            connection = await site.connect(site.admin())
            try:
                await self._run(site, connection)
            finally:
                connection.cut()
                await asyncio.sleep(0)
            faults = [*site.ended(), *site.new_log_faults()]
            assert not faults, faults[0]
            self.counts["bytes of logs"] = site.log_bytes()
        finally:
            site.stop()

    async def _run(self, site: HostileSite, connection: Connection) -> None:
        async def send(method: str, path: str, tree: Tree | None) -> tuple[int, bytes]:
            reply = await connection.ask(method, path, tree, media=media(method))
            return reply.status, reply.body

        spec = {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}
        made: Tree = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "spec": spec}
        path = "/apis/resource.k8s.io/v1/deviceclasses"
        await connection.ask("POST", path, {**made, "metadata": {"name": DRIVER}})
        workloads = Workloads(send, self._random, DRIVER, "0.1")
        for window in range(self._windows):
            for number in range(self._rounds):
                namespace = f"team-{window}-{number}"
                await workloads.create(namespace)
                await self._until_run(connection, namespace)
                await workloads.delete(namespace)
                self.counts["namespaces"] += 1
            await site.kill("driver")
            await self._until_empty(connection)
            self.growths.add(measured(site))
        self.counts["pods of real programs"] = workloads.pods

    async def _until_run(self, connection: Connection, namespace: str) -> None:
        """Wait until the Job is done: then other pods are well under way."""
        end_s = time.monotonic() + CALM_S_MAX
        while True:
            reply = await connection.ask("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs/job")
            if reply.status == 404 or b'"succeeded":1' in reply.body:
                return
            assert time.monotonic() < end_s, f"the Job is not done: {reply.body!r}"
            await asyncio.sleep(LOOK_EVERY_S)

    async def _until_empty(self, connection: Connection) -> None:
        end_s = time.monotonic() + CALM_S_MAX
        while True:
            reply = await connection.ask("GET", "/api/v1/namespaces")
            if b'"team-' not in reply.body:
                return
            assert time.monotonic() < end_s, f"namespaces are left: {reply.body[:3000]!r}"
            await asyncio.sleep(LOOK_EVERY_S)


def measured(site: HostileSite) -> dict[str, float]:
    """Return the sizes of the programs and of their folders."""
    found: dict[str, float] = {}
    for name in PROGRAMS:
        pid = site.pid(name)
        found[f"{name} MB"] = site.memory_mb()[name][0]
        found[f"{name} descriptors"] = len(os.listdir(f"/proc/{pid}/fd"))
        found[f"{name} threads"] = len(os.listdir(f"/proc/{pid}/task"))
    for what, folder in site.folders().items():
        sizes = [path.lstat().st_size for path in folder.rglob("*") if path.is_file()]
        found[f"{what} KB"] = sum(sizes) / 1000
        found[f"{what} files"] = len(sizes)
    return found
