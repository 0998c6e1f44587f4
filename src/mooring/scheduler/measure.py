"""Judges nodes by their room alone, for shapes that ask for CPU, memory and a place only.

Resources that classes of devices provide may come on top, where the node has none of its own.

What it says is what the filters and scores say; it is there because all kinds of pods look at
every node that one of them has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.scores.balancedallocation import HALF
from mooring.scheduler.scores.scale import SCORE_MAX
from mooring.scheduler.shape import PodShape

# Gives the sum of a node's own scores; None: it is full, or odd, so ask the rules.
Measure = Callable[[NodeState], int | None]


def measure_for(shape: PodShape, delegated: Collection[str]) -> Measure | None:
    """Return the measure for a shape; None if it asks for something else.

    What classes of devices provide is delegated to claims.
    """
    asked = shape.asked
    if asked.ephemeral_storage or shape.ports or any(n not in delegated for n in asked.others):
        return None
    measure = _balanced(shape) if asked.milli_cpu or asked.memory else _unbalanced(shape)
    return _unless_own(measure, tuple(asked.others)) if asked.others else measure


# Names in the functions below are plain variables, since these are read fastest.


def _unbalanced(shape: PodShape) -> Measure:
    """Return the measure for pods that ask for neither CPU nor memory."""
    cpu_in_scores, memory_in_scores = shape.asked_in_scores

    def measure(state: NodeState) -> int | None:
        cpu_free, memory_free, pods_free, cpu_left, memory_left, cpu, memory, _ = state.room
        if pods_free <= 0 or cpu_free < 0 or memory_free < 0 or not cpu or not memory:
            return None
        cpu_left -= cpu_in_scores
        memory_left -= memory_in_scores
        return (
            (cpu_left * SCORE_MAX // cpu if cpu_left > 0 else 0)
            + (memory_left * SCORE_MAX // memory if memory_left > 0 else 0)
        ) // 2

    return measure


def _balanced(shape: PodShape) -> Measure:
    """Return the measure for pods that ask for CPU, memory or both."""
    wanted_cpu, wanted_memory = shape.asked.milli_cpu, shape.asked.memory
    cpu_in_scores, memory_in_scores = shape.asked_in_scores

    def measure(state: NodeState) -> int | None:
        cpu_free, memory_free, pods_free, cpu_left, memory_left, cpu, memory, even = state.room
        cpu_free -= wanted_cpu
        memory_free -= wanted_memory
        if pods_free <= 0 or cpu_free < 0 or memory_free < 0 or not cpu or not memory:
            return None
        cpu_left -= cpu_in_scores
        memory_left -= memory_in_scores
        gap = (cpu - cpu_free) / cpu - (memory - memory_free) / memory
        after = int((1 - abs(gap / 2)) * SCORE_MAX)
        return (
            (
                (cpu_left * SCORE_MAX // cpu if cpu_left > 0 else 0)
                + (memory_left * SCORE_MAX // memory if memory_left > 0 else 0)
            )
            // 2
            + HALF
            + int((HALF + after - even) / 2)
        )

    return measure


def _unless_own(measure: Measure, resources: tuple[str, ...]) -> Measure:
    """Return a measure for pods with resources that are left to claims, where a node has none."""

    def measure_others(state: NodeState) -> int | None:
        if any(map(state.facts.allocatable.others.get, resources)):
            return None
        return measure(state)

    return measure_others
