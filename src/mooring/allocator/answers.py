"""What an allocation comes to: devices for all claims, no way, or a fault."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from mooring.allocator.problem import Problem
from mooring.allocator.result import NewShareId, assemble
from mooring.allocator.search import Solution
from mooring.allocator.trace import Trace, trace
from mooring.api.resource.v1 import AllocationResult, ResourceClaim


class Allocated(Struct, frozen=True, eq=False):
    """All claims can be allocated on the node."""

    claims: Sequence[ResourceClaim]
    problem: Problem
    solution: Solution
    steps: int

    def results(self, new_share_id: NewShareId) -> tuple[AllocationResult, ...]:
        """Return the result of each claim; every share gets an id of its own."""
        return assemble(self.problem, self.claims, self.solution, new_share_id)


class Unsatisfied(Struct, frozen=True, eq=False):
    """The claims cannot be allocated on the node as things are."""

    claims: Sequence[ResourceClaim]
    problem: Problem
    steps: int

    def trace(self) -> Trace:
        """Return why: what speaks against each device, and where it gets stuck."""
        return trace(self.problem)


class Failed(Struct, frozen=True, eq=False):
    """The attempt was ended by a fault."""

    message: str
    node_only: bool = False
    steps: int = 0
    is_given_up: bool = False  # more steps or time might have found an answer


Answer = Allocated | Unsatisfied | Failed
