"""Random problems of allocation, the same ones for the same seed.

Each family is a module with `problem(random, size)`. Small problems are small enough for the plain
allocator; problems near capacity want about as much as there is, so some can just be solved and
some just cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from conformance._allocation import Problem
from tests.allocator.problems import consumable, mig, mixed, partitions, topology
from tests.allocator.problems.parts import NEAR_CAPACITY, SMALL, Size

__all__ = ["FAMILIES", "NEAR_CAPACITY", "SMALL", "Problem", "Size", "problem"]

FAMILIES: Mapping[str, Callable[[Random, Size], Problem]] = {
    "consumable": consumable.problem,
    "mig": mig.problem,
    "mixed": mixed.problem,
    "partitions": partitions.problem,
    "topology": topology.problem,
}


def problem(family: str, size: Size, seed: int | str) -> Problem:
    """Return the problem of a family that the seed decides."""
    return FAMILIES[family](Random(f"{family} {size.name} {seed}"), size)
