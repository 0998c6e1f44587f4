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
        total, (held_milli_cpu, held_memory) = state.facts.allocatable, state.held_in_scores
        cpu_left = _left(held_milli_cpu + milli_cpu, total.milli_cpu)
        memory_left = _left(held_memory + memory, total.memory)
        if cpu_left is None or memory_left is None:
            found.append(cpu_left or memory_left or 0)
        else:
            found.append((cpu_left + memory_left) // 2)
    return found


def _left(requested: int, total: int) -> int | None:
    """Return the part in percent; None where the node does not have the resource."""
    if total == 0:
        return None
    return 0 if requested > total else (total - requested) * SCORE_MAX // total
