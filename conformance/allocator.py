"""Allocation: which devices a claim gets on a node, against Kubernetes' experimental allocator.

P counts cases in which the outcome and, where devices were allocated, every result, configuration
and node selector are equal. Error texts, confusions of error and none, and the tags of mismatches
are figures above the last line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from conformance._allocation import (
    Answer,
    Answering,
    Problem,
    essence,
    read_expected,
    read_problem,
    recorded_essence,
)
from conformance.runner import Case, Equal, Outcome, Suite, compared
from moorage.allocator import (
    Allocated,
    AllocationFailed,
    Features,
    Inventory,
    Unsatisfied,
    allocate,
)
from moorage.cel.device import CelFeatures, DeviceCompiler

# One for all problems: they have many expressions in common.
COMPILER = DeviceCompiler(CelFeatures(list_attributes=True), extensions=False)
# To this one every expression is expensive, so that devices are asked one by one.
LAZY_COMPILER = DeviceCompiler(
    CelFeatures(list_attributes=True), extensions=False, cheap_cost_max=-1
)
SHARE_ID = "00000000-0000-0000-0000-000000000000"


def open_suite() -> Suite:
    """Return the suite."""
    return AllocatorSuite(answer)


class AllocatorSuite(Suite):
    """The suite of allocator/*.jsonl, for any function that answers problems."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._texts: Counter[bool] = Counter()
        self._confused: Counter[str] = Counter()
        self._tags: Counter[str] = Counter()
        self._mismatched_tags: Counter[str] = Counter()

    def fits(self, case: Case) -> bool:
        """Return whether the case is one of allocation."""
        return {"claims", "slices", "allocatedClaims", "expect"} <= case.fields.keys()

    def compare(self, case: Case) -> Outcome:
        """Compare outcome, results, configurations and node selectors; count the rest."""
        expected = read_expected(case.fields)
        tags = case.fields.get("tags") or ()
        self._tags.update(tags)
        self._mismatched_tags.update(tags)  # until the answer turns out to be equal
        actual = self._answering(read_problem(case.fields))
        self._count_error(expected, actual)
        outcome = compared(recorded_essence(expected), essence(actual))
        if isinstance(outcome, Equal):
            self._mismatched_tags.subtract(tags)
        return outcome

    def _count_error(self, expected: dict[str, Any], actual: Answer) -> None:
        if expected["outcome"] == "error":
            same_text = expected["error"] == actual.error
            same_reach = bool(expected.get("errorNodeOnly")) == actual.node_only
            self._texts[same_text and same_reach] += 1
        if {expected["outcome"], actual.outcome} == {"error", "none"}:
            self._confused[f"{expected['outcome']} answered with {actual.outcome}"] += 1

    def figures(self) -> Iterable[str]:
        """Return how many texts are equal, which were confused, and where mismatches are."""
        if total := self._texts.total():
            yield f"error texts: {self._texts[True]}/{total} equal"
        for confusion, count in sorted(self._confused.items()):
            yield f"{confusion}: {count}"
        for tag, count in sorted((+self._mismatched_tags).items()):
            yield f"mismatches with tag {tag}: {count}/{self._tags[tag]}"


def answer(problem: Problem) -> Answer:
    """Return the allocator's answer to a problem."""
    return answer_with(filled(problem), problem)


def lazy_answer(problem: Problem) -> Answer:
    """Return the allocator's answer to a problem as if all its expressions were expensive."""
    return answer_with(filled(problem, LAZY_COMPILER), problem)


def filled(problem: Problem, compiler: DeviceCompiler = COMPILER) -> Inventory:
    """Return an inventory with the objects of a problem."""
    inventory = Inventory(Features.named(sorted(problem.features)), compiler=compiler)
    for slice_ in problem.slices:
        inventory.put_slice(slice_)
    for class_ in problem.classes:
        inventory.put_class(class_)
    for claim in problem.allocated:
        inventory.put_claim(claim)
    return inventory


def answer_with(inventory: Inventory, problem: Problem) -> Answer:
    """Return the allocator's answer for an inventory that holds the problem's objects."""
    found = allocate(inventory, problem.node, problem.claims)
    match found:
        case Allocated():
            return Answer("allocated", found.results(lambda: SHARE_ID), steps=found.steps)
        case Unsatisfied():
            return Answer("none", steps=found.steps)
        case AllocationFailed():
            return Answer(
                "error", error=found.message, node_only=found.node_only, steps=found.steps
            )
