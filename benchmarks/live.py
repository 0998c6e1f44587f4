"""The live cluster as users run it: from creating pods to seeing them bound.

    dev.py bench live [WORKLOAD …] [--plain | --one-process] [--runs N] [--profile] [--peer CMD…]

Three processes: `moor server` (SQLite on disk, TLS, certificates, roles), scheduler and controllers
over HTTP, and this one, which creates the pods and watches them being bound. Claims come from
templates. In steady workloads ten pods are on their way at a time, and are deleted once bound.
"CPU" is of each process, in milliseconds a pod; "peak" its memory. The time of a pod is from
before it is sent until its binding is seen. "loop" is what the calibration loop takes beside all
this: 0.20 s where Kubernetes was measured. `recovery` starts the programs in a large cluster.

`--peer CMD…` loads another control plane in the same way, in turns with ours, and prints ratios.
`benchmarks._peer` says what the command does; of a peer, all processes count as the server.

`--profile` prints where the CPU time of a pod goes, by component.
With a file name in LIVE_SERVER_PROFILE or LIVE_PROFILE, server or programs run in a profiler.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from benchmarks._live_cluster import SAMPLES, Processes, Usage, control_plane, programs, serving
from benchmarks._live_profile import SampledProcesses
from benchmarks._peer import Result, make_schedulable, peer, ratio_line
from benchmarks._workloads import NAMESPACE, PLAIN, WORKLOADS, Setting, Variation, Workload, find
from benchmarks._workloads import template as template_setting
from benchmarks.simulation import allocated, loop_seconds
from moorage.api.core.namespace import Namespace
from moorage.api.core.pod import Pod, PodStatus
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.indexer import Indexer
from moorage.client.informers import Informer
from moorage.client.writes import Create, Delete, Target, Update

T = TypeVar("T")

NAME = "live"
TEMPLATE = "test-claim-template"
CREATORS = 16  # pods that are being sent at the same time
BOUND_S = 300.0
STEADY_S = 10.0
PEER = "  the peer"
QUIET_EVERY_S = 0.02
RECOVERY = "recovery"
RECOVERY_NODES, RECOVERY_CLAIMS = 5000, 10_000


def fill(nodes: int, variation: Variation) -> Setting:
    """Return an empty fleet, and a pod for each of eight devices a node."""
    setting = template_setting(2 * nodes, variation)
    return setting._replace(
        nodes=setting.nodes[:nodes],
        slices=setting.slices[:nodes],
        before=[],
        arrivals=setting.arrivals[: 8 * nodes],
    )


FILL = Workload("fill-200", 200, 87.0, 175, fill)
LEFT_OUT = ("template-5000",)
LIVE = (FILL, *(each for each in WORKLOADS if each.name not in LEFT_OUT))


class Measured(Protocol):
    """The processes of a cluster."""

    def usages(self) -> tuple[Usage, ...]:
        """Return what they have taken, and this process last."""
        ...


class Figures(NamedTuple):
    """The result of a run."""

    pods: int
    wall_s: float
    latencies_s: list[float]
    cpu_s: tuple[float, ...]  # of server, programs, this process
    peak_mib: tuple[float, ...]
    loop_s: float = 0.0
    quiet_s: tuple[float, ...] = ()  # what a user waits who reads one object now and then

    def result(self) -> Result:
        """Return what is compared with a peer."""
        cuts = quantiles(self.latencies_s, n=100)
        cpu_ms = sum(self.cpu_s[:-1]) / self.pods * 1e3
        return Result(self.pods / self.wall_s, cuts[49] * 1e3, cpu_ms, sum(self.peak_mib[:-1]))

    def line(self, workload: Workload, name: str = "") -> str:
        """Return the figures in one line."""
        cuts = quantiles(self.latencies_s, n=100)
        rate = self.pods / self.wall_s
        cpu = "".join(f"{each / self.pods * 1e3:6.2f}" for each in self.cpu_s)
        peak = "".join(f"{each:5.0f}" for each in self.peak_mib)
        return (
            f"{name or workload.name:21}{workload.kubernetes_pods_per_s:11.1f}{rate:8.1f}"
            f"{rate / workload.kubernetes_pods_per_s:7.1f}{cuts[49] * 1e3:8.0f}"
            f"{cuts[98] * 1e3:8.0f} {cpu} {sum(self.cpu_s) / self.pods * 1e3:6.2f} "
            f"{peak} {sum(self.peak_mib):5.0f}  {self.loop_s:.2f}{self._quiet()}"
        )

    def _quiet(self) -> str:
        if len(self.quiet_s) < 2:
            return ""
        cuts = quantiles(self.quiet_s, n=100)
        return f"  {cuts[49] * 1e3:.0f} {cuts[98] * 1e3:.0f}"


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each workload."""
    options = parse_options(arguments or [])
    if options.profile:
        for workload in _chosen(options.names):
            print(_apart(measure_components, workload.name, options), flush=True)
        return
    print(f"load {os.getloadavg()[0]:.1f}, {'HTTP' if options.plain else 'TLS and roles'}")
    print(
        "workload              Kubernetes  pods/s      ×  p50 ms  p99 ms "
        "CPU ms/pod: server, programs, pods, all; peak MiB: the same; loop s; "
        "quiet user p50, p99 ms"
    )
    for workload in _chosen(options.names):
        pairs = []
        for _ in range(options.runs):
            ours = _apart(measure, workload.name, options)
            print(ours.line(workload), flush=True)
            if options.peer:
                theirs = _apart(measure, workload.name, options, options.peer)
                print(theirs.line(workload, PEER), flush=True)
                pairs.append((ours.result(), theirs.result()))
        if pairs:
            print(ratio_line(workload.name, pairs), flush=True)
    if options.peer:
        return
    if not options.names or RECOVERY in options.names:
        print(_apart(recovery, options.plain), flush=True)


