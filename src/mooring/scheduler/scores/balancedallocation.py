"""Nodes whose CPU and memory would be used in more equal parts are better."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.room import evenness
from mooring.scheduler.scores.scale import SCORE_MAX
from mooring.scheduler.shape import PodShape

HALF = SCORE_MAX // 2


def scores(
    shape: PodShape,
    states: Sequence[NodeState],
    outlook: Outlook,
) -> list[int] | None:
    """Return by how much the pod makes the use more even, around the middle of the scale."""
    if not tells(shape, outlook):
        return None
    return [score(shape, state) for state in states]


def tells(shape: PodShape, outlook: Outlook) -> bool:  # noqa: ARG001
    """Return whether the pod asks for CPU or memory at all."""
    return bool(shape.asked.milli_cpu or shape.asked.memory)


def score(shape: PodShape, state: NodeState) -> int:
    """Return the score of one node; in the middle if it does not have both."""
    asked, total, held = shape.asked, state.facts.allocatable, state.held
    cpu_total, memory_total = total.milli_cpu, total.memory
    if cpu_total == 0 or memory_total == 0:
        return HALF + HALF // 2
    milli_cpu, memory = held.milli_cpu, held.memory
    before = evenness(milli_cpu, cpu_total, memory, memory_total)
    milli_cpu, memory = milli_cpu + asked.milli_cpu, memory + asked.memory
    after = evenness(milli_cpu, cpu_total, memory, memory_total)
    # Go divides towards zero.
    return HALF + int((HALF + after - before) / 2)
