"""Nodes whose CPU and memory would be used in more equal parts are better."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.scores.scale import SCORE_MAX
from mooring.scheduler.shape import PodShape

HALF = SCORE_MAX // 2


def scores(
    shape: PodShape,
    states: Sequence[NodeState],
    outlook: Outlook,  # noqa: ARG001
) -> list[int] | None:
    """Return by how much the pod makes the use more even, around the middle of the scale."""
    milli_cpu, memory = shape.asked.milli_cpu, shape.asked.memory
    if not (milli_cpu or memory):
        return None
    found = []
    for state in states:
        total, held = state.facts.allocatable, state.held
        before = _evenness(held.milli_cpu, total.milli_cpu, held.memory, total.memory)
        after = _evenness(
            held.milli_cpu + milli_cpu, total.milli_cpu, held.memory + memory, total.memory
        )
        # Go divides towards zero.
        found.append(HALF + int((HALF + after - before) / 2))
    return found


def _evenness(milli_cpu: int, milli_cpu_total: int, memory: int, memory_total: int) -> int:
    """Return 100 if both are used in equal parts, or only one is there; less by half the gap."""
    if milli_cpu_total == 0 or memory_total == 0:
        return SCORE_MAX
    gap = min(milli_cpu / milli_cpu_total, 1.0) - min(memory / memory_total, 1.0)
    return int((1 - abs(gap / 2)) * SCORE_MAX)
