"""Phrases for changes, members of conflicts and rejections, each on one line."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.allocator.requests import claim_name
from moorage.api.gates import Gate
from moorage.api.resource.v1 import DeviceConstraint, DeviceSelector, DeviceToleration
from moorage.insight.explain.conflict import Obstacles
from moorage.insight.explain.device_rejections import (
    Clash,
    DeviceRejection,
    ForOtherNodes,
    InUse,
    NoMatch,
    NotEvaluable,
    Tainted,
    TooLittle,
    Unfit,
)
from moorage.insight.explain.situation import (
    AskCapacity,
    DropAlternative,
    DropClassSelector,
    DropConstraint,
    DropRequest,
    DropSelector,
    FreeClaim,
    LowerCount,
    PublishList,
    RequestPath,
    Situation,
    SituationChange,
    SwitchFeature,
    Tolerate,
)
from moorage.insight.messages import counted, shortened, taint_text

EXPRESSION_LENGTH_MAX = 80
DEVICES_SHOWN_MAX = 4
REQUESTS, EACH = "\0requests", "\0each"  # placeholders that no name can contain

GATES: dict[str, tuple[Gate, ...]] = {
    "admin_access": (Gate.DRA_ADMIN_ACCESS,),
    "compatibility_groups": (Gate.DRA_DEVICE_COMPATIBILITY_GROUPS,),
    "consumable_capacity": (Gate.DRA_CONSUMABLE_CAPACITY,),
    "derived_attributes": (Gate.DRA_DERIVED_ATTRIBUTES,),
    "device_binding_and_status": (
        Gate.DRA_DEVICE_BINDING_CONDITIONS,
        Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS,
    ),
    "device_taints": (Gate.DRA_DEVICE_TAINTS,),
    "fractional_capacity_range": (Gate.DRA_FRACTIONAL_CAPACITY_RANGE,),
    "list_type_attributes": (Gate.DRA_LIST_TYPE_ATTRIBUTES,),
    "optional_node_operations": (Gate.DRA_OPTIONAL_NODE_OPERATIONS,),
    "partitionable_devices": (Gate.DRA_PARTITIONABLE_DEVICES,),
    "prioritized_list": (Gate.DRA_PRIORITIZED_LIST,),
}


# --- changes ------------------------------------------------------------------------------


def change_text(change: SituationChange, situation: Situation) -> str:
    """Return a change as something to do: `free claim default/training`."""
    match change:
        case DropRequest():
            place = RequestPath(change.claim, change.request)
            return f"drop {_request(place, situation)}{_emptiness(situation)}"
        case DropAlternative(place=place):
            return f"drop sub{_request(place, situation)}"
        case DropConstraint():
            return f"remove constraint on {_constrained(change, situation)}"
        case DropSelector(place=place):
            return f"remove selector {_selector(change, situation)} of {_request(place, situation)}"
        case DropClassSelector(device_class=name):
            return f"remove selector {_class_selector(change, situation)} of class {name}"
        case LowerCount(place=place, count=count):
            before = situation.details(place).count
            return f"count of {_request(place, situation)} {before} → {count}"
        case AskCapacity(place=place):
            return f"{_capacity(change, situation)} of {_request(place, situation)}"
        case Tolerate(place=place):
            return f"tolerate {_taint(change.toleration)}{_where(place, situation)}"
        case FreeClaim(namespace=namespace, name=name):
            return f"free claim {_full(namespace, name)}"
        case SwitchFeature(feature=feature, is_on=is_on):
            gates = " and ".join(gate.value for gate in GATES[feature])
            return f"switch {gates} {'on' if is_on else 'off'}"
        case PublishList(driver=driver, attribute=attribute, values=values):
            shown = ", ".join(map(str, values))
            return f"use ints list for {attribute} on driver {driver}: [{shown}]"


def _where(place: RequestPath | None, situation: Situation) -> str:
    if place is not None:
        return f" in {_request(place, situation)}"
    return " in all requests" if len(situation.requests()) > 1 else ""


def _emptiness(situation: Situation) -> str:
    asked = sum(len(claim.spec.devices.requests or ()) for claim in situation.claims)
    return ", the only one" if asked == 1 else ""


def _full(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _of_claim(claim: int, situation: Situation) -> str:
    if len(situation.claims) == 1:
        return ""
    return f" of claim {claim_name(situation.claims[claim])}"


def _request(place: RequestPath, situation: Situation) -> str:
    return f"request {_name(place, situation)}"


def _name(place: RequestPath, situation: Situation) -> str:
    return f"{situation.request_name(place)}{_of_claim(place.claim, situation)}"


def _constraint(change: DropConstraint, situation: Situation) -> DeviceConstraint:
    return situation.claims[change.claim].spec.devices.constraints[change.constraint]


def _attribute(constraint: DeviceConstraint) -> str:
    return constraint.match_attribute or constraint.distinct_attribute or "nothing"


def _selector(change: DropSelector, situation: Situation) -> str:
    selectors = situation.details(change.place).selectors
    return _expression(selectors[change.selector], change.selector)


def _class_selector(change: DropClassSelector, situation: Situation) -> str:
    for each in situation.classes:
        if each.metadata.name == change.device_class:
            return _expression(each.spec.selectors[change.selector], change.selector)
    return f"#{change.selector}"


def _expression(selector: DeviceSelector, number: int) -> str:
    text = "" if selector.cel is None else " ".join(selector.cel.expression.split())
    if len(text) > EXPRESSION_LENGTH_MAX:
        text = f"{text[: EXPRESSION_LENGTH_MAX - 1]}…"
    return f"`{text}`" if text else f"#{number}"


def _capacity(change: AskCapacity, situation: Situation) -> str:
    capacity = situation.details(change.place).capacity
    before = capacity.requests[change.name] if capacity is not None else "0"
    if change.amount is None:
        return f"do not ask for {change.name} {before}"
    return f"capacity {change.name} {before} → {change.amount}"


def _taint(toleration: DeviceToleration) -> str:
    if not toleration.key and toleration.operator == "Exists":
        return "all taints"
    if toleration.operator == "Exists":
        return f"taint {toleration.key}"
    return f"taint {taint_text(toleration.key, toleration.value, toleration.effect)}"


# --- members of conflicts -----------------------------------------------------------------


def member_text(member: SituationChange, situation: Situation, obstacles: Obstacles) -> str:
    """Return a member of a conflict as text: `constraint matchAttribute numaNode`."""
    return member_texts([member], situation, obstacles)[0]


def member_texts(
    members: Iterable[SituationChange], situation: Situation, obstacles: Obstacles
) -> list[str]:
    """Return members of a conflict as text; requests that ask for the same share one line."""
    names: dict[str, list[str]] = {}
    for member in members:
        text, name = _member(member, situation, obstacles)
        names.setdefault(text, []).append(name)
    return [_with_requests(text, each) for text, each in names.items()]


def _with_requests(text: str, names: list[str]) -> str:
    noun = "request" if len(names) == 1 else "requests"
    each = " each" if len(names) > 1 else ""
    return text.replace(REQUESTS, f"{noun} {', '.join(names)}").replace(EACH, each)


def _member(member: SituationChange, situation: Situation, obstacles: Obstacles) -> tuple[str, str]:
    """Return the text of a member, with a placeholder for its request, and the request's name."""
    match member:
        case DropRequest():
            place = RequestPath(member.claim, member.request)
            return f"{REQUESTS}: {_requested(place, situation)}{EACH}", _name(place, situation)
        case DropConstraint():
            constraint = _constraint(member, situation)
            kind = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
            return f"constraint {kind} {_constrained(member, situation)}", ""
        case DropSelector(place=place):
            selector = _selector(member, situation)
            return f"selector {selector} of {REQUESTS}", _name(place, situation)
        case AskCapacity(place=place, name=name):
            capacity = situation.details(place).capacity
            amount = capacity.requests[name] if capacity is not None else "0"
            return f"capacity {name} {amount} of {REQUESTS}", _name(place, situation)
        case Tolerate():
            return f"{_taint(member.toleration)} of devices on the node", ""
        case FreeClaim(namespace=namespace, name=name):
            devices = _enumerated(obstacles.holders.get((namespace, name), ()))
            return f"claim {_full(namespace, name)}, which has {devices}", ""
    return change_text(member, situation), ""


