"""The agent of a node: what runs here is what the cluster wants to run here.

1. The node registers.
2. Containers that an agent before this one left are taken over, or removed with their pods.
3. Each pod that is bound to the node gets a worker; what containers do is handed to it.
4. The node says that it is alive, and whether it can run pods.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from mooring.api.core import Node, Pod
from mooring.client.contract import Client
from mooring.client.errors import UnavailableError
from mooring.client.informers import Informers
from mooring.client.recorder import Recorder
from mooring.client.writes import Apply, Create, Delete, Patch, Update
from mooring.kit.backoff import Backoff
from mooring.kit.clock import REAL, Clock
from mooring.node.contract import DeviceManager
from mooring.node.heartbeat import Heartbeat
from mooring.node.node_status import NodeDescription, PluginResource
from mooring.node.pods.container_environment import NodeContext, SourceCache
from mooring.node.pods.container_status import HealthOf, no_health
from mooring.node.pods.pod_context import PodContext
from mooring.node.pods.pod_workers import PodWorkers
from mooring.node.runtime.contract import Runtime

LOG = logging.getLogger(__name__)

SOURCE = "kubelet"  # as whom events are told
AT_ONCE = 32  # how many pods have volumes made or containers started at the same time
LEFT_S = 2.0  # what unknown pods left is mostly gone by then, and its devices are free at once
RUNTIME_BACKOFF = Backoff(first_s=0.5, longest_s=30.0)
CALLS_AT_ONCE = 16


class Hooks(Struct, frozen=True):
    """What others tell the agent, or are told by it."""

    more_resources: Callable[[], Mapping[str, PluginResource]] = dict  # that device plugins have
    health_of: HealthOf = no_health  # of the devices of containers
    trouble: Callable[[], str] = str  # why others cannot serve pods; empty if they can


NO_HOOKS = Hooks()


class Agent:
    """Runs the pods of a node."""

    def __init__(
        self,
        client: Client,
        runtime: Runtime,
        devices: DeviceManager,
        description: NodeDescription,
        *,
        folder: Path,
        random: Callable[[], float],
        clock: Clock = REAL,
        hooks: Hooks = NO_HOOKS,
        pod_ip: str = "",  # empty: that of the node
    ) -> None:
        self._client = client
        self._runtime = runtime
        self._clock = clock
        self._description = description
        self._hooks = hooks
        self._pod_ip = pod_ip or description.address
        self._trouble = ""  # of the runtime
        self._recorder = Recorder(
            client, SOURCE, instance=description.name, clock=clock, random=random
        )
        self.informers = Informers(client, random=random, clock=clock)
        name = description.name
        self._pods = self.informers.follow(Pod, fields=f"spec.nodeName={name}")
        self._nodes = self.informers.follow(Node, fields=f"metadata.name={name}")
        self.heartbeat = Heartbeat(
            client, description, clock=clock, more=hooks.more_resources, trouble=self.trouble
        )
        few = LimitedClient(client)
        context = PodContext(
            client=few,
            runtime=runtime,
            devices=devices,
            clock=clock,
            folder=folder / "pods",
            record_event=self._recorder.tell,
            node_context=self._around,
            slots=asyncio.Semaphore(AT_ONCE),
            sources=SourceCache(few, clock),
            health_of=hooks.health_of,
        )
        self.keeper = PodWorkers(context, lambda: self.heartbeat.node)
        self.has_taken_over = asyncio.Event()  # then what is not in `keeper.active` has no devices

    def trouble(self) -> str:
        """Return why the node can run no pods; empty if it can."""
        found = [f"container runtime is down: {self._trouble}"] if self._trouble else []
        if other := self._hooks.trouble():
            found.append(other)
        return ", ".join(found)

    def _around(self) -> NodeContext:
        node = self.heartbeat.node
        return NodeContext(
            node_name=self._description.name,
            host_ip=self._description.address,
            pod_ip=self._pod_ip,
            allocatable={} if node is None else node.status.allocatable,
        )

    async def run(self) -> None:
        """Run pods until cancelled; containers go on without the agent."""
        await self.heartbeat.register()
        self._nodes.on_change(lambda _, new: self.heartbeat.see(new))
        async with self._recorder.running(), self.informers.running():
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self.heartbeat.run())
                    tasks.create_task(self._follow_runtime())
            finally:
                await self.keeper.close()

    # --- containers -----------------------------------------------------------------------------

    async def _follow_runtime(self) -> None:
        """Hand what containers do to their pods; a runtime that fails is asked again."""
        failures = 0
        while True:
            try:
                async with self._changes() as changes:
                    await self._take_over()
                    failures = 0
                    self._note("")
                    async for state in changes:
                        self.keeper.note(state)
                raise RuntimeError("it tells no more of its containers")
            except Exception as error:
                failures += 1
                self._note(str(error) or repr(error))
            await self._clock.sleep(RUNTIME_BACKOFF.delay_s(failures))

    @asynccontextmanager
    async def _changes(self) -> AsyncIterator[AsyncIterator[Any]]:
        """Give what containers do, from now on: nothing is missed that happens after."""
        queue: asyncio.Queue[Any] = asyncio.Queue()

        async def listen() -> None:
            try:
                async for state in self._runtime.changes():
                    queue.put_nowait(state)
                queue.put_nowait(None)
            except Exception as error:
                queue.put_nowait(error)

        async def taken() -> AsyncIterator[Any]:
            while (each := await queue.get()) is not None:
                if isinstance(each, Exception):
                    raise each
                yield each

        task = asyncio.create_task(listen())
        await asyncio.sleep(0)  # it listens before we ask what there is
        try:
            yield taken()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _take_over(self) -> None:
        states = await self._runtime.containers()
        if self.has_taken_over.is_set():
            self.keeper.compare(states)
            return
        # Nothing is awaited between, so that no pod goes unseen.
        self.keeper.take_over(states, self.informers.objects.all(Pod))
        self._pods.on_change(self.keeper.changed)
        await self.keeper.left(LEFT_S)
        self.has_taken_over.set()

    def _note(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self.heartbeat.report()
            if trouble:
                LOG.warning("the runtime fails: %s; it is asked again", trouble)


# ---- from mooring.node.fewcalls: A client that asks only so much at the same time.

ObjectT = TypeVar("ObjectT")


class LimitedClient:
    """Reads and writes through another client, few at the same time."""

    def __init__(self, client: Client, at_once: int = CALLS_AT_ONCE) -> None:
        self._client = client
        self._slots = asyncio.Semaphore(at_once)

    async def get(self, struct: type[ObjectT], namespace: str, name: str) -> ObjectT | None:
        """Return an object, or None when it is not there."""
        async with self._slots:
            return await self._client.get(struct, namespace, name)

    async def write(self, write: Create | Update | Patch | Apply | Delete) -> Any:
        """Carry out a write; patches and deletions once more if the connection was lost.

        Ours name the version or the object that they are for, so that twice is like once.
        """
        async with self._slots:
            try:
                return await self._client.write(write)
            except UnavailableError:
                if not isinstance(write, Patch | Delete):
                    raise
            return await self._client.write(write)
