"""Prepares and undoes claims: the driver's part, and the files about it.

Preparing a claim:                          Undoing it:

1. nobody else has its devices              1. checkpoint: no longer complete
2. checkpoint: begun                        2. the driver undoes its part
3. the driver does its part                 3. CDI spec and metadata removed
4. CDI spec and metadata written
5. checkpoint: complete                     4. removed from the checkpoint

A crash in between leaves a claim that is begun. It keeps its devices from others until the kubelet
prepares it again, which repeats steps 3 to 5, or undoes it. A cancelled call ends at once where it
waits, and otherwise after its current step; steps 3 to 5, and all of undoing, are one step.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from moorage.api.cdi import ContainerEdits
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.structs import shown
from moorage.client.contract import Client
from moorage.client.errors import ClientError
from moorage.driver.checkpoint import (
    Checkpoint,
    PreparedClaim,
    PreparedDevice,
    edits_of,
    stored_edits,
)
from moorage.driver.claim_files import CdiFiles, MetadataFiles, device_names
from moorage.driver.driver import (
    AllocatedDevice,
    Claim,
    ClaimName,
    Driver,
    Prepared,
    PrepareError,
    ResultError,
)
from moorage.driver.driver_calls import call_driver, run_to_completion
from moorage.kit.clock import REAL, Clock

LOG = logging.getLogger(__name__)

EXPECTED = "a list with a Prepared for each device that containers are to get"
LONG_S = 120.0  # how long a deleted claim may block a device before the driver undoes it

T = TypeVar("T")
DeviceKey = tuple[str, str, str, str]  # of a device in its claim


class ClaimPreparer:
    """Prepares the claims of one driver; each claim in one call at a time."""

    def __init__(
        self,
        driver: Driver,
        client: Client,
        checkpoint: Checkpoint,
        cdi: CdiFiles,
        *,
        metadata: MetadataFiles,
        boot_id: str,
        clock: Clock = REAL,
    ) -> None:
        self._driver = driver
        self._client = client
        self._checkpoint = checkpoint
        self._cdi = cdi
        self._metadata = metadata
        self._boot_id = boot_id
        self._clock = clock
        self._obstacles: dict[str, float] = {}  # since when deleted claims block devices, by UID
        # A lock exists for as long as somebody holds it, or waits for it.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._reserving = asyncio.Lock()  # between finding a device free and taking it
        self._storing = asyncio.Lock()  # files are changed by one at a time

    def load(self) -> None:
        """Read the checkpoint, as another instance may have left it."""
        self._checkpoint.load()

    def restore(self) -> None:
        """Make the files match the checkpoint, after a crash or a reboot."""
        self._cdi.restore(self._checkpoint)
        for each in self._checkpoint:
            self._driver.restored(each.claim, tuple(map(_prepared, each.devices)))
        complete = {each.uid: each.claim for each in self._checkpoint if each.is_complete}
        self._metadata.restore(complete)

    @property
    def claims(self) -> tuple[PreparedClaim, ...]:
        """The claims that are prepared, or about to be."""
        return tuple(self._checkpoint)

    # --- preparing --------------------------------------------------------------------------------

    async def prepare(self, claim: Claim) -> PreparedClaim:
        """Prepare a claim and return what its containers need, or raise."""
        async with self._lock(claim.uid):
            return await self._prepare(claim)

    async def _prepare(self, claim: Claim) -> PreparedClaim:
        before = self._checkpoint.get(claim.uid)
        if before is not None and self._still_holds(before, claim):
            # The spec may have been removed.
            await run_to_completion(asyncio.to_thread(self._cdi.write, before))
            return before
        if before is not None and not _has_the_same(before, claim):
            # Reallocated: nobody else would release its old devices.
            await run_to_completion(self._unprepare(before.claim))
        begun = PreparedClaim(
            claim.uid,
            claim.namespace,
            claim.name,
            tuple(PreparedDevice.of(each) for each in claim.devices),
            boot_id=self._boot_id,
        )
        async with self._reserving:
            await self._check_devices(claim)
            await self._store(self._checkpoint.put, begun)
        return await run_to_completion(self._complete(begun, claim))

    async def _complete(self, begun: PreparedClaim, claim: Claim) -> PreparedClaim:
        prepared = by_device(claim, await call_driver(self._driver.prepare, claim))
        complete = replace(begun, is_complete=True, devices=self._devices(claim, prepared))
        return await self._store(self._finish, complete, claim, prepared)

    def _finish(
        self, complete: PreparedClaim, claim: Claim, prepared: dict[DeviceKey, Prepared]
    ) -> PreparedClaim:
        """Write all files of a claim, the checkpoint last."""
        self._cdi.write(complete)
        complete = self._with_metadata(complete, claim, prepared)
        # Not durable: after a power loss the claim is prepared again anyway.
        self._checkpoint.put(complete, is_durable=False)
        return complete

    def _still_holds(self, before: PreparedClaim, claim: Claim) -> bool:
        """Return whether the claim is prepared as requested, since this boot."""
        return (
            self._driver.remembers
            and before.is_complete
            and before.boot_id == self._boot_id
            and _has_the_same(before, claim)
        )

    async def _check_devices(self, claim: Claim) -> None:
        for device in claim.devices:
            if device.share_id or device.has_admin_access:
                continue
            for other in self._checkpoint:
                if other.uid != claim.uid and _has(other, device):
                    await self._take_back(other, device)

    async def _take_back(self, other: PreparedClaim, device: AllocatedDevice) -> None:
        """Undo a claim that was deleted long ago, or raise PrepareError.

        Its containers may still be terminating, which only the kubelet knows. The kubelet undoes
        the claim then; only if it has lost the claim does the driver undo it in the end.
        """
        fact = f"device {device.name} of pool {device.pool} is already prepared for claim {other}"
        if await self._is_live(other, device):
            self._obstacles.pop(other.uid, None)
            raise PrepareError(fact)
        now = self._clock.monotonic()
        is_long = now - self._obstacles.setdefault(other.uid, now) >= LONG_S
        if not is_long or other.uid in self._locks:
            raise PrepareError(f"{fact}, which was deleted: the kubelet has to undo it first")
        LOG.warning("undoing claim %s (%s), which was deleted long ago", other, other.uid)
        await self.unprepare(other.claim)

    async def _is_live(self, other: PreparedClaim, device: AllocatedDevice) -> bool:
        """Return whether a claim still has a device; true if that is unknown."""
        try:
            value = await self._client.get(ResourceClaim, other.namespace, other.name)
        except ClientError as error:
            LOG.warning("claim %s cannot be read: %s", other, error)
            return True
        if value is None or value.metadata.uid != other.uid:
            return False
        allocation = value.status.allocation
        return allocation is not None and any(
            (each.driver, each.pool, each.device) == (self._driver.name, device.pool, device.name)
            for each in allocation.devices.results
        )

    def _devices(
        self, claim: Claim, prepared: dict[DeviceKey, Prepared]
    ) -> tuple[PreparedDevice, ...]:
        names = device_names(claim.uid, claim.devices)
        return tuple(
            self._device(device, prepared.get(device.key), name)
            for device, name in zip(claim.devices, names, strict=True)
        )

    def _device(
        self, device: AllocatedDevice, prepared: Prepared | None, name: str
    ) -> PreparedDevice:
        found = PreparedDevice.of(device)
        if prepared is None:
            return found
        if prepared.edits == ContainerEdits():
            return replace(found, cdi_ids=tuple(prepared.cdi_ids))
        return replace(
            found,
            cdi_ids=(self._cdi.id_of(name), *prepared.cdi_ids),
            cdi_name=name,
            edits=stored_edits(prepared.edits),
        )

    def _with_metadata(
        self, complete: PreparedClaim, claim: Claim, prepared: dict[DeviceKey, Prepared]
    ) -> PreparedClaim:
        """Write metadata, and give the first device of each request its mount."""
        if not self._metadata.is_on:
            return complete
        try:
            every = [prepared.get(each.key, Prepared(each)) for each in claim.devices]
            ids = self._metadata.write(claim, every)
        except Exception as error:
            # Containers can do without; an unprepared claim is worse.
            LOG.error("claim %s is prepared without metadata: %s", claim, error)
            return complete
        devices = []
        for device in complete.devices:
            mount = ids.pop(device.request.partition("/")[0], None)
            more = (*device.cdi_ids, mount) if mount else device.cdi_ids
            devices.append(replace(device, cdi_ids=more))
        return replace(complete, devices=tuple(devices))

    # --- undoing ----------------------------------------------------------------------------------

    async def unprepare(self, claim: ClaimName) -> None:
        """Undo a claim, or raise; an unknown one has no files."""
        async with self._lock(claim.uid):
            await run_to_completion(self._unprepare(claim))
        self._obstacles.pop(claim.uid, None)

    async def _unprepare(self, claim: ClaimName) -> None:
        before = self._checkpoint.get(claim.uid)
        if before is not None and before.is_complete:
            begun = replace(before, is_complete=False)
            await self._store(partial(self._checkpoint.put, is_durable=False), begun)
        await call_driver(self._driver.unprepare, claim)
        await self._store(self._forget, claim)

    def _forget(self, claim: ClaimName) -> None:
        """Remove all files of a claim, then its entry in the checkpoint."""
        self._cdi.remove(claim.uid)
        self._metadata.remove(claim)
        self._checkpoint.remove(claim.uid)

    async def update_metadata(
        self, claim: ClaimName, request: str, prepared: Iterable[Prepared]
    ) -> None:
        """Replace the metadata of a request of a prepared claim."""
        if not self._metadata.is_on:
            raise PrepareError("device metadata is not enabled")
        await self._store(self._update, claim, request, tuple(prepared))

    def _update(self, claim: ClaimName, request: str, prepared: tuple[Prepared, ...]) -> None:
        if self._checkpoint.get(claim.uid) is None:
            self._checkpoint.load()  # another instance may have prepared it
        found = self._checkpoint.get(claim.uid)
        if found is None or not found.is_complete:
            raise PrepareError(f"claim {claim} is not prepared")
        self._metadata.update(claim, request, prepared)

    def _lock(self, uid: str) -> asyncio.Lock:
        return self._locks.setdefault(uid, asyncio.Lock())

    async def _store(self, call: Callable[..., T], *arguments: Any) -> T:
        """Change files in a thread, one change at a time."""
        async with self._storing:
            return await run_to_completion(asyncio.to_thread(call, *arguments))


def by_device(claim: Claim, prepared: Any) -> dict[DeviceKey, Prepared]:
    """Return the prepared devices, or raise ResultError for any other result."""
    if not isinstance(prepared, Iterable) or isinstance(prepared, str | bytes | dict):
        instead = "a list with it" if isinstance(prepared, Prepared) else EXPECTED
        raise ResultError(f"prepare() returned {shown(prepared)}; return {instead}")
    found: dict[DeviceKey, Prepared] = {}
    expected = {each.key for each in claim.devices}
    for index, each in enumerate(prepared):
        if not isinstance(each, Prepared):
            raise ResultError(
                f"prepare() returned {shown(each)} at [{index}], not a Prepared; "
                "write Prepared(device, ContainerEdits(…))"
            )
        key = each.device.key
        if key not in expected:
            raise ResultError(
                f"the driver prepared device {each.device.name} of pool {each.device.pool}, "
                f"which claim {claim} does not have"
            )
        before = found.get(key)
        found[key] = each if before is None else _joined(before, each)
    return found


def _joined(a: Prepared, b: Prepared) -> Prepared:
    return replace(
        b,
        edits=a.edits + b.edits,
        cdi_ids=(*a.cdi_ids, *(each for each in b.cdi_ids if each not in a.cdi_ids)),
        attributes={**a.attributes, **b.attributes},
        network_data=b.network_data or a.network_data,
    )


def _has_the_same(before: PreparedClaim, claim: Claim) -> bool:
    return [each.key for each in before.devices] == [each.key for each in claim.devices]


def _has(claim: PreparedClaim, device: AllocatedDevice) -> bool:
    return any(
        each.is_exclusive and (each.pool, each.name) == (device.pool, device.name)
        for each in claim.devices
    )


def _prepared(device: PreparedDevice) -> Prepared:
    """Return a device as the driver prepared it before."""
    allocated = AllocatedDevice(
        device.request,
        device.pool,
        device.name,
        device.share_id,
        has_admin_access=device.has_admin_access,
    )
    return Prepared(allocated, edits_of(device), device.cdi_ids)
