"""The programs of a control plane, each as something to run with a client until it is cancelled."""

from __future__ import annotations

import asyncio
import random as system_random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from msgspec import Struct

from mooring.api.catalogue import FOREIGN
from mooring.api.gates import Gates
from mooring.api.schedulerconfig import KubeSchedulerConfiguration
from mooring.client.contract import Client
from mooring.client.informers import Informer, Informers
from mooring.client.recorder import Recorder, Style
from mooring.controllers.controller import Controller
from mooring.controllers.dra import DraMetrics, dra_controllers
from mooring.controllers.loops import NOT_EVERYWHERE, Loops
from mooring.controllers.namespaces import Namespaces
from mooring.controllers.queuemetrics import QueuesMetrics
from mooring.controllers.roster import workload_controllers
from mooring.kit.clock import REAL, Clock
from mooring.kit.metrics import exposition
from mooring.kit.naming import new_suffix, new_uid
from mooring.scheduler.live import Config, Explain, LiveScheduler, Loop, kinds_of, read_config
from mooring.scheduler.reserving import Fresh

SCHEDULER = "default-scheduler"
SCHEDULER_AGENT = "kube-scheduler"  # as whom programs write fields, as in Kubernetes
CONTROLLERS_AGENT = "kube-controller-manager"

_FOREIGN = frozenset(kind.struct for kind in FOREIGN)


class ProgramContext(Struct, frozen=True):
    """What every program needs besides its client."""

    gates: Gates = Gates.parse()
    clock: Clock = REAL
    random: Callable[[], float] = system_random.random
    fresh: Fresh = Fresh(new_uid, lambda prefix: f"{prefix}{new_suffix()}")


class SchedulerProgram:
    """The scheduler: `run` it, and look at `scheduler` for its metrics.

    Programs in one process can share `informers`, so that each object is sent and read once.
    """

    def __init__(
        self,
        client: Client,
        around: ProgramContext,
        *,
        config: Config | None = None,  # with features of its own; None: those of the gates
        explain: Explain = lambda *_: "",
        informers: Informers | None = None,
    ) -> None:
        clock = around.clock
        self.config = config = config or read_config(KubeSchedulerConfiguration(), around.gates)
        self.informers = informers or shared_informers(client, around)
        self._has_own = informers is None
        self.scheduler = LiveScheduler(
            config, around.fresh, elapsed=clock.monotonic, explain=explain
        )
        self._recorder = Recorder(
            client, SCHEDULER, style=Style.SERIES, clock=clock, random=around.random
        )
        self.loop = Loop(self.scheduler, client, clock=clock, tell=self._recorder.tell)
        for kind in kinds_of(config.features):
            is_optional = kind in NOT_EVERYWHERE or kind in _FOREIGN
            informer = self.informers.follow(kind, optional=is_optional)
            informer.on_change(partial(self._changed, informer))

    def _changed(self, informer: Informer, old: Any | None, new: Any | None) -> None:
        self.loop.changed(old, new, is_listed=informer.is_listing)

    async def run(self) -> None:
        """Schedule until cancelled, from when all kinds are there."""
        async with self._recorder.running(), _followed(self.informers, self._has_own):
            await self.loop.run()

    @property
    def metrics_pages(self) -> dict[str, Callable[[], str]]:
        """What the scheduler counts, and what pods ask for, by the paths of pages."""
        return {
            "/metrics": self.scheduler.metrics_text,
            "/metrics/resources": self.scheduler.resources_text,
        }


class ControllerManager:
    """The controllers."""

    def __init__(
        self,
        client: Client,
        around: ProgramContext,
        *,
        authority: str = "",
        more: tuple[Controller, ...] = (),
        informers: Informers | None = None,
        client_of: Callable[[str], Client] | None = None,
        chosen: Callable[[str], bool] = lambda _: True,
        ends_namespaces: bool = False,
    ) -> None:
        """Take a client, which reads all kinds; with `client_of`, each controller has its own.

        `ends_namespaces` is for servers that do not empty deleted namespaces themselves.
        """
        self.metrics = DraMetrics()
        self.queues = QueuesMetrics()
        self.informers = informers or shared_informers(client, around)
        self._has_own = informers is None
        controllers = (
            *dra_controllers(around.gates, self.metrics),
            *workload_controllers(authority=authority, gates=around.gates),
            *((Namespaces(),) if ends_namespaces else ()),
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
        async with _followed(self.informers, self._has_own):
            await self.loops.run()

    @property
    def metrics_pages(self) -> dict[str, Callable[[], str]]:
        """What the controllers count, by the paths of pages."""
        return {"/metrics": self._metrics_text}

    def _metrics_text(self) -> str:
        objects = self.informers.objects
        return exposition((*self.metrics.families(objects), *self.queues.families()))


def shared_informers(client: Client, around: ProgramContext) -> Informers:
    """Return informers for programs to share: whoever shares them runs them, too."""
    return Informers(client, random=around.random, clock=around.clock)


@asynccontextmanager
async def _followed(informers: Informers, is_own: bool) -> AsyncIterator[None]:
    """Have all kinds followed; informers that are shared are run by somebody else."""
    if not is_own:
        await informers.wait_synced()
        yield
        return
    async with informers.running():
        yield


async def run_all(*programs: Any) -> None:
    """Run programs beside each other until cancelled, or until one fails."""
    async with asyncio.TaskGroup() as tasks:
        for program in programs:
            tasks.create_task(program.run())


# MOVED


# --- names of controllers, as users choose them -----------------------------------------------

_LOOPS_OF = {
    "resourceclaim-controller-groups": "resourceclaim-controller",
    "resourceclaim-controller-releases": "resourceclaim-controller",
}

CONTROLLERS: tuple[str, ...] = (
    "daemonset-controller",
    "deployment-controller",
    "device-taint-eviction-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "podgroup-protection-controller",
    "replicaset-controller",
    "resourceclaim-controller",
    "resourcepoolstatusrequest-controller",
    "root-ca-certificate-publisher-controller",
    "service-account-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
)


def controller_name(loop: str) -> str:
    """Return the name of the controller that a loop belongs to."""
    return _LOOPS_OF.get(loop, loop)


# MOVED
Surroundings = ProgramContext  # MOVED
Scheduling = SchedulerProgram  # MOVED
Controlling = ControllerManager  # MOVED
informers_of = shared_informers  # MOVED
