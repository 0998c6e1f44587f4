"""What an allocation comes to: devices for all claims, no way, or a fault."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.allocator.problem import Problem
from mooring.allocator.result import NewShareId, assemble
from mooring.allocator.search import Solution
from mooring.api.resource.v1 import AllocationResult


@dataclass(frozen=True, eq=False)
class Allocated:
    """All claims can be allocated on the node."""

    problem: Problem
    solution: Solution
    steps: int

    def results(self, new_share_id: NewShareId) -> tuple[AllocationResult, ...]:
        """Return the result of each claim; every share gets an id of its own."""
        return assemble(self.problem, self.solution, new_share_id)


@dataclass(frozen=True, eq=False)
class Unsatisfied:
    """The claims cannot be allocated on the node as things are."""

    problem: Problem
    steps: int


@dataclass(frozen=True, eq=False)
class Failed:
    """The attempt was ended by a fault."""

    message: str
    node_only: bool = False
    steps: int = 0


Answer = Allocated | Unsatisfied | Failed
