"""Everything that serves claims on a node, put together and running.

    dra = Dra(client, settings)
    async with dra.serving():
        await dra.manager.prepare(pod)

ResourceSlices of drivers that are gone are deleted, so that no pod is scheduled for them. A driver
has a while to come back, as during an update. When the agent starts, no driver has registered yet,
so all slices of the node are deleted, except those of drivers that register first.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path

from msgspec import Struct

from moorage.api.core import Pod
from moorage.api.core.pod import ResourceStatus
from moorage.api.gates import Gate, Gates
from moorage.api.resource.v1 import ResourceSlice
from moorage.client.contract import Client
from moorage.client.errors import ClientError, NotFoundError
from moorage.client.writes import Delete, Target
from moorage.kit.backoff import Backoff
from moorage.kit.bulkhead import FAULTS, keep_running
from moorage.kit.clock import REAL, Clock
from moorage.node.dra import plugin_registration
from moorage.node.dra.health_info import DeviceKey, allocated_resources_status
from moorage.node.dra.health_streams import HealthStreams
from moorage.node.dra.manager import ClaimManager, features_of
from moorage.node.dra.plugin_manager import CALL_TIMEOUT_S, DraPluginManager
from moorage.node.dra.plugin_registration import PluginHandler, Registrar
from moorage.node.dra.pod_resources import SOCKET, OtherDevices, PodResources, Pods
from moorage.node.errors import SaveError
from moorage.node.host_folders import HostFolders
from moorage.wire.services import DRA_PLUGIN

LOG = logging.getLogger(__name__)

REGISTRY = Path("plugins_registry")
RETRY_S = 5.0  # after an internal error

# Called with the UIDs of pods whose devices changed their health.
PodsAffected = Callable[[set[str]], None]
CLEAN_UP_DELAY_S = 30.0  # for a driver to come back
CLEAN_UP_BACKOFF = Backoff(first_s=1.0, longest_s=300.0, jitter=0.2)
PAGE = 500
ALL_DRIVERS = ""


class DraSettings(Struct, frozen=True):
    """The node, and who is called back."""

    root: Path  # the kubelet's folder
    node: str
    gates: Gates
    pods: Pods  # the active ones, for the PodResources API
    # UIDs of pods that may still need their claims; None while they are unknown.
    active: Callable[[], Iterable[str] | None]
    affected: PodsAffected = lambda _: None
    registered: Callable[[], None] = lambda: None  # called when a driver has registered
    handlers: Mapping[str, PluginHandler] = {}  # of other plugins, by type
    others: OtherDevices | None = None
    host_folders: HostFolders = {}
    clock: Clock = REAL
    random: Callable[[], float] | None = None
    call_timeout_s: float = CALL_TIMEOUT_S
    clean_up_delay_s: float = CLEAN_UP_DELAY_S


class Dra:
    """The parts that serve claims."""

    def __init__(self, client: Client, settings: DraSettings) -> None:
        """Read the checkpoint of an earlier agent; raises CheckpointError if it is damaged."""
        clock, root = settings.clock, settings.root
        root.mkdir(mode=0o750, parents=True, exist_ok=True)
        self._settings, self._affected = settings, settings.affected
        self.manager = ClaimManager(client, root, features_of(settings.gates), clock=clock)
        self.slice_cleaner = SliceCleaner(
            client,
            settings.node,
            clock=clock,
            delay_s=settings.clean_up_delay_s,
            random=settings.random,
        )
        self.health = HealthStreams(root, self._note_health, clock=clock)
        has_health = settings.gates.enabled(Gate.RESOURCE_HEALTH_STATUS)
        self.drivers = DraPluginManager(
            self.slice_cleaner,
            follow_health=self.health.follow if has_health else None,
            observe=self.manager.metrics.observe_call,
            registered=settings.registered,
            clock=clock,
            call_timeout_s=settings.call_timeout_s,
        )
        self.manager.use(self.drivers.get)
        self.registrar = Registrar(
            {**settings.handlers, DRA_PLUGIN: self.drivers},
            host_folders=settings.host_folders,
            clock=clock,
        )
        self.pod_resources = PodResources(
            self.manager.cache, settings.pods, self.manager.features, settings.others
        )

    def allocated_resources_status(self, pod: Pod, container: str) -> tuple[ResourceStatus, ...]:
        """Return the health of a container's devices, for its status."""
        return allocated_resources_status(
            pod,
            container,
            self.manager.cache,
            self.health.get,
            features=self.manager.features,
        )

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve claims: register drivers, answer monitoring agents, reconcile vanished pods."""
        settings = self._settings
        try:
            await self.manager.file.save()  # say so now rather than with the first pod
        except SaveError as error:
            LOG.warning("%s; pods with new claims wait until it can", error)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.manager.file.settled)
            await stack.enter_async_context(self.slice_cleaner.running())
            await stack.enter_async_context(self.health.running())
            await stack.enter_async_context(self.drivers.running())
            await stack.enter_async_context(self.pod_resources.serving(settings.root / SOCKET))
            following = [
                asyncio.create_task(self._retry_forever("plugins", self._follow_plugins)),
                asyncio.create_task(self._retry_forever("pods", self._follow_pods)),
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

    async def _retry_forever(self, what: str, follow: Callable[[], Awaitable[None]]) -> None:
        """Run something until cancelled; after an internal error again."""
        while True:
            try:
                await follow()
            except Exception as error:
                FAULTS.note(f"following {what}", "the node", error, "begins again")
            await self._settings.clock.sleep(RETRY_S)

    def _note_health(self, driver: str, devices: Iterable[DeviceKey]) -> None:
        pods = self.manager.cache.pods_with(driver, devices)
        if pods:
            self._affected(pods)


# --- slices of missing drivers --------------------------------------------------------------------


class SliceCleaner:
    """Deletes ResourceSlices of this node whose driver is not usable."""

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
        """Keep the slices of a driver."""
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
        """Delete all slices of the node now; delete nothing more at the end."""
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
        work = partial(self._clean_up, driver, delay_s)
        about = f"driver {driver or 'of any name'}"
        keeping = keep_running("cleaning up slices", work, subject=about, clock=self._clock)
        self._pending[driver] = asyncio.create_task(keeping)

    async def _clean_up(self, driver: str, delay_s: float) -> None:
        if delay_s:
            await self._clock.sleep(delay_s)
        failures, logged = 0, ""
        while True:
            try:
                count = await self._delete_all(driver)
            except ClientError as error:
                failures += 1
                retry_s = CLEAN_UP_BACKOFF.delay_s(failures, self._random)
                if error.message != logged:
                    LOG.warning("slices of %s: %s; again in %.3g s", driver, error, retry_s)
                    logged = error.message
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
            rest = page.continue_token
            if not rest:
                return count
