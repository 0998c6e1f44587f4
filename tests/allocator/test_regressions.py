"""Problems that were answered wrongly once, with feasibility checks from the first step on."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from conformance._allocation import Problem
from conformance.allocator import filled
from moorage.allocator import Allocated, AllocationFailed, Inventory, Unsatisfied, allocate, search
from moorage.allocator.allocation import Budget
from moorage.allocator.pools import Pool
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceSubRequest,
    ResourceClaim,
    ResourcePool,
)
from tests.allocator.problems.parts import (
    ALL_FEATURES,
    NODE,
    allocated,
    amounts,
    attributes,
    claim,
    class_,
    held,
    node,
    request,
    selectors,
    share,
    slice_,
)

DRIVER = "d.example.com"
FORESIGHT_ONLY = Budget(light_steps=0)


@pytest.fixture(autouse=True)
def _no_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "PROBE_STEPS_MAX", 0)


def test_a_device_that_is_shared_takes_its_counters_once() -> None:
    devices = [_device("d0", takes=1, is_shareable=True)]
    requests = [request("r0", "any"), request("r1", "any")]
    assert _answer(devices, [claim("c", requests)], counter=1) == ["d0", "d0"]


def test_a_device_whose_counters_are_paid_is_unlike_one_whose_are_not() -> None:
    devices = [
        _device("d0", takes=1, is_shareable=True),
        _device("d1", takes=1, is_shareable=True),
        *[_device(f"e{number}", takes=1) for number in range(3)],
    ]
    requests = [
        request("r0", "any", selectors=selectors("device.allowMultipleAllocations")),
        request("r1", "any", selectors=selectors("!device.allowMultipleAllocations")),
    ]
    others = [allocated("other", [held(DRIVER, "d1", share_id=share(0))])]
    answer = _answer(devices, [claim("c", requests)], counter=2, others=others)
    assert answer == ["d1", "e0"]


def test_a_request_for_two_devices_is_unlike_two_requests_for_one() -> None:
    capacity = {"memory": DeviceCapacity(Quantity.from_int(1))}
    devices = [
        _device("boundless", is_shareable=True),
        _device("once", is_shareable=True, capacity=capacity),
    ]
    alternatives = (
        DeviceSubRequest("two", "any", (), "ExactCount", 2),
        DeviceSubRequest("one", "any", (), "ExactCount", 1),
    )
    requests = [
        DeviceRequest("r0", first_available=alternatives),
        request("r1", "any"),
        request("r2", "any", 2),
        request("r3", "any"),
    ]
    answer = _answer(devices, [claim("c0", [request("r", "any")]), claim("c1", requests)])
    assert answer == ["boundless", "boundless", "boundless", "boundless", "once", "boundless"]


def test_a_claim_over_the_limit_goes_back_past_devices_with_a_fault() -> None:
    attribute = f'device.attributes["{DRIVER}"]'
    devices = [_device(f"d{n}", attributes=attributes({"index": n})) for n in range(20)]
    faulty = selectors(f"{attribute}.index < 19 || {attribute}.unknown == 1")
    alternatives = (
        DeviceSubRequest("many", "any", faulty, "ExactCount", 16),
        DeviceSubRequest("one", "any", (), "ExactCount", 1),
    )
    requests = [
        DeviceRequest("r0", first_available=alternatives),
        request("r1", "any"),
        request("r2", "any", 17),  # with 16 and 1 more than a claim may have
    ]
    answer = _answer(devices, [claim("c", requests)])
    assert answer == [f"d{n}" for n in range(19)]


def test_an_inventory_keeps_nothing_of_a_pool_that_was_replaced() -> None:
    inventory = Inventory()
    inventory.put_slice(slice_("devices", DRIVER, [_device("replaced")]))
    assert _pools_with("replaced", inventory) == 1
    inventory.put_slice(slice_("devices", DRIVER, [_device("new")]))
    assert _pools_with("new", inventory) == 1
    assert _pools_with("replaced", inventory) == 0


def _pools_with(device: str, inventory: Inventory) -> int:
    """Return how many pools in memory have a device, after a look at the node."""
    inventory.view(node())
    gc.collect()
    pools = [each for each in gc.get_objects() if isinstance(each, Pool)]
    return sum(device in [each.name for each in pool.devices] for pool in pools)


def test_a_result_has_the_amounts_as_the_request_writes_them() -> None:
    capacity = {"memory": DeviceCapacity(Quantity.parse("8Gi"))}
    inventory = Inventory()
    inventory.put_class(class_("any"))
    inventory.put_slice(slice_("s", DRIVER, [_device("d", is_shareable=True, capacity=capacity)]))
    for texts in (["1k", "1e3", "01k"], ["01k", "1e3", "1k"]):
        requests = [
            request(f"r{number}", "any", capacity=amounts({"memory": text}))
            for number, text in enumerate(texts)
        ]
        answer = allocate(inventory, node(), [claim("c", requests)])
        assert isinstance(answer, Allocated)
        given = answer.results(lambda: "")[0].devices.results
        assert [str((g.consumed_capacity or {})["memory"]) for g in given] == texts


def test_all_devices_are_listed_pool_by_pool_until_the_first_fault() -> None:
    inventory = Inventory()
    inventory.put_class(class_("any"))
    first, second = ResourcePool("first", 1, 1), ResourcePool("second", 1, 2)
    inventory.put_slice(slice_("s0", DRIVER, [_device("d")], pool=first))
    inventory.put_slice(slice_("s1", DRIVER, [_device("d")], pool=second))
    faulty = selectors(f'device.attributes["{DRIVER}"].unknown == 1')
    wanted = claim("c", [request("r", "any", 0, allocation_mode="All", selectors=faulty)])
    answer = allocate(inventory, node(), [wanted])
    assert isinstance(answer, AllocationFailed)
    assert answer.message.startswith(f"claim default/c: selector #0 on device {DRIVER}/first/d")


# --- short ways to write a problem --------------------------------------------------------------


def test_all_devices_of_which_one_is_in_use_are_seen_to_be_hopeless() -> None:
    devices = [_device(f"d{n:02}", attributes=attributes({"group": "a"})) for n in range(20)]
    same = (DeviceConstraint(match_attribute=f"{DRIVER}/group"),)
    wants_all = request("all", "any", 0, allocation_mode="All")
    claims = [
        claim("some", [request(f"r{n}", "any", 2) for n in range(4)]),
        claim("all", [wants_all], constraints=same),
    ]
    inventory = Inventory()
    inventory.put_class(class_("any"))
    inventory.put_slice(slice_("devices", DRIVER, devices))
    inventory.put_claim(allocated("other", [held(DRIVER, "d07")]))
    answer = allocate(inventory, node(), claims)
    assert isinstance(answer, Unsatisfied)
    assert answer.steps <= 300


def test_a_request_that_no_device_serves_matters_only_if_one_cannot_be_judged_and_is_free() -> None:
    numbered = [_device(f"d{n:02}", attributes=attributes({"index": n})) for n in range(12)]
    odd = _device("d12")
    index = f'device.attributes["{DRIVER}"].index < 0'
    inventory = Inventory()
    inventory.put_class(class_("any"))
    inventory.put_slice(slice_("devices", DRIVER, [*numbered, odd]))
    hopeless = request("none", "any", selectors=selectors(index))
    for wanted, kind in ((13, Unsatisfied), (12, AllocationFailed)):
        requests = [request(f"r{n:02}", "any") for n in range(wanted)]
        answer = allocate(inventory, node(), [claim("c", [*requests, hopeless])])
        assert isinstance(answer, kind)
        assert answer.steps <= 300


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
    others: Iterable[ResourceClaim] = (),
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
        allocated=tuple(others),
        claims=tuple(claims),
    )
    answer = allocate(filled(found), found.node, found.claims, budget=FORESIGHT_ONLY)
    if isinstance(answer, Allocated):
        results = answer.results(lambda: "")
        return [given.device for result in results for given in result.devices.results]
    return answer.message if isinstance(answer, AllocationFailed) else None
