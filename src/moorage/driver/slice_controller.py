"""Publishes the ResourceSlices of a driver: writes them, watches them, repairs them.

    devices() ─► pools ───┐
                          ├─► plan ─► writes ─► what the server stored ─► what it dropped
    watch ─► slices ──────┘

Our own writes come back through the watch. Nothing is planned before that, so that no slice is
created twice; but only for a while, since somebody may have deleted them meanwhile.

A driver whose first devices cannot be published is broken: `list_devices` or `run` raises, and its
program exits. One that fails later keeps its slices, and is called again after a while.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable
from itertools import islice
from random import random as chance
from typing import Any

from msgspec.structs import replace

from moorage.api.core import Node
from moorage.api.gates import Gate
from moorage.api.resource.v1 import Device, ResourceSlice
from moorage.api.structs import shown
from moorage.client.contract import Client
from moorage.client.errors import ClientError, InvalidError, NotFoundError
from moorage.client.informer_factory import InformerFactory
from moorage.client.writes import Create, Delete, Update
from moorage.driver.driver import Driver, Pool
from moorage.driver.driver_calls import VALUES_MAX, call_driver, driver_error, raised_text
from moorage.driver.errors import DriverError, DroppedFieldsError, InventoryError, PublishingError
from moorage.driver.slice_plan import (
    Publisher,
    SlicePlan,
    StoredSlice,
    check_pools,
    index_of,
    is_same_spec,
    plan,
)
from moorage.hardware import NUMA_NODE
from moorage.kit.backoff import Backoff
from moorage.kit.clock import REAL, Clock
from moorage.validation.resource_slice import dropped
from moorage.validation.slice_device import is_list

LOG = logging.getLogger(__name__)

WRITES_AT_ONCE = 8
REPAIR_S = 5.0  # after somebody else changed our slices, and may not be done
SLOW_S = 10.0  # before a warning that devices() is slow
SEEN_S_MAX = 60.0  # how long to wait for our own writes to come back
EXPECTED = "a list of Device or Pool objects, or [] if there are none"
_REFUSED_ATTRIBUTE = re.compile(r"attributes\[([^\[\]]+)\]: ")
BACKOFF = Backoff(first_s=0.2, longest_s=60.0, jitter=0.5)


class SliceController:
    """Keeps the slices of one driver as they should be."""

    def __init__(
        self,
        driver: Driver,
        client: Client,
        publisher: Publisher,
        *,
        report: Callable[[Exception], None] | None = None,
        clock: Clock = REAL,
        random: Callable[[], float] = chance,
    ) -> None:
        self._driver = driver
        self._report = report or driver.report
        self._client = client
        self._publisher = publisher
        self._clock = clock
        self._random = random
        self._informers = InformerFactory(client, random=random, clock=clock)
        fields = f"spec.driver={publisher.driver},spec.nodeName={publisher.node_name}"
        self._informer = self._informers.informer_for(ResourceSlice, fields=fields)
        self._informer.add_event_handler(self._note)
        self._pools: tuple[Pool, ...] | None = None
        self._devices: dict[tuple[str, str], Device] = {}
        self._stored: dict[str, StoredSlice] = {}
        self._unseen: dict[str, str] = {}  # resource versions of our writes by name; empty: deleted
        self._is_due = True  # devices() must be called
        self._is_repairing = False  # a repair is scheduled
        self._failures = 0
        self._turn = asyncio.Event()
        self._published = asyncio.Event()
        self._was_published = False  # at least once
        self.written = 0  # slices created, updated and deleted

    def device(self, pool: str, name: str) -> Device | None:
        """Return a device as it was published, if it still is."""
        return self._devices.get((pool, name))

    def republish(self) -> None:
        """Call the driver for its devices again."""
        self._is_due = True
        self._published.clear()
        self._turn.set()

    async def wait_published(self) -> None:
        """Wait until the driver's devices are published."""
        await self._published.wait()

    async def list_devices(self) -> None:
        """Call the driver for its devices, or raise InventoryError: it is broken."""
        try:
            await self._list_devices()
        except InventoryError as error:
            self._report(error)
            raise

    async def run(self) -> None:
        """Publish and repair until cancelled; raises InventoryError if that never worked."""
        self._turn.set()
        async with self._informers.running():
            while True:
                await self._turn.wait()
                self._turn.clear()
                await self._try()

    # --- publishing -------------------------------------------------------------------------------

    async def _try(self) -> None:
        """Publish once; a failure is reported, and tried again later."""
        try:
            await self._list_devices()
            if await self._write():
                self._failures = 0
                if not self._is_due:
                    self._was_published = True
                    self._published.set()
        except InventoryError as error:
            self._report(error)
            if not self._was_published:
                raise
            self._is_due = True  # it may return something else by then
            self._try_later()
        except Exception as error:
            failed = PublishingError(f"publishing slices: {_text(error)}")
            if not isinstance(error, ClientError | DriverError):
                failed.__cause__ = error
            self._report(failed)
            self._try_later()

    def _try_later(self) -> None:
        self._failures += 1
        delay_s = BACKOFF.delay_s(self._failures, self._random)
        self._clock.call_later(delay_s, self._turn.set)

    async def _list_devices(self) -> None:
        if not self._is_due:
            return
        self._is_due = False
        slow = self._clock.call_later(SLOW_S, self._note_slow)
        try:
            pools = pools_of(await self._devices_of_driver(), self._publisher.node_name)
            check_pools(pools, self._publisher)
        except BaseException:
            self._is_due = True
            raise
        finally:
            slow.cancel()
        self._pools = tuple(pools)
        self._devices = {
            (pool.name, device.name): device for pool in self._pools for device in pool.devices
        }

    async def _devices_of_driver(self) -> Any:
        try:
            return await call_driver(self._driver.devices)
        except Exception as error:
            raise InventoryError(raised_text("devices", error)) from driver_error(error)

    def _note_slow(self) -> None:
        LOG.warning("devices() has not returned for %g s: nothing is published yet", SLOW_S)

    async def _write(self) -> bool:
        """Write the plan; False if our last writes have not come back yet."""
        if self._pools is None:
            return False
        if self._unseen:
            return False  # the watch will report them, or the timer
        existing = list(self._informers.objects.list(ResourceSlice))
        found = plan(self._pools, existing, self._publisher, self._stored)
        if found.creates and self._publisher.node_name and not self._publisher.node_uid:
            await self._find_node()
            found = plan(self._pools, existing, self._publisher, self._stored)
        await self._act(found)
        return True

    async def _find_node(self) -> None:
        name = self._publisher.node_name
        node = await self._client.get(Node, "", name)
        if node is None:
            raise PublishingError(f'there is no node "{name}"')
        self._publisher = replace(self._publisher, node_uid=node.metadata.uid)

    async def _act(self, found: SlicePlan) -> None:
        if not len(found):
            return
        LOG.info(
            "slices: %d to delete, %d to update, %d to create",
            *(len(each) for each in (found.deletes, found.updates, found.creates)),
        )
        try:
            for writes in (found.deletes, found.updates, found.creates):
                await self._write_all(writes)
        finally:
            if self._unseen:
                self._clock.call_later(SEEN_S_MAX, self._forget_unseen)

    async def _write_all(self, writes: Iterable[Delete | Update | Create]) -> None:
        """Write several at a time; after the first error begin no more, and raise it."""
        waiting = list(reversed(list(writes)))
        errors: list[Exception] = []

        async def work() -> None:
            while waiting and not errors:
                try:
                    await self._write_one(waiting.pop())
                except Exception as error:
                    errors.append(error)

        await asyncio.gather(*(work() for _ in range(min(WRITES_AT_ONCE, len(waiting)))))
        if errors:
            raise errors[0]

    async def _write_one(self, write: Delete | Update | Create) -> None:
        if isinstance(write, Delete):
            try:
                await self._client.write(write)
            except NotFoundError:
                return
            self.written += 1
            if self._informers.objects.get(ResourceSlice, "", write.target.name) is not None:
                self._unseen[write.target.name] = ""
            return
        try:
            stored: ResourceSlice = await self._client.write(write)
        except InvalidError as error:
            remedy = _remedy_of_lists(write.value, str(error))
            raise InventoryError(f"the server does not take the devices: {error}{remedy}") from None
        self.written += 1
        self._expect(stored)
        self._compare(write.value, stored)

    def _expect(self, stored: ResourceSlice) -> None:
        metadata = stored.metadata
        known = self._informers.objects.get(ResourceSlice, "", metadata.name)
        if known is None or known.metadata.resource_version != metadata.resource_version:
            self._unseen[metadata.name] = metadata.resource_version

    def _compare(self, sent: ResourceSlice, stored: ResourceSlice) -> None:
        """Report fields that the server dropped, and note them, so that they are not sent again."""
        name = stored.metadata.name
        if is_same_spec(sent.spec, stored.spec):
            self._stored.pop(name, None)
            return
        self._stored[name] = StoredSlice(sent.spec, stored.spec)
        gates = [each.value for each in dropped(sent.spec, stored.spec)]
        pool = stored.spec.pool.name
        self._report(DroppedFieldsError(pool, index_of(name) or 0, gates))

    # --- changes by others ------------------------------------------------------------------------

    def _note(self, old: Any | None, new: Any | None) -> None:
        """Take in a change: our own write that came back, or somebody else's."""
        value = new if new is not None else old
        assert value is not None
        name, revision = value.metadata.name, value.metadata.resource_version
        if name in self._unseen:
            expected = self._unseen[name]
            is_ours = new is None if not expected else (new is None or _is_at(revision, expected))
            if is_ours:
                del self._unseen[name]
                if not self._unseen:
                    self._turn.set()
            return
        if new is None:
            self._stored.pop(name, None)
        if not self._is_repairing:
            self._is_repairing = True
            self._clock.call_later(REPAIR_S, self._repair)

    def _repair(self) -> None:
        self._is_repairing = False
        self._turn.set()

    def _forget_unseen(self) -> None:
        if self._unseen:
            self._unseen.clear()
            self._turn.set()


