"""The causes of all pending pods of a plan, found out at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mooring.insight.answer.finding import Answer
from mooring.insight.explain.pods import Explanation
from mooring.insight.plan.planner import Plan
from mooring.scheduler.scheduling_cycle import Pending
from mooring.web.owner_rows import PodKey
from mooring.web.pending import Cause

FREE_TO_GO: Final = "nothing stops it: it would get a node now"


def causes_of(
    plan: Plan, answers: Iterable[tuple[list[Pending], Explanation, Answer]]
) -> dict[PodKey, Cause]:
    """Return the cause of each pod that waits."""
    found = {
        (each.pod.metadata.namespace, each.pod.metadata.name): Cause(
            FREE_TO_GO, each.pod.metadata.uid
        )
        for each in plan.placed
    }
    for pods, _, answer in answers:
        for pending in pods:
            metadata = pending.pod.metadata
            found[metadata.namespace, metadata.name] = Cause(answer.cause, metadata.uid)
    return found
