"""All that serves claims on a node, put together and running.

async with serving_claims(client, settings) as dra:
    await dra.manager.prepare(pod)
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path

from msgspec import Struct

from mooring.api.core import Pod
from mooring.api.core.podstatus import ResourceStatus
from mooring.api.gates import Gate, Gates
from mooring.api.resource.v1 import ResourceSlice
from mooring.client.contract import Client
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.writes import Delete, Target
from mooring.kit.backoff import Backoff
from mooring.kit.clock import REAL, Clock
from mooring.node.dra import plugin_registration
from mooring.node.dra.health_info import DeviceKey, allocated_resources_status
from mooring.node.dra.health_streams import HealthStreams
from mooring.node.dra.manager import ClaimManager, features_of
from mooring.node.dra.plugin_manager import CALL_TIMEOUT_S, DraPluginManager
from mooring.node.dra.plugin_registration import PluginHandler, Registrar
from mooring.node.dra.pod_resources import SOCKET, OtherDevices, PodResources, Pods
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
    wiping_delay_s: float = CLEAN_UP_DELAY_S


class Dra:
    """The parts that serve claims."""

    def __init__(self, client: Client, settings: DraSettings) -> None:
        """Read what an agent before this one knew; raises CheckpointError if that is damaged."""
        clock, root = settings.clock, settings.root
        root.mkdir(mode=0o750, parents=True, exist_ok=True)
        self._settings, self._affected = settings, settings.affected
        self.manager = ClaimManager(client, root, features_of(settings.gates), clock=clock)
        self.wiper = SliceCleaner(
            client,
            settings.node,
            clock=clock,
            delay_s=settings.wiping_delay_s,
            random=settings.random,
        )
        self.health = HealthStreams(root, self._tell, clock=clock)
        has_health = settings.gates.enabled(Gate.RESOURCE_HEALTH_STATUS)
        self.drivers = DraPluginManager(
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
        folder = plugin_registration.follow_sockets(
            self._settings.root / REGISTRY, clock=self._settings.clock
        )
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


# ---- from mooring.node.dra.wiping: Slices of drivers that are not there are deleted, so that nobody is scheduled for them.

CLEAN_UP_DELAY_S = 30.0  # that a driver has to come back
CLEAN_UP_BACKOFF = Backoff(first_s=1.0, longest_s=300.0, jitter=0.2)
PAGE = 500
ALL_DRIVERS = ""


class SliceCleaner:
    """Deletes slices of this node; a watcher of which drivers are usable."""

    def __init__(
        self,
        client: Client,
        node: str,
        *,
        clock: Clock = REAL,
        delay_s: float = CLEAN_UP_DELAY_S,
        random: Callable[[], float] | None = None,
    ) -> None:
        self._client, self._node = client, node
        self._clock, self._delay_s, self._random = clock, delay_s, random
        self._pending: dict[str, asyncio.Task[None]] = {}
        self._usable: set[str] = set()

    def usable(self, driver: str) -> None:
        """Leave the slices of a driver alone."""
        self._usable.add(driver)
        task = self._pending.pop(driver, None)
        if task is not None:
            task.cancel()

    def unusable(self, driver: str) -> None:
        """Delete the slices of a driver, unless it comes back in time."""
        self._usable.discard(driver)
        if driver not in self._pending:
            self._start(driver, self._delay_s)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[SliceCleaner]:
        """Delete all slices of the node now; nothing is deleted any more at the end."""
        self._start(ALL_DRIVERS, 0.0)
        try:
            yield self
        finally:
            tasks = list(self._pending.values())
            self._pending.clear()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, driver: str, delay_s: float) -> None:
        task = asyncio.create_task(self._wipe(driver, delay_s))
        self._pending[driver] = task

    async def _wipe(self, driver: str, delay_s: float) -> None:
        if delay_s:
            await self._clock.sleep(delay_s)
        failures, said = 0, ""
        while True:
            try:
                count = await self._delete_all(driver)
            except ClientError as error:
                failures += 1
                retry_s = CLEAN_UP_BACKOFF.delay_s(failures, self._random)
                if error.message != said:
                    LOG.warning("slices of %s: %s; again in %.3g s", driver, error, retry_s)
                    said = error.message
                await self._clock.sleep(retry_s)
            else:
                break
        if count:
            LOG.info("deleted %d slices of %s", count, driver or "this node")
        if self._pending.get(driver) is asyncio.current_task():
            del self._pending[driver]

    async def _delete_all(self, driver: str) -> int:
        fields = f"spec.nodeName={self._node}" + (f",spec.driver={driver}" if driver else "")
        count, rest = 0, ""
        while True:
            page = await self._client.list(ResourceSlice, limit=PAGE, rest=rest, fields=fields)
            for found in page.values:
                if found.spec.driver in self._usable:
                    continue
                with contextlib.suppress(NotFoundError):
                    await self._client.write(Delete(Target.of(found)))
                    count += 1
            rest = page.rest
            if not rest:
                return count
