"""The agent of a node as a program: with a container runtime, plugins and a kubelet server."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from moorage.api.cdi import ContainerEdits
from moorage.api.core import Pod
from moorage.api.core.pod import ResourceStatus
from moorage.api.quantity import Quantity
from moorage.client.contract import Client
from moorage.cluster.node_adapters import AgentPods, PluginDevices, PluginHandler
from moorage.cluster.programs import ProgramContext
from moorage.controllers.pod_control import is_over
from moorage.kit.bulkhead import FAULTS
from moorage.kit.metrics import Family, Gauge, Labels, exposition
from moorage.node.agent import Agent, Hooks
from moorage.node.contract import DeviceManagers
from moorage.node.device_plugins.allocation import resource_statuses
from moorage.node.device_plugins.manager import DevicePlugins
from moorage.node.dra.manager import NodeDraMetrics
from moorage.node.dra.service import Dra, DraSettings
from moorage.node.errors import CheckpointError, SaveError, UnresolvableError
from moorage.node.host_folders import HostFolders, host_folders_of
from moorage.node.kubelet_server import RequestHandler, TlsFiles, serving
from moorage.node.node_status import (
    PODS_MAX,
    NodeDescription,
    PluginResource,
    address_towards,
    kept_free,
    read_machine,
)
from moorage.node.pods.pod_context import StartMetrics
from moorage.node.resource_usage import UsageMeter
from moorage.node.runtime.cdi import CdiSpecs
from moorage.node.runtime.contract import Runtime, RuntimeRefusedError
from moorage.node.service_proxy import ServiceProxy
from moorage.wire.services import DEVICE_PLUGIN

if TYPE_CHECKING:
    from moorage.node.runtime.podman.runtime import PodmanRuntime
    from moorage.node.runtime.process import ProcessRuntime
    from moorage.node.runtime.sim import SimRuntime

AGENT = "kubelet"  # as whom fields are written
LOCK = "agent.lock"
PLUGINS = "device-plugins"
END_GRACE_S = 5.0


class NodeError(Exception):
    """The agent cannot run here, with the reason."""


class KubeletEndpoint(Struct, frozen=True):
    """The address where the node serves logs and exec, and its TLS files."""

    address: str
    port: int
    files: TlsFiles


class NodeSettings(Struct, frozen=True):
    """The settings of a node."""

    name: str
    folder: Path
    runtime: str = "process"
    cdi_folders: tuple[Path, ...] = (Path("/etc/cdi"), Path("/var/run/cdi"))
    address: str = ""  # empty: that by which the server is reached
    pods_max: int = PODS_MAX
    reserved: Mapping[str, Quantity] | None = None  # None: as a kubelet
    labels: Mapping[str, str] = {}
    endpoint: KubeletEndpoint | None = None
    ends_containers: bool = False  # when the agent ends; else they go on
    server: str = ""  # the URL of the API server for pods

    @property
    def host_folders(self) -> HostFolders:
        """The directories that the node has in another place than pods expect."""
        return host_folders_of(self.folder, self.cdi_folders)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Lock a directory for one agent, or raise NodeError."""
    try:
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise NodeError(f"--root-dir: {error}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise NodeError(f"--root-dir: another agent runs in {folder}") from None
    finally:
        os.close(file)


class NodeProgram:
    """The agent of a node with its managers."""

    def __init__(
        self,
        client: Client,
        context: ProgramContext,
        settings: NodeSettings,
        runtime: Runtime,
        describe: Callable[[Runtime], NodeDescription],
    ) -> None:
        """Load the checkpoints of the previous agent, or raise NodeError."""
        self.runtime = runtime
        self._ends_containers = settings.ends_containers
        self.plugins = DevicePlugins(
            settings.folder / PLUGINS,
            context.clock,
            on_change=self._resources_changed,
            on_health=self._look_at,
            is_running=self._is_running,
        )
        try:
            self.dra = Dra(client, self._claim_settings(settings, context))
        except (CheckpointError, SaveError) as error:
            raise NodeError(str(error)) from None
        self.agent = Agent(
            client,
            runtime,
            DeviceManagers(self.dra.manager, self.plugins),
            describe(runtime),
            folder=settings.folder,
            random=context.random,
            clock=context.clock,
            hooks=Hooks(more_resources=self._resources, health_of=self._health_of),
            server=settings.server,
            host_folders=settings.host_folders,
        )
        self.informers = self.agent.informers
        self.service_proxy = ServiceProxy(client, random=context.random, clock=context.clock)

    def _claim_settings(self, settings: NodeSettings, context: ProgramContext) -> DraSettings:
        return DraSettings(
            root=settings.folder,
            node=settings.name,
            gates=context.gates,
            pods=lambda: self.agent.pod_workers.pods,
            active=self._active,
            affected=self._look_at,
            registered=lambda: self.agent.pod_workers.try_again(),
            handlers={DEVICE_PLUGIN: PluginHandler(self.plugins)},
            others=PluginDevices(self.plugins),
            host_folders=settings.host_folders,
            clock=context.clock,
            random=context.random,
        )

    async def run(self) -> None:
        """Run pods until cancelled; only then containers end, and not because of a fault."""
        try:
            async with self.plugins, self.dra.serving(), self.service_proxy.running():
                await self.agent.run()
        except asyncio.CancelledError:
            if self._ends_containers:
                await end_containers(self.runtime)
            raise

    # --- callbacks between the parts ------------------------------------------------------------

    def _active(self) -> Iterable[str] | None:
        """Return the UIDs of pods that may hold devices; None until containers are adopted."""
        if not self.agent.has_taken_over.is_set():
            return None
        active = self.agent.pod_workers.active
        self.plugins.keep_only(active)
        return active

    def _resources(self) -> dict[str, PluginResource]:
        return {
            name: PluginResource(
                Quantity.from_int(amounts.capacity), Quantity.from_int(amounts.allocatable)
            )
            for name, amounts in self.plugins.resources().items()
        }

    def _resources_changed(self) -> None:
        self.agent.heartbeat.report()

    def _look_at(self, pods: Iterable[str]) -> None:
        """Sync pods again whose devices changed health."""
        for uid in pods:
            worker = self.agent.pod_workers.find(uid)
            if worker is not None:
                worker.look()

    def _is_running(self, pod_uid: str, container: str) -> bool:
        worker = self.agent.pod_workers.find(pod_uid)
        states = () if worker is None else worker.record.states.values()
        return any(each.id.name == container and each.finished_at is None for each in states)

    def _health_of(self, pod: Pod, container: str) -> tuple[ResourceStatus, ...]:
        held_devices = self.plugins.held(pod.metadata.uid, container)
        return (
            *resource_statuses(held_devices, self.plugins.is_healthy),
            *self.dra.allocated_resources_status(pod, container),
        )

    # --- metrics --------------------------------------------------------------------------------

    @property
    def metrics_pages(self) -> dict[str, Callable[[], str]]:
        """The metrics of the agent, by path."""
        return {"/metrics": self.metrics_text}

    def metrics_text(self) -> str:
        """Return the metrics of the agent in Prometheus' text format."""
        pods = self.agent.pod_workers.pods
        starts, claims = self.agent.pod_workers.metrics, self.dra.manager.metrics
        return exposition(node_families(lambda: pods, self._running_of, starts, claims))

    def _running_of(self, pod: Pod) -> list[bool]:
        """Return for each container of a pod whether it is running."""
        worker = self.agent.pod_workers.find(pod.metadata.uid)
        states = () if worker is None else worker.record.states.values()
        return [state.finished_at is None for state in states]


def node_families(
    pods: Callable[[], Sequence[Pod]],
    running_of: Callable[[Pod], list[bool]],
    starts: StartMetrics,
    claims: NodeDraMetrics,
) -> Iterator[Family]:
    """Yield all metrics of a node's agent; pods are counted on each scrape."""

    def containers() -> Counter[Labels]:
        running = (each for pod in pods() for each in running_of(pod))
        return Counter(("running",) if each else ("exited",) for each in running)

    yield Gauge(
        "kubelet_active_pods",
        "Pods of this node that have not ended.",
        ("static",),
        lambda: {("",): sum(not is_over(pod) for pod in pods())},
    )
    yield Gauge(
        "kubelet_running_pods",
        "Pods that have a running container.",
        (),
        lambda: {(): sum(any(running_of(pod)) for pod in pods())},
    )
    yield Gauge(
        "kubelet_running_containers",
        "Containers by state: running or exited.",
        ("container_state",),
        lambda: {("running",): 0, ("exited",): 0, **containers()},
    )
    yield Gauge(
        "moorage_node_pods",
        "Pods of this node by phase.",
        ("phase",),
        lambda: Counter((pod.status.phase or "Pending",) for pod in pods()),
    )
    yield FAULTS.total
    yield from starts.families()
    yield from claims.families()


async def end_containers(runtime: Runtime, grace_s: float = END_GRACE_S) -> None:
    """Stop all running containers, with a grace period."""
    running = [each.id for each in await runtime.containers() if each.finished_at is None]
    await asyncio.gather(*(runtime.stop(id_, grace_s) for id_ in running))


@asynccontextmanager
async def node_program(
    client: Client,
    context: ProgramContext,
    settings: NodeSettings,
) -> AsyncIterator[NodeProgram]:
    """Yield the agent of a node, ready to run and serving, or raise NodeError."""
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(_runtime(settings, context))
        pods = AgentPods()
        port = 0
        if settings.endpoint is not None:
            answering = RequestHandler(
                pods,
                runtime,
                metrics=pods.metrics_text,
                summary=pods.summary,
                config=pods.config,
                clock=context.clock,
            )
            port = await stack.enter_async_context(_serve_endpoint(settings.endpoint, answering))

        def described(runtime: Runtime) -> NodeDescription:
            return describe(settings, runtime, context, port)

        program = NodeProgram(client, context, settings, runtime, described)
        meter = UsageMeter(runtime, context.clock)
        pods.of(program.agent, program.metrics_text, meter, described(runtime))
        yield program


@asynccontextmanager
async def _serve_endpoint(endpoint: KubeletEndpoint, handler: RequestHandler) -> AsyncIterator[int]:
    """Serve the node's endpoint, and yield its port."""
    try:
        async with serving(handler, endpoint.files, endpoint.address, endpoint.port) as server:
            yield server.port
    except OSError as error:
        raise NodeError(f"{endpoint.address}:{endpoint.port}: {error.strerror or error}") from None


@asynccontextmanager
async def _runtime(settings: NodeSettings, context: ProgramContext) -> AsyncIterator[Runtime]:
    """Yield the runtime of the settings; only that one is imported."""
    try:
        runtime = await _new_runtime(settings, context)
    except RuntimeRefusedError as error:
        raise NodeError(f"--runtime {settings.runtime}: {error}") from None
    try:
        yield runtime
    finally:
        await runtime.close()


async def _new_runtime(
    settings: NodeSettings, context: ProgramContext
) -> ProcessRuntime | PodmanRuntime | SimRuntime:
    folder, folders, clock = settings.folder, settings.cdi_folders, context.clock
    match settings.runtime:
        case "process":
            from moorage.node.runtime.process import ProcessRuntime

            return ProcessRuntime(folder / "containers", folders, clock=clock)
        case "podman":
            from moorage.node.runtime.podman.runtime import PodmanRuntime

            return await PodmanRuntime.open(
                f"{settings.name} {folder}",
                clock=clock,
                cdi_folders=[str(each) for each in folders],
                resolve=partial(_resolved, CdiSpecs(folders)),
            )
        case _:
            from moorage.node.runtime.sim import SimRuntime

            return SimRuntime(folder / "simulated-containers", clock)


def _resolved(specs: CdiSpecs, ids: Sequence[str]) -> ContainerEdits:
    try:
        return specs.edits(ids)
    except UnresolvableError as error:
        raise RuntimeRefusedError("CreateContainerError", str(error)) from None


def describe(
    settings: NodeSettings,
    runtime: Runtime,
    context: ProgramContext,
    port: int = 0,
) -> NodeDescription:
    """Return the description of this machine as a Node."""
    machine = read_machine(settings.folder)
    kept = kept_free(machine.capacity)
    server_host = urlsplit(settings.server).hostname or "127.0.0.1"
    return NodeDescription(
        name=settings.name,
        machine=machine,
        address=settings.address or address_towards(server_host),
        runtime=runtime.name,
        gates=context.gates,
        port=port,
        pods_max=settings.pods_max,
        reserved=kept if settings.reserved is None else settings.reserved,
        labels=settings.labels,
    )
