"""Controllers together with what they need: informers that wake them, queues, tellers of events.

    loops = Loops(controllers, client=…, informers=…, random=…)
    async with informers.running():
        await loops.run()

Nothing is planned before all kinds are there: half a cluster looks like one with much gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any

from mooring.api.namespaceconditions import Remains
from mooring.api.resource.v1 import DeviceTaintRule
from mooring.api.resource.v1alpha3 import ResourcePoolStatusRequest
from mooring.api.scheduling import CompositePodGroup, PodGroup, Workload
from mooring.api.timestamp import Timestamp
from mooring.client.apiclient import ApiClient
from mooring.client.contract import Client
from mooring.client.informers import Informers
from mooring.client.namespacecontent import empty_namespace
from mooring.client.objects import Key
from mooring.client.recorder import Recorder
from mooring.controllers.controller import Change, Controller, DeleteContent
from mooring.controllers.queuemetrics import QueuesMetrics
from mooring.controllers.running import Emptying, Running
from mooring.kit.backoff import Backoff
from mooring.kit.clock import REAL, Clock
from mooring.kit.queue import WorkQueue

# What Kubernetes does not serve unless it is asked to.
NOT_EVERYWHERE = frozenset(
    (CompositePodGroup, DeviceTaintRule, PodGroup, ResourcePoolStatusRequest, Workload)
)
BACKOFF = Backoff(first_s=0.005, longest_s=1000.0, factor=2.0)


class Loops:
    """Controllers that follow one cluster."""

    def __init__(
        self,
        controllers: Iterable[Controller],
        *,
        client: Client,
        informers: Informers,
        random: Callable[[], float],
        clock: Clock = REAL,
        metrics: QueuesMetrics | None = None,
        client_of: Callable[[str], Client] | None = None,
    ) -> None:
        """Take controllers; each asks and writes by the client of its name, or by the one for all.

        `informers` have their own.
        """
        self._informers = informers
        self._metrics = metrics or QueuesMetrics()
        self._recorders: dict[str, Recorder] = {}
        of = client_of or (lambda _: client)
        self.running: tuple[Running, ...] = tuple(
            self._make(each, of(each.name), random, clock) for each in controllers
        )

    async def run(self) -> None:
        """Work until cancelled, from when all kinds are there."""
        await self._informers.wait_synced()
        async with AsyncExitStack() as stack:
            for recorder in self._recorders.values():
                await stack.enter_async_context(recorder.running())
            async with asyncio.TaskGroup() as tasks:
                for running in self.running:
                    tasks.create_task(running.run())

    def _make(
        self, controller: Controller, client: Client, random: Callable[[], float], clock: Clock
    ) -> Running:
        source = controller.source or controller.name
        if source not in self._recorders:
            self._recorders[source] = Recorder(client, source, clock=clock, random=random)
        queue: WorkQueue[Key] = WorkQueue(
            clock=clock,
            backoff=BACKOFF,
            random=random,
            refill=lambda: running.all_keys(),
            metrics=self._metrics.of(source),
        )
        running = Running(
            controller,
            objects=self._informers.objects,
            client=client,
            queue=queue,
            tell=self._recorders[source].tell,
            now=lambda: Timestamp(clock.now()),
            has_seen=self._has_seen,
            empty=_emptying(client),
        )
        for struct in controller.kinds:
            is_optional = struct in controller.optional or struct in NOT_EVERYWHERE
            informer = self._informers.follow(struct, optional=is_optional)
            informer.on_change(lambda old, new: running.changed(Change(old, new)))
        return running

    def _has_seen(self, struct: type[Any], revision: str) -> bool:
        """Tell whether the copy of a kind is at least as new as a version."""
        seen = self._informers.follow(struct).revision
        # Versions are numbers that grow, in our server and in Kubernetes.
        if not (seen.isdigit() and revision.isdigit()):
            return seen == revision
        return int(seen) >= int(revision)


def _emptying(client: Client) -> Emptying | None:
    """Return what deletes the content of namespaces with a client, if it can ask anything."""
    if not isinstance(client, ApiClient):
        return None

    def empty(wanted: DeleteContent) -> Awaitable[Remains]:
        return empty_namespace(client, wanted.namespace, grace_s=wanted.grace_s)

    return empty
