"""Conflicts are minimal and fixes hold, by the plain allocator, whatever the problem."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from conformance import _plain as plain
from conformance._allocation import read_expected
from conformance._single_changes import single_changes
from conformance.allocator import COMPILER
from conformance.explain import ExplainSuite, faults_of, problem_of, situation_of
from conformance.runner import Equal, read_cases
from moorage.api.resource.v1 import Device, DeviceRequest, DeviceSubRequest
from moorage.insight.explain.diagnosis import diagnose
from tests.allocator.problems import FAMILIES, SMALL, problem
from tests.allocator.problems.parts import claim, request, slice_
from tests.corpus import corpus

SEEDS = range(25)
# One case of so many, for the sake of time.
SAMPLES = {"public": 60, "search-public": 60, "rules": 5, "upstream-table": 5}

families = pytest.mark.parametrize("family", FAMILIES)


@families
def test_conflicts_are_minimal_and_fixes_hold(family: str) -> None:
    explained = 0
    for seed in SEEDS:
        found = diagnose(situation_of(problem(family, SMALL, seed)), compiler=COMPILER)
        if found is not None:
            assert list(faults_of(found)) == [], (family, seed)
            explained += 1
    assert explained > 0


@families
def test_what_one_change_can_fix_gets_such_a_fix(family: str) -> None:
    for seed in range(12):
        asked = problem(family, SMALL, seed)
        found = diagnose(situation_of(asked), compiler=COMPILER)
        if found is None or any(len(fix.changes) == 1 for fix in found.fixes):
            continue
        helping = [c.text for c in single_changes(asked) if plain.is_possible(c.problem)]
        assert helping == [], (family, seed)


@families
def test_only_problems_without_a_solution_are_diagnosed(family: str) -> None:
    for seed in SEEDS:
        asked = problem(family, SMALL, seed)
        is_allocated = plain.allocate(asked).outcome == "allocated"
        found = diagnose(situation_of(asked), compiler=COMPILER)
        assert (found is None) is is_allocated, (family, seed)


@families
def test_leaving_out_what_is_the_same_again_does_not_change_the_verdict(family: str) -> None:
    for seed in range(60):
        asked = problem(family, SMALL, seed)
        expected = plain.allocate(asked).outcome == "allocated"
        assert plain.is_possible(asked) is expected, (family, seed)


def test_the_verdict_heeds_the_limit_of_devices_of_a_claim() -> None:
    alternatives = tuple(
        DeviceSubRequest(f"s{count}", "any", allocation_mode="ExactCount", count=count)
        for count in (33, 34)
    )
    one = request("one", "any")
    for asked, expected in (((one,), True), ((one, DeviceRequest("r", None, alternatives)), False)):
        posed = replace(
            problem("mixed", SMALL, 0),
            features=frozenset({"PrioritizedList"}),
            slices=(slice_("s", "gpu.example.com", [Device(f"gpu-{n}") for n in range(40)]),),
            allocated=(),
            claims=(claim("wanted", asked),),
        )
        assert plain.is_possible(posed) is expected
        assert (plain.allocate(posed).outcome == "allocated") is expected


def test_a_situation_is_the_problem_it_came_from() -> None:
    for seed in SEEDS:
        asked = problem("mixed", SMALL, seed)
        assert problem_of(situation_of(asked)) == asked


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "every"), SAMPLES.items())
def test_explanations_of_recorded_cases_are_proven(name: str, every: int) -> None:
    suite = ExplainSuite()
    cases = read_cases(corpus("allocator", f"{name}.jsonl"))
    unsolved = (c for c in cases if read_expected(c.fields)["outcome"] != "allocated")
    outcomes = {case.id: suite.compare(case) for case in islice(unsolved, 0, None, every)}
    assert {id_ for id_, outcome in outcomes.items() if not isinstance(outcome, Equal)} == set()
    assert any("(100.0 %)" in line for line in suite.figures())
