"""Allocate the claims of a pod on a node: the door of this room.

    claims ─► plan ──┐
                     ├─► problem ─► search ─► Allocated | Unsatisfied | Failed
    node ──► view ───┘

Claims of one template have one plan, and a plan on an unchanged node one problem; both are kept.
Who tries many nodes prepares the claims once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mooring.allocator.answers import Allocated, Answer, Failed, Unsatisfied
from mooring.allocator.asks import Plan, claim_name
from mooring.allocator.errors import AllocationError, BudgetError, NodeError, OutOfStepsError
from mooring.allocator.foresight import Foresight
from mooring.allocator.inventory import Inventory
from mooring.allocator.problem import Problem
from mooring.allocator.result import node_selector
from mooring.allocator.search import Search, Solution
from mooring.api.core.node import Node
from mooring.api.resource.v1 import ResourceClaim

Interrupt = Callable[[], str | None]


class Budget(NamedTuple):
    """How much a search may take."""

    light_steps: int = 256  # without foresight, besides one for each device wanted
    steps: int = 20_000
    interrupt: Interrupt | None = None  # asked now and then; a text ends the search with it


BUDGET = Budget()


class Wanted(NamedTuple):
    """Claims that are to be allocated together, and what they want."""

    claims: Sequence[ResourceClaim]
    names: Sequence[str]
    plan: Plan


def prepare(inventory: Inventory, claims: Sequence[ResourceClaim]) -> Wanted:
    """Return what the claims want, for `allocate_wanted` on one node or many."""
    return Wanted(claims, [claim_name(claim) for claim in claims], inventory.plan(claims))


def allocate(
    inventory: Inventory,
    node: Node,
    claims: Sequence[ResourceClaim],
    *,
    budget: Budget = BUDGET,
) -> Answer:
    """Return the devices that the claims get on the node, all of them or none."""
    return allocate_wanted(inventory, node, prepare(inventory, claims), budget=budget)


def allocate_wanted(
    inventory: Inventory, node: Node, wanted: Wanted, *, budget: Budget = BUDGET
) -> Answer:
    """Return what prepared claims get on the node."""
    claims, names, plan = wanted
    try:
        problem = inventory.problem(node, plan)
        if plan.checks:
            problem.check(names)
        solution, steps = _search(problem, names, budget)
        if solution is None:
            if problem.view.is_invalid:
                raise NodeError("invalid resource pools were encountered")
            inventory.note_hopeless(problem)
            return Unsatisfied(claims, problem, steps)
        assert _has_one_user_each(problem, solution)
        if problem.view.has_odd_selectors:
            _check_node_selectors(problem, claims, solution)
    except AllocationError as error:
        return Failed(
            str(error),
            node_only=isinstance(error, NodeError),
            steps=error.steps,
            is_given_up=isinstance(error, BudgetError),
        )
    return Allocated(claims, problem, solution, steps)


def _search(problem: Problem, names: Sequence[str], budget: Budget) -> tuple[Solution | None, int]:
    """Return the first solution, and how many steps it took: lightly first, then with foresight."""

    def interrupt() -> None:
        cause = None if budget.interrupt is None else budget.interrupt()
        if cause is not None:
            raise BudgetError(f"filter operation aborted: {cause}")

    steps_max = budget.light_steps + problem.devices_wanted if budget.light_steps else 0
    light = Search(problem, names, steps_max=steps_max, interrupt=interrupt)
    try:
        return light.run(), light.steps
    except OutOfStepsError:
        pass
    except AllocationError as error:
        error.steps = light.steps
        raise
    foresight = Foresight(problem, interrupt=interrupt)
    search = Search(
        problem, names, steps_max=budget.steps, foresight=foresight, interrupt=interrupt
    )
    try:
        return search.run(), light.steps + search.steps
    except OutOfStepsError:
        cause = f"no answer after {budget.steps} steps of the search"
        raise BudgetError(f"filter operation aborted: {cause}") from None
    except AllocationError as error:
        error.steps = light.steps + search.steps
        raise


def _has_one_user_each(problem: Problem, solution: Solution) -> bool:
    """Return whether no device that cannot be shared is given away twice."""
    used, shareable = problem.taken.whole, problem.view.shareable
    for ask, position in solution.picks:
        if not ask.is_admin and not shareable >> position & 1:
            if used >> position & 1:
                return False
            used |= 1 << position
    return True


def _check_node_selectors(
    problem: Problem, claims: Sequence[ResourceClaim], solution: Solution
) -> None:
    """Raise the fault of devices whose node selectors cannot be put together."""
    for number, claim in enumerate(claims):
        picks = [pick for pick in solution.picks if pick.ask.claim == number]
        node_selector(problem, picks, claim)
