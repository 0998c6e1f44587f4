"""Why claims get no devices: which device each ask refuses and why, and where it gets stuck.

Nothing of this is worked out while allocating. It is asked for when someone wants to know, and
looks at the problem again: first at every device by itself, before anything was picked; then for
the first request that cannot be served with those before it. That a device is not meant at all is
said before that it is in use, which tells more than the allocator's own order.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from mooring.allocator.asks import Ask
from mooring.allocator.bits import bits
from mooring.allocator.errors import AllocationError, OutOfStepsError
from mooring.allocator.foresight import Foresight
from mooring.allocator.ledger import ClaimKey
from mooring.allocator.pools import PoolId, PoolState
from mooring.allocator.problem import Problem, Slot
from mooring.allocator.rules.amounts import Amounts
from mooring.allocator.rules.base import Rule
from mooring.allocator.rules.compatibility import Compatibility
from mooring.allocator.rules.constraints import Constraint
from mooring.allocator.rules.in_use import InUse
from mooring.allocator.rules.taints import blocking_taint
from mooring.allocator.search import Search
from mooring.allocator.view import View

TRACE_STEPS_MAX = 2_000


class Cause(Enum):
    """What speaks against a device."""

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


# Causes besides which others can be looked for.
BEARABLE = frozenset([Cause.TAINT, Cause.IN_USE, Cause.LEFT, Cause.COMPATIBILITY])


class Refusal(NamedTuple):
    """Why an ask cannot have a device."""

    position: int
    device: str
    cause: Cause
    detail: str = ""
    holders: tuple[ClaimKey, ...] = ()


class AskTrace(NamedTuple):
    """What becomes of one ask, looked at by itself."""

    ask: Ask
    wanted: int
    possible: tuple[int, ...]  # positions of the devices that nothing speaks against
    refusals: tuple[Refusal, ...]


class Trace(NamedTuple):
    """Why a problem has no solution."""

    asks: tuple[AskTrace, ...]
    unusable: tuple[tuple[PoolId, PoolState, str], ...]  # pools that nothing is taken from
    stuck_at: int | None  # the first request that cannot be served with those before it


def trace(problem: Problem) -> Trace:
    """Return why a problem has no solution."""
    pools = [pool for pool in problem.view.seen if pool.state is not PoolState.USABLE]
    return Trace(
        asks=tuple(_ask(problem, slot) for stage in problem.stages for slot in stage),
        unusable=tuple((pool.id, pool.state, pool.reason) for pool in pools),
        stuck_at=stuck_at(problem),
    )


def causes_against(problem: Problem, position: int) -> tuple[tuple[Cause, str], ...]:
    """Return what speaks against a device for the first request.

    The rules about what is taken know only devices that are meant and large enough, so what says
    otherwise ends the list.
    """
    slot = problem.stages[0][0]
    found: list[tuple[Cause, str]] = []
    for cause in _causes(problem, slot, position):
        found.append(cause)
        if cause[0] not in BEARABLE:
            break
    return tuple(found)


def _ask(problem: Problem, slot: Slot) -> AskTrace:
    refusals = tuple(
        refusal
        for position in range(len(problem.view.spots))
        if (refusal := _refusal(problem, slot, position)) is not None
    )
    refused = {refusal.position for refusal in refusals}
    possible = tuple(p for p in bits(problem.view.all) if p not in refused)
    return AskTrace(slot.ask, slot.count, possible, refusals)


def _refusal(problem: Problem, slot: Slot, position: int) -> Refusal | None:
    """Return the first thing that speaks against a device."""
    for cause, detail in _causes(problem, slot, position):
        spec = problem.view.spots[position].slice.spec
        name = problem.view.spots[position].device.name
        entries = problem.view.ledger.taken((spec.driver, spec.pool.name)).get(name, [])
        holders = tuple(entry.claim for entry in entries) if cause is Cause.IN_USE else ()
        return Refusal(position, problem.view.device_id(position), cause, detail, holders)
    return None


def _causes(problem: Problem, slot: Slot, position: int) -> Iterator[tuple[Cause, str]]:
    bit = 1 << position
    if position in slot.faults:
        yield Cause.FAULT, slot.faults[position].text
    if not slot.candidates & bit:
        yield _static_cause(problem.view, slot, position)
    for rule in slot.rules:
        yield from _cause_of(rule, problem, slot, position)


def _static_cause(view: View, slot: Slot, position: int) -> tuple[Cause, str]:
    """Return which static rule is the first to speak against a device."""
    wish, features = slot.ask.wish, view.features
    device, slice_ = view.spots[position]
    facts = view.pools[view.pool_of(position)]
    local = 1 << position - view.offsets[view.pool_of(position)]
    if device.binding_conditions and not features.device_binding_and_status:
        return Cause.BINDING_CONDITIONS, ""
    for cause, selectors in (
        (Cause.CLASS_SELECTOR, wish.class_selectors),
        (Cause.SELECTOR, wish.selectors),
    ):
        for expression in selectors:
            if not facts.selected((expression,)).yes & local:
                return cause, expression
    if slice_.spec.per_device_node_selection and not view.is_for_node(position):
        return Cause.NODE, ""
    if features.consumable_capacity and not facts.fitting(wish.amounts).yes & local:
        return Cause.CAPACITY, ", ".join(f"{name}={text}" for name, text, _ in wish.amounts)
    if device.consumes_counters and not features.partitionable_devices:
        return Cause.COUNTERS_OFF, ""
    taint = blocking_taint(device, wish.tolerations) if features.device_taints else None
    if taint is not None:
        return Cause.TAINT, f"{taint.key}={taint.value}:{taint.effect}"
    return Cause.NODE_OPERATIONS, ""


def _cause_of(
    rule: Rule, problem: Problem, slot: Slot, position: int
) -> Iterator[tuple[Cause, str]]:
    try:
        if rule.take(problem.start, slot, position) is not None:
            return
    except AllocationError as error:
        yield Cause.FAULT, str(error)
        return
    match rule:
        case InUse():
            yield Cause.IN_USE, ""
        case Amounts():
            yield Cause.LEFT, ""
        case Compatibility():
            yield Cause.COMPATIBILITY, ""
        case Constraint():
            yield Cause.ATTRIBUTE, rule.attribute


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
    foresight = Foresight(problem, interrupt=_go_on)
    names = [""] * len(problem.plan.constraints)
    search = Search(
        problem, names, steps_max=TRACE_STEPS_MAX, foresight=foresight, interrupt=_go_on
    )
    try:
        return search.run() is not None
    except (AllocationError, OutOfStepsError):
        return None


def _go_on() -> None:
    """Let a search go on."""
