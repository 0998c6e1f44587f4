"""Problems that were answered wrongly once, looked at with foresight from the first step on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from conformance._allocation import Problem
from conformance.allocator import filled
from mooring.allocator import Allocated, Failed, allocate
from mooring.allocator.allocation import Budget
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import (
    Counter,
    CounterSet,
    Device,
    DeviceCounterConsumption,
    ResourceClaim,
    ResourcePool,
)
from tests.allocator.problems.parts import ALL_FEATURES, NODE, claim, class_, node, request, slice_

DRIVER = "d.example.com"
FORESIGHT_ONLY = Budget(light_steps=0)


def test_a_device_that_is_shared_takes_its_counters_once() -> None:
    devices = [_device("d0", takes=1, is_shareable=True)]
    requests = [request("r0", "any"), request("r1", "any")]
    assert _answer(devices, [claim("c", requests)], counter=1) == ["d0", "d0"]


# --- short ways to write a problem --------------------------------------------------------------


def _device(name: str, *, takes: int = 0, is_shareable: bool = False, **fields: Any) -> Device:
    """Return a device that takes so much of the counter."""
    consumption = DeviceCounterConsumption("set", {"counter": _counter(takes)})
    return Device(
        name,
        allow_multiple_allocations=is_shareable or None,
        consumes_counters=(consumption,) if takes else (),
        **fields,
    )


def _counter(amount: int) -> Counter:
    return Counter(Quantity.from_int(amount))


def _answer(
    devices: Sequence[Device],
    claims: Sequence[ResourceClaim],
    *,
    counter: int = 0,
    allocated: Iterable[ResourceClaim] = (),
) -> list[str] | str | None:
    """Return the names of the devices that the claims get, an error, or None for no solution."""
    pool = ResourcePool(NODE, 1, 2)
    sets = (CounterSet("set", {"counter": _counter(counter)}),)
    found = Problem(
        features=ALL_FEATURES,
        node=node(),
        classes=(class_("any"),),
        slices=(
            slice_("counters", DRIVER, None, pool=pool, shared_counters=sets),
            slice_("devices", DRIVER, devices, pool=pool),
        ),
        allocated=tuple(allocated),
        claims=tuple(claims),
    )
    answer = allocate(filled(found), found.node, found.claims, budget=FORESIGHT_ONLY)
    if isinstance(answer, Allocated):
        results = answer.results(lambda: "")
        return [given.device for result in results for given in result.devices.results]
    return answer.message if isinstance(answer, Failed) else None
