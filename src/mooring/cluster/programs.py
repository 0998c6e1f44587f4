"""The programs of a control plane, each as something to run with a client until it is cancelled."""

from __future__ import annotations

import asyncio
import random as system_random
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from mooring.api.core import Pod
from mooring.api.gates import Gate, Gates
from mooring.api.resource.v1 import DeviceTaintRule
from mooring.api.scheduling import PodGroup
from mooring.client.contract import Client
from mooring.client.informers import Informers
from mooring.client.recorder import Recorder, Style
from mooring.cluster.podmetrics import pod_resources_text
from mooring.controllers.controller import Controller
from mooring.controllers.dra import DraMetrics, dra_controllers
from mooring.controllers.loops import NOT_EVERYWHERE, Loops
from mooring.controllers.metrics import exposition
from mooring.controllers.queuemetrics import QueuesMetrics
from mooring.controllers.roster import workload_controllers
from mooring.kit.clock import REAL, Clock
from mooring.kit.naming import new_suffix, new_uid
from mooring.scheduler.live import KINDS, Config, Explain, LiveScheduler, Loop
from mooring.scheduler.reserving import Fresh

SCHEDULER = "default-scheduler"
GATED: dict[type[Any], Gate] = {
    DeviceTaintRule: Gate.DRA_DEVICE_TAINT_RULES,
    PodGroup: Gate.GENERIC_WORKLOAD,
}
SCHEDULER_AGENT = "kube-scheduler"  # as whom programs write fields, as in Kubernetes
CONTROLLERS_AGENT = "kube-controller-manager"


def followed_kinds(gates: Gates) -> tuple[type[Any], ...]:
    """Return the kinds that the scheduler follows; others its role may not even list."""
    return tuple(kind for kind in KINDS if kind not in GATED or gates.enabled(GATED[kind]))


class Surroundings(Struct, frozen=True):
    """What every program needs besides its client."""

    gates: Gates = Gates.parse()
    clock: Clock = REAL
    random: Callable[[], float] = system_random.random
    fresh: Fresh = Fresh(new_uid, lambda prefix: f"{prefix}{new_suffix()}")


class Scheduling:
    """The scheduler: `run` it, and look at `scheduler` for its metrics."""

    def __init__(
        self,
        client: Client,
        around: Surroundings,
        *,
        config: Config | None = None,
        explain: Explain = lambda *_: "",
    ) -> None:
        clock = around.clock
        self.informers = Informers(client, random=around.random, clock=clock)
        self.scheduler = LiveScheduler(
            config or Config(), around.fresh, elapsed=clock.monotonic, explain=explain
        )
        self._recorder = Recorder(
            client, SCHEDULER, style=Style.SERIES, clock=clock, random=around.random
        )
        self.loop = Loop(self.scheduler, client, clock=clock, tell=self._recorder.tell)
        for kind in followed_kinds(around.gates):
            informer = self.informers.follow(kind, optional=kind in NOT_EVERYWHERE)
            informer.on_change(self.loop.changed)

    async def run(self) -> None:
        """Schedule until cancelled, from when all kinds are there."""
        async with self._recorder.running(), self.informers.running():
            await self.loop.run()

    @property
    def metrics_pages(self) -> dict[str, Callable[[], str]]:
        """What the scheduler counts, and what pods ask for, by the paths of pages."""
        pods = partial(self.informers.objects.all, Pod)
        return {
            "/metrics": self.scheduler.metrics_text,
            "/metrics/resources": lambda: pod_resources_text(pods()),
        }


class Controlling:
    """The controllers."""

    def __init__(
        self,
        client: Client,
        around: Surroundings,
        *,
        authority: str = "",
        more: tuple[Controller, ...] = (),
        client_of: Callable[[str], Client] | None = None,
        chosen: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Take a client, which reads all kinds; with `client_of`, each controller has its own."""
        self.metrics = DraMetrics()
        self.queues = QueuesMetrics()
        self.informers = Informers(client, random=around.random, clock=around.clock)
        controllers = (
            *dra_controllers(around.gates, self.metrics),
            *workload_controllers(authority=authority),
        )
        self.loops = Loops(
            (*(each for each in controllers if chosen(each.name)), *more),
            client=client,
            informers=self.informers,
            random=around.random,
            clock=around.clock,
            metrics=self.queues,
            client_of=client_of,
        )

    async def run(self) -> None:
        """Work until cancelled, from when all kinds are there."""
        async with self.informers.running():
            await self.loops.run()

    @property
    def metrics_pages(self) -> dict[str, Callable[[], str]]:
        """What the controllers count, by the paths of pages."""
        return {"/metrics": self._metrics_text}

    def _metrics_text(self) -> str:
        objects = self.informers.objects
        return exposition((*self.metrics.families(objects), *self.queues.families()))


async def run_all(*programs: Any) -> None:
    """Run programs beside each other until cancelled, or until one fails."""
    async with asyncio.TaskGroup() as tasks:
        for program in programs:
            tasks.create_task(program.run())
