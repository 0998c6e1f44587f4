"""What rejects a device for a request, with the values that decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from moorage.allocator.errors import AllocationError
from moorage.allocator.ledger import consumed_by_shares
from moorage.allocator.node_view import NodeView
from moorage.allocator.pools import bits
from moorage.allocator.problem import Problem, Slot
from moorage.allocator.requests import SubRequest
from moorage.allocator.rules.base import Rule
from moorage.allocator.rules.constraints import (
    CompatibilityRule,
    Constraint,
    Element,
    MatchAttribute,
    typed,
)
from moorage.allocator.rules.consumption import ConsumptionRule, amounts_of
from moorage.allocator.taints import blocking_taint
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import CapacityRequestPolicy, Device
from moorage.cel.device import DeviceCompiler
from moorage.cel.device_values import device_variables
from moorage.cel.lang.errors import COST_EXCEEDED, EvalError
from moorage.insight.expressions.evaluation import ExpressionEvaluator
from moorage.insight.expressions.explanation import Reason
from moorage.insight.messages import taint_text

OTHERS_MAX = 4
NANO = 10**9


class _Tagged(Struct, frozen=True, tag_field="refused"):
    """Tagged as JSON names the rejection."""


class ForOtherNodes(_Tagged, frozen=True, tag="by its choice of nodes"):
    """The device is for other nodes."""


class NoMatch(_Tagged, frozen=True, tag="by a selector"):
    """A selector does not match."""

    device_class: str  # "" for a selector of the request
    selector: int
    expression: str
    reasons: tuple[Reason, ...]


class InUse(_Tagged, frozen=True, tag="in use"):
    """The device is allocated."""

    holders: tuple[str, ...]


class Tainted(_Tagged, frozen=True, tag="by a taint"):
    """The device has a taint that the request does not tolerate."""

    taint: str  # key=value:effect


class AmountShortage(Struct, frozen=True):
    """A counter or capacity: the total, the remaining and the requested amount."""

    name: str
    there: str
    left: str
    wanted: str


class TooLittle(_Tagged, frozen=True, tag="by an amount"):
    """The device or its pool has too little of some counter or capacity."""

    amounts: tuple[AmountShortage, ...]


class Unfit(_Tagged, frozen=True, tag="as unfit"):
    """The device does not fit for another reason."""

    text: str


class ClashingDevice(Struct, frozen=True):
    """A device that could serve a request, with its value."""

    request: str
    device: str
    value: str


class Clash(_Tagged, frozen=True, tag="by a constraint"):
    """The device's value violates a constraint with devices for other requests."""

    attribute: str
    must_match: bool  # otherwise values must be distinct
    value: str  # "" if it has none
    others: tuple[ClashingDevice, ...]


class NotEvaluable(_Tagged, frozen=True, tag="by a fault"):
    """The device cannot be evaluated."""

    text: str


DeviceRejection = (
    ForOtherNodes | NoMatch | InUse | Tainted | TooLittle | Unfit | Clash | NotEvaluable
)


def rejection_of(
    problem: Problem,
    slot: Slot,
    position: int,
    stage: str,
    fitting: Mapping[SubRequest, int],
    compiler: DeviceCompiler,
) -> DeviceRejection:
    """Return what rejects a device at a stage of its funnel."""
    ask = slot.request
    match stage:
        case "on the node":
            return ForOtherNodes()
        case "of the class":
            name = ask.device_class.metadata.name
            return _no_match(
                problem.view, position, ask.requirements.class_selectors, name, compiler
            )
        case "selected":
            return _no_match(problem.view, position, ask.requirements.selectors, "", compiler)
        case "free":
            return InUse(_holders(problem.view, position))
        case "tolerated":
            taint = blocking_taint(
                problem.view.published[position].device, ask.requirements.tolerations
            )
            assert taint is not None
            return Tainted(taint_text(taint.key, taint.value, taint.effect))
        case "fitting":
            return _unfit(problem, slot, position)
    return _clash(problem, slot, position, fitting)


# --- selectors and claims ---------------------------------------------------------------


