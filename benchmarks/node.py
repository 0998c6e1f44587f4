"""A node with eight drivers: how soon containers start, how many pods a second, how much memory.

Server, scheduler, controllers, agent and each driver are processes of their own, as users run them,
on the same machine.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from moorage.api.core import Pod
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.contract import Added, Removed
from moorage.client.errors import NotFoundError
from moorage.client.writes import Create, Delete, Target
from soak._node import things
from soak._node.programs import Site, processor_s, resident_mb

DRIVERS = tuple(f"lamp{number}.example.com" for number in range(8))
PODS, SINGLES = 500, 40
WAIT_S = 300.0


class Watch:
    """The pods of the cluster as they change, with the time when each was first bound and ran."""

    def __init__(self) -> None:
        self.bound_s: dict[str, float] = {}
        self.running_s: dict[str, float] = {}
        self.gone: set[str] = set()
        self.changes: Counter[str] = Counter()
        self._changed = asyncio.Condition()

    async def follow(self, client: ApiClient) -> None:
        """Take in changes until cancelled."""
        page = await client.list(Pod)
        async for event in client.watch(Pod, after=page.revision):
            now_s = time.time()
            async with self._changed:
                self._take(event, now_s)
                self._changed.notify_all()

    def _take(self, event: object, now_s: float) -> None:
        match event:
            case Added(value=Pod() as pod):
                name = pod.metadata.name
                self.changes[name] += 1
                if pod.spec.node_name:
                    self.bound_s.setdefault(name, now_s)
                if pod.status.phase == "Running":
                    self.running_s.setdefault(name, now_s)
            case Removed(value=Pod() as pod):
                self.gone.add(pod.metadata.name)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(WAIT_S), self._changed:
            await self._changed.wait_for(condition)


def main() -> None:
    """Print the figures."""
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # sockets need short paths
        site = Site(Path(name))
        try:
            asyncio.run(_measure(site))
        finally:
            site.stop()


async def _measure(site: Site) -> None:
    await site.start()
    drivers = [site.add_driver(name, "--devices", str(PODS)) for name in DRIVERS]
    for each in drivers:
        each.start()
    for each in drivers:
        await each.wait_ready()
    async with http_client(load_rest_config(str(site.kubeconfig))) as client:
        watch = Watch()
        following = asyncio.create_task(watch.follow(client))
        await _make_templates(client)
        await _print_latency(site, client, watch)
        _print_memory(site, "at first")
        for number, is_spread in enumerate((True, False, False)):
            await _print_many(site, client, watch, number, is_spread=is_spread)
            _print_memory(site, f"after {PODS * (number + 1)} pods")
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _make_templates(client: ApiClient) -> None:
    for each in DRIVERS:
        await client.write(Create(things.device_class(each)))
    await client.write(Create(things.template("all", *DRIVERS)))
    for number, each in enumerate(DRIVERS):
        await client.write(Create(things.template(f"one-{number}", each)))


# --- one pod after the other --------------------------------------------------------------------


async def _print_latency(site: Site, client: ApiClient, watch: Watch) -> None:
    """Print how long it takes from when a pod is bound until its process runs."""
    for template in ("one-0", "all"):
        taken_ms = []
        for number in range(SINGLES):
            name = f"{template}-{number}"
            file = site.folder / name
            command = [
                "sh",
                "-c",
                f"date +%s.%N > {file}.new; mv {file}.new {file}; exec sleep 1000",
            ]
            await client.write(Create(things.pod(name, command, templates=[template])))
            await watch.until(partial(watch.running_s.__contains__, name))
            while not file.exists():
                await asyncio.sleep(0.005)
            started_s = float(file.read_text())
            taken_ms.append((started_s - watch.bound_s[name]) * 1000)
            await client.write(Delete(Target.of(things.pod(name, [])), grace_s=0))
            await watch.until(partial(watch.gone.__contains__, name))
        drivers = 1 if template == "one-0" else len(DRIVERS)
        ordered = sorted(taken_ms)
        print(
            f"bound to started, {drivers} drivers: p50 {statistics.median(ordered):.0f} ms, "
            f"p99 {ordered[int(len(ordered) * 0.99)]:.0f} ms (goal: 100)"
        )


# --- many ---------------------------------------------------------------------------------------


async def _print_many(
    site: Site, client: ApiClient, watch: Watch, round_: int, *, is_spread: bool
) -> None:
    """Print how fast pods come and go, each with a device of one driver or of all."""
    names = [f"many-{round_}-{number}" for number in range(PODS)]
    before = _processor(site)
    began_s = time.perf_counter()
    slots = asyncio.Semaphore(16)

    async def create(name: str) -> None:
        async with slots:
            number = int(name.rpartition("-")[2]) % len(DRIVERS)
            template = f"one-{number}" if is_spread else "all"
            await client.write(Create(things.pod(name, ["sleep", "1000"], templates=[template])))

    async def delete(name: str) -> None:
        async with slots:
            with suppress(NotFoundError):
                await client.write(Delete(Target.of(things.pod(name, [])), grace_s=1))

    await asyncio.gather(*map(create, names))
    created_s = time.perf_counter()
    await watch.until(lambda: watch.running_s.keys() >= set(names))
    running_s = time.perf_counter()
    peak = resident_mb(site.agent.pid)
    await asyncio.gather(*map(delete, names))
    await watch.until(lambda: watch.gone >= set(names))
    ended_s = time.perf_counter()
    whole_s = ended_s - began_s
    print(
        f"{PODS} pods, devices of {'one' if is_spread else 'all'} of {len(DRIVERS)} drivers each: "
        f"{PODS / whole_s:.1f} pods/s started and stopped "
        f"(goal: 20); created {created_s - began_s:.1f} s, running {running_s - began_s:.1f} s, "
        f"gone {whole_s:.1f} s; agent {peak:.0f} MB while they run; "
        f"{sum(watch.changes[name] for name in names) / PODS:.1f} changes of each pod; "
        f"load {os.getloadavg()[0]:.1f}"
    )
    used = {name: value - before.get(name, 0.0) for name, value in _processor(site).items()}
    print("  ms a pod: " + ", ".join(f"{name} {s * 1000 / PODS:.1f}" for name, s in used.items()))


def _processor(site: Site) -> dict[str, float]:
    found = {name: processor_s(pid) for name, pid in _parts(site)}
    found["drivers"] = sum(processor_s(each.pid) for each in site.drivers.values())
    return {**found, "agent": processor_s(site.agent.pid), "shim": processor_s(site.shim_pid)}


def _parts(site: Site) -> list[tuple[str, int]]:
    """Return the processes of the cluster by name."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == site.cluster.pid:
                command = (path.parent / "cmdline").read_bytes().split(b"\0")
                names = [each.decode() for each in command if each in _NAMES]
                found.append((names[0] if names else path.parent.name, int(path.parent.name)))
    return found


_NAMES = (b"server", b"scheduler", b"controllers")


def _print_memory(site: Site, when: str) -> None:
    agent = resident_mb(site.agent.pid)
    drivers = [resident_mb(each.pid) for each in site.drivers.values()]
    print(
        f"{when}: agent {agent:.0f} MB (goal: 120), drivers {min(drivers):.0f} to "
        f"{max(drivers):.0f} MB (goal: 80), shim {resident_mb(site.shim_pid):.0f} MB"
    )