def _apart(work: Callable[..., T], *arguments: Any) -> T:
    """Return the result of work in its own process, to measure its memory, too."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(work, *arguments).result()


def measure(name: str, options: argparse.Namespace, peer_command: Sequence[str] = ()) -> Figures:
    """Return the figures of one run, of ours or of a peer."""
    (workload,) = _chosen([name])
    figures = asyncio.run(_run(workload, options, peer_command=peer_command))
    return figures._replace(loop_s=loop_seconds())


def measure_components(name: str, options: argparse.Namespace) -> str:
    """Return where the CPU time of a pod goes."""
    (workload,) = _chosen([name])
    with tempfile.TemporaryDirectory() as folder:
        os.environ[SAMPLES] = folder
        sampled = SampledProcesses(Path(folder))
        figures = asyncio.run(_run(workload, options, sampled=sampled))
        rate = figures.pods / figures.wall_s
        head = f"{name}: {figures.pods} pods, {rate:.0f} a second while being sampled"
        return "\n".join([head, *sampled.lines(figures.pods)])


def recovery(plain: bool) -> str:
    """Return how long the programs take to start in a large cluster, up to a bound pod."""
    return asyncio.run(_recover(plain=plain))


def parse_options(arguments: list[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="dev.py bench live")
    parser.add_argument("names", nargs="*", metavar="WORKLOAD", help="all by default")
    parser.add_argument("--plain", action="store_true", help="HTTP, and everything allowed")
    parser.add_argument(
        "--one-process", action="store_true", help="server and programs in one process"
    )
    parser.add_argument("--runs", type=int, default=1, help="of each workload")
    parser.add_argument("--profile", action="store_true", help="CPU time by component")
    parser.add_argument(
        "--peer",
        nargs=argparse.REMAINDER,
        metavar="CMD",
        help="a command, with all that follows, which starts another control plane: `CMD… FOLDER` "
        "writes FOLDER/kubeconfig, prints a line that begins with `ready`, and ends on SIGINT",
    )
    return parser.parse_args(arguments)


def _chosen(names: list[str]) -> list[Workload]:
    wanted = tuple(name for name in names if name != RECOVERY)
    if names and not wanted:
        return []
    exact = [each for each in LIVE if each.name in wanted]
    return exact or [each for each in LIVE if each.name.startswith(wanted or "")]


# --- one run --------------------------------------------------------------------------------------


async def _run(
    workload: Workload,
    options: argparse.Namespace,
    *,
    peer_command: Sequence[str] = (),
    sampled: SampledProcesses | None = None,
) -> Figures:
    setting = workload.make(workload.nodes, PLAIN)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cluster: AbstractAsyncContextManager[tuple[Measured, ApiClient]]
        if peer_command:
            cluster = _peer_cluster(folder, setting, peer_command)
        elif options.one_process:
            cluster = _control_plane(folder, setting)
        else:
            cluster = _cluster(folder, setting, plain=options.plain)
        async with cluster as (processes, client):
            gc.collect()
            gc.freeze()
            processes = processes if sampled is None else sampled.of(processes)
            if setting.in_flight is not None:
                return await _steadily(processes, client, setting)
            pods = [arrival.pod for arrival in setting.arrivals]
            if setting.pods_before:
                await _bind(processes, client, pods[: setting.pods_before])
            return await _bind(processes, client, pods[setting.pods_before :])


@asynccontextmanager
async def _cluster(
    folder: Path, setting: Setting, *, plain: bool
) -> AsyncIterator[tuple[Measured, ApiClient]]:
    """Run a cluster in which everything is there but the pods."""
    async with serving(folder, plain=plain) as server:
        access = load_rest_config(str(folder / "kubeconfig"))
        async with http_client(access, manager="bench") as client:
            await _set_up(client, setting)
            async with programs(folder) as (process, synced_s):
                yield Processes(folder, server, process, synced_s), client


@asynccontextmanager
async def _control_plane(
    folder: Path, setting: Setting
) -> AsyncIterator[tuple[Measured, ApiClient]]:
    """The same, with server and programs in one process."""
    async with control_plane(folder) as server:
        access = load_rest_config(str(folder / "kubeconfig"))
        async with http_client(access, manager="bench") as client:
            await _set_up(client, setting)
            yield Processes(folder, server, None, 0.0), client


@asynccontextmanager
async def _peer_cluster(
    folder: Path, setting: Setting, command: Sequence[str]
) -> AsyncIterator[tuple[Measured, ApiClient]]:
    """Run the peer's cluster in which everything is there but the pods."""
    async with peer(command, folder) as processes:
        access = load_rest_config(str(folder / "kubeconfig"))
        async with http_client(access, manager="bench") as client:
            await _set_up(client, setting)
            await make_schedulable(client, setting.nodes, NAMESPACE)
            yield processes, client


