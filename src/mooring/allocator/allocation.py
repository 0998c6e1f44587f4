"""Allocate the claims of a pod on a node: the door of this room.

    claims ─► wanted ─┐
                      ├─► problem ─► search ─► Allocated | Unsatisfied | Failed
    node ──► view ────┘

What is wanted is the same for every node, so who tries many nodes prepares it once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mooring.allocator.answers import Allocated, Answer, Failed, Unsatisfied
from mooring.allocator.asks import Wanted, wanted
from mooring.allocator.errors import AllocationError, BudgetError, NodeError
from mooring.allocator.foresight import Foresight
from mooring.allocator.inventory import Inventory
from mooring.allocator.problem import Problem
from mooring.allocator.result import node_selector
from mooring.allocator.search import (
    LIGHT_STEPS_MAX,
    STEPS_MAX,
    OutOfSteps,
    Search,
    Solution,
)
from mooring.api.core.node import Node
from mooring.api.resource.v1 import ResourceClaim

Interrupt = Callable[[], str | None]


def prepare(inventory: Inventory, claims: Sequence[ResourceClaim]) -> Wanted:
    """Return what the claims want, for `allocate_wanted` on one node or many."""
    return wanted(claims, features=inventory.features, classes=inventory.device_class)


def allocate(
    inventory: Inventory,
    node: Node,
    claims: Sequence[ResourceClaim],
    *,
    interrupt: Interrupt | None = None,
) -> Answer:
    """Return the devices that the claims get on the node, all of them or none."""
    return allocate_wanted(inventory, node, prepare(inventory, claims), interrupt=interrupt)


def allocate_wanted(
    inventory: Inventory, node: Node, wants: Wanted, *, interrupt: Interrupt | None = None
) -> Answer:
    """Return what prepared claims get on the node.

    `interrupt` is asked now and then; a text that it returns ends the search as a fault.
    """
    steps = 0
    try:
        problem = Problem(wants, inventory.view(node))
        search = Search(problem, steps_max=LIGHT_STEPS_MAX, interrupt=interrupt)
        try:
            solution = search.run()
        except OutOfSteps:
            foresight = Foresight(problem)
            search = Search(
                problem, steps_max=STEPS_MAX, foresight=foresight, interrupt=interrupt
            )
            try:
                solution = search.run()
            except OutOfSteps:
                cause = f"no answer after {STEPS_MAX} steps of the search"
                raise BudgetError(f"filter operation aborted: {cause}") from None
        steps = search.steps
        if solution is None:
            if problem.view.is_invalid:
                raise NodeError("invalid resource pools were encountered")
            return Unsatisfied(problem, steps)
        _check_node_selectors(problem, solution)
    except AllocationError as error:
        return Failed(str(error), isinstance(error, NodeError), steps)
    return Allocated(problem, solution, steps)


def _check_node_selectors(problem: Problem, solution: Solution) -> None:
    """Raise the fault of devices whose node selectors cannot be put together."""
    if problem.view.has_odd_selectors:
        for number, claim in enumerate(problem.wanted.claims):
            picks = [pick for pick in solution.picks if pick.ask.claim == number]
            node_selector(problem, picks, claim)
