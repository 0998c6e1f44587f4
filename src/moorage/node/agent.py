"""The node agent: it makes this node run the pods that are bound to it.

1. Register the node.
2. Take over containers that an earlier agent left, or remove them with their pods.
3. Run a worker for each pod that is bound to the node, and pass on what containers do.
4. Report that the node is alive, and whether it can run pods:

    register ─► node exists ─► status, when it changed or five minutes have passed
                           └─► lease, every ten seconds
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from moorage.api.coordination import Lease
from moorage.api.core import Node, Pod, Service
from moorage.api.timestamp import Timestamp
from moorage.client.contract import Client
from moorage.client.errors import AlreadyExistsError, ClientError, ConflictError, UnavailableError
from moorage.client.event_recorder import EventRecorder
from moorage.client.indexer import is_older
from moorage.client.informer_factory import InformerFactory
from moorage.client.writes import Apply, Create, Delete, Patch, Update
from moorage.kit.backoff import Backoff
from moorage.kit.bulkhead import FAULTS
from moorage.kit.clock import REAL, Clock
from moorage.node.contract import DeviceManager
from moorage.node.errors import NodeAgentError
from moorage.node.host_folders import HostFolders
from moorage.node.node_status import (
    LEASES,
    RENEW_S,
    NodeDescription,
    PluginResource,
    lease_of,
    missing_labels,
    new_node,
    patch_of,
    status_of,
)
from moorage.node.pods.container_environment import NodeContext, SourceCache
from moorage.node.pods.container_status import HealthOf, no_health
from moorage.node.pods.pod_context import PodContext
from moorage.node.pods.pod_workers import PodWorkers
from moorage.node.pods.service_environment import server_variables, variables_for
from moorage.node.runtime.contract import Runtime

LOG = logging.getLogger(__name__)

SOURCE = "kubelet"  # the component that events come from
AT_ONCE = 32  # pods that set up volumes or start containers at the same time
LEFT_S = 2.0  # enough to remove most unknown pods, so that their devices are free at once
RUNTIME_BACKOFF = Backoff(first_s=0.5, longest_s=30.0)
CALLS_AT_ONCE = 16
HEARTBEAT_BACKOFF = Backoff(first_s=0.2, longest_s=7.0)


class Hooks(Struct, frozen=True):
    """Callbacks between the agent and others."""

    more_resources: Callable[[], Mapping[str, PluginResource]] = dict  # of device plugins
    health_of: HealthOf = no_health  # the health of a container's devices
    trouble: Callable[[], str] = str  # why pods cannot be served; empty if they can


NO_HOOKS = Hooks()
NO_FOLDERS: HostFolders = {}


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
        pod_ip: str = "",  # empty: the node's
        server: str = "",  # the URL of the API server, for pods
        host_folders: HostFolders = NO_FOLDERS,
    ) -> None:
        self._client = client
        self._runtime = runtime
        self._clock = clock
        self._description = description
        self._hooks = hooks
        self._pod_ip = pod_ip or description.address
        self._host_folders = host_folders
        self._server_variables = server_variables(server)
        self._trouble = ""  # of the runtime
        self._recorder = EventRecorder(
            client, SOURCE, instance=description.name, clock=clock, random=random
        )
        self.informers = InformerFactory(client, random=random, clock=clock)
        name = description.name
        self._pods = self.informers.informer_for(Pod, fields=f"spec.nodeName={name}")
        self.informers.informer_for(Service, optional=True)
        self._nodes = self.informers.informer_for(Node, fields=f"metadata.name={name}")
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
            record_event=self._recorder.record,
            node_context=self._node_context,
            slots=asyncio.Semaphore(AT_ONCE),
            sources=SourceCache(few, clock),
            health_of=hooks.health_of,
            service_variables=self._service_variables,
        )
        self.pod_workers = PodWorkers(context, lambda: self.heartbeat.node)
        # Once set, pods that are not in `pod_workers.active` have no devices.
        self.has_taken_over = asyncio.Event()

    def trouble(self) -> str:
        """Return why the node can run no pods; empty if it can."""
        found = [f"container runtime is down: {self._trouble}"] if self._trouble else []
        if other := self._hooks.trouble():
            found.append(other)
        return ", ".join(found)

    def _node_context(self) -> NodeContext:
        node = self.heartbeat.node
        return NodeContext(
            node_name=self._description.name,
            host_ip=self._description.address,
            pod_ip=self._pod_ip,
            allocatable={} if node is None else node.status.allocatable,
            host_folders=self._host_folders,
        )

    def _service_variables(self, pod: Pod) -> Mapping[str, str]:
        """Return the variables of the services of a pod's namespace, and of the server."""
        if pod.spec.enable_service_links is False:
            return self._server_variables
        services = self.informers.objects.list(Service)
        return {**variables_for(pod.metadata.namespace, services), **self._server_variables}

    async def run(self) -> None:
        """Run pods until cancelled; containers go on without the agent."""
        await self.heartbeat.register()
        self._nodes.add_event_handler(lambda _, new: self.heartbeat.see(new))
        async with self._recorder.running(), self.informers.running():
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self.heartbeat.run())
                    tasks.create_task(self._follow_runtime())
            finally:
                await self.pod_workers.close()

    # --- containers -------------------------------------------------------------------------------

    async def _follow_runtime(self) -> None:
        """Pass changes of containers on to their pods; a runtime that fails is called again."""
        failures = 0
        while True:
            try:
                async with self._changes() as changes:
                    await self._take_over()
                    failures = 0
                    self._note("")
                    async for state in changes:
                        self.pod_workers.note(state)
                raise RuntimeError("it reports no more changes of its containers")
            except (NodeAgentError, OSError, RuntimeError) as error:
                failures += 1
                self._note(str(error))
            except Exception as error:
                failures += 1
                FAULTS.note("following the runtime", "the agent", error, "takes over again")
                self._note("internal error; the log of the node says more")
            await self._clock.sleep(RUNTIME_BACKOFF.delay_s(failures))

    @asynccontextmanager
    async def _changes(self) -> AsyncIterator[AsyncIterator[Any]]:
        """Yield changes of containers from now on, without a gap before the first is awaited."""
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
        await asyncio.sleep(0)  # it listens before we list containers
        try:
            yield taken()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _take_over(self) -> None:
        states = await self._runtime.containers()
        if self.has_taken_over.is_set():
            self.pod_workers.compare(states)
            return
        # Nothing is awaited in between, so that no pod is missed.
        unreadable = [each.uid for each in self._pods.unreadable]
        self.pod_workers.take_over(states, self.informers.objects.list(Pod), unreadable)
        self._pods.add_event_handler(self.pod_workers.changed)
        await self.pod_workers.left(LEFT_S)
        self.has_taken_over.set()

    def _note(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self.heartbeat.report()
            if trouble:
                LOG.warning("the runtime fails: %s; trying again", trouble)


# --- the client of pod workers --------------------------------------------------------------------

ObjectT = TypeVar("ObjectT")


class LimitedClient:
    """Limits how many requests run at once.

    Hundreds of pods may have something to write at once; each open connection costs memory here and
    at the server, and none of them makes it faster.
    """

    def __init__(self, client: Client, at_once: int = CALLS_AT_ONCE) -> None:
        self._client = client
        self._slots = asyncio.Semaphore(at_once)

    async def get(self, struct: type[ObjectT], namespace: str, name: str) -> ObjectT | None:
        """Return an object, or None if it does not exist."""
        async with self._slots:
            return await self._client.get(struct, namespace, name)

    async def write(self, write: Create | Update | Patch | Apply | Delete) -> Any:
        """Carry out a write; patches and deletions once more if the connection was lost.

        Ours name the version or UID that they are for, so repeating one does no harm.
        """
        async with self._slots:
            try:
                return await self._client.write(write)
            except UnavailableError:
                if not isinstance(write, Patch | Delete):
                    raise
            return await self._client.write(write)


# --- heartbeat ------------------------------------------------------------------------------------


class Heartbeat:
    """Registers a node and keeps it alive in the cluster."""

    def __init__(
        self,
        client: Client,
        description: NodeDescription,
        *,
        clock: Clock,
        more: Callable[[], Mapping[str, PluginResource]] = dict,
        trouble: Callable[[], str] = str,
    ) -> None:
        self._client = client
        self._description = description
        self._clock = clock
        self._more = more
        self._trouble = trouble
        self._is_due = asyncio.Event()
        self._lease: Lease | None = None
        self.node: Node | None = None  # as written last, or seen

    def see(self, node: Node | None) -> None:
        """Take in the Node object; a deleted one is not recreated."""
        if node is None or self.node is None or not is_older(node, self.node):
            self.node = node

    def report(self) -> None:
        """Write the status soon: something changed."""
        self._is_due.set()

    async def register(self) -> Node:
        """Return the node once it is registered, with its status; raises ClientError."""
        self.node = found = await self._register()
        await self._report()
        await self._renew()
        return self.node or found

    async def run(self) -> None:
        """Renew status and lease until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._repeat(self._report, "the status", self._is_due))
            tasks.create_task(self._repeat(self._renew, "the lease", asyncio.Event()))

    async def _repeat(
        self, work: Callable[[], Awaitable[None]], what: str, is_due: asyncio.Event
    ) -> None:
        failures = 0
        while True:
            delay_s = HEARTBEAT_BACKOFF.delay_s(failures) if failures else RENEW_S
            timer = self._clock.call_later(delay_s, is_due.set)
            try:
                await is_due.wait()
            finally:
                timer.cancel()
            is_due.clear()
            try:
                await work()
                failures = 0
            except ClientError as error:
                failures += 1
                if failures in (1, 10):
                    LOG.warning("%s of the node cannot be written: %s; trying again", what, error)
            except Exception as error:
                failures += 1
                FAULTS.note(f"{what} of the node", self._description.name, error, "is tried again")

    async def _register(self) -> Node:
        node = new_node(self._description)
        found: Node | None
        try:
            found = await self._client.write(Create(node))
        except AlreadyExistsError:
            found = await self._client.get(Node, "", node.metadata.name)
        if found is None:
            raise ConflictError("the node was deleted while it registered")
        patch = missing_labels(found, self._description)
        if patch is not None:
            found = await self._client.write(patch)
        assert found is not None
        return found

    async def _report(self) -> None:
        now = Timestamp(self._clock.now())
        if self.node is None:
            return
        status = status_of(
            self.node, self._description, more=self._more(), trouble=self._trouble(), now=now
        )
        patch = patch_of(self.node, status, now)
        if patch is None:
            return
        try:
            self.node = await self._client.write(patch)
        except ConflictError:
            self.node = await self._client.get(Node, "", self._description.name)
            self._is_due.set()

    async def _renew(self) -> None:
        if self.node is None:
            return
        name, now = self._description.name, Timestamp(self._clock.now())
        if self._lease is None:
            self._lease = await self._client.get(Lease, LEASES, name)
        wanted = lease_of(self.node, self._lease, now)
        try:
            write = Create(wanted) if self._lease is None else Update(wanted)
            self._lease = await self._client.write(write)
        except ClientError:
            self._lease = None  # read again the next time
            raise