async def _set_up(client: ApiClient, setting: Setting) -> None:
    for name in (NAMESPACE, "init"):
        await client.write(Create(Namespace(metadata=ObjectMeta(name=name))))
    claims = [replace(c, metadata=replace(c.metadata, uid="")) for c in setting.claims]
    objects: list[Any] = [*setting.classes, *setting.nodes, *setting.slices, *claims]
    objects += templates(setting)
    if setting.group is not None:
        metadata = replace(setting.group.metadata, uid="")
        objects.append(replace(setting.group, metadata=metadata))
    await _each(objects, lambda value: client.write(Create(value)))

    async def make_allocated(claim: ResourceClaim) -> None:
        metadata = replace(claim.metadata, uid="")
        stored = await client.write(Create(replace(claim, metadata=metadata)))
        await client.write(Update(replace(stored, status=claim.status), "status"))

    await _each(allocated(setting), make_allocated)


def templates(setting: Setting) -> list[ResourceClaimTemplate]:
    """Return the template of the pods' claims, which are all alike."""
    if not setting.arrivals or not setting.arrivals[0].claims:
        return []
    spec = ResourceClaimTemplateSpec(spec=setting.arrivals[0].claims[0].spec)
    metadata = ObjectMeta(name=TEMPLATE, namespace=NAMESPACE)
    return [ResourceClaimTemplate(metadata=metadata, spec=spec)]


async def _each(values: Iterable[Any], act: Callable[[Any], Awaitable[Any]]) -> None:
    """Act on all values, some at a time."""
    waiting = iter(values)

    async def work() -> None:
        for value in waiting:
            await act(value)

    await asyncio.gather(*(work() for _ in range(CREATORS)))


# --- pods -----------------------------------------------------------------------------------------


