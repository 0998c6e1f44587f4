"""Finds the causes of all pending pods of a plan."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from mooring.insight.answer.answer import answers
from mooring.insight.answer.finding import Unread
from mooring.insight.explain.pods import DiagnosisTimeLimit
from mooring.insight.plan.planner import Plan, Progress, unwatched
from mooring.insight.snapshot.written_objects import DroppedFields, RefusedObject
from mooring.validation.strategy import Context
from mooring.web.owner_rows import PodKey
from mooring.web.pending import Cause

ALL_S: Final = 20.0
FREE_TO_GO: Final = "nothing stops it: it would get a node now"


def find_causes(
    plan: Plan,
    context: Context,
    *,
    refused: Sequence[RefusedObject] = (),
    dropped: Sequence[DroppedFields] = (),
    unread: Unread | None = None,
    progress: Progress = unwatched,
) -> dict[PodKey, Cause]:
    """Return the cause of each pending pod, in bounded time.

    When time runs out, the remaining pods keep the scheduler's reason as their cause.
    """
    end_s = time.monotonic() + ALL_S
    found = {
        (each.pod.metadata.namespace, each.pod.metadata.name): Cause(
            FREE_TO_GO, each.pod.metadata.uid
        )
        for each in plan.placed
    }
    for each in plan.pending:
        metadata = each.pod.metadata
        found[metadata.namespace, metadata.name] = Cause(each.message or each.reason, metadata.uid)
    explained = answers(
        plan,
        plan.pending,
        context,
        refused=refused,
        dropped=dropped,
        unread=unread,
        effort=DiagnosisTimeLimit(time.monotonic).effort,
        progress=progress,
    )
    for pods, _, answer in explained:
        for pending in pods:
            metadata = pending.pod.metadata
            found[metadata.namespace, metadata.name] = Cause(answer.cause, metadata.uid)
        if time.monotonic() > end_s:
            break
    return found
