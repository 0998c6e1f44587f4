"""Claims for devices that a driver published, allocated as the scheduler would."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import count

from msgspec.structs import replace

from moorage.allocator.allocation import allocate
from moorage.allocator.features import Features
from moorage.allocator.inventory import Inventory
from moorage.allocator.outcomes import Allocated
from moorage.api.core import Pod
from moorage.api.core.pod import Container, PodSchedulingGate, PodSpec
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    AllocationResult,
    CELDeviceSelector,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceSelector,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceSlice,
)
from moorage.client.contract import list_all
from moorage.client.errors import AlreadyExistsError, ClientError, NotFoundError
from moorage.client.writes import Create, Delete, Target, Update
from moorage.kit.generated_names import new_uid
from moorage.testing.check.bench import Bench

NAMESPACE = "default"
CLASS = "moor-driver-check"


class ClaimFactory:
    """Creates claims on a bench; each gets a device that no other claim has.

    A kubelet prepares claims that are reserved for a pod, and drivers may check that. So claims are
    reserved for one that never runs, if `reserves` is set.
    """

    def __init__(self, bench: Bench, driver: str, *, reserves: bool = False) -> None:
        self._bench, self._driver, self._reserves = bench, driver, reserves
        self._pod: Pod | None = None
        self._numbers = count()
        self._made: dict[str, ResourceClaim] = {}

    async def slices(self) -> list[ResourceSlice]:
        """Return the slices of the driver for the node, or for all nodes."""
        page = await list_all(self._bench.client, ResourceSlice)
        return [each for each in page.values if not self._why_not_ours(each)]

    async def other_slices(self) -> dict[str, str]:
        """Return the slices that are not the driver's, with the reason."""
        page = await list_all(self._bench.client, ResourceSlice)
        found = {each.metadata.name: self._why_not_ours(each) for each in page.values}
        return {name: why for name, why in found.items() if why}

    def _why_not_ours(self, value: ResourceSlice) -> str:
        node = self._bench.node.metadata.name
        if value.spec.driver != self._driver:
            return f"spec.driver is {value.spec.driver}, and {self._driver} is registered"
        if value.spec.node_name not in (None, "", node):
            return f"spec.nodeName is {value.spec.node_name}, and the node is {node}"
        return ""

    @property
    def left(self) -> list[ResourceClaim]:
        """The claims that were created and not dropped."""
        return list(self._made.values())

    async def new(self) -> ResourceClaim:
        """Create a claim without devices."""
        await self._ensure_class()
        metadata = ObjectMeta(name=f"claim-{next(self._numbers)}", namespace=NAMESPACE)
        claim: ResourceClaim = await self._bench.client.write(Create(_unallocated(metadata)))
        self._made[claim.metadata.uid] = claim
        return claim

    async def allocated(self) -> ResourceClaim | None:
        """Create a claim with a device of its own; return None if no device is left."""
        claim = await self.new()
        inventory = await self._inventory()
        answer = allocate(inventory, self._bench.node, [claim])
        if not isinstance(answer, Allocated):
            await self.drop(claim)
            return None
        return await self._give(claim, answer.results(new_uid)[0])

    async def allocated_like(self, other: ResourceClaim) -> ResourceClaim:
        """Create a claim with the same devices as another, which must never happen."""
        assert other.status.allocation is not None
        return await self._give(await self.new(), other.status.allocation)

    async def drop(self, claim: ResourceClaim) -> None:
        """Delete a claim."""
        self._made.pop(claim.metadata.uid, None)
        client = self._bench.client
        found = await client.get(ResourceClaim, NAMESPACE, claim.metadata.name)
        if found is not None:
            await client.write(Delete(Target.of(found)))

    async def end(self) -> None:
        """Delete the pod for which claims were reserved."""
        pod, self._pod = self._pod, None
        if pod is not None:
            with suppress(NotFoundError):
                await self._bench.client.write(Delete(Target.of(pod)))

    async def _reserved(self) -> tuple[ResourceClaimConsumerReference, ...]:
        if not self._reserves:
            return ()
        if self._pod is None:
            try:
                self._pod = await self._bench.client.write(Create(_pod()))
            except ClientError:  # Some clusters forbid such a pod; most drivers do not need it.
                self._reserves = False
                return ()
        metadata = self._pod.metadata
        return (
            ResourceClaimConsumerReference(resource="pods", name=metadata.name, uid=metadata.uid),
        )

    async def _give(self, claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
        reserved_for = await self._reserved()
        status = replace(claim.status, allocation=allocation, reserved_for=reserved_for)
        write = Update(replace(claim, status=status), "status")
        allocated: ResourceClaim = await self._bench.client.write(write)
        self._made[allocated.metadata.uid] = allocated
        return allocated

    async def _inventory(self) -> Inventory:
        inventory = Inventory(Features.of(Gates.parse()))
        inventory.put_class(_class(self._driver))
        for each in await self.slices():
            inventory.put_slice(each)
        for claim in self._made.values():
            if claim.status.allocation is not None:
                inventory.put_claim(claim)
        return inventory

    async def _ensure_class(self) -> None:
        try:
            await self._bench.client.write(Create(_class(self._driver)))
        except AlreadyExistsError:
            return


def results_of(claim: ResourceClaim) -> Sequence[tuple[str, str]]:
    """Return the pools and names of a claim's devices."""
    allocation = claim.status.allocation
    return [(r.pool, r.device) for r in allocation.devices.results] if allocation else []


def share_ids_of(claim: ResourceClaim) -> set[str]:
    """Return the share ids of the devices of a claim."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation else ()
    return {each.share_id for each in results if each.share_id}


def _unallocated(metadata: ObjectMeta) -> ResourceClaim:
    exactly = ExactDeviceRequest(
        device_class_name=CLASS, tolerations=(DeviceToleration(operator="Exists"),)
    )
    request = DeviceRequest(name="devices", exactly=exactly)
    return ResourceClaim(
        metadata=metadata, spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,)))
    )


def _pod() -> Pod:
    """Return a pod that is never scheduled, because of its scheduling gate."""
    return Pod(
        metadata=ObjectMeta(generate_name="moor-driver-check-", namespace=NAMESPACE),
        spec=PodSpec(
            containers=(Container(name="main", image="registry.k8s.io/pause"),),
            scheduling_gates=(PodSchedulingGate(name="moorage/driver-check"),),
        ),
    )


def _class(driver: str) -> DeviceClass:
    cel = CELDeviceSelector(expression=f'device.driver == "{driver}"')
    spec = DeviceClassSpec(selectors=(DeviceSelector(cel=cel),))
    return DeviceClass(metadata=ObjectMeta(name=CLASS), spec=spec)
