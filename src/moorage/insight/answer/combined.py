"""Several changes that help together, where none does alone.

    finding ─ its change made ─► explained again ─► next finding ─ its change made ─► … ─► a node

Each step takes the first change after which something else is wrong. The steps are few: whoever has
made more mistakes than that should see one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from moorage.insight.answer.changes.edits import ObjectChange, edited_tree
from moorage.insight.answer.finding import Case, Finding, Fix, FixRank, Proposal
from moorage.insight.explain.pods import explain
from moorage.insight.messages import CAUSE_LENGTH_MAX
from moorage.insight.plan.decisions import decide
from moorage.insight.plan.planner import Plan
from moorage.scheduler.scheduling_cycle import Pending

STEPS_MAX: Final = 4  # changes that are made together
TRIED_MAX: Final = 2  # changes of a step that are explained again
REHEARSED_MAX: Final = 6  # changes of a step that are tried
FINDINGS_MAX: Final = 2  # of a step whose changes are tried
CLAUSE_MIN: Final = 40  # of a cause that is shortened
TRIALS_MAX: Final = 60
STEPS_EACH_MAX: Final = 200  # of a search, when the pod is explained again
ALL_STEPS_MAX: Final = 1_000
MORE: Final = "this is not all"
Find = Callable[[Case], Iterable[Finding]]


class Combined(NamedTuple):
    """Changes that help together, and the cause that names what each is for."""

    cause: str
    fix: Fix


class _Step(NamedTuple):
    """The changes so far, and what is wrong when they are made."""

    taken: tuple[Proposal, ...]
    changes: tuple[ObjectChange, ...]
    causes: tuple[str, ...]
    findings: Sequence[Finding]


def combined(case: Case, findings: Sequence[Finding], find: Find) -> Iterator[Combined]:
    """Yield changes that give the pod a node together; `find` finds what is wrong with a case."""
    step: _Step | None = _Step((), (), (), findings)
    while step is not None and len(step.taken) < STEPS_MAX and not case.is_late:
        if step.taken:
            done = _finished(case, step)
            if done is not None:
                yield done
                return
        step = _next(case, step, find)


def _proposals(findings: Iterable[Finding]) -> Iterator[tuple[Finding, Proposal]]:
    for finding in islice(findings, FINDINGS_MAX):
        for proposal in finding.proposals:
            if proposal.changes and proposal.rank < FixRank.GIVE_UP:
                yield finding, proposal


def _finished(case: Case, step: _Step) -> Combined | None:
    """Return the changes with one more with which the pod gets a node."""
    for finding, proposal in islice(_proposals(step.findings), REHEARSED_MAX):
        changes = joined(step.changes, proposal.changes)
        node = case.rehearsal.node(changes)
        if node is not None:
            taken = (*step.taken, proposal)
            text = "; and ".join(dict.fromkeys(each.text for each in taken))
            fix = Fix(text, max(each.rank for each in taken), changes, node)
            return Combined(joined_causes((*step.causes, finding.cause)), fix)
    return None


def _next(case: Case, step: _Step, find: Find) -> _Step | None:
    """Return the step after the first change with which something else is wrong."""
    for finding, proposal in islice(_proposals(step.findings), TRIED_MAX):
        changes = joined(step.changes, proposal.changes)
        found = _explained(case, changes, find)
        causes = (*step.causes, finding.cause)
        if found and found[0].cause not in causes:
            return _Step((*step.taken, proposal), changes, causes, found)
    return None


def _explained(case: Case, changes: Sequence[ObjectChange], find: Find) -> list[Finding]:
    """Return what is wrong when the changes are made."""
    with case.rehearsal.changed(changes) as made:
        if made is None:
            return []
        outcome = decide(case.cluster, made.pod)
        if not isinstance(outcome, Pending):
            return []
        plan = Plan(made.snapshot, (outcome,), (), lambda: case.cluster)
        effort = case.effort._replace(
            trials_max=TRIALS_MAX, steps_each_max=STEPS_EACH_MAX, steps_max=ALL_STEPS_MAX
        )
        explanation = explain(plan, outcome, effort=lambda: effort)
        again = Case(case.around.changed(plan), explanation)
        return list(islice(find(again), FINDINGS_MAX))


def joined(
    changes: Iterable[ObjectChange], more: Iterable[ObjectChange]
) -> tuple[ObjectChange, ...]:
    """Return changes as if those of `more` were made after the others."""
    found = {change.key: change for change in changes}
    for change in more:
        before = found.get(change.key)
        if before is None or change.new is not None:
            found[change.key] = change
        elif before.new is not None:
            tree = edited_tree(before.new, change.edits)
            found[change.key] = ObjectChange(*change.key, new=tree)
        else:
            found[change.key] = ObjectChange(*change.key, (*before.edits, *change.edits))
    return tuple(found.values())


# --- words ----------------------------------------------------------------------------------


def joined_causes(causes: Sequence[str]) -> str:
    """Return the first cause in full, and as much of the others as there is room for."""
    first, *others = causes
    for start in (first, *_clauses(first)):
        for texts in _shorter(others):
            line = start
            for text in texts:
                line += f" And {text}" if line.endswith("?") else f"; and {text}"
            if len(line) <= CAUSE_LENGTH_MAX:
                return line
    line = f"{first} And {MORE}" if first.endswith("?") else f"{first}; and {MORE}"
    return line if len(line) <= CAUSE_LENGTH_MAX else first


def _shorter(causes: Sequence[str]) -> Iterator[list[str]]:
    """Yield the causes, and then only the first clause of each."""
    yield list(causes)
    yield [next(iter(reversed(list(_clauses(each)))), each) for each in causes]


def _clauses(cause: str) -> Iterator[str]:
    """Yield a cause with ever fewer clauses, as long as it says something."""
    while (end := max(cause.rfind("; "), cause.rfind(": "), cause.rfind(", "))) >= CLAUSE_MIN:
        cause = cause[:end]
        yield cause
