"""Nodes with more CPU and memory left are better."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.scores.scale import SCORE_MAX
from mooring.scheduler.shape import PodShape


def scores(
    shape: PodShape,
    states: Sequence[NodeState],
    outlook: Outlook,  # noqa: ARG001
) -> list[int] | None:
    """Return the part that would be left, averaged over CPU and memory."""
    milli_cpu, memory = shape.asked_in_scores
    found = []
    for state in states:
        total, held = state.facts.allocatable, state.held_in_scores
        parts = [
            _left(held.milli_cpu + milli_cpu, total.milli_cpu),
            _left(held.memory + memory, total.memory),
        ]
        known = [part for part in parts if part is not None]
        found.append(sum(known) // len(known) if known else 0)
    return found


def _left(requested: int, total: int) -> int | None:
    """Return the part in percent; None where the node does not have the resource."""
    if total == 0:
        return None
    return 0 if requested > total else (total - requested) * SCORE_MAX // total
