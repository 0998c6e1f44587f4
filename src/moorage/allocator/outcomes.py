"""The answers of an attempt to allocate.

Structs have a module of their own, which is never compiled: mypyc ignores the keywords of a class.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from moorage.allocator.problem import Problem
from moorage.allocator.results import NewShareId, assemble
from moorage.allocator.search import Solution
from moorage.allocator.trace import Trace, trace
from moorage.api.resource.v1 import AllocationResult, ResourceClaim


class Allocated(Struct, frozen=True, eq=False):
    """All claims can be allocated on the node."""

    claims: Sequence[ResourceClaim]
    problem: Problem
    solution: Solution
    steps: int

    def results(self, new_share_id: NewShareId) -> tuple[AllocationResult, ...]:
        """Return the result of each claim; every share gets a new id."""
        return assemble(self.problem, self.claims, self.solution, new_share_id)


class Unsatisfied(Struct, frozen=True, eq=False):
    """The claims cannot be allocated on the node now."""

    claims: Sequence[ResourceClaim]
    searched: Problem  # as the search left it: it may not have asked all devices
    steps: int

    @property
    def problem(self) -> Problem:
        """The problem, with all that can be known about its devices."""
        self.searched.settle()
        return self.searched

    def trace(self) -> Trace:
        """Return why: why each device is rejected, and which request gets stuck."""
        return trace(self.problem)


class AllocationFailed(Struct, frozen=True, eq=False):
    """An error ended the attempt."""

    message: str
    node_only: bool = False
    steps: int = 0
    is_given_up: bool = False  # more steps or time might have found a result
    is_put_off: bool = False  # an evaluation was not admitted; the next attempt goes on there


AllocationOutcome = Allocated | Unsatisfied | AllocationFailed
