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
    return [score(shape, state) for state in states]


def score(shape: PodShape, state: NodeState) -> int:
    """Return the score of one node; a resource that it does not have does not count."""
    total, asked, held = state.facts.allocatable, shape.asked_in_scores, state.held_in_scores
    cpu, memory = total.milli_cpu, total.memory
    cpu_left = cpu - asked[0] - held[0]
    memory_left = memory - asked[1] - held[1]
    cpu_score = cpu_left * SCORE_MAX // cpu if cpu_left > 0 else 0
    memory_score = memory_left * SCORE_MAX // memory if memory_left > 0 else 0
    if cpu and memory:
        return (cpu_score + memory_score) // 2
    return cpu_score or memory_score
