"""Allocate the claims of a pod on a node: the entry points of this package.

    claims ─► plan ──┐
                     ├─► problem ─► search ─► Allocated | Unsatisfied | AllocationFailed
    node ──► view ───┘

Claims of one template have one plan, and a plan on an unchanged node one problem; both are cached.
To try many nodes, prepare the claims once. The picks of a solution become one AllocationResult for
each claim, as Kubernetes assembles it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from mooring.allocator.errors import AllocationError, BudgetError, NodeError, OutOfStepsError
from mooring.allocator.feasibility import Feasibility
from mooring.allocator.inventory import Inventory
from mooring.allocator.problem import Problem
from mooring.allocator.requests import PlannedRequest, RequestPlan, SubRequest, claim_name
from mooring.allocator.search import Pick, Search, Solution, is_short
from mooring.allocator.trace import Trace, trace
from mooring.api.core.node import Node
from mooring.api.core.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.api.resource.v1 import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClaimConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from mooring.cel.lang.metering import Admit, Interrupted, NotAdmitted

Interrupt = Callable[[], str | None]

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


NewShareId = Callable[[], str]
Check = Callable[[], None]  # may raise


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


# --- the result of each claim ---------------------------------------------------------------------


def assemble(
    problem: Problem,
    claims: Sequence[ResourceClaim],
    solution: Solution,
    new_share_id: NewShareId,
) -> tuple[AllocationResult, ...]:
    """Return the result of each claim."""
    picks: list[list[Pick]] = [[] for _ in claims]
    for pick in solution.picks:
        picks[pick.request.claim].append(pick)
    chosen: list[list[tuple[PlannedRequest, SubRequest]]] = [[] for _ in claims]
    for request, subrequest in zip(problem.plan.requests, solution.chosen, strict=True):
        chosen[request.claim].append((request, subrequest))
    return tuple(
        [
            AllocationResult(
                devices=DeviceAllocationResult(
                    results=tuple(
                        [_device_result(problem, p, new_share_id) for p in picks[number]]
                    ),
                    config=_configuration(claim, chosen[number]),
                ),
                node_selector=node_selector(problem, picks[number], claim),
            )
            for number, claim in enumerate(claims)
        ]
    )


def _device_result(
    problem: Problem, pick: Pick, new_share_id: NewShareId
) -> DeviceRequestAllocationResult:
    """Return one result; shareID and consumedCapacity only for shareable devices."""
    subrequest, position = pick
    view = problem.view
    device, spec = view.devices[position], view.slice_of(position).spec
    share_id = consumed = None
    if view.shareable >> position & 1:
        share_id = new_share_id()
        consumed = problem.slots[subrequest].consumed.get(position)
    with_binding = view.features.device_binding_and_status
    return DeviceRequestAllocationResult(
        request=subrequest.full_name,
        driver=spec.driver,
        pool=spec.pool.name,
        device=device.name,
        admin_access=True if subrequest.is_admin else None,
        tolerations=subrequest.requirements.tolerations,
        binding_conditions=device.binding_conditions if with_binding else (),
        binding_failure_conditions=device.binding_failure_conditions if with_binding else (),
        share_id=share_id,
        consumed_capacity=dict(consumed) if consumed else None,
        skip_node_operations=spec.skip_node_operations,
    )


def _configuration(
    claim: ResourceClaim, chosen: Sequence[tuple[PlannedRequest, SubRequest]]
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Return the configuration of each class once, then the claim's own."""
    classes: dict[str, list[str]] = {}
    for _, subrequest in chosen:
        if subrequest.device_class.spec.config:
            classes.setdefault(subrequest.device_class.metadata.name, []).append(
                subrequest.full_name
            )
    if not classes and not claim.spec.devices.config:
        return ()
    found: list[DeviceAllocationConfiguration] = []
    for _, subrequest in chosen:
        requests = classes.pop(subrequest.device_class.metadata.name, None)
        if requests is not None:
            found += [
                DeviceAllocationConfiguration(
                    source="FromClass",
                    requests=_unless_all(requests, chosen),
                    opaque=config.opaque,
                )
                for config in subrequest.device_class.spec.config
            ]
    found += [
        DeviceAllocationConfiguration(
            source="FromClaim",
            requests=_unless_all(config.requests, chosen),
            opaque=config.opaque,
        )
        for config in claim.spec.devices.config
        if _applies(config, chosen)
    ]
    return tuple(found)


def _applies(
    config: DeviceClaimConfiguration, chosen: Sequence[tuple[PlannedRequest, SubRequest]]
) -> bool:
    return not config.requests or any(
        _is_named(request, subrequest, config.requests) for request, subrequest in chosen
    )


def _is_named(request: PlannedRequest, subrequest: SubRequest, requests: Sequence[str]) -> bool:
    """Return whether the request, or the alternative that was chosen, is among the requests."""
    return request.name in requests or subrequest.full_name in requests


def _unless_all(
    requests: Sequence[str], chosen: Sequence[tuple[PlannedRequest, SubRequest]]
) -> tuple[str, ...]:
    """Return the requests; none if they are all requests, since none means all."""
    if all(_is_named(request, subrequest, requests) for request, subrequest in chosen):
        return ()
    return tuple(requests)


# --- the node selector of a result ----------------------------------------------------------------


def node_selector(
    problem: Problem, picks: Iterable[Pick], claim: ResourceClaim
) -> NodeSelector | None:
    """Return the nodes on which the devices of a claim can be used; None for all."""
    view = problem.view
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for pick in picks:
        device, slice_ = view.devices[pick.position], view.slice_of(pick.position)
        source = device if slice_.spec.per_device_node_selection else slice_.spec
        if source.node_name is not None or device.binds_to_node:
            return view.this_node
        terms = source.node_selector.node_selector_terms if source.node_selector else None
        if not terms:
            continue
        if len(terms) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {claim.metadata.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        _add_requirements(terms[0].match_fields, fields)
        _add_requirements(terms[0].match_expressions, expressions)
    if not (fields or expressions):
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def _add_requirements(
    requirements: Iterable[NodeSelectorRequirement], found: list[NodeSelectorRequirement]
) -> None:
    """Add the requirements that are not there yet, ignoring the order of values."""
    for requirement in requirements:
        if not any(_same_requirement(requirement, other) for other in found):
            found.append(requirement)


def _same_requirement(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    sides = ((each.key, each.operator, set(each.values)) for each in (one, other))
    return next(sides) == next(sides)
