"""Why claims get no devices: which devices each subrequest rejects, and which request gets stuck.

Nothing of this is computed while allocating. On demand it looks at the problem again: first at
every device by itself, before any pick; then for the first request that cannot be served together
with those before it. A device that a selector rejects is reported as such even if it is also in
use, which explains more than the allocator's own order.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from moorage.allocator.errors import AllocationError, OutOfStepsError
from moorage.allocator.feasibility import Feasibility
from moorage.allocator.ledger import ClaimKey
from moorage.allocator.node_view import NodeView
from moorage.allocator.pools import PoolId, PoolState, bits
from moorage.allocator.problem import Problem, Slot
from moorage.allocator.requests import SubRequest
from moorage.allocator.rules.base import InUseRule, Rule
from moorage.allocator.rules.constraints import CompatibilityRule, Constraint
from moorage.allocator.rules.consumption import ConsumptionRule
from moorage.allocator.search import Search
from moorage.allocator.taints import blocking_taint

TRACE_STEPS_MAX = 2_000


class RejectionCause(Enum):
    """Why a device is rejected."""

    IN_USE = "in use"
    BINDING_CONDITIONS = "has binding conditions, and the feature is off"
    CLASS_SELECTOR = "does not match the class"
    SELECTOR = "does not match the request"
    NODE = "is not for this node"
    CAPACITY = "has not the capacity"
    NODE_OPERATIONS = "needs a node that can skip operations"
    COUNTERS_OFF = "consumes counters, and the feature is off"
    TAINT = "is tainted"
    COMPATIBILITY = "is not compatible with devices in use"
    LEFT = "has not enough left of a counter or capacity"
    ATTRIBUTE = "lacks the attribute of a constraint"
    FAULT = "cannot be judged"


# Causes that may come with others.
BEARABLE = frozenset(
    [RejectionCause.TAINT, RejectionCause.IN_USE, RejectionCause.LEFT, RejectionCause.COMPATIBILITY]
)


class DeviceRejection(NamedTuple):
    """Why a subrequest cannot have a device."""

    position: int
    device: str
    cause: RejectionCause
    detail: str = ""
    holders: tuple[ClaimKey, ...] = ()


class RequestTrace(NamedTuple):
    """The devices of one subrequest, looked at by itself."""

    request: SubRequest
    wanted: int
    possible: tuple[int, ...]  # positions of the devices that no rule rejects
    rejections: tuple[DeviceRejection, ...]


class Trace(NamedTuple):
    """Why a problem has no solution."""

    requests: tuple[RequestTrace, ...]
    unusable: tuple[tuple[PoolId, PoolState, str], ...]  # pools without usable devices
    stuck_at: int | None  # the first request that cannot be served with those before it


def trace(problem: Problem) -> Trace:
    """Return why a problem has no solution."""
    pools = [pool for pool in problem.view.seen if pool.state is not PoolState.USABLE]
    return Trace(
        requests=tuple(_request_trace(problem, slot) for stage in problem.stages for slot in stage),
        unusable=tuple((pool.id, pool.state, pool.reason) for pool in pools),
        stuck_at=stuck_at(problem),
    )


def causes_against(problem: Problem, position: int) -> tuple[tuple[RejectionCause, str], ...]:
    """Return why a device is rejected for the first request.

    The rules about allocated devices only apply to those that are selected and large enough, so a
    cause that says otherwise ends the list.
    """
    slot = problem.stages[0][0]
    found: list[tuple[RejectionCause, str]] = []
    for cause in _causes(problem, slot, position):
        found.append(cause)
        if cause[0] not in BEARABLE:
            break
    return tuple(found)


def _request_trace(problem: Problem, slot: Slot) -> RequestTrace:
    refusals = tuple(
        refusal
        for position in range(len(problem.view.devices))
        if (refusal := _rejection(problem, slot, position)) is not None
    )
    refused = {refusal.position for refusal in refusals}
    possible = tuple(p for p in bits(problem.view.all) if p not in refused)
    return RequestTrace(slot.request, slot.count, possible, refusals)


def _rejection(problem: Problem, slot: Slot, position: int) -> DeviceRejection | None:
    """Return the first reason to reject a device."""
    for cause, detail in _causes(problem, slot, position):
        spec = problem.view.slice_of(position).spec
        name = problem.view.devices[position].name
        entries = problem.view.ledger.taken((spec.driver, spec.pool.name)).get(name, ())
        holders = tuple(entry.claim for entry in entries) if cause is RejectionCause.IN_USE else ()
        return DeviceRejection(position, problem.view.device_id(position), cause, detail, holders)
    return None


def _causes(problem: Problem, slot: Slot, position: int) -> Iterator[tuple[RejectionCause, str]]:
    bit = 1 << position
    if position in slot.faults:
        yield RejectionCause.FAULT, slot.faults[position].text
    if not slot.candidates & bit:
        yield _static_cause(problem.view, slot, position)
    for rule in slot.rules:
        yield from _cause_of(rule, problem, slot, position)


def _static_cause(view: NodeView, slot: Slot, position: int) -> tuple[RejectionCause, str]:
    """Return the first static rule that rejects a device."""
    requirements, features = slot.request.requirements, view.features
    device, slice_ = view.devices[position], view.slice_of(position)
    facts = view.pools[view.pool_of(position)]
    local = 1 << position - view.offsets[view.pool_of(position)]
    if device.binding_conditions and not features.device_binding_and_status:
        return RejectionCause.BINDING_CONDITIONS, ""
    for cause, selectors in (
        (RejectionCause.CLASS_SELECTOR, requirements.class_selectors),
        (RejectionCause.SELECTOR, requirements.selectors),
    ):
        for expression in selectors:
            answers = facts.selector(expression)
            answers.ask(local)
            if not answers.yes & local:
                return cause, expression
    if slice_.spec.per_device_node_selection and not view.is_for_node(position):
        return RejectionCause.NODE, ""
    if features.consumable_capacity and not facts.fitting(requirements.amounts).yes & local:
        return RejectionCause.CAPACITY, ", ".join(
            f"{name}={text}" for name, text, _ in requirements.amounts
        )
    if device.consumes_counters and not features.partitionable_devices:
        return RejectionCause.COUNTERS_OFF, ""
    taint = blocking_taint(device, requirements.tolerations) if features.device_taints else None
    if taint is not None:
        return RejectionCause.TAINT, f"{taint.key}={taint.value}:{taint.effect}"
    return RejectionCause.NODE_OPERATIONS, ""


def _cause_of(
    rule: Rule, problem: Problem, slot: Slot, position: int
) -> Iterator[tuple[RejectionCause, str]]:
    try:
        if rule.take(problem.start, slot, position) is not None:
            return
    except AllocationError as error:
        yield RejectionCause.FAULT, str(error)
        return
    match rule:
        case InUseRule():
            yield RejectionCause.IN_USE, ""
        case ConsumptionRule():
            yield RejectionCause.LEFT, ""
        case CompatibilityRule():
            yield RejectionCause.COMPATIBILITY, ""
        case Constraint():
            yield RejectionCause.ATTRIBUTE, rule.attribute


def stuck_at(problem: Problem) -> int | None:
    """Return the first stage that cannot be filled with those before it; None if unknown."""
    low, high = 0, len(problem.stages)
    while low < high:
        middle = (low + high) // 2
        solved = _is_solved(problem.cut(middle + 1))
        if solved is None:
            return None
        if solved:
            low = middle + 1
        else:
            high = middle
    return low if low < len(problem.stages) else None


def _is_solved(problem: Problem) -> bool | None:
    feasibility = Feasibility(problem, interrupt=_go_on)
    names = [""] * len(problem.plan.constraints)
    search = Search(
        problem, names, steps_max=TRACE_STEPS_MAX, feasibility=feasibility, interrupt=_go_on
    )
    try:
        return search.run() is not None
    except (AllocationError, OutOfStepsError):
        return None


def _go_on() -> None:
    """Never interrupt a search."""