def _no_match(
    view: NodeView,
    position: int,
    expressions: tuple[str, ...],
    device_class: str,
    compiler: DeviceCompiler,
) -> DeviceRejection:
    facts = view.pools[view.pool_of(position)]
    local = position - view.offsets[view.pool_of(position)]
    fault = facts.selected(expressions).faults.get(local)
    if fault is not None and (fault.is_compile or COST_EXCEEDED in fault.text):
        return NotEvaluable(f"selector #{fault.selector}: {fault.text}")
    # Expressions are evaluated in turn: the shortest prefix that fails ends with the culprit.
    number = next(
        n
        for n in range(len(expressions))
        if not facts.selected(expressions[: n + 1]).yes >> local & 1
    )
    compiled = compiler.compile(expressions[number])
    spot = view.published[position]
    try:
        variables = device_variables(
            spot.slice.spec.driver,
            spot.device.attributes,
            spot.device.capacity,
            allow_multiple_allocations=spot.device.allow_multiple_allocations,
            name=spot.device.name if compiler.extensions else None,
        )
    except EvalError as error:
        return NotEvaluable(f"selector #{number}: {error}")
    reasons = ExpressionEvaluator(compiled).reasons_for(variables)
    return NoMatch(device_class, number, expressions[number], reasons)


def _holders(view: NodeView, position: int) -> tuple[str, ...]:
    spot = view.published[position]
    spec = spot.slice.spec
    entries = view.ledger.taken((spec.driver, spec.pool.name)).get(spot.device.name, ())
    # By name: the ledger has them in the order in which they came.
    return tuple(sorted({"/".join(filter(None, entry.claim)) for entry in entries}))


# --- amounts ----------------------------------------------------------------------------


def amounts_rules(problem: Problem) -> list[Rule]:
    """Return the rules about remaining amounts and about compatibility with devices in use."""
    return [rule for rule in problem.rules if isinstance(rule, ConsumptionRule | CompatibilityRule)]


def refuses(rule: Rule, problem: Problem, slot: Slot, position: int) -> bool:
    """Return whether a rule rejects a device before anything is picked."""
    try:
        return rule.take(problem.start, slot, position) is None
    except AllocationError:
        return True


def _unfit(problem: Problem, slot: Slot, position: int) -> DeviceRejection:
    """Return why a device that is free and tolerated does not fit."""
    view, features = problem.view, problem.view.features
    device, slice_ = view.published[position]
    if position in slot.faults:
        return NotEvaluable(slot.faults[position].text)
    if device.binding_conditions and not features.device_binding_and_status:
        return Unfit("has binding conditions, and the feature is off")
    if device.consumes_counters and not features.partitionable_devices:
        return Unfit("consumes counters, and the feature is off")
    if slice_.spec.skip_node_operations and not slot.candidates >> position & 1:
        return Unfit("needs a node that can skip operations")
    short = [
        *_short_capacity(problem, slot, position),
        *_short_counters(problem, position),
    ]
    if short:
        return TooLittle(tuple(short))
    for rule in amounts_rules(problem):
        if isinstance(rule, CompatibilityRule) and refuses(rule, problem, slot, position):
            return Unfit("is in no compatibility group of the devices in use beside it")
    if _is_overdrawn(problem, position):
        return Unfit("is in a pool of which more is taken than there is")
    policies = "; ".join(_against_policies(slot, device))
    return Unfit(policies or "cannot serve the amounts that are asked for as it shares them out")


def _against_policies(slot: Slot, device: Device) -> Iterator[str]:
    """Yield requested amounts beside those that the device's policy allows."""
    for name, _, amount in slot.request.requirements.amounts:
        capacity = device.capacity.get(name)
        policy = capacity.request_policy if capacity is not None else None
        if policy is not None:
            yield f"gives out {name} {_given_out(policy)}; {amount} is wanted"


def _given_out(policy: CapacityRequestPolicy) -> str:
    if policy.valid_values:
        return f"as {', '.join(map(str, policy.valid_values))}"
    valid = policy.valid_range
    if valid is None:
        return f"as {policy.default}"
    bounds = (("from", valid.min), ("to", valid.max), ("in steps of", valid.step))
    return " ".join(f"{word} {amount}" for word, amount in bounds if amount is not None)


def _is_overdrawn(problem: Problem, position: int) -> bool:
    number = problem.view.pool_of(position)
    has_counters = problem.view.pools[number].counters is not None
    return has_counters and problem.allocated.counters[number] is None


