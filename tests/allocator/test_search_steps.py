"""The work of the search, in steps: little even where the plain search needs millions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from benchmarks._allocation_families import FAMILIES as LARGE
from conformance._allocation import Problem, read_expected, read_problem
from conformance.allocator import filled
from conformance.runner import Case, read_cases
from moorage.allocator import Allocated, AllocationFailed, AllocationOutcome, Unsatisfied, allocate
from moorage.allocator.allocation import Budget
from tests.allocator.problems import FAMILIES, NEAR_CAPACITY, SMALL, problem
from tests.allocator.problems.parts import allocated, claim, held, selectors, share, slice_
from tests.allocator.scenes import (
    DRIVER,
    HERE,
    consuming,
    gpu,
    gpus,
    inventory,
    with_counters,
)
from tests.corpus import corpus

STEPS_MAX = 300  # those without feasibility checks, and a few more
FORESIGHT_ONLY = Budget(light_steps=0)


def cases(name: str) -> Iterator[Case]:
    return read_cases(corpus("allocator", f"{name}.jsonl"))


def asked(posed: Problem, budget: Budget | None = None) -> AllocationOutcome:
    inventory = filled(posed)
    if budget is None:
        return allocate(inventory, posed.node, posed.claims)
    return allocate(inventory, posed.node, posed.claims, budget=budget)


def told(found: AllocationOutcome) -> dict[str, Any]:
    """Return all of an answer but how it was found."""
    match found:
        case Allocated():
            results = found.results(lambda: "share")
            return {"outcome": "allocated", "results": results}
        case Unsatisfied():
            return {"outcome": "none"}
        case AllocationFailed():
            return {"outcome": "error", "error": found.message, "node only": found.node_only}


# --- how much ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LARGE)
def test_large_problems_without_a_solution_take_few_steps(name: str) -> None:
    found = asked(LARGE[name]())
    assert isinstance(found, Unsatisfied)
    assert found.steps <= STEPS_MAX


def test_a_request_that_finds_too_few_devices_takes_no_step() -> None:
    taken = allocated("other", [held(DRIVER, "gpu-0"), held(DRIVER, "gpu-1")])
    few = inventory(slice_("s", DRIVER, gpus(8)), allocated=[taken])
    for wanted in (7, 9):
        found = allocate(few, HERE, [claim("c", [gpu(), gpu("many", count=wanted)])])
        assert isinstance(found, Unsatisfied)
        assert found.steps == 0
    assert isinstance(allocate(few, HERE, [claim("c", [gpu(count=6)])]), Allocated)


def test_recorded_problems_without_a_solution_take_few_steps() -> None:
    steps: dict[str, int] = {}
    for case in cases("perf"):
        if read_expected(case.fields)["outcome"] == "none":
            found = asked(read_problem(case.fields))
            assert isinstance(found, Unsatisfied), case.id
            steps[case.id] = found.steps
    assert len(steps) >= 10
    assert {id_: count for id_, count in steps.items() if count > STEPS_MAX} == {}


def test_recorded_problems_with_a_solution_take_no_more_steps_than_kubernetes() -> None:
    seen = 0
    for case in cases("perf"):
        expected = read_expected(case.fields)
        if expected["outcome"] == "allocated":
            seen += 1
            found = asked(read_problem(case.fields))
            assert isinstance(found, Allocated), case.id
            assert found.steps <= expected["steps"], case.id
    assert seen >= 10


# --- feasibility checks change no answer ---------------------------------------------------------


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "every"), [("rules", 1), ("search-public", 8), ("public", 24)])
def test_feasibility_checks_change_no_answer_of_recorded_problems(name: str, every: int) -> None:
    for case in islice(cases(name), 0, None, every):
        posed = read_problem(case.fields)
        assert told(asked(posed, FORESIGHT_ONLY)) == told(asked(posed)), case.id


@pytest.mark.parametrize("family", FAMILIES)
def test_feasibility_checks_change_no_answer_of_random_problems(family: str) -> None:
    for seed in range(120):
        posed = problem(family, SMALL, f"foresight {seed}")
        assert told(asked(posed, FORESIGHT_ONLY)) == told(asked(posed)), (family, seed)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_few_steps_without_feasibility_checks_change_no_answer(family: str) -> None:
    few = Budget(light_steps=3)
    for seed in range(20):
        posed = problem(family, NEAR_CAPACITY, f"foresight {seed}")
        assert told(asked(posed, few)) == told(asked(posed)), (family, seed)


def test_a_partition_with_shares_is_not_taken_for_one_without() -> None:
    """Both take as much of the counters, but of the one with shares that is paid already."""
    shared = [
        consuming(f"shared-{n}", {"memory": "1"}, allow_multiple_allocations=True) for n in (0, 1)
    ]
    whole = [consuming(f"whole-{n}", {"memory": "1"}) for n in (0, 1)]
    held_share = held(DRIVER, "shared-1", share_id=share(1))
    found = inventory(
        *with_counters({"memory": "2"}, [*shared, *whole]),
        allocated=[allocated("sharer", [held_share])],
    )
    by_kind = [selectors(f"{no}device.allowMultipleAllocations") for no in ("", "!")]
    wanting = claim("claim", [gpu(f"r{n}", selectors=kind) for n, kind in enumerate(by_kind)])
    answer = allocate(found, HERE, [wanting], budget=FORESIGHT_ONLY)
    assert isinstance(answer, Allocated)
    assert [pick.position for pick in answer.solution.picks] == [1, 2]
