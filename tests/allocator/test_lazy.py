"""Expensive expressions: only devices that the search reaches are asked, and asking can end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from moorage.allocator import Allocated, AllocationFailed, AllocationOutcome, Inventory, Unsatisfied
from moorage.allocator.allocation import Budget
from moorage.api.resource.v1 import (
    Device,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSelector,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
)
from moorage.cel.device import CHEAP_COST_MAX, CelFeatures, DeviceCompiler
from moorage.cel.lang.metering import CHECK_EVERY_COST
from tests.allocator.problems.parts import (
    allocated,
    attributes,
    claim,
    class_,
    held,
    request,
    slice_,
)
from tests.allocator.problems.parts import selectors as selecting
from tests.allocator.scenes import DRIVER, asked, gpu

OTHER = "nic.example.com"
TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
# True for every device that has an id, after ten thousand rounds.
WORK = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, a + b + c + d >= 0))))"
SLOW = f'device.attributes["{DRIVER}"].id >= 0 && {WORK}'
SLOW_KEY = f'({WORK}) ? device.attributes["{DRIVER}"].id : 0'


def numbered(count: int, first: int = 0) -> list[Device]:
    """Return devices of which no two are alike."""
    return [
        Device(name=f"dev-{number}", attributes=attributes({"id": number}))
        for number in range(first, first + count)
    ]


def scene(*slices: ResourceSlice, taken: Sequence[ResourceClaim] = ()) -> Inventory:
    """Return an inventory that nobody has asked anything."""
    found = Inventory(compiler=DeviceCompiler(CelFeatures(list_attributes=True), extensions=False))
    for each in slices:
        found.put_slice(each)
    for name, expression in (("gpu", "true"), ("mine", f'device.driver == "{DRIVER}"')):
        found.put_class(class_(name, expression))
    for holder in taken:
        found.put_claim(holder)
    return found


def pool(driver: str, devices: Sequence[Device], name: str) -> ResourceSlice:
    return slice_(f"{driver}-{name}", driver, devices, pool=ResourcePool(name, 1, 1))


def matching(*requests: DeviceRequest, key: str = "key") -> ResourceClaim:
    return claim("claim", requests, constraints=(DeviceConstraint(match_attribute=key),))


def evaluations(found: Inventory, expression: str) -> int:
    return found.compiler.meter.work(expression).evaluations


def devices_of(answer: AllocationOutcome) -> list[str]:
    assert isinstance(answer, Allocated), answer
    results = answer.results(lambda: "share")
    return [result.device for each in results for result in each.devices.results]


# --- who is asked ---------------------------------------------------------------------------------


def test_the_expressions_here_are_expensive() -> None:
    compiler = scene().compiler
    assert compiler.compile(SLOW).cost_max > 100 * CHEAP_COST_MAX
    assert compiler.compile(SLOW_KEY, kind="derived").cost_max > 100 * CHEAP_COST_MAX


def test_devices_of_another_driver_are_not_asked_for_a_derived_attribute() -> None:
    found = scene(pool(DRIVER, numbered(1), "gpus"), pool(OTHER, numbered(128), "nics"))
    derived = (DeviceDerivedAttribute("key", SLOW_KEY),)
    wanted = matching(request("r", "mine", derived_attributes=derived))
    assert devices_of(asked(found, wanted)) == ["dev-0"]
    assert evaluations(found, SLOW_KEY) == 1


def test_a_selector_is_asked_of_devices_until_enough_are_found() -> None:
    found = scene(pool(DRIVER, numbered(128), "gpus"))
    wanted = claim("claim", [gpu(count=2, selectors=selecting(SLOW))])
    assert devices_of(asked(found, wanted)) == ["dev-0", "dev-1"]
    assert evaluations(found, SLOW) == 2


def test_a_selector_of_a_class_is_asked_of_devices_until_enough_are_found() -> None:
    found = scene(pool(OTHER, numbered(128), "nics"), pool(DRIVER, numbered(128), "gpus"))
    found.put_class(class_("slow", f'device.driver == "{DRIVER}"', SLOW))
    assert devices_of(asked(found, claim("claim", [request("r", "slow", count=2)]))) == [
        "dev-0",
        "dev-1",
    ]
    assert evaluations(found, SLOW) == 2


def test_a_class_and_a_claim_with_the_same_expression_ask_once() -> None:
    found = scene(pool(DRIVER, numbered(8), "gpus"))
    found.put_class(class_("slow", SLOW))
    wanted = claim("claim", [request("r", "slow", selectors=selecting(SLOW))])
    assert devices_of(asked(found, wanted)) == ["dev-0"]
    assert evaluations(found, SLOW) == 1


def test_devices_in_use_are_not_asked() -> None:
    taken = allocated("other", [held(DRIVER, f"dev-{n}", "gpus") for n in range(7)])
    found = scene(pool(DRIVER, numbered(8), "gpus"), taken=[taken])
    assert devices_of(asked(found, claim("claim", [gpu(selectors=selecting(SLOW))]))) == ["dev-7"]
    assert evaluations(found, SLOW) == 1


def test_a_derived_attribute_is_asked_of_selected_devices_only() -> None:
    found = scene(pool(DRIVER, numbered(64), "gpus"))
    chosen = selecting(f'device.attributes["{DRIVER}"].id == 40')
    derived = (DeviceDerivedAttribute("key", SLOW_KEY),)
    wanted = matching(gpu(selectors=chosen, derived_attributes=derived))
    assert devices_of(asked(found, wanted)) == ["dev-40"]
    assert evaluations(found, SLOW_KEY) == 1


def test_an_expression_is_evaluated_once_for_a_device_whatever_names_it() -> None:
    found = scene(pool(DRIVER, numbered(4), "gpus"))
    for key in ("key", "other"):
        derived = (DeviceDerivedAttribute(key, SLOW_KEY),)
        wanted = matching(gpu(derived_attributes=derived), key=key)
        assert devices_of(asked(found, wanted)) == ["dev-0"]
    assert evaluations(found, SLOW_KEY) == 1


def test_devices_that_look_the_same_to_an_expression_share_its_answer() -> None:
    alike = [
        Device(name=f"dev-{n}", attributes=attributes({"id": 7, "serial": n})) for n in range(16)
    ]
    found = scene(pool(DRIVER, alike, "gpus"))
    wanted = claim("claim", [gpu(count=16, selectors=selecting(SLOW))])
    assert len(devices_of(asked(found, wanted))) == 16
    assert evaluations(found, SLOW) == 1


def test_a_slice_that_is_published_again_is_asked_for_what_changed_only() -> None:
    found = scene(pool(DRIVER, numbered(4), "gpus"))
    wanted = claim("claim", [gpu(count=4, selectors=selecting(SLOW))])
    assert len(devices_of(asked(found, wanted))) == 4
    found.put_slice(pool(DRIVER, [*numbered(3), *numbered(1, first=9)], "gpus"))
    assert devices_of(asked(found, wanted)) == ["dev-0", "dev-1", "dev-2", "dev-9"]
    assert evaluations(found, SLOW) == 5


def test_a_request_that_is_not_reached_asks_nothing() -> None:
    found = scene(pool(DRIVER, numbered(4), "gpus"))
    wanted = claim(
        "claim", [gpu("none", selectors=selecting("false")), gpu("r", selectors=selecting(SLOW))]
    )
    assert isinstance(asked(found, wanted), Unsatisfied)
    assert evaluations(found, SLOW) == 0


def test_too_few_devices_are_found_out_with_one_evaluation_each() -> None:
    found = scene(pool(DRIVER, numbered(14), "gpus"))
    wanted = claim("claim", [gpu(f"r{n}", selectors=selecting(SLOW)) for n in range(15)])
    assert isinstance(asked(found, wanted), Unsatisfied)
    assert evaluations(found, SLOW) == 14


# The same estimates, but evaluated in no time: no id is negative.
ODD_KEY = f'(device.attributes["{DRIVER}"].id < 0 && {WORK}) ? 0 : device.attributes["{DRIVER}"].id'
ODD = f'device.attributes["{DRIVER}"].id >= 0 || {WORK}'


@pytest.mark.parametrize("selectors", [(), selecting(ODD)])
@pytest.mark.parametrize("distinct", [False, True])
def test_a_derived_attribute_that_cannot_match_takes_an_evaluation_for_each_device(
    selectors: tuple[DeviceSelector, ...], distinct: bool
) -> None:
    found = scene(pool(DRIVER, numbered(400), "gpus"))
    derived = (DeviceDerivedAttribute("key", f"{ODD_KEY} * 0" if distinct else ODD_KEY),)
    constraint = DeviceConstraint(distinct_attribute="key")
    if not distinct:
        constraint = DeviceConstraint(match_attribute="key")
    request_ = gpu(count=3, selectors=selectors, derived_attributes=derived)
    answer = asked(found, claim("claim", [request_], constraints=(constraint,)))
    assert isinstance(answer, Unsatisfied)
    assert evaluations(found, derived[0].expression) == 400
    assert answer.steps < 3_000


def test_a_trace_tells_of_devices_that_the_search_did_not_reach() -> None:
    found = scene(pool(DRIVER, numbered(2), "gpus"))
    wanted = claim(
        "claim", [gpu("none", selectors=selecting("false")), gpu("r", selectors=selecting(SLOW))]
    )
    answer = asked(found, wanted)
    assert isinstance(answer, Unsatisfied)
    assert [each.possible for each in answer.trace().requests] == [(), (0, 1)]


# --- faults ---------------------------------------------------------------------------------------

FAULTY = f'device.attributes["{DRIVER}"].odd >= 0 && {WORK}'
NO_KEY = "no such key: odd"


def test_an_error_counts_when_the_search_reaches_its_device() -> None:
    odd = Device(name="odd", attributes=attributes({"odd": 1}))
    found = scene(pool(DRIVER, [odd, *numbered(3)], "gpus"))
    first = claim("claim", [gpu(selectors=selecting(FAULTY))])
    assert devices_of(asked(found, first)) == ["odd"]
    answer = asked(found, claim("claim", [gpu(count=2, selectors=selecting(FAULTY))]))
    assert isinstance(answer, AllocationFailed)
    assert (
        f"selector #0 on device {DRIVER}/gpus/dev-0: CEL runtime error: {NO_KEY}" in answer.message
    )
    assert evaluations(found, FAULTY) == 2


def test_all_devices_are_asked_in_order_up_to_the_first_error() -> None:
    found = scene(pool(DRIVER, numbered(8), "gpus"))
    wanted = claim("claim", [gpu(count=0, allocation_mode="All", selectors=selecting(FAULTY))])
    answer = asked(found, wanted)
    assert isinstance(answer, AllocationFailed)
    assert f"on device {DRIVER}/gpus/dev-0: CEL runtime error: {NO_KEY}" in answer.message
    assert evaluations(found, FAULTY) == 1


# --- ending it ------------------------------------------------------------------------------------


def after(count: int) -> Callable[[], str | None]:
    """Return an interrupt that lets this many checks pass."""
    left = iter(range(count))
    return lambda: None if next(left, None) is not None else "out of time"


def test_a_budget_ends_evaluations_over_six_pools() -> None:
    pools = [pool(DRIVER, numbered(128, first=128 * n), f"pool-{n}") for n in range(6)]
    found = scene(*pools)
    wanted = claim("claim", [gpu(count=32, selectors=selecting(f"!({SLOW})"))])
    answer = asked(found, wanted, budget=Budget(interrupt=after(20)))
    assert isinstance(answer, AllocationFailed)
    assert answer.message == "filter operation aborted: out of time"
    assert answer.is_given_up
    assert not answer.is_put_off
    # An evaluation has a check for each part of its cost, and one before it.
    cost = found.compiler.compile(SLOW).cost_max
    assert evaluations(found, f"!({SLOW})") == 20 // (cost // CHECK_EVERY_COST + 1)


def test_a_budget_ends_derived_attributes_over_six_pools() -> None:
    pools = [pool(DRIVER, numbered(128, first=128 * n), f"pool-{n}") for n in range(6)]
    found = scene(*pools)
    derived = (DeviceDerivedAttribute("key", SLOW_KEY),)
    wanted = matching(gpu(count=2, derived_attributes=derived))
    answer = asked(found, wanted, budget=Budget(interrupt=after(30)))
    assert isinstance(answer, AllocationFailed)
    assert answer.message == "filter operation aborted: out of time"
    assert 1 <= evaluations(found, SLOW_KEY) <= 3


@pytest.mark.parametrize("expression", [SLOW, f"{SLOW} && {{'a': [1].map(x, x)}}.size() == 1"])
def test_an_evaluation_can_be_ended_in_the_middle(expression: str) -> None:
    found = scene(pool(DRIVER, numbered(1), "gpus"))
    wanted = claim("claim", [gpu(selectors=selecting(expression))])
    checks: list[int] = []

    def interrupt() -> str | None:
        checks.append(1)
        return "out of time" if len(checks) == 4 else None

    answer = asked(found, wanted, budget=Budget(interrupt=interrupt))
    assert isinstance(answer, AllocationFailed)
    assert answer.message == "filter operation aborted: out of time"
    assert len(checks) == 4
    assert evaluations(found, expression) == 0
    assert devices_of(asked(found, wanted)) == ["dev-0"]


def test_the_next_attempt_goes_on_where_the_last_was_ended() -> None:
    found = scene(pool(DRIVER, numbered(6), "gpus"))
    wanted = claim("claim", [gpu(count=6, selectors=selecting(SLOW))])
    cost_max = found.compiler.compile(SLOW).cost_max  # compiling is admitted, too
    attempts = 0
    admitted: list[int] = []

    def admit(cost: int) -> str | None:
        if cost <= CHEAP_COST_MAX:
            return None
        admitted.append(cost)
        return None if len(admitted) % 3 else "not now"

    while isinstance(answer := asked(found, wanted, budget=Budget(admit=admit)), AllocationFailed):
        assert answer.is_put_off
        attempts += 1
    assert len(devices_of(answer)) == 6
    assert attempts == 2
    assert evaluations(found, SLOW) == 6
    assert set(admitted) == {cost_max}


def test_a_cheap_selector_over_many_devices_is_ended_between_parts() -> None:
    found = scene(pool(DRIVER, numbered(128), "gpus"))
    text = " && ".join(f'device.attributes["{DRIVER}"].id != {n}' for n in range(-60, 0))
    assert found.compiler.compile(text).is_cheap
    budget = Budget(admit=lambda cost: "not now" if cost > 10_000 else None)
    answer = asked(found, claim("claim", [gpu(selectors=selecting(text))]), budget=budget)
    assert isinstance(answer, AllocationFailed)
    assert answer.is_put_off
    assert evaluations(found, text) == 0
