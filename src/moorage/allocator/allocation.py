"""Allocate the claims of a pod on a node: the entry points of this package.

    claims ─► plan ──┐
                     ├─► problem ─► search ─► Allocated | Unsatisfied | AllocationFailed
    node ──► view ───┘

Claims of one template have one plan, and a plan on an unchanged node one problem; both are cached.
To try many nodes, prepare the claims once. The picks of a solution become one AllocationResult for
each claim, as Kubernetes assembles it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from moorage.allocator.errors import AllocationError, BudgetError, NodeError, OutOfStepsError
from moorage.allocator.feasibility import Feasibility
from moorage.allocator.inventory import Inventory
from moorage.allocator.outcomes import Allocated, AllocationFailed, AllocationOutcome, Unsatisfied
from moorage.allocator.problem import Problem
from moorage.allocator.requests import RequestPlan, claim_name
from moorage.allocator.results import node_selector
from moorage.allocator.search import Search, Solution, is_short
from moorage.api.core.node import Node
from moorage.api.resource.v1 import ResourceClaim
from moorage.cel.lang.metering import Admit, Interrupted, NotAdmitted

Interrupt = Callable[[], str | None]
Check = Callable[[], None]  # may raise

LAZY_STEPS = 2_000  # with feasibility checks, before devices are asked that were not reached


class Budget(NamedTuple):
    """The limits of a search."""

    light_steps: int = 256  # without feasibility checks, besides one for each device
    steps: int = 20_000
    interrupt: Interrupt | None = None  # called now and then; a text ends the search
    admit: Admit | None = None  # called before an evaluation with its cost; a text puts it off


BUDGET = Budget()


class PreparedClaims(NamedTuple):
    """Claims to allocate together, and their plan."""

    claims: Sequence[ResourceClaim]
    names: Sequence[str]
    plan: RequestPlan


def prepare(inventory: Inventory, claims: Sequence[ResourceClaim]) -> PreparedClaims:
    """Return the claims with their plan, for `allocate_prepared` on one node or many."""
    return PreparedClaims(claims, [claim_name(claim) for claim in claims], inventory.plan(claims))


def allocate(
    inventory: Inventory,
    node: Node,
    claims: Sequence[ResourceClaim],
    *,
    budget: Budget = BUDGET,
) -> AllocationOutcome:
    """Return the devices that the claims get on the node, all of them or none."""
    return allocate_prepared(inventory, node, prepare(inventory, claims), budget=budget)


def allocate_prepared(
    inventory: Inventory, node: Node, prepared: PreparedClaims, *, budget: Budget = BUDGET
) -> AllocationOutcome:
    """Return the devices that prepared claims get on the node, all of them or none."""
    try:
        if budget.interrupt is None and budget.admit is None:
            return _allocate(inventory, node, prepared, budget)
        with inventory.compiler.meter.bounded(budget.interrupt, budget.admit):
            return _allocate(inventory, node, prepared, budget)
    except AllocationError as error:
        return AllocationFailed(
            str(error),
            node_only=isinstance(error, NodeError),
            steps=error.steps,
            is_given_up=isinstance(error, BudgetError),
        )
    except Interrupted as cause:
        message = f"filter operation aborted: {cause}"
        return AllocationFailed(
            message, is_given_up=True, is_put_off=isinstance(cause, NotAdmitted)
        )


def _allocate(
    inventory: Inventory, node: Node, prepared: PreparedClaims, budget: Budget
) -> Allocated | Unsatisfied:
    claims, names, plan = prepared
    problem = inventory.open_problem(node, plan)
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
    return Allocated(claims, problem, solution, steps)


def _search(problem: Problem, names: Sequence[str], budget: Budget) -> tuple[Solution | None, int]:
    """Return the first solution and the number of steps: first without feasibility checks."""

    def interrupt() -> None:
        cause = None if budget.interrupt is None else budget.interrupt()
        if cause is not None:
            raise BudgetError(f"filter operation aborted: {cause}")

    if is_short(problem):
        return None, 0
    steps_max = budget.light_steps + problem.devices_wanted if budget.light_steps else 0
    light = Search(problem, names, steps_max=steps_max, interrupt=interrupt)
    try:
        return light.run(), light.steps
    except OutOfStepsError:
        pass
    except AllocationError as error:
        error.steps = light.steps
        raise
    steps = light.steps
    if problem.is_lazy:
        # Feasibility checks stop before slots whose devices were not all asked. If that does not
        # do, ask the devices of those that the search has reached.
        try:
            return _foreseeing(problem, names, min(LAZY_STEPS, budget.steps), steps, interrupt)
        except OutOfStepsError:
            steps += LAZY_STEPS
        problem.settle(reached_only=True)
    try:
        return _foreseeing(problem, names, budget.steps, steps, interrupt)
    except OutOfStepsError:
        cause = f"no answer after {budget.steps} steps of the search"
        raise BudgetError(f"filter operation aborted: {cause}") from None


def _foreseeing(
    problem: Problem, names: Sequence[str], steps_max: int, before: int, interrupt: Check
) -> tuple[Solution | None, int]:
    """Return the first solution and the number of steps, with those before: with foresight."""
    feasibility = Feasibility(problem, interrupt=interrupt)
    search = Search(
        problem, names, steps_max=steps_max, feasibility=feasibility, interrupt=interrupt
    )
    try:
        return search.run(), before + search.steps
    except AllocationError as error:
        error.steps = before + search.steps
        raise


def _has_one_user_each(problem: Problem, solution: Solution) -> bool:
    """Return whether no device that cannot be shared is allocated twice."""
    used, shareable = problem.allocated.whole, problem.view.shareable
    for subrequest, position in solution.picks:
        if not subrequest.is_admin and not shareable >> position & 1:
            if used >> position & 1:
                return False
            used |= 1 << position
    return True


def _check_node_selectors(
    problem: Problem, claims: Sequence[ResourceClaim], solution: Solution
) -> None:
    """Raise the error of devices whose node selectors cannot be combined."""
    for number, claim in enumerate(claims):
        picks = [pick for pick in solution.picks if pick.request.claim == number]
        node_selector(problem, picks, claim)
