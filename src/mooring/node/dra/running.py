"""All that serves claims on a node, put together and running.

async with serving_claims(client, settings) as dra:
    await dra.manager.prepare(pod)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path

from msgspec import Struct

from mooring.api.core import Pod
from mooring.api.core.podstatus import ResourceStatus
from mooring.api.gates import Gate, Gates
from mooring.client.contract import Client
from mooring.kit.clock import REAL, Clock
from mooring.node.dra import registryfolder
from mooring.node.dra.drivers import Drivers
from mooring.node.dra.healthbook import DeviceKey
from mooring.node.dra.healthstreams import HealthStreams
from mooring.node.dra.instances import CALL_TIMEOUT_S
from mooring.node.dra.manager import ClaimManager, features_of
from mooring.node.dra.podhealth import allocated_resources_status
from mooring.node.dra.podresources import SOCKET, OtherDevices, PodResources, Pods
from mooring.node.dra.registration import PluginHandler, Registrar
from mooring.node.dra.wiping import DELAY_S, SliceWiper
from mooring.wire.services import DRA_PLUGIN

LOG = logging.getLogger(__name__)

REGISTRY = Path("plugins_registry")
AGAIN_S = 5.0  # after a fault

# Told of pods, by uid, whose devices have another health now.
PodsAffected = Callable[[set[str]], None]


class DraSettings(Struct, frozen=True):
    """What is known of the node and its surroundings."""

    root: Path  # the kubelet's folder, or one like it
    node: str
    gates: Gates
    pods: Pods  # those that are active, for monitors
    # Uids of pods that may still need their claims; None while that is not known.
    active: Callable[[], Iterable[str] | None]
    affected: PodsAffected = lambda _: None
    registered: Callable[[], None] = lambda: None  # told when a driver has come
    handlers: Mapping[str, PluginHandler] = {}  # of plugins that are no DRA drivers, by type
    others: OtherDevices | None = None
    clock: Clock = REAL
    random: Callable[[], float] | None = None
    call_timeout_s: float = CALL_TIMEOUT_S
    wiping_delay_s: float = DELAY_S


class Dra:
    """The parts that serve claims."""

    def __init__(self, client: Client, settings: DraSettings) -> None:
        """Read what an agent before this one knew; raises CheckpointError if that is damaged."""
        clock, root = settings.clock, settings.root
        root.mkdir(mode=0o750, parents=True, exist_ok=True)
        self._settings, self._affected = settings, settings.affected
        self.manager = ClaimManager(client, root, features_of(settings.gates), clock=clock)
        self.wiper = SliceWiper(
            client,
            settings.node,
            clock=clock,
            delay_s=settings.wiping_delay_s,
            random=settings.random,
        )
        self.health = HealthStreams(root, self._tell, clock=clock)
        has_health = settings.gates.enabled(Gate.RESOURCE_HEALTH_STATUS)
        self.drivers = Drivers(
            self.wiper,
            follow_health=self.health.follow if has_health else None,
            observe=self.manager.metrics.observe_call,
            registered=settings.registered,
            clock=clock,
            call_timeout_s=settings.call_timeout_s,
        )
        self.manager.use(self.drivers.get)
        self.registrar = Registrar({**settings.handlers, DRA_PLUGIN: self.drivers}, clock=clock)
        self.pod_resources = PodResources(
            self.manager.book, settings.pods, self.manager.features, settings.others
        )

    def allocated_resources_status(self, pod: Pod, container: str) -> tuple[ResourceStatus, ...]:
        """Return the health of a container's devices, for its status."""
        return allocated_resources_status(
            pod,
            container,
            self.manager.book,
            self.health.get,
            has_messages=self.manager.features.health_messages,
        )

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve claims: drivers register, monitors ask, what pods left behind is taken back."""
        settings = self._settings
        await self.manager.file.save()  # better now than when the first pod comes
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.manager.file.settled)
            await stack.enter_async_context(self.wiper.running())
            await stack.enter_async_context(self.health.running())
            await stack.enter_async_context(self.drivers.running())
            await stack.enter_async_context(self.pod_resources.serving(settings.root / SOCKET))
            following = [
                asyncio.create_task(self._keep_up("plugins", self._follow_plugins)),
                asyncio.create_task(self._keep_up("pods", self._follow_pods)),
            ]
            try:
                yield
            finally:
                for task in following:
                    task.cancel()
                await asyncio.wait(following)

    async def _follow_plugins(self) -> None:
        folder = registryfolder.follow(self._settings.root / REGISTRY, clock=self._settings.clock)
        async with aclosing(folder):
            await self.registrar.run(folder)

    async def _follow_pods(self) -> None:
        await self.manager.follow_active(self._settings.active)

    async def _keep_up(self, what: str, follow: Callable[[], Awaitable[None]]) -> None:
        """Follow something until cancelled; after a fault again, as claims need it."""
        while True:
            try:
                await follow()
            except Exception:
                LOG.exception("%s are not followed any more; again in %g s", what, AGAIN_S)
            await self._settings.clock.sleep(AGAIN_S)

    def _tell(self, driver: str, devices: Iterable[DeviceKey]) -> None:
        pods = self.manager.book.pods_with(driver, devices)
        if pods:
            self._affected(pods)


@asynccontextmanager
async def serving_claims(client: Client, settings: DraSettings) -> AsyncIterator[Dra]:
    """Give claims served as long as a block lasts.

    Raises CheckpointError where the file of claims is damaged, SaveError where it cannot be kept.
    """
    dra = Dra(client, settings)
    async with dra.serving():
        yield dra
