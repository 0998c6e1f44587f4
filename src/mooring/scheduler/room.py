"""What is left on a node, in the form in which most pods are judged by it.

Most pods ask for some CPU and memory and for nothing else that other pods could take. For them a
node is judged by a few numbers, which are worked out when a pod comes to the node or leaves it,
and not for each kind of pods that looks at the node afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

from mooring.scheduler.amounts import Amounts, Weights

PERCENT = 100


class Room(NamedTuple):
    """What is left of a node."""

    cpu_free: int
    memory_free: int
    pods_free: int
    cpu_left: int  # as scores count it
    memory_left: int
    cpu: int  # in all
    memory: int
    evenness: int  # how equally both are used


NO_ROOM = Room(0, 0, 0, 0, 0, 0, 0, 0)


def room_of(allocatable: Amounts, pods_free: int, held: Amounts, in_scores: Weights) -> Room:
    """Return what is left."""
    cpu, memory = allocatable.milli_cpu, allocatable.memory
    cpu_free, memory_free = cpu - held.milli_cpu, memory - held.memory
    is_odd = cpu_free < 0 or memory_free < 0 or not cpu or not memory
    return Room(
        cpu_free,
        memory_free,
        pods_free,
        cpu - in_scores.milli_cpu,
        memory - in_scores.memory,
        cpu,
        memory,
        0 if is_odd else evenness(held.milli_cpu, cpu, held.memory, memory),
    )


def evenness(milli_cpu: int, cpu_total: int, memory: int, memory_total: int) -> int:
    """Return 100 if both are used in equal parts; less by half the gap."""
    cpu_part = milli_cpu / cpu_total if milli_cpu < cpu_total else 1.0
    memory_part = memory / memory_total if memory < memory_total else 1.0
    return int((1 - abs((cpu_part - memory_part) / 2)) * PERCENT)