def _short_capacity(problem: Problem, slot: Slot, position: int) -> Iterator[AmountShortage]:
    view = problem.view
    device, slice_ = view.published[position]
    wanted = {name: amount for name, _, amount in slot.request.requirements.amounts}
    driver, pool = slice_.spec.driver, slice_.spec.pool.name
    entries = view.ledger.taken((driver, pool)).get(device.name, ())
    consumed = consumed_by_shares(entries)
    takes = {name: amount.nano for name, amount in slot.consumed.get(position, {}).items()}
    takes = {name: amount.nano for name, amount in wanted.items()} | takes
    for name, nano in sorted(takes.items()):
        if name not in device.capacity:
            yield AmountShortage(name, "none", "none", _shown(nano))
            continue
        there = device.capacity[name].value.nano
        left = there - consumed.get(name, 0)
        if nano > left:
            yield AmountShortage(name, _shown(there), _shown(left), _shown(nano))


def _short_counters(problem: Problem, position: int) -> Iterator[AmountShortage]:
    view = problem.view
    number = view.pool_of(position)
    counters = view.pools[number].counters
    if counters is None or problem.allocated.shared & view.shareable & 1 << position:
        return
    left = dict(counters.totals)
    for device in problem.allocated.devices[number]:
        for key, amount in amounts_of(device):
            if key in left:
                left[key] -= amount
    for key, amount in amounts_of(view.published[position].device):
        if amount > left[key]:
            there = _shown(counters.totals[key])
            yield AmountShortage("/".join(key), there, _shown(left[key]), _shown(amount))


def _shown(nano: int) -> str:
    """Return an amount in its shortest form, in binary units if that is shorter."""
    plain = str(Quantity.parse(f"{nano}n"))
    for power, unit in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        size = NANO * 1024**power
        if nano and nano % size == 0:
            return min(f"{nano // size}{unit}", plain, key=len)
    return plain


# --- constraints ------------------------------------------------------------------------


def constraints_of(slot: Slot) -> list[Constraint]:
    """Return the constraints on a request."""
    return [rule for rule in slot.rules if isinstance(rule, Constraint)]


def _clash(
    problem: Problem, slot: Slot, position: int, fitting: Mapping[SubRequest, int]
) -> DeviceRejection:
    for rule in constraints_of(slot):
        table = rule.tables[slot.request]
        if position in table.faults:
            return NotEvaluable(table.faults[position])
        must_match = isinstance(rule, MatchAttribute)
        if not table.known >> position & 1:
            return Clash(rule.attribute, must_match, "", ())
        others = tuple(_others(problem, rule, slot.request, position, fitting))
        if others:
            value = value_text(table.elements[position], is_typed=has_types(rule))
            return Clash(rule.attribute, must_match, value, others[:OTHERS_MAX])
    rule = constraints_of(slot)[0]
    value = value_text(rule.tables[slot.request].elements[position], is_typed=has_types(rule))
    return Clash(rule.attribute, isinstance(rule, MatchAttribute), value, ())


def _others(
    problem: Problem,
    rule: Constraint,
    ask: SubRequest,
    position: int,
    fitting: Mapping[SubRequest, int],
) -> Iterator[ClashingDevice]:
    """Yield the first clashing device of each request that the constraint is about."""
    own, is_typed = set(rule.tables[ask].elements[position]), has_types(rule)
    for other, table in rule.tables.items():
        for candidate in bits(fitting.get(other, 0) & table.known):
            if candidate == position and other is ask:
                continue
            elements = table.elements[candidate]
            if bool(own.intersection(elements)) is not isinstance(rule, MatchAttribute):
                device = problem.view.device_id(candidate)
                yield ClashingDevice(
                    other.full_name, device, value_text(elements, is_typed=is_typed)
                )
                break


def has_types(rule: Constraint) -> bool:
    """Return whether devices have the attribute in several types, which never match."""
    return len({typed(each)[0] for table in rule.tables.values() for each in table.holders}) > 1


def value_text(elements: tuple[Element, ...], *, is_typed: bool) -> str:
    """Return the value of an attribute as text, on demand with its type."""
    if not elements:
        return "a list"
    texts = [_element_text(*typed(element), is_quoted=is_typed) for element in elements]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    if not is_typed:
        return text
    kind, _ = typed(elements[0])
    return f"{text} ({kind})" if len(texts) == 1 else f"{text} (list of {kind})"


def _element_text(kind: str, value: int | bool | str, *, is_quoted: bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if is_quoted and kind == "string" else str(value)