class _Watcher:
    """Knows when pods were bound."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[float]] = {}

    def expect(self, name: str) -> asyncio.Future[float]:
        """Return when a pod is bound."""
        self._waiting[name] = found = asyncio.get_running_loop().create_future()
        return found

    def changed(self, old: Pod | None, new: Pod | None) -> None:  # noqa: ARG002
        """Take in a change."""
        if new is None or not new.spec.node_name:
            return
        waiting = self._waiting.pop(new.metadata.name, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(time.perf_counter())


@asynccontextmanager
async def _watching(client: ApiClient) -> AsyncIterator[_Watcher]:
    watcher = _Watcher()
    informer = Informer(
        client,
        Pod,
        Indexer(),
        random=random.random,
        fields="spec.nodeName!=",
    )
    informer.add_event_handler(watcher.changed)
    task = asyncio.create_task(informer.run())
    await informer.wait_for_sync()
    try:
        yield watcher
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _bind(processes: Measured, client: ApiClient, pods: list[Pod]) -> Figures:
    """Create pods as fast as the server takes them, and wait until all are bound."""
    latencies: list[float] = []
    async with _watching(client) as watcher, _quiet_user(client) as quiet_s:
        before, start = processes.usages(), time.perf_counter()
        ends: list[asyncio.Future[float]] = []
        starts: list[float] = []

        async def create(pod: Pod) -> None:
            starts.append(time.perf_counter())
            ends.append(watcher.expect(pod.metadata.name))
            await client.write(Create(new_pod(pod)))

        async with asyncio.timeout(BOUND_S):
            await _each(pods, create)
            moments = [await end for end in ends]
        latencies += [end - begin for begin, end in zip(starts, moments, strict=True)]
        wall_s = max(moments) - start
        figures = _figures(len(pods), wall_s, latencies, before, processes.usages())
        return figures._replace(quiet_s=tuple(quiet_s))


@asynccontextmanager
async def _quiet_user(client: ApiClient) -> AsyncIterator[list[float]]:
    """Read a small object now and then during a block; give how long each time took."""
    took_s: list[float] = []

    async def read() -> None:
        while True:
            start = time.perf_counter()
            await client.get(Namespace, "", "default")
            took_s.append(time.perf_counter() - start)
            await asyncio.sleep(QUIET_EVERY_S)

    task = asyncio.create_task(read())
    try:
        yield took_s
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _steadily(processes: Measured, client: ApiClient, setting: Setting) -> Figures:
    """Keep some pods on their way for some seconds; those that are bound are deleted."""
    latencies: list[float] = []
    pods = iter([arrival.pod for arrival in setting.arrivals] * 10)
    async with _watching(client) as watcher:
        before, start = processes.usages(), time.perf_counter()

        async def work(number: int) -> None:
            for turn, pod in enumerate(pods):
                begin = time.perf_counter()
                if begin - start > STEADY_S:
                    return
                metadata = replace(pod.metadata, name=f"{pod.metadata.name}-{number}-{turn}")
                end = watcher.expect(metadata.name)
                stored = await client.write(Create(new_pod(replace(pod, metadata=metadata))))
                async with asyncio.timeout(BOUND_S):
                    latencies.append(await end - begin)
                await client.write(Delete(Target.of(stored), grace_s=0))

        assert setting.in_flight is not None
        await asyncio.gather(*(work(number) for number in range(setting.in_flight)))
        wall_s = time.perf_counter() - start
        return _figures(len(latencies), wall_s, latencies, before, processes.usages())


def new_pod(pod: Pod) -> Pod:
    """Return a pod as users write it."""
    return replace(pod, metadata=replace(pod.metadata, uid=""), status=PodStatus())


def _figures(
    pods: int,
    wall_s: float,
    latencies_s: list[float],
    before: tuple[Usage, ...],
    after: tuple[Usage, ...],
) -> Figures:
    cpu_s = tuple(b.cpu_s - a.cpu_s for a, b in zip(before, after, strict=True))
    return Figures(pods, wall_s, latencies_s, cpu_s, tuple(each.peak_mib for each in after))


# --- recovery -------------------------------------------------------------------------------------


async def _recover(*, plain: bool) -> str:
    (workload,) = find(["template-5000"])
    setting = workload.make(RECOVERY_NODES, PLAIN)
    setting = setting._replace(before=setting.before[:RECOVERY_CLAIMS])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with serving(folder, plain=plain) as server:
            access = load_rest_config(str(folder / "kubeconfig"))
            async with http_client(access, manager="bench") as client:
                await _set_up(client, setting)
                return await _restart(folder, server, client, setting.arrivals[0].pod)


async def _restart(folder: Path, server: Any, client: ApiClient, pod: Pod) -> str:
    async with _watching(client) as watcher:
        bound = watcher.expect(pod.metadata.name)
        await client.write(Create(new_pod(pod)))
        start = time.perf_counter()
        async with programs(folder) as (process, synced_s):
            async with asyncio.timeout(BOUND_S):
                bound_s = await bound - start
            used, served = Usage.of(process.pid), Usage.of(server.pid)
    return (
        f"recovery with {RECOVERY_NODES} nodes and {RECOVERY_CLAIMS} claims: all is "
        f"there after {synced_s:.1f} s, a pod that waits is bound after {bound_s:.1f} s; CPU "
        f"{used.cpu_s:.1f} s; peak MiB: server {served.peak_mib:.0f}, programs {used.peak_mib:.0f}"
    )


if __name__ == "__main__":
    main()
