"""Constraints that the devices of a node cannot satisfy together: the cause in one sentence.

nobody has the attribute        a typo, a name that drivers do not use, a derived one elsewhere
devices of one request lack it  their driver calls it otherwise, or does not know it
another type                    0 (int) never matches "0" (string)
a list, and lists are off       it matches nothing
no value in common              which values there are
too few devices share a value   how many do
too few different values        which there are
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from moorage.api.gates import Gate
from moorage.insight.answer.devices.bridges import Bridge, bridges, fact_of
from moorage.insight.answer.devices.compared import (
    Compared,
    ComparedRequest,
    Element,
    can_meet,
    common,
    compared,
    distinct_values,
    drivers_of,
    elements,
    holders,
    published_values,
)
from moorage.insight.answer.devices.constraint_fixes import (
    constraint_proposals,
    may_be_dropped,
    renamings,
    similar_attributes,
)
from moorage.insight.answer.devices.shortages import DeviceCase
from moorage.insight.answer.finding import Finding, Proposal
from moorage.insight.explain.situation import DropConstraint, FreeClaim, Tolerate
from moorage.insight.expressions.syntax import DeviceField
from moorage.insight.messages import (
    CAUSE_LENGTH_MAX,
    counted,
    listed,
    most_frequent_first,
    natural_order,
    type_name,
    typed,
    value_text,
)

VALUES_SHOWN_MAX: Final = 4


def constraint_findings(case: DeviceCase, release: Sequence[Proposal] = ()) -> Iterator[Finding]:
    """Find constraints that the devices of the node cannot satisfy.

    `release` is what to do where devices that would match are in use.
    """
    members = [m for m in case.diagnosis.conflict.members if isinstance(m, DropConstraint)]
    found = [each for member in members if (each := compared(case, member)) is not None]
    for each in found:
        if not each.lacking and any(request.faults for request in each.requests):
            continue  # The error of a derived attribute is the cause.
        bridge = None
        is_meant = bool(renamings(case, each))
        if not is_meant and each.is_match and (each.lacking or _type_clash(each)):
            bridge = next(bridges(case, each, each.attribute), None)
        others = [other for other in found if other is not each]
        cause = _cause(case, each, bridge, others)
        is_taken = any(isinstance(m, FreeClaim) for m in case.diagnosis.conflict.members)
        kept = tuple(release) if is_taken else ()
        yield Finding(cause, (*constraint_proposals(case, each, bridge, is_taken=is_taken), *kept))


def _cause(
    case: DeviceCase, found: Compared, bridge: Bridge | None, others: Sequence[Compared]
) -> str:
    if found.lacking:
        return _lacking(case, found, bridge)
    if others and found.can_hold() and all(other.can_hold() for other in others):
        names = " and ".join([found.attribute, *(other.attribute for other in others)])
        return f"no devices satisfy the constraints on {names} together, though each alone could"
    if not found.is_match:
        return _too_few_values(found)
    return (
        _lists_off(found)
        or _type_clash(found)
        or _shadowed(found)
        or _too_few(case, found)
        or _never(case, found)
    )


# --- attributes that are not there ----------------------------------------------------------


def _lacking(case: DeviceCase, found: Compared, bridge: Bridge | None) -> str:
    lacking, name = found.lacking, found.attribute
    requests = listed([each.name for each in lacking])
    empty = next((each for each in lacking if each.expression is not None), None)
    if empty is not None:
        devices = counted(len(empty.fitting), "device")
        return (
            f"derived attribute {name} of request {empty.name} is an empty list on all {devices}, "
            "and an empty list matches nothing"
        )
    start = f"no device for request {requests} has attribute {name}"
    derived = [each.name for each in found.requests if each.expression is not None]
    if derived:
        verb = "derives" if len(derived) == 1 else "derive"
        return f"{start}: only request {listed(derived)} {verb} it"
    if bridge is not None:
        return _called_otherwise(start, bridge)
    domain, _, short = name.partition("/")
    if not case.case.fleet.carriers[DeviceField("attributes", domain, short)]:
        return f"no device has attribute {name}, which a constraint compares{_hint(case, found)}"
    meant = renamings(case, found)
    if meant:
        return f"{start}: did you mean {meant[0]}, which all have?"
    having = [each for each in found.requests if each not in lacking]
    drivers = list(dict.fromkeys(driver for each in having for driver in drivers_of(each)))
    known = f", which only devices of driver {listed(drivers)} have" if drivers else ""
    return f"{start}{known}"


def _called_otherwise(start: str, bridge: Bridge) -> str:
    calls = list(
        dict.fromkeys(
            f"{listed(drivers_of(part.request))} "
            f"{'calls it' if fact_of(part.source) or part.is_plain else 'has it in'} {part.source}"
            for part in bridge.parts
            if part.source
        )
    )
    full = f"{start}: {', '.join(calls)}"
    return full if len(full) <= CAUSE_LENGTH_MAX else f"{start}: {calls[0]}"


def _hint(case: DeviceCase, found: Compared) -> str:
    similar = similar_attributes(case, found)
    if not similar:
        gate = f"; {Gate.DRA_DERIVED_ATTRIBUTES} is off, so derivedAttributes are dropped"
        return gate if may_be_dropped(case, found) else ""
    domain, _, short = similar[0].partition("/")
    fleet = case.case.fleet
    count = fleet.carriers[DeviceField("attributes", domain, short)]
    hint = f": did you mean {similar[0]}?"
    more = f" {count:,} of {counted(len(fleet), 'device')} {_have(count)} it"
    room = CAUSE_LENGTH_MAX - len(f"no device has attribute {found.attribute}, {hint}{more}")
    return f"{hint}{more}" if room >= len("which a constraint compares") else hint


# --- values that do not match ---------------------------------------------------------------


def _lists_off(found: Compared) -> str:
    if found.has_lists:
        return ""
    for each in found.requests:
        lists = [value for value in each.known if isinstance(value, list | tuple)]
        if lists:
            return (
                f"{found.attribute} is a list for request {each.name}, such as {typed(lists[0])}: "
                f"lists match nothing while {Gate.DRA_LIST_TYPE_ATTRIBUTES} is off"
            )
    return ""


def _type_clash(found: Compared) -> str:
    """Return that values would match but for their types."""
    if common(found.requests, has_lists=found.has_lists):
        return ""
    first, *others = found.requests
    for other in others:
        mine, its = _kinds(first), _kinds(other)
        if mine and its and not mine & its:
            return (
                f"{found.attribute} is {typed(_first(first))} for request {first.name} and "
                f"{typed(_first(other))} for request {other.name}: different types never match"
            )
    return ""


def _kinds(request: ComparedRequest) -> set[str]:
    """Return the types of the elements that the values of a request have."""
    return {kind for value in request.known for kind, _ in elements(value, has_lists=True)}


def _first(request: ComparedRequest) -> Any:
    return min(request.known, key=lambda value: natural_order(value_text(value)))


def _shadowed(found: Compared) -> str:
    """Return that a derived attribute hides a published one, with which requests would match."""
    for each in found.requests:
        if each.expression is None:
            continue
        hidden = each.with_values(published_values(each.fitting, found.attribute))
        instead = [hidden if other is each else other for other in found.requests]
        if hidden.known and can_meet(instead, has_lists=found.has_lists):
            return (
                f"{found.attribute} is derived in request {each.name} as {_values(each.known)}, "
                f"which hides the published {_values(hidden.known)}; {_others(found, each)}"
            )
    return ""


def _others(found: Compared, one: ComparedRequest) -> str:
    return "; ".join(f"{o.name} has {_values(o.known)}" for o in found.requests if o is not one)


def _too_few(case: DeviceCase, found: Compared) -> str:
    """Return that a value is shared by too few devices."""
    for each in found.requests:
        known, total = len(each.known), len(each.fitting)
        if known < each.wanted <= total:
            return (
                f"request {each.name} wants {each.wanted} devices with {found.attribute}, but "
                f"only {known} of {total} {_have(known)} it"
            )
        most, value = _most([each], found)
        if each.wanted > most > 0:
            return (
                f"request {each.name} wants {each.wanted} devices with one {found.attribute}, but "
                f"{_at_most(case, [each])} {most} {_have(most)} the same ({_said(found, value)})"
                f"{_set_aside(case, found)}"
            )
    total = sum(each.wanted for each in found.requests if each.place.alternative is None)
    if not common(found.requests, has_lists=found.has_lists):
        return ""
    most, value = _most(found.requests, found)
    if len(found.requests) > 1 and total > most:
        names = listed([each.name for each in found.requests])
        return (
            f"requests {names} want {total} devices with one {found.attribute}, but "
            f"{_at_most(case, found.requests)} {most} {_have(most)} the same "
            f"({_said(found, value)}){_set_aside(case, found)}"
        )
    return ""


def _at_most(case: DeviceCase, requests: Iterable[ComparedRequest]) -> str:
    """Return the words before a number of devices: others may be like them, and in use."""
    funnels = [funnel for each in requests if (funnel := case.funnel(each.place)) is not None]
    in_use = any(each.free < each.selected for each in funnels)
    return "of the free ones at most" if in_use else "at most"


def _said(found: Compared, value: Element) -> str:
    """Return a value with the name of its attribute: `numaNode 0`."""
    return f"{found.attribute.rpartition('/')[2]} {_element_text(value)}"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _most(requests: Sequence[ComparedRequest], found: Compared) -> tuple[int, Element]:
    """Return the value that most devices have; a device counts once for all requests."""
    devices: dict[Element, set[str]] = {}
    for each in requests:
        for device in each.fitting:
            if device.index in each.values:
                for one in elements(each.values[device.index], has_lists=found.has_lists):
                    devices.setdefault(one, set()).add(str(device))
    if not devices:
        return 0, ("", "")
    value = max(devices, key=lambda one: len(devices[one]))
    return len(devices[value]), value


def _never(case: DeviceCase, found: Compared) -> str:
    is_mixed = len({kind for each in found.requests for kind in each.types}) > 1
    end = _set_aside(case, found)
    if common(found.requests, has_lists=found.has_lists):
        parts = [f"{each.name} {_tally(each, found)}" for each in found.requests]
        start = f"no value of {found.attribute} has enough devices for all requests: "
        return f"{start}{', '.join(parts)}{end}"
    cause = ""
    for shown_max in range(VALUES_SHOWN_MAX, 0, -1):
        parts = [
            f"{each.name} has {_values(each.known, mixed=is_mixed, shown_max=shown_max)}"
            for each in found.requests
        ]
        cause = f"no value of {found.attribute} fits all requests: {', '.join(parts)}{end}"
        if len(cause) <= CAUSE_LENGTH_MAX:
            break
    return cause


def _values(
    values: Sequence[Any], *, mixed: bool = False, shown_max: int = VALUES_SHOWN_MAX
) -> str:
    """Return the values, with their types where there are several."""
    ordered = sorted(values, key=lambda value: natural_order(value_text(value)))
    texts = dict.fromkeys(typed(value) if mixed else value_text(value) for value in ordered)
    return listed(list(texts), shown_max=shown_max) or "none"


def _tally(request: ComparedRequest, found: Compared) -> str:
    counts = Counter[str]()
    for value, number in holders(request, has_lists=found.has_lists).items():
        counts[_element_text(value)] += number
    shown = most_frequent_first(counts)[:VALUES_SHOWN_MAX]
    texts = (f"{value} on {number}" for value, number in shown)
    return f"wants {request.wanted}, has {', '.join(texts)}"


def _element_text(element: Element) -> str:
    kind, value = element
    return str(value) if kind == "version" else value_text(value)


def _set_aside(case: DeviceCase, found: Compared) -> str:
    """Return which devices would match, but are in use or tainted."""
    members = case.diagnosis.conflict.members
    holding = [f"{m.namespace}/{m.name}" for m in members if isinstance(m, FreeClaim)]
    taints = [m.toleration.key for m in members if isinstance(m, Tolerate)]
    names = [device.name for each in found.requests for device in each.set_aside]
    if not names or not (holding or taints):
        return ""
    noun = f"{listed(list(dict.fromkeys(names)), shown_max=2)} "
    if holding:
        claims = [name.removeprefix(f"{case.case.namespace}/") for name in holding]
        return f"; {noun}in use by claim {listed(claims, shown_max=2)}"
    return f"; {noun}tainted {listed(taints, shown_max=2)}"


# --- values that are not distinct -----------------------------------------------------------


def _too_few_values(found: Compared) -> str:
    total = sum(each.wanted for each in found.requests)
    start = f"{counted(total, 'device')} with different {found.attribute} are wanted"
    known = sum(len(each.known) for each in found.requests)
    if known < total <= sum(len(each.fitting) for each in found.requests):
        return f"{start}, but only {known} {_have(known)} it"
    lists = [v for each in found.requests for v in each.known if isinstance(v, list | tuple)]
    if lists and found.has_lists:
        return f"{start}, but these overlap: {_values(lists)}"
    values = distinct_values(found.requests, has_lists=found.has_lists)
    if lists:
        return (
            f"{start}, but it is a list such as {value_text(lists[0])} ({type_name(lists[0])}), "
            f"and {Gate.DRA_LIST_TYPE_ATTRIBUTES} is off"
        )
    shown = listed([_element_text(value) for value in values], shown_max=VALUES_SHOWN_MAX)
    return f"{start}, but only {counted(len(values), 'value')} exist: {shown}"