def _requested(place: RequestPath, situation: Situation) -> str:
    request = (situation.claims[place.claim].spec.devices.requests or ())[place.request]
    details = request.first_available or ((request.exactly,) if request.exactly else ())
    wishes = [
        f"{'all' if each.allocation_mode == 'All' else each.count} of class "
        f"{each.device_class_name or '(none)'}"
        for each in details
    ]
    return ", else ".join(wishes)


def _constrained(change: DropConstraint, situation: Situation) -> str:
    """Return the attribute of a constraint, and its requests unless it is about all."""
    constraint = _constraint(change, situation)
    among = f" of requests {', '.join(constraint.requests)}" if constraint.requests else ""
    return f"{_attribute(constraint)}{among}{_of_claim(change.claim, situation)}"


def _enumerated(texts: Iterable[str]) -> str:
    return ", ".join(shortened(texts, DEVICES_SHOWN_MAX))


# --- rejections ---------------------------------------------------------------------------


def rejection_text(refusal: DeviceRejection) -> str:
    """Return what rejected a device, with the values that decided."""
    match refusal:
        case ForOtherNodes():
            return "is for other nodes"
        case NoMatch(device_class=device_class, reasons=reasons):
            whose = f"class {device_class}" if device_class else "the request"
            return f"does not match {whose}: {'; '.join(map(str, reasons))}"
        case InUse(holders=holders):
            noun = counted(len(holders), "claim").split(" ")[1]
            return f"is in use by {noun} {_enumerated(holders)}"
        case Tainted(taint=taint):
            return f"has the taint {taint}"
        case TooLittle(amounts=amounts):
            return "; ".join(
                f"of {each.name} {each.wanted} is wanted, {each.left} is left of {each.there}"
                for each in amounts
            )
        case Unfit(text=text):
            return text
        case Clash():
            return _clash(refusal)
        case NotEvaluable(text=text):
            return f"cannot be judged: {text}"


def _clash(refusal: Clash) -> str:
    if not refusal.value:
        return f"has no {refusal.attribute}, which a constraint is about"
    others = ", ".join(
        f"{other.device.rpartition('/')[2]} for {other.request} has {other.value}"
        for other in refusal.others
    )
    wanted = "match" if refusal.must_match else "be distinct"
    because = f" ({others})" if others else ""
    return f"{refusal.attribute} {refusal.value} does not {wanted} with others{because}"
