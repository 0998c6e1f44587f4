"""Devices that are shared by amounts of their capacity, under all kinds of policies."""

from __future__ import annotations

from random import Random
from typing import Any

from conformance._allocation import Problem
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceCapacity,
    DeviceConstraint,
    ResourceClaim,
)
from tests.allocator.problems.parts import (
    ALL_FEATURES,
    Size,
    allocated,
    amounts,
    attributes,
    claim,
    class_,
    held,
    is_lucky,
    node,
    quantities,
    request,
    share,
    slice_,
    split,
)

DRIVER = "net.example.com"
BANDWIDTH = 10  # of a device, in G


def problem(random: Random, size: Size) -> Problem:
    """Return a problem of shares."""
    count = random.randint(1, 4 if size.is_small else 8)
    devices = [_device(random, number) for number in range(count)]
    features = set(ALL_FEATURES)
    if is_lucky(random, 0.3):
        features.remove("FractionalCapacityRange")
    return Problem(
        features=frozenset(features),
        node=node(),
        classes=(class_("net", f'device.driver == "{DRIVER}"'),),
        slices=(slice_("net", DRIVER, devices),),
        allocated=_allocated(random, devices),
        claims=_claims(random, size, count),
    )


def _device(random: Random, number: int) -> Device:
    capacity = {"bandwidth": DeviceCapacity(Quantity.parse(f"{BANDWIDTH}G"), policy(random, "G"))}
    if is_lucky(random, 0.3):
        capacity["queues"] = DeviceCapacity(Quantity.parse("8"), policy(random, ""))
    shareable = None if is_lucky(random, 0.1) else is_lucky(random, 0.9)
    return Device(
        f"net-{number}",
        attributes({"rack": f"rack-{number % 2}", "index": number}),
        capacity,
        allow_multiple_allocations=shareable,
    )


def policy(random: Random, unit: str) -> CapacityRequestPolicy | None:
    """Return a policy for a capacity of eight or more units."""

    def some_units(*numbers: float) -> list[Quantity]:
        return [Quantity.parse(f"{number}{unit}") for number in numbers]

    default = random.choice([None, *some_units(1)])
    match random.choice(["none", "default", "range", "steps", "fractions", "values"]):
        case "none":
            return None
        case "default":
            return CapacityRequestPolicy(default)
        case "range":
            low, high = some_units(1, random.choice([5, 20]))
            return CapacityRequestPolicy(default, (), CapacityRequestPolicyRange(low, high))
        case "steps":
            low, high, step = some_units(1, 9, 2)
            return CapacityRequestPolicy(default, (), CapacityRequestPolicyRange(low, high, step))
        case "fractions":
            low, high, step = some_units(0.5, 8, 0.5)
            return CapacityRequestPolicy(default, (), CapacityRequestPolicyRange(low, high, step))
        case _:
            return CapacityRequestPolicy(default, tuple(some_units(1, 2, 4, 8)))


def _allocated(random: Random, devices: list[Device]) -> tuple[ResourceClaim, ...]:
    claims = []
    for number, device in enumerate(devices):
        fields: dict[str, Any] = {}
        if device.allow_multiple_allocations:
            consumed = {name: str(random.randint(1, 3)) for name in device.capacity}
            consumed["bandwidth"] += "G"
            fields = {"share_id": share(number), "consumed_capacity": quantities(consumed)}
        if is_lucky(random, 0.2):
            claims.append(allocated(f"other-{number}", [held(DRIVER, device.name, **fields)]))
    return tuple(claims)


def _claims(random: Random, size: Size, devices: int) -> tuple[ResourceClaim, ...]:
    """Return claims for about all the bandwidth there is."""
    # Policies round up, so that what is wanted must be less than what there is.
    total = int(devices * BANDWIDTH * random.choice([0.4, 0.6, 0.7, 0.8, 1.0]))
    parts = split(random, total, random.randint(1, size.slots_max))
    requests = []
    for number, part in enumerate(min(part, BANDWIDTH) for part in parts):
        half = is_lucky(random, 0.1)
        wanted = {"bandwidth": f"{part - 0.5 if half else part}G"}
        if is_lucky(random, 0.1):
            wanted["queues"] = str(random.randint(1, 4))
        if is_lucky(random, 0.02):
            wanted["bandwidth"] = random.choice(["-1G", "0.1m", "100E", "0"])
        asked = None if is_lucky(random, 0.05) else amounts(wanted)
        requests.append(request(f"r{number}", "net", _count(random), capacity=asked))
    constraints: tuple[DeviceConstraint, ...] = ()
    if is_lucky(random, 0.2):
        constraints = (DeviceConstraint(("r0", "r1"), match_attribute=f"{DRIVER}/rack"),)
    return (claim("wanted", requests[: size.slots_max], constraints=constraints),)


def _count(random: Random) -> int:
    return 2 if is_lucky(random, 0.05) else 1
