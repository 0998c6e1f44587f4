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
        cpu_total, memory_total = total.milli_cpu, total.memory
        before = _evenness(held.milli_cpu, cpu_total, held.memory, memory_total)
        after = _evenness(held.milli_cpu + milli_cpu, cpu_total, held.memory + memory, memory_total)
        # Go divides towards zero.
        found.append(HALF + int((HALF + after - before) / 2))
    return found


def _evenness(milli_cpu: int, cpu_total: int, memory: int, memory_total: int) -> int:
    """Return 100 if both are used in equal parts, or only one is there; less by half the gap."""
    if cpu_total == 0 or memory_total == 0:
        return SCORE_MAX
    cpu_part = milli_cpu / cpu_total if milli_cpu < cpu_total else 1.0
    memory_part = memory / memory_total if memory < memory_total else 1.0
    return int((1 - abs((cpu_part - memory_part) / 2)) * SCORE_MAX)
