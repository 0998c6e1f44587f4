"""The picture in the documents: two machines of a profile, and claims that have devices there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from msgspec.structs import replace

from moorage.allocator import Allocated, Inventory, allocate
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    AllocationResult,
    CapacityRequirements,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from moorage.hardware import Catalogue, Fleet, NumaNodeForm
from moorage.hardware.attributes import NUMA_NODE, PCIE_ROOT
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.topology import picture

PROFILE = "dgx-h100x2"
CPU = "dra.cpu/cpu"


class ExampleClaim(NamedTuple):
    """A claim of the example: its requests, its machine, and its user."""

    machine: int
    namespace: str
    name: str
    pods: tuple[str, ...]
    together: str  # the attribute that all its devices have in common
    devices: dict[str, int]  # how many of each class
    cpus: str = ""
    memory: str = ""


EXAMPLE_CLAIMS = (
    ExampleClaim(
        machine=0,
        namespace="vision",
        name="train",
        pods=("train-0",),
        together=NUMA_NODE,
        devices={"gpu.nvidia.com": 4, "dra.net": 4},
        cpus="64",
        memory="512Gi",
    ),
    ExampleClaim(
        machine=0,
        namespace="speech",
        name="serve",
        pods=("serve-7c9d", "serve-k2vx"),
        together=NUMA_NODE,
        devices={"gpu.nvidia.com": 2},
        cpus="32",
        memory="256Gi",
    ),
    ExampleClaim(
        machine=1,
        namespace="research",
        name="notebook",
        pods=("notebook",),
        together=PCIE_ROOT,
        devices={"gpu.nvidia.com": 1, "dra.net": 1},
    ),
    ExampleClaim(
        machine=1,
        namespace="batch",
        name="index",
        pods=("index-0",),
        together=NUMA_NODE,
        devices={},
        cpus="40",
        memory="640Gi",
    ),
    ExampleClaim(
        machine=1,
        namespace="batch",
        name="etl",
        pods=("etl-4f2mq",),
        together=NUMA_NODE,
        devices={"dra.net": 1},
        cpus="24",
        memory="128Gi",
    ),
)


def example_picture() -> str:
    """Return the picture as SVG."""
    fleet = Catalogue().fleet(PROFILE, NumaNodeForm.LIST)
    objects = (*fleet.nodes, *fleet.slices, *fleet.classes, _taint_rule(), *_claims(fleet))
    return picture(Snapshot.of(objects), title="Two DGX H100 and five claims")


def _claims(fleet: Fleet) -> Iterator[ResourceClaim]:
    """Give the claims as the allocator serves them, one after the other."""
    inventory = Inventory()
    for slice_ in fleet.slices:
        inventory.put_slice(slice_)
    for device_class in fleet.classes:
        inventory.put_class(device_class)
    numbers = count()
    for wish in EXAMPLE_CLAIMS:
        claim = _claim(wish)
        answer = allocate(inventory, fleet.nodes[wish.machine], [claim])
        assert isinstance(answer, Allocated), wish
        (result,) = answer.results(lambda: f"share-{next(numbers)}")
        served = replace(claim, status=_status(wish, result))
        inventory.put_claim(served)
        yield served


def _claim(wish: ExampleClaim) -> ResourceClaim:
    amounts = {"dra.cpu": (CPU, wish.cpus), "dra.memory": ("size", wish.memory)}
    requests = [_request(name, number) for name, number in wish.devices.items()]
    requests += [
        _request(name, 1, {capacity: Quantity.parse(amount)})
        for name, (capacity, amount) in amounts.items()
        if amount
    ]
    constraint = DeviceConstraint(match_attribute=wish.together)
    return ResourceClaim(
        metadata=ObjectMeta(namespace=wish.namespace, name=wish.name),
        spec=ResourceClaimSpec(
            devices=DeviceClaim(requests=tuple(requests), constraints=(constraint,))
        ),
    )


def _request(
    class_name: str, number: int, capacity: dict[str, Quantity] | None = None
) -> DeviceRequest:
    exactly = ExactDeviceRequest(
        device_class_name=class_name,
        allocation_mode="ExactCount",
        count=number,
        capacity=CapacityRequirements(requests=capacity) if capacity else None,
    )
    return DeviceRequest(name=class_name.replace(".", "-"), exactly=exactly)


def _status(wish: ExampleClaim, result: AllocationResult) -> ResourceClaimStatus:
    users = tuple(
        ResourceClaimConsumerReference(resource="pods", name=pod, uid=pod) for pod in wish.pods
    )
    return ResourceClaimStatus(allocation=result, reserved_for=users)


def _taint_rule() -> DeviceTaintRule:
    selector = DeviceTaintSelector(driver="gpu.nvidia.com", pool="dgx-h100-1", device="gpu-6")
    taint = DeviceTaint(key="example.com/ecc-errors", effect="NoSchedule")
    return DeviceTaintRule(
        metadata=ObjectMeta(name="ecc-errors"),
        spec=DeviceTaintRuleSpec(device_selector=selector, taint=taint),
    )