def pools_of(inventory: Any, node_name: str) -> list[Pool]:
    """Return the pools of a driver's inventory, or raise InventoryError.

    No devices on a node are an empty pool: so others see that the driver is there.
    """
    if not isinstance(inventory, Iterable) or isinstance(inventory, str | bytes | dict):
        instead = "a list with it" if isinstance(inventory, Device | Pool) else EXPECTED
        raise InventoryError(f"devices() returned {shown(inventory)}; return {instead}")
    found = list(islice(inventory, VALUES_MAX + 1))
    if len(found) > VALUES_MAX:
        raise InventoryError(f"devices() returned more than {VALUES_MAX} devices")
    if not found:
        return [Pool(name=node_name)] if node_name else []
    kinds = {type(each) for each in found}
    if kinds == {Pool}:
        return [replace(each, name=each.name or node_name) for each in found]
    if kinds == {Device}:
        return [Pool(name=node_name, devices=tuple(found))]
    raise InventoryError(_other_than_devices(found))


def _other_than_devices(found: list[Any]) -> str:
    for index, each in enumerate(found):
        if not isinstance(each, Device | Pool):
            instead = Device.instead_of(each)
            remedy = f"; write {instead}" if instead else ""
            return f"devices() returned {shown(each)} at [{index}], not a Device or Pool{remedy}"
    return "devices() returned Device and Pool objects; return those of one kind"


def _remedy_of_lists(refused: ResourceSlice, error: str) -> str:
    """Return what to do if attributes are refused because lists are not enabled; empty if not."""
    attributes = {
        name: value
        for device in refused.spec.devices or ()
        for name, value in device.attributes.items()
    }
    # The server drops the list, and then misses the attribute's value.
    names = {each for each in _REFUSED_ATTRIBUTE.findall(error) if each in attributes}
    lists = {name for name in names if is_list(attributes[name])}
    if not lists:
        return ""
    gate = f"enable feature gate {Gate.DRA_LIST_TYPE_ATTRIBUTES} in the cluster"
    scalar = ", or start the driver with --numa-node scalar" if lists == {NUMA_NODE} else ""
    return f"; for attributes with lists, {gate}{scalar}"


def _is_at(revision: str, expected: str) -> bool:
    if revision.isdigit() and expected.isdigit():
        return int(revision) >= int(expected)
    return revision == expected


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
