"""The live scheduler with a server in memory: pods bound each second, and CPU for each pod.

    dev.py bench livescheduler

The benchmark counts everything that the scheduler does from the arrival of pods and claims until
these are bound: handling changes, deciding, and all writes with their answers and the changes that
follow. The time of the server in memory is shown separately and not counted. Finally a scheduler
restarts in a large cluster: the time until it has decided about a first pod.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
from collections import deque
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from itertools import count
from time import monotonic, perf_counter, process_time
from typing import Any, NamedTuple, TypeVar

from benchmarks._workloads import PLAIN, Setting, find
from benchmarks.simulation import allocated
from moorage.api.core.namespace import Binding
from moorage.client.contract import Event, ObjectList
from moorage.client.writes import Create, RecordEvent, Write
from moorage.scheduler.live import LiveScheduler, SchedulerConfig, SchedulerLoop
from moorage.scheduler.reservation import IdSource
from tests.scheduler.live.fakeserver import Change, FakeServer

T = TypeVar("T")

NAMES = (
    "template-200",
    "template-500",
    "match-500",
    "consumable-500",
    "extended-explicit-200",
    "shared-claim-200",
    "podgroup-1000",
)
RECOVERY_NODES = 5000


class Figures(NamedTuple):
    """The result of a run."""

    pods: int
    bound: int
    wall_s: float
    cpu_s: float  # without the server
    writes: int


class MemoryClient:
    """A client of a server in memory, which delivers changes when the writer continues."""

    def __init__(self, server: FakeServer) -> None:
        self._server = server
        self._told: deque[Change] = deque()
        self.changed: Callable[[Any, Any], None] = lambda *_: None
        self.server_s = 0.0
        self.bound = 0
        server.watch(self._told.append)

    async def get(self, struct: type[T], namespace: str, name: str) -> T | None:
        """Return an object."""
        found: T | None = self._server.get(struct, name, namespace)
        return found

    async def list(
        self,
        struct: type[Any],
        namespace: str = "",
        *,
        limit: int = 0,
        rest: str = "",
        fields: str = "",  # noqa: ARG002
        labels: str = "",  # noqa: ARG002
    ) -> ObjectList:
        """Return all objects of a kind."""
        del namespace, limit, rest
        return ObjectList(tuple(self._server.all(struct)), "")

    async def watch(
        self,
        struct: type[Any],
        namespace: str = "",
        *,
        after: str,
        fields: str = "",  # noqa: ARG002
        labels: str = "",  # noqa: ARG002
    ) -> AsyncIterator[Event]:
        """Yield nothing: changes are delivered otherwise."""
        del struct, namespace, after
        nothing: tuple[Event, ...] = ()
        for event in nothing:
            yield event

    async def write(self, write: Write) -> Any:
        """Carry out a write."""
        await asyncio.sleep(0)  # as if it took a while
        start = perf_counter()
        stored = self._server.write(write)
        self.server_s += perf_counter() - start
        self.bound += isinstance(write, Create) and isinstance(write.value, Binding)
        self.tell()
        return stored

    def tell(self) -> None:
        """Deliver the changes."""
        while self._told:
            self.changed(*self._told.popleft())


class RealClock:
    """The time of this machine."""

    def now(self) -> datetime:
        """Return the date and time."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds."""
        return monotonic()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        """Have something called later."""
        return asyncio.get_running_loop().call_later(delay_s, call)


def main() -> None:
    """Print a line for each workload."""
    logging.disable(logging.CRITICAL)
    print("workload               Kubernetes   pods/s  CPU µs/pod  writes/pod   bound")
    for workload in find(NAMES):
        setting = workload.make(workload.nodes, PLAIN)
        figures = asyncio.run(measure(setting))
        print(
            f"{workload.name:21} {workload.kubernetes_pods_per_s:11.1f} "
            f"{figures.pods / figures.wall_s:8.0f} {figures.cpu_s / figures.pods * 1e6:11.0f} "
            f"{figures.writes / figures.pods:11.2f} {figures.bound:7}",
            flush=True,
        )
    recovery()


async def measure(setting: Setting) -> Figures:
    """Let the pods of a setting come, and return what binding them took."""
    server, client, loop = _start(setting)
    arrivals = setting.arrivals
    for arrival in arrivals[: setting.pods_before]:
        server.put(*arrival.claims, arrival.pod)
    client.tell()
    task = asyncio.create_task(loop.run())
    await _all_bound(client, setting.pods_before, task)
    measured = arrivals[setting.pods_before :]
    for arrival in measured:
        server.put(*arrival.claims, arrival.pod)
    gc.collect()
    gc.freeze()
    server.writes.clear()
    client.server_s = 0.0
    start, cpu = monotonic(), process_time()
    client.tell()
    await _all_bound(client, len(arrivals), task)
    wall_s, cpu_s = monotonic() - start, process_time() - cpu - client.server_s
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return Figures(len(measured), client.bound, wall_s, cpu_s, len(server.writes))


def _start(setting: Setting) -> tuple[FakeServer, MemoryClient, SchedulerLoop]:
    server = FakeServer()
    server.put(*setting.classes, *setting.nodes, *setting.slices)
    server.put(*allocated(setting), *setting.claims)
    if setting.group is not None:
        server.put(setting.group)
    client = MemoryClient(server)
    loop = SchedulerLoop(_scheduler(), client, clock=RealClock(), record=_untold)
    client.changed = loop.changed
    client.tell()
    return server, client, loop


def _scheduler() -> LiveScheduler:
    numbers = count(1)
    fresh = IdSource(
        lambda: f"00000000-0000-4000-8000-{next(numbers):012x}",
        lambda prefix: f"{prefix}{next(numbers)}",
    )
    return LiveScheduler(SchedulerConfig(), fresh, elapsed=monotonic)


async def _all_bound(client: MemoryClient, number: int, task: asyncio.Task[None]) -> None:
    end = monotonic() + 120
    while client.bound < number and monotonic() < end and not task.done():
        await asyncio.sleep(0.01)


def _untold(tell: RecordEvent) -> None:
    """Take an event; what becomes of it is the recorder's business."""


def recovery() -> None:
    """Print how long a scheduler takes to start in a large cluster."""
    (workload,) = find(["template-5000"])
    setting = workload.make(RECOVERY_NODES, PLAIN)
    claims = allocated(setting._replace(before=setting.before[: 2 * RECOVERY_NODES]))
    waiting = setting.arrivals[0]
    objects = [*setting.classes, *setting.nodes, *setting.slices, *claims]
    server = FakeServer()
    server.put(*objects, *waiting.claims, waiting.pod)
    gc.collect()
    start, cpu = monotonic(), process_time()
    client = MemoryClient(server)
    loop = SchedulerLoop(_scheduler(), client, clock=RealClock(), record=_untold)
    client.changed = loop.changed
    client.tell()
    loop.scheduler.step(loop._moment())
    assert loop.scheduler.cache.in_flight, "the first pod has its node"
    print(
        f"start with {RECOVERY_NODES} nodes and {len(claims)} claims: "
        f"{monotonic() - start:.2f} s, CPU {process_time() - cpu:.2f} s, "
        f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"
    )


if __name__ == "__main__":
    main()
