"""A cluster in one process, in simulated time: server, scheduler, controllers, nodes and drivers.

In each window namespaces with workloads come and go, a slice and a taint rule too, and the nodes
are gone for so long that they are no longer ready. At its end everything rests until events have
expired; then the process is measured. Weeks pass in minutes.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from random import Random

import msgspec

from moorage.api.gates import Gates
from moorage.client.contract import Request
from moorage.cluster.embedded import EmbeddedCluster, embedded
from moorage.cluster.programs import ControllerProgram, ProgramContext
from moorage.cluster.simulation import SimulatedMachines, SimulatedPods, fleets_of
from moorage.kit.clock import LoopClock, run_simulated
from moorage.store.contract import Store
from moorage.store.memory import open_memory
from soak._node.programs import resident_mb
from soak._weeks.growth import Growths
from soak._weeks.workloads import RESOURCE, Send, Tree, Workloads, encoded, media

DEVICE_CLASS = "gpu.example.com"
GONE_S = 420.0  # until nodes are not ready, and their pods are evicted
EVENTS_S = 3700.0  # until events have expired
LIFE_S = 900.0  # of a namespace
_CACHE = type(lru_cache(lambda: None))


class Weeks:
    """One cluster, measured after each window."""

    def __init__(
        self, random: Random, *, windows: int, rounds: int, window_s: float, machines: int
    ) -> None:
        self.growths = Growths()
        self.counts: Counter[str] = Counter()
        self._random = random
        self._windows, self._rounds, self._window_s = windows, rounds, window_s
        self._profile = f"example-gpux{machines}"

    def run(self, folder: Path) -> None:
        """Let the time pass."""
        run_simulated(self._run(folder))

    async def _run(self, folder: Path) -> None:
        clock = LoopClock()
        context = ProgramContext(Gates.parse(), clock, self._random.random)
        async with (
            open_memory(clock=lambda: clock.now().timestamp()) as store,
            embedded(folder, context, store=store) as cluster,
        ):
            transport = cluster.transport_of()

            async def send(method: str, path: str, tree: Tree | None) -> tuple[int, bytes]:
                request = Request(method, path, body=encoded(tree), content_type=media(method))
                response = await transport.send(request)
                return response.status, response.body

            workloads = Workloads(send, self._random, DEVICE_CLASS, "60")
            machines = Machines(cluster, context, self._profile)
            await machines.start()
            await asyncio.sleep(30)
            for window in range(self._windows):
                await self._window(window, workloads, machines, send, clock)
                self.growths.add(await measured(store))
            await machines.stop()
            self.counts["simulated seconds"] = round(clock.monotonic())
            self.counts["simulated pods"] = workloads.pods

    async def _window(
        self,
        window: int,
        workloads: Workloads,
        machines: Machines,
        send: Send,
        clock: LoopClock,
    ) -> None:
        end_s = clock.monotonic() + self._window_s
        pause_s = max((self._window_s - EVENTS_S - GONE_S) / self._rounds - LIFE_S, 0)
        flap = self._random.randrange(self._rounds)
        for number in range(self._rounds):
            namespace = f"team-{window}-{number}"
            await workloads.create(namespace)
            if number == flap:
                await machines.stop()
                await asyncio.sleep(GONE_S)
                await machines.start()
                self.counts["times that nodes were gone"] += 1
            await self._trouble(send)
            await asyncio.sleep(LIFE_S)
            await workloads.delete(namespace)
            self.counts["namespaces"] += 1
            await asyncio.sleep(pause_s)
        await asyncio.sleep(max(end_s - clock.monotonic(), EVENTS_S))

    async def _trouble(self, send: Send) -> None:
        """Delete a slice, which its driver publishes again, and taint a device for a while."""
        path = f"{RESOURCE}/resourceslices"
        _, body = await send("GET", path, None)
        names = [each["metadata"]["name"] for each in msgspec.json.decode(body)["items"]]
        await send("DELETE", f"{path}/{self._random.choice(names)}", None)
        self.counts["slices published again"] += 1
        path = f"{RESOURCE}/devicetaintrules"
        taint = {"key": "x.io/y", "effect": "NoExecute"}
        spec = {"deviceSelector": {"device": "gpu-0"}, "taint": taint}
        made = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule"}
        await send("POST", path, {**made, "metadata": {"name": "rule"}, "spec": spec})
        await asyncio.sleep(30)
        status, body = await send("DELETE", f"{path}/rule", None)
        assert status == 200, body


class Machines:
    """The simulated nodes and their drivers, as a program that ends and starts."""

    def __init__(self, cluster: EmbeddedCluster, context: ProgramContext, profile: str) -> None:
        self._cluster, self._context, self._profile = cluster, context, profile
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it."""
        program = ControllerProgram(
            self._cluster.admin,
            self._context,
            more=(SimulatedMachines(fleets_of([self._profile])), SimulatedPods()),
            chosen=lambda _: False,
        )
        self._task = asyncio.create_task(program.run())

    async def stop(self) -> None:
        """End it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None


async def measured(store: Store) -> dict[str, float]:
    """Return the sizes of this process and of its store, without caches: these have bounds."""
    for each in (*gc.get_objects(), *_objects_of_modules()):
        if isinstance(each, _CACHE):
            each.cache_clear()
    gc.collect()
    page = await store.list("/")
    return {
        "Python objects": len(gc.get_objects()),
        "MB": resident_mb(os.getpid()),
        "asyncio tasks": len(asyncio.all_tasks()),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "keys": len(page.entries),
    }


def _objects_of_modules() -> Iterator[object]:
    """Yield what our modules and their classes define; frozen objects are not found otherwise."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "moorage":
            continue
        for each in list(vars(module).values()):
            yield each
            if isinstance(each, type):
                yield from vars(each).values()
