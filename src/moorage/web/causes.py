"""Finds the causes of all pending pods of a plan."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from moorage.insight.answer.answer import answers
from moorage.insight.answer.finding import Answer
from moorage.insight.explain.pods import DiagnosisTimeLimit, Explanation
from moorage.insight.plan.planner import Plan, Progress, unwatched
from moorage.insight.snapshot.written_objects import DroppedFields, RefusedObject
from moorage.scheduler.scheduling_cycle import Pending
from moorage.validation.strategy import Context
from moorage.web.owner_rows import PodKey
from moorage.web.pending import Cause

ALL_S: Final = 20.0
FREE_TO_GO: Final = "nothing stops it: it would get a node now"


class AnsweredPods(NamedTuple):
    """Pods that wait for the same, and why."""

    pods: Sequence[Pending]
    explanation: Explanation
    answer: Answer

    @property
    def causes(self) -> dict[PodKey, Cause]:
        """The cause of each of them."""
        metadata = [each.pod.metadata for each in self.pods]
        return {(m.namespace, m.name): Cause(self.answer.cause, m.uid) for m in metadata}


def find_causes(
    plan: Plan,
    context: Context,
    *,
    refused: Sequence[RefusedObject] = (),
    dropped: Sequence[DroppedFields] = (),
    progress: Progress = unwatched,
) -> dict[PodKey, Cause]:
    """Return the cause of each pending pod, in bounded time.

    When time runs out, the remaining pods keep the scheduler's reason as their cause.
    """
    found = first_causes(plan)
    for each in find_answers(plan, context, refused=refused, dropped=dropped, progress=progress):
        found |= each.causes
    return found


def first_causes(plan: Plan) -> dict[PodKey, Cause]:
    """Return the causes that are known without looking for them."""
    found = {
        (each.pod.metadata.namespace, each.pod.metadata.name): Cause(
            FREE_TO_GO, each.pod.metadata.uid
        )
        for each in plan.placed
    }
    for each in plan.pending:
        metadata = each.pod.metadata
        found[metadata.namespace, metadata.name] = Cause(each.message or each.reason, metadata.uid)
    return found


def find_answers(
    plan: Plan,
    context: Context,
    *,
    refused: Sequence[RefusedObject] = (),
    dropped: Sequence[DroppedFields] = (),
    progress: Progress = unwatched,
) -> Iterator[AnsweredPods]:
    """Yield why pods wait, in bounded time."""
    end_s = time.monotonic() + ALL_S
    explained = answers(
        plan,
        plan.pending,
        context,
        refused=refused,
        dropped=dropped,
        effort=DiagnosisTimeLimit(time.monotonic).effort,
        progress=progress,
    )
    for found in explained:
        yield AnsweredPods(*found)
        if time.monotonic() > end_s:
            break
