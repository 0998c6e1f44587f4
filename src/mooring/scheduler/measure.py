"""Judges nodes by their room alone, for shapes that ask for CPU, memory and a place only.

Resources that classes of devices provide may come on top, where the node has none of its own.

What it says is what the filters and scores say; it is there because all kinds of pods look at
every node that one of them has changed.
"""

from __future__ import annotations

from collections.abc import Collection

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.scores.balancedallocation import HALF
from mooring.scheduler.scores.scale import SCORE_MAX
from mooring.scheduler.shape import PodShape


class Measure:
    """Judges nodes for a shape that asks for nothing else."""

    __slots__ = (
        "_cpu",
        "_cpu_in_scores",
        "_delegated",
        "_is_balanced",
        "_memory",
        "_memory_in_scores",
    )

    def __init__(self, shape: PodShape) -> None:
        self._cpu, self._memory = shape.asked.milli_cpu, shape.asked.memory
        self._cpu_in_scores, self._memory_in_scores = shape.asked_in_scores
        self._delegated = tuple(shape.asked.others)  # left to claims, where a node has none
        self._is_balanced = bool(self._cpu or self._memory)

    def __call__(self, state: NodeState) -> int | None:
        """Return the sum of the node's own scores; None: it is full, or odd, so ask the rules."""
        cpu_free, memory_free, pods_free, cpu_left, memory_left, cpu, memory, even = state.room
        wanted_cpu, wanted_memory = self._cpu, self._memory
        if (
            pods_free <= 0
            or cpu_free < wanted_cpu
            or memory_free < wanted_memory
            or not cpu
            or not memory
        ):
            return None
        if self._delegated and any(map(state.facts.allocatable.others.get, self._delegated)):
            return None
        cpu_left -= self._cpu_in_scores
        memory_left -= self._memory_in_scores
        score = (
            (cpu_left * SCORE_MAX // cpu if cpu_left > 0 else 0)
            + (memory_left * SCORE_MAX // memory if memory_left > 0 else 0)
        ) // 2
        if self._is_balanced:
            cpu_part = (cpu - cpu_free + wanted_cpu) / cpu
            memory_part = (memory - memory_free + wanted_memory) / memory
            after = int((1 - abs((cpu_part - memory_part) / 2)) * SCORE_MAX)
            score += HALF + int((HALF + after - even) / 2)
        return score


def measure_for(shape: PodShape, delegated: Collection[str]) -> Measure | None:
    """Return the measure for a shape; None if it asks for something else.

    What classes of devices provide is delegated to claims.
    """
    asked = shape.asked
    if asked.ephemeral_storage or shape.ports or any(n not in delegated for n in asked.others):
        return None
    return Measure(shape)
