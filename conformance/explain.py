"""Explanations: why there is no allocation, proven by an allocator that is not the one explained.

The suite checks every allocation case that Kubernetes could not allocate. A case is equal if, by
the plain allocator,

- the conflict is impossible, and without any one of its members it is not;
- every fix that is offered, applied, makes the case allocatable.

Where the plain allocator ends without an answer the case is not proven, and so not equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from statistics import median
from time import process_time

from conformance import _plain as plain
from conformance._allocation import Answer, Problem, read_expected, read_problem
from conformance._single_changes import single_changes
from conformance.allocator import COMPILER, answer
from conformance.runner import EQUAL, Apart, Case, Mismatch, Outcome, Suite
from moorage.allocator import Features
from moorage.insight.explain.conflict import members_of
from moorage.insight.explain.diagnosis import Diagnosis, diagnose
from moorage.insight.explain.fixes import Fix, asks_for_nothing
from moorage.insight.explain.phrases import change_text
from moorage.insight.explain.situation import (
    AskCapacity,
    LowerCount,
    PublishList,
    Situation,
    SituationChange,
)
from moorage.insight.explain.trials import applied

PLAIN_STEPS_MAX = 3_000
VERDICT_STEPS_MAX = 60_000
TIME_MAX_S = 5.0


def open_suite() -> Suite:
    """Return the suite."""
    return ExplainSuite()


class ExplainSuite(Suite):
    """The suite over allocator/*.jsonl."""

    def __init__(self) -> None:
        self._times_s: list[float] = []
        self._outcomes: Counter[str] = Counter()
        self._fixed: Counter[tuple[bool, bool]] = Counter()  # by is_trivial and has a single fix
        self._fixes: Counter[int] = Counter()  # by number of changes
        self._members: Counter[int] = Counter()
        self._unproven = 0

    def fits(self, case: Case) -> bool:
        """Return whether the case is one of allocation."""
        return {"claims", "slices", "allocatedClaims", "expect"} <= case.fields.keys()

    def compare(self, case: Case) -> Outcome:
        """Prove the explanation of a case that cannot be allocated."""
        outcome = read_expected(case.fields)["outcome"]
        if outcome == "allocated":
            return Apart("can be allocated")
        problem = read_problem(case.fields)
        situation = situation_of(problem)
        start = process_time()
        found = diagnose(situation, compiler=COMPILER)
        time_s = process_time() - start
        if found is None:
            return Mismatch((f"recorded outcome is {outcome}, but nothing is in the way",))
        self._outcomes[outcome] += 1
        self._times_s.append(time_s)
        faults = [*faults_of(found)]
        if time_s > TIME_MAX_S:
            faults.append(f"explaining took {time_s:.1f} s")
        self._count(found, problem)
        self._unproven += any(fault.startswith("not proven") for fault in faults)
        return Mismatch(tuple(faults)) if faults else EQUAL

    def _count(self, found: Diagnosis, problem: Problem) -> None:
        self._members[len(found.conflict.members)] += 1
        self._fixes[min((len(fix.changes) for fix in found.fixes), default=0)] += 1
        singles = [fix for fix in found.fixes if len(fix.changes) == 1]
        proper = [fix for fix in singles if not asks_for_nothing(fix, found.situation)]
        fixable, properly = _fixable(problem, singles, proper)
        if fixable:
            self._fixed[True, bool(singles)] += 1
        if properly:
            self._fixed[False, bool(proper)] += 1

    def figures(self) -> Iterable[str]:
        """Return the number of explanations and fixes, and the time they took."""
        if not self._times_s:
            return
        kinds = ", ".join(f"{count} {name}" for name, count in sorted(self._outcomes.items()))
        yield f"explained: {kinds}"
        sizes = ", ".join(f"{count} × {size}" for size, count in sorted(self._members.items()))
        yield f"members of conflicts: {sizes}"
        pairs, nothing = self._fixes[2], self._fixes[0]
        yield f"least changes: {self._fixes[1]} × one, {pairs} × two, {nothing} × none found"
        for is_trivial, note in ((True, ""), (False, ", apart from dropping the only request")):
            fixed, missed = self._fixed[is_trivial, True], self._fixed[is_trivial, False]
            share = 100 * fixed / (fixed + missed or 1)
            yield (
                f"cases that one change can fix{note}: {fixed + missed}, "
                f"with such a fix: {fixed} ({share:.1f} %)"
            )
        yield f"not proven, the plain search ran out of steps: {self._unproven}"
        middle_ms, most_ms = median(self._times_s) * 1000, max(self._times_s) * 1000
        yield f"processor time per case: median {middle_ms:.1f} ms, max {most_ms:.0f} ms"


# --- proofs -------------------------------------------------------------------------------


def faults_of(found: Diagnosis) -> Iterator[str]:
    """Yield the errors that the plain allocator finds in a diagnosis."""
    situation = found.situation
    everything = members_of(situation, found.obstacles)
    kept = found.conflict.members
    if not found.conflict.is_minimal:
        yield "conflict: is said not to be proven"
    yield from _unless(False, situation, _others(everything, kept), "conflict: is possible")
    for member in kept:
        rest = [other for other in kept if other != member]
        text = f"conflict: not needed: {change_text(member, situation)}"
        yield from _unless(True, situation, _others(everything, rest), text)
    for fix in found.fixes:
        texts = " and ".join(change_text(change, situation) for change in fix.changes)
        yield from _unless(True, situation, fix.changes, f"fix does not hold: {texts}")


def _others(
    everything: Iterable[SituationChange], kept: Collection[SituationChange]
) -> list[SituationChange]:
    return [member for member in everything if member not in kept]


def _unless(
    expected: bool, situation: Situation, changes: Collection[SituationChange], text: str
) -> Iterator[str]:
    """Give the text unless the situation with the changes is, or is not, possible."""
    is_possible = possible(problem_of(applied(situation, changes)))
    if is_possible is None:
        yield f"not proven after {VERDICT_STEPS_MAX} steps: {text}"
    elif is_possible is not expected:
        yield text


def possible(problem: Problem) -> bool | None:
    """Return whether the plain allocator can allocate; None if it takes too many steps.

    A long search may skip branches that obviously repeat earlier ones; and if Moorage has found an
    allocation, it is only checked, device by device.
    """
    try:
        return plain.allocate(problem, steps_max=PLAIN_STEPS_MAX).outcome == "allocated"
    except plain.TooManyStepsError:
        pass
    found = answer(problem)
    if found.outcome == "allocated" and is_valid(problem, found):
        return True
    try:
        return plain.is_possible(problem, steps_max=VERDICT_STEPS_MAX)
    except plain.TooManyStepsError:
        return None


def is_valid(problem: Problem, found: Answer) -> bool:
    """Return whether the plain allocator takes the devices of an answer, one after the other."""
    given = [
        (result.request, plain.DeviceId(result.driver, result.pool, result.device))
        for allocation in found.results
        for result in allocation.devices.results
    ]
    try:
        replayed = plain.allocate(problem, only=given, steps_max=PLAIN_STEPS_MAX)
    except plain.TooManyStepsError:
        return False
    return replayed.outcome == "allocated"


def _fixable(problem: Problem, singles: list[Fix], proper: list[Fix]) -> tuple[bool, bool]:
    """Return whether a single change helps, and whether one does that is not to ask for nothing.

    A fix that was offered and is such a change shows it; otherwise all are tried.
    """
    if any(_is_listed(fix) for fix in proper):
        return True, True
    fixable = any(_is_listed(fix) for fix in singles)
    for changed in single_changes(problem):
        if changed.asks_for_nothing and fixable:
            continue
        if possible(changed.problem):
            fixable = True
            if not changed.asks_for_nothing:
                return True, True
    return fixable, False


def _is_listed(fix: Fix) -> bool:
    """Return whether a fix is one of the single changes that are tried."""
    return not isinstance(fix.changes[0], AskCapacity | LowerCount | PublishList)


# --- the same problem in both forms -------------------------------------------------------


def situation_of(problem: Problem) -> Situation:
    """Return the situation that a problem describes."""
    return Situation(
        features=Features.named(sorted(problem.features)),
        node=problem.node,
        classes=problem.classes,
        slices=problem.slices,
        allocated=problem.allocated,
        claims=problem.claims,
    )


def problem_of(situation: Situation) -> Problem:
    """Return the problem of a situation, for the plain allocator."""
    return Problem(
        features=situation.features.names,
        node=situation.node,
        classes=situation.classes,
        slices=situation.slices,
        allocated=situation.allocated,
        claims=situation.claims,
    )
