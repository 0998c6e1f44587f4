"""The programs of a control plane, each as something to run with a client until it is cancelled."""

from __future__ import annotations

import asyncio
import random as system_random
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from mooring.api.gates import Gates
from mooring.api.schedulerconfig import KubeSchedulerConfiguration
from mooring.client.contract import Client
from mooring.client.informers import Informers
from mooring.client.recorder import Recorder, Style
from mooring.controllers.controller import Controller
from mooring.controllers.dra import DraMetrics, dra_controllers
from mooring.controllers.loops import Loops
from mooring.controllers.queuemetrics import QueuesMetrics
from mooring.controllers.roster import workload_controllers
from mooring.kit.clock import REAL, Clock
from mooring.kit.naming import new_suffix, new_uid
from mooring.scheduler.live import Config, Explain, LiveScheduler, Loop, kinds_of, read_config
from mooring.scheduler.reserving import Fresh

SCHEDULER = "default-scheduler"


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
        config: Config | None = None,  # with features of its own; None: those of the gates
        explain: Explain = lambda *_: "",
    ) -> None:
        clock = around.clock
        self.config = config = config or read_config(KubeSchedulerConfiguration(), around.gates)
        self.informers = Informers(client, random=around.random, clock=clock)
        self.scheduler = LiveScheduler(
            config, around.fresh, elapsed=clock.monotonic, explain=explain
        )
        self._recorder = Recorder(
            client, SCHEDULER, style=Style.SERIES, clock=clock, random=around.random
        )
        self.loop = Loop(self.scheduler, client, clock=clock, tell=self._recorder.tell)
        for kind in kinds_of(config.features):
            self.informers.on_change(kind, self.loop.changed)

    async def run(self) -> None:
        """Schedule until cancelled, from when all kinds are there."""
        async with self._recorder.running(), self.informers.running():
            await self.loop.run()


class Controlling:
    """The controllers."""

    def __init__(
        self,
        client: Client,
        around: Surroundings,
        *,
        authority: str = "",
        more: tuple[Controller, ...] = (),
    ) -> None:
        self.metrics = DraMetrics()
        self.queues = QueuesMetrics()
        self.informers = Informers(client, random=around.random, clock=around.clock)
        controllers = (
            *dra_controllers(around.gates, self.metrics),
            *workload_controllers(authority=authority),
            *more,
        )
        self.loops = Loops(
            controllers,
            client=client,
            informers=self.informers,
            random=around.random,
            clock=around.clock,
            metrics=self.queues,
        )

    async def run(self) -> None:
        """Work until cancelled, from when all kinds are there."""
        async with self.informers.running():
            await self.loops.run()


async def run_all(*programs: Any) -> None:
    """Run programs beside each other until cancelled, or until one fails."""
    async with asyncio.TaskGroup() as tasks:
        for program in programs:
            tasks.create_task(program.run())
