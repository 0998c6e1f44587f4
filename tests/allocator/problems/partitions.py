"""Partitions that can be shared: of all shares of one only the first pays for its counters."""

from __future__ import annotations

from random import Random
from typing import Any

from conformance._allocation import Problem
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    ResourceClaim,
    ResourcePool,
)
from tests.allocator.problems.parts import (
    ALL_FEATURES,
    NODE,
    Size,
    allocated,
    amounts,
    claim,
    class_,
    held,
    is_lucky,
    node,
    quantities,
    request,
    share,
    slice_,
)

DRIVER = "gpu.example.com"
SETS = ("gpu-0", "gpu-1")


def problem(random: Random, size: Size) -> Problem:
    """Return a problem of partitions, some of which can be shared."""
    count = random.randint(1, 5 if size.is_small else 10)
    devices = [_device(random, number) for number in range(count)]
    sets = tuple(
        CounterSet(name=name, counters={"memory": _counter(random.randint(0, count + 1))})
        for name in SETS
    )
    pool = ResourcePool(NODE, 1, 2)
    return Problem(
        features=ALL_FEATURES,
        node=node(),
        classes=(class_("gpu"),),
        slices=(
            slice_("counters", DRIVER, None, pool=pool, shared_counters=sets),
            slice_("devices", DRIVER, devices, pool=pool),
        ),
        allocated=_allocated(random, devices),
        claims=_claims(random, size),
    )


def _counter(amount: int) -> Counter:
    return Counter(Quantity.from_int(amount))


def _device(random: Random, number: int) -> Device:
    fields: dict[str, Any] = {}
    if is_lucky(random, 0.6):
        fields["allow_multiple_allocations"] = True
    if is_lucky(random, 0.5):
        fields["capacity"] = {"cores": DeviceCapacity(Quantity.from_int(random.randint(1, 4)))}
    if is_lucky(random, 0.8):
        groups = random.sample("ab", random.randint(0, 2)) if is_lucky(random, 0.3) else ()
        fields["consumes_counters"] = (
            DeviceCounterConsumption(
                counter_set=random.choice(SETS),
                counters={"memory": _counter(random.randint(0, 3))},
                compatibility_groups=tuple(groups),
            ),
        )
    return Device(name=f"part-{number}", **fields)


def _allocated(random: Random, devices: list[Device]) -> tuple[ResourceClaim, ...]:
    if not is_lucky(random, 0.4):
        return ()
    device = random.choice(devices)
    fields: dict[str, Any] = {}
    if device.allow_multiple_allocations:
        fields["share_id"] = share(1)
        if device.capacity:
            fields["consumed_capacity"] = quantities({"cores": "1"})
    return (allocated("owner", [held(DRIVER, device.name, **fields)]),)


def _claims(random: Random, size: Size) -> tuple[ResourceClaim, ...]:
    requests = []
    for number in range(random.randint(1, 4 if size.is_small else 8)):
        wanted = {"cores": str(random.randint(1, 3))} if is_lucky(random, 0.4) else {}
        count = random.randint(1, 2)
        requests.append(request(f"r{number}", "gpu", count, capacity=amounts(wanted)))
    if len(requests) > 1 and is_lucky(random, 0.5):
        return claim("c0", requests[::2]), claim("c1", requests[1::2])
    return (claim("c0", requests),)
