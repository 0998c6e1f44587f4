"""Gives devices of plugins to pods: the kubelet's device manager.

    async with DevicePlugins(folder, clock) as plugins:
        await plugins.prepare(pod)          # chosen, agreed with the plugin, written to disk
        plugins.run_options(pod, "main")    # what the container gets for them
        await plugins.before_start(pod, "main")
        await plugins.unprepare(pod)        # free again: plugins are not notified

A plugin that hangs delays only pods that want its devices, and each not for long. The checkpoint:

    {"version": 1, "checksum": "sha256:…", "data": {"resources": […], "allotments": […]}}
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self
from weakref import WeakValueDictionary

import msgspec
from msgspec import Raw, Struct

from moorage.api.core import Container, Pod
from moorage.kit.atomic_file import TEMPORARY_SUFFIX, read_bounded, replace_file
from moorage.kit.clock import REAL, Clock, Timer
from moorage.node.contract import DeviceRunOptions, DevicesRefusedError, PodRefusedError
from moorage.node.device_plugins import allocation, inventory
from moorage.node.device_plugins.allocation import (
    AllocationRefusal,
    Allotment,
    AllotmentKey,
    DeviceChoice,
    DeviceLedger,
)
from moorage.node.device_plugins.inventory import Inventory, PluginDevice, ResourceCounts
from moorage.node.device_plugins.plugins import DevicePlugin, PluginConnections, RegistrationServer
from moorage.node.errors import CheckpointError, PluginError

TIMER_SLACK_S = 0.01  # timers may fire a moment early
REASON = "UnexpectedAdmissionError"
_LOG = logging.getLogger(__name__)
CHECKPOINT_NAME = "kubelet_internal_checkpoint"
CHECKPOINT_BYTES_MAX = 64 * 1024 * 1024
VERSION = 1


class DevicePlugins:
    """All device plugins of a node, as one device manager."""

    def __init__(
        self,
        folder: Path,
        clock: Clock = REAL,
        *,
        on_change: Callable[[], None] = lambda: None,
        on_health: Callable[[frozenset[str]], None] = lambda _: None,
        is_running: Callable[[str, str], bool] = lambda *_: False,
    ) -> None:
        self._path = folder / CHECKPOINT_NAME
        self._clock = clock
        self._on_change = on_change  # the node's resources changed
        self._on_health = on_health  # devices of these pods changed
        self._is_running = is_running  # a container outlived the agent
        self._inventory = Inventory()
        self._ledger = DeviceLedger()
        self._recalled: set[AllotmentKey] = set()  # held since before this agent, not checked yet
        self._expiry: Timer | None = None
        self._is_saved = True
        self._connections = PluginConnections(self, clock)
        self._registration = RegistrationServer(folder, self._connections)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Restore what pods have, and accept plugins."""
        self._recall()
        await self._registration.start()

    async def close(self) -> None:
        """Accept no more plugins, and disconnect all."""
        if self._expiry is not None:
            self._expiry.cancel()
        await self._registration.stop()
        await self._connections.close()

    # --- pods -------------------------------------------------------------------------------------

    async def prepare(self, pod: Pod) -> None:
        """Allocate the devices of all containers; else PodRefusedError or DevicesRefusedError."""
        async with self._turn(f"pod {pod.metadata.uid}"):
            for container in (*pod.spec.init_containers, *pod.spec.containers):
                for resource, size in allocation.requested_devices(pod, container):
                    if resource in self._inventory or self._ledger.knows(resource):
                        await self._give(pod, container, resource, size)
            self._save()

    def run_options(self, pod: Pod, container: str) -> DeviceRunOptions:
        """Return the run options of a container."""
        return inventory.joined(
            each.run_options for each in self._ledger.of(pod.metadata.uid, container)
        )

    async def before_start(self, pod: Pod, container: str) -> None:
        """Notify plugins that want it that a container starts, or restarts."""
        for each in self._ledger.of(pod.metadata.uid, container):
            plugin = self._connections.plugin(each.resource)
            if plugin is not None:
                try:
                    await plugin.before_start(each.ids)
                except PluginError as error:
                    raise DevicesRefusedError(str(error)) from None

    async def unprepare(self, pod: Pod) -> None:
        """Release the devices of a pod."""
        async with self._turn(f"pod {pod.metadata.uid}"):
            self._drop([pod.metadata.uid])
            self._save()

    def keep_only(self, pod_uids: Collection[str]) -> None:
        """Release the devices of all other pods, which went away while no agent ran."""
        self._drop(self._ledger.pods.difference(pod_uids))
        self._save()

    # --- queries ----------------------------------------------------------------------------------

    def resources(self) -> Mapping[str, ResourceCounts]:
        """Return how many devices the node has of each resource, and can allocate."""
        return self._inventory.amounts()

    def taken(self) -> Mapping[str, int]:
        """Return how many devices of each resource pods have, whether their plugin lives or not."""
        return self._ledger.amounts()

    def held(self, pod_uid: str, container: str) -> tuple[Allotment, ...]:
        """Return the devices of a container."""
        return self._ledger.of(pod_uid, container)

    def allocatable(self) -> Mapping[str, tuple[PluginDevice, ...]]:
        """Return the healthy devices of each resource."""
        stocks = {name: self._inventory.stock(name) for name in self._inventory.names}
        return {
            name: tuple(each for each in stock.devices.values() if each.id in stock.usable)
            for name, stock in stocks.items()
            if stock is not None
        }

    def is_healthy(self, resource: str, id_: str) -> bool:
        """Return whether a device is healthy, by the last list of its plugin."""
        device = self._inventory.device(resource, id_)
        return device is None or device.is_healthy

    # --- plugins ----------------------------------------------------------------------------------

    async def register(self, resource: str, socket: Path, versions: tuple[str, ...]) -> None:
        """Connect to a plugin that was found; raises ValueError or PluginError."""
        await self._connections.register(resource, socket, versions)

    async def deregister(self, resource: str, socket: Path) -> None:
        """Disconnect a plugin that is gone."""
        await self._connections.deregister(resource, socket)

    def started(self, resource: str) -> None:
        """Note that a plugin registered."""
        self._inventory.start(resource)

    def listed(self, resource: str, devices: tuple[PluginDevice, ...]) -> None:
        """Take in a plugin's list of devices."""
        before, is_new = self._inventory.amounts().get(resource), resource not in self._inventory
        changed = self._inventory.report(resource, devices)
        if is_new:
            self._save_soon()
        if self._inventory.amounts()[resource] != before:
            self._on_change()
        pods = self._ledger.holders(resource, changed)
        if pods:
            self._on_health(pods)

    def stopped(self, resource: str) -> None:
        """Note that the last plugin of a resource is gone."""
        self._inventory.stop(resource, self._clock.monotonic())
        self._await_expiry()
        self._on_change()

    def _await_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        due_s = self._inventory.expires_at_s
        if due_s is not None:
            delay_s = due_s - self._clock.monotonic() + TIMER_SLACK_S
            self._expiry = self._clock.call_later(delay_s, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        if self._inventory.expire(self._clock.monotonic()):
            self._save_soon()
            self._on_change()
        self._await_expiry()

    # --- allocation -------------------------------------------------------------------------------

    async def _give(self, pod: Pod, container: Container, resource: str, size: int) -> None:
        held = self._ledger.held(pod.metadata.uid, container.name, resource)
        if held is not None:
            self._keep(held, size)
            return
        async with self._turn(f"resource {resource}"):
            own = allocation.reusable(pod, container, resource, self._ledger)
            ids = await self._choose(resource, size, own)
            self._ledger.take(resource, ids)
        try:
            options = await self._agree(resource, ids)
            devices = tuple(self._device(resource, id_) for id_ in ids)
            uid, name = pod.metadata.uid, container.name
            self._ledger.hold(Allotment(uid, name, resource, devices, options))
            self._is_saved = False
        finally:
            self._ledger.release(resource, ids)

    def _keep(self, held: Allotment, size: int) -> None:
        """Keep a container's devices; after a restart, only if they are still healthy."""
        refusal = allocation.check_size(held, size)
        is_unsure = held.key in self._recalled and not self._is_running(
            held.pod_uid, held.container
        )
        if refusal is None and is_unsure:
            refusal = allocation.check_health(held, self._inventory.stock(held.resource))
        if refusal is not None:
            raise _error(refusal)
        self._recalled.discard(held.key)

    async def _choose(self, resource: str, size: int, own: tuple[str, ...]) -> tuple[str, ...]:
        stock, taken = self._inventory.stock(resource), self._ledger.taken(resource)
        choice = allocation.choose(resource, size, own=own, stock=stock, taken=taken)
        match choice:
            case AllocationRefusal():
                raise _error(choice)
            case DeviceChoice(is_settled=True):
                return allocation.settle(choice)
        plugin = self._plugin(resource)
        try:
            preferred = await plugin.prefer((*choice.own, *choice.free), choice.own, size)
        except PluginError as error:
            raise _error(AllocationRefusal(str(error))) from None
        return allocation.settle(choice, preferred)

    async def _agree(self, resource: str, ids: tuple[str, ...]) -> DeviceRunOptions:
        try:
            return inventory.run_options_of(await self._plugin(resource).allocate(ids))
        except PluginError as error:
            raise _error(AllocationRefusal(str(error))) from None
        except ValueError as error:
            text = f"the answer of the device plugin of {resource}: {error}"
            raise _error(AllocationRefusal(text)) from None

    def _plugin(self, resource: str) -> DevicePlugin:
        plugin = self._connections.plugin(resource)
        if plugin is None:
            raise _error(AllocationRefusal(f"unknown Device Plugin {resource}"))
        return plugin

    def _device(self, resource: str, id_: str) -> PluginDevice:
        return self._inventory.device(resource, id_) or PluginDevice(id_)

    def _turn(self, key: str) -> asyncio.Lock:
        """Return a lock that is dropped when nobody uses it."""
        return self._turns.setdefault(key, asyncio.Lock())

    # --- checkpoint -------------------------------------------------------------------------------

    def _recall(self) -> None:
        try:
            saved = load_checkpoint(self._path)
        except CheckpointError as error:
            text = "%s is put aside, and devices of running pods may be allocated again: %s"
            _LOG.error(text, self._path, error)
            put_aside(self._path)
            return
        self._ledger = DeviceLedger(saved.allotments)
        self._recalled = {each.key for each in saved.allotments}
        self._inventory.recall(saved.resources, self._clock.monotonic())
        self._await_expiry()

    def _drop(self, pod_uids: Collection[str]) -> None:
        for uid in pod_uids:
            if self._ledger.drop(uid):
                self._is_saved = False
        self._recalled = {key for key in self._recalled if key.pod_uid in self._ledger.pods}

    def _save(self) -> None:
        """Write the checkpoint if it is outdated; else DevicesRefusedError."""
        if self._is_saved:
            return
        saved = SavedAllotments(self._inventory.names, self._ledger.allotments)
        try:
            replace_file(self._path, encode_checkpoint(saved))
        except OSError as error:
            text = f"failed to write checkpoint file {CHECKPOINT_NAME!r}: {error.strerror}"
            raise DevicesRefusedError(text) from None
        self._is_saved = True

    def _save_soon(self) -> None:
        """Write the checkpoint; if that fails, the next pod tries again."""
        self._is_saved = False
        try:
            self._save()
        except DevicesRefusedError as error:
            _LOG.warning("%s", error)


def _error(refusal: AllocationRefusal) -> DevicesRefusedError:
    text = f"Allocate failed due to {refusal.text}, which is unexpected"
    return PodRefusedError(REASON, text) if refusal.is_final else DevicesRefusedError(text)


class SavedAllotments(Struct, frozen=True):
    """The content of the checkpoint."""

    resources: tuple[str, ...] = ()
    allotments: tuple[Allotment, ...] = ()


class _File(Struct, frozen=True):
    version: int
    checksum: str
    data: Raw


def encode_checkpoint(saved: SavedAllotments) -> bytes:
    """Return the file."""
    data = msgspec.json.encode(saved)
    return msgspec.json.encode(_File(VERSION, _checksum(data), Raw(data)))


def decode_checkpoint(content: bytes) -> SavedAllotments:
    """Return the content of a file, or raise CheckpointError."""
    try:
        file = msgspec.json.decode(content, type=_File)
        if file.version != VERSION:
            raise CheckpointError(f"version {file.version} is unknown")
        if file.checksum != _checksum(bytes(file.data)):
            raise CheckpointError("the checksum is not that of the data")
        saved = msgspec.json.decode(file.data, type=SavedAllotments)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CheckpointError(str(error)) from None
    if len({each.key for each in saved.allotments}) < len(saved.allotments):
        raise CheckpointError("a container has devices of one resource twice")
    return saved


def load_checkpoint(path: Path) -> SavedAllotments:
    """Read the checkpoint; a missing one is empty."""
    for left in path.parent.glob(f".{path.name}.*{TEMPORARY_SUFFIX}"):
        left.unlink(missing_ok=True)  # by a crash
    try:
        return decode_checkpoint(read_bounded(path, CHECKPOINT_BYTES_MAX))
    except FileNotFoundError:
        return SavedAllotments()
    except OSError as error:
        raise CheckpointError(f"it cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CheckpointError(str(error)) from None


def put_aside(path: Path) -> None:
    """Keep an unreadable file for whoever wants to look at it."""
    with suppress(OSError):
        path.replace(path.with_name(f"{path.name}.corrupt"))


def _checksum(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
