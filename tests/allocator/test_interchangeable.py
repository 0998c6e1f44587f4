"""Interchangeable devices: a search tries one of them, and finds what it would have found."""

from __future__ import annotations

import pytest

from conformance._allocation import essence, read_expected, read_problem, recorded_essence
from conformance.allocator import answer
from conformance.runner import read_cases
from moorage.allocator import Allocated, Unsatisfied, allocate, search
from moorage.allocator.interchangeable import alike_devices
from moorage.api.resource.v1 import Device, DeviceConstraint
from tests.allocator.problems.parts import attributes, claim, selectors, slice_
from tests.allocator.scenes import DRIVER, HERE, consuming, gpu, gpus, inventory, with_counters
from tests.corpus import corpus

MIXED = [
    *[Device(name=f"a-{n}", attributes=attributes({"root": "a"})) for n in range(2)],
    *[Device(name=f"b-{n}", attributes=attributes({"root": "b"})) for n in range(2)],
    Device(name="shared", allow_multiple_allocations=True),
]


def partitions(count: int) -> list[Device]:
    """Return devices that take 10 of the memory, the first 20, and a counter of their own each."""
    return [
        consuming(f"gpu-{n}", {"memory": "20" if n == 0 else "10", f"own-{n}": "1"})
        for n in range(count)
    ]


def counters(count: int, memory: str) -> dict[str, str]:
    return {"memory": memory} | {f"own-{n}": "1" for n in range(count)}


@pytest.mark.parametrize("file", ["search-public", "rules", "upstream-table"])
def test_recorded_answers_are_found_if_devices_are_exchanged_from_the_first_step_on(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "PLAIN_STEPS", -1000)
    for case in read_cases(corpus("allocator", f"{file}.jsonl")):
        found = answer(read_problem(case.fields))
        assert essence(found) == recorded_essence(read_expected(case.fields)), case.fields["id"]


def test_devices_are_alike_if_no_rule_tells_them_apart() -> None:
    found = inventory(slice_("s", DRIVER, MIXED))
    plain = allocate(found, HERE, [claim("c", [gpu(count=2)])])
    assert isinstance(plain, Allocated)
    # The last one can be shared, so it is like no other.
    assert alike_devices(plain.problem) == dict.fromkeys(range(4), 0b01111)
    constraint = DeviceConstraint(match_attribute=f"{DRIVER}/root")
    matching = allocate(found, HERE, [claim("c", [gpu(count=2)], constraints=(constraint,))])
    assert isinstance(matching, Allocated)
    assert alike_devices(matching.problem) == {0: 0b0011, 1: 0b0011, 2: 0b1100, 3: 0b1100}


def test_a_problem_that_may_end_with_an_error_has_no_interchangeable_devices() -> None:
    found = inventory(slice_("s", DRIVER, gpus(4)))
    failing = selectors(f'device.attributes["{DRIVER}"].missing == 1')
    claims = [claim("c", [gpu(selectors=failing)])]
    problem = found.problem(HERE, found.plan(claims))
    assert alike_devices(problem) == {}


def test_a_counter_of_which_there_is_enough_for_all_tells_no_devices_apart() -> None:
    devices = partitions(8)
    found = inventory(*with_counters(counters(8, "70"), devices))
    seven = allocate(found, HERE, [claim("c", [gpu(count=7)])])
    assert isinstance(seven, Allocated)
    assert [pick.position for pick in seven.solution.picks] == [1, 2, 3, 4, 5, 6, 7]
    assert alike_devices(seven.problem) == {0: 1} | dict.fromkeys(range(1, 8), 0b11111110)
    assert seven.steps <= 40  # of 127 without
    scarce = inventory(*with_counters(counters(8, "70") | {"own-3": "0"}, devices))
    assert isinstance(allocate(scarce, HERE, [claim("c", [gpu(count=7)])]), Unsatisfied)
    six = allocate(scarce, HERE, [claim("c", [gpu(count=6)])])
    assert isinstance(six, Allocated)
    assert 3 not in [pick.position for pick in six.solution.picks]
    assert alike_devices(six.problem)[3] == 1 << 3
