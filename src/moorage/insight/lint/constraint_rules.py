"""Rules about constraints and derived attributes: what is compared on the devices there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moorage.api.field_path import Place
from moorage.insight.answer.devices.compared import (
    ComparedRequest,
    common,
    elements,
    published_values,
)
from moorage.insight.expressions.published_devices import (
    did_you_mean,
    field_candidates,
    qualified,
)
from moorage.insight.expressions.syntax import DeviceField
from moorage.insight.lint.advice import bridged, compared_requests
from moorage.insight.lint.rule import SELECTING, Case, N, Needs, Oddity, RuleTable, W
from moorage.insight.lint.subjects import DeviceSelection, constraints_of, selections_of
from moorage.insight.messages import counted, listed, typed, value_text

RULES = RuleTable(SELECTING)
VALUES_SHOWN_MAX = 3


class _Compared(NamedTuple):
    """A constraint that values must match, and what it compares."""

    place: Place
    attribute: str
    requests: list[ComparedRequest]


def _concerned(case: Case, requests: tuple[str, ...]) -> Iterator[DeviceSelection]:
    """Yield the requests and alternatives that a constraint is about."""
    for selection in selections_of(case.subject):
        names = {selection.reference, selection.reference.partition("/")[0]}
        if not requests or names & {*requests}:
            yield selection


def _compared(case: Case) -> Iterator[_Compared]:
    for place, constraint in constraints_of(case.subject) if not case.context.unreadable else ():
        name = constraint.match_attribute
        if name is not None:
            selections = _concerned(case, constraint.requests)
            yield _Compared(
                (*place, "matchAttribute"), name, compared_requests(selections, name, case.context)
            )


@RULES.add(W, Needs.DEVICES, is_shared=True)
def unknown_constraint_attribute(case: Case) -> Iterator[Oddity]:
    """A constraint on an attribute that no device of a request has."""
    for place, constraint in constraints_of(case.subject) if not case.context.unreadable else ():
        field = "distinctAttribute" if constraint.match_attribute is None else "matchAttribute"
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        selections = list(_concerned(case, constraint.requests))
        lacking = [each for each in selections if _never_has(each, name, case)]
        if "/" not in name or not lacking:
            continue
        requests = compared_requests(selections, name, case.context)
        remedy = bridged(requests, name, case.context) if field == "matchAttribute" else None
        message, otherwise = _unknown(case, name, selections, lacking)
        if remedy is None or _is_meant(name, requests, case):
            remedy = otherwise
        yield Oddity((*place, field), message, remedy)


def _unknown(
    case: Case, name: str, selections: list[DeviceSelection], lacking: list[DeviceSelection]
) -> tuple[str, str]:
    """Return what is wrong with an attribute that requests lack, and what to do about it."""
    who = _named_requests(lacking)
    deriving = [each for each in selections if name in dict(each.derived)]
    if deriving:
        return (
            f"{who} neither has nor derives {name}, which {_named_requests(deriving)} derives",
            f"derive {name} in {who}, too",
        )
    if case.context.devices.carriers[_read(name)] == 0:
        hint = did_you_mean(_read(name), case.context.devices, write=qualified)
        return f"no device has the attribute {name}", hint
    return (
        f"no device that {who} can get has the attribute {name}",
        "take the request out of the constraint, or choose an attribute that all have",
    )


def _is_meant(name: str, requests: list[ComparedRequest], case: Case) -> bool:
    """Return whether the name that is suggested is one that the devices of all requests have."""
    fleet = case.context.devices
    if fleet.carriers[_read(name)]:
        return False
    similar = next(filter(None, map(qualified, field_candidates(_read(name), fleet))), None)
    return similar is not None and all(published_values(r.fitting, similar) for r in requests)


def _read(name: str) -> DeviceField:
    domain, _, identifier = name.partition("/")
    return DeviceField("attributes", domain, identifier)


def _never_has(selection: DeviceSelection, name: str, case: Case) -> bool:
    if name in dict(selection.derived):
        return False
    if case.context.devices.carriers[_read(name)] == 0:
        return True
    selected = case.context.selected(selection)
    devices = [case.context.devices.devices[index] for index in selected]
    return bool(selected) and not published_values(devices, name)


def _named_requests(selections: list[DeviceSelection]) -> str:
    noun = "request" if len(selections) == 1 else "requests"
    return f"{noun} {', '.join(each.reference for each in selections)}"


@RULES.add(W, Needs.DEVICES, is_shared=True)
def different_types(case: Case) -> Iterator[Oddity]:
    """A constraint on an attribute that devices have in types that never match."""
    for each in _compared(case):
        valued = [request for request in each.requests if request.known]
        if len(valued) < 2 or common(valued, has_lists=True):
            continue
        first, *others = valued
        other = next((o for o in others if not _kinds(o) & _kinds(first)), None)
        if other is None:
            continue
        advice = bridged(valued, each.attribute, case.context)
        remedy = advice or "let both drivers publish one type"
        yield Oddity(
            each.place,
            f"{each.attribute} is {typed(first.known[0])} for request {first.name}, but "
            f"{typed(other.known[0])} for request {other.name}, and types never match",
            remedy,
        )


def _kinds(request: ComparedRequest) -> set[str]:
    return {kind for value in request.known for kind, _ in elements(value, has_lists=True)}


@RULES.add(W, Needs.DEVICES, is_shared=True)
def empty_list(case: Case) -> Iterator[Oddity]:
    """A derived attribute that is an empty list, which matches nothing, on every device."""
    for each in _compared(case):
        for request in each.requests:
            if request.expression is None or not request.is_lacking:
                continue
            others = [o for o in each.requests if o is not request]
            advice = bridged([*others, request], each.attribute, case.context)
            remedy = advice or "give it a value for some device"
            yield Oddity(
                _derived_place(case, request, each.attribute),
                f"{each.attribute} is an empty list on all "
                f"{counted(len(request.fitting), 'device')}, and an empty list matches nothing",
                remedy,
            )


@RULES.add(N, Needs.DEVICES, is_shared=True)
def hidden_attribute(case: Case) -> Iterator[Oddity]:
    """A derived attribute that hides the published one of the same name."""
    for each in _compared(case):
        for request in each.requests:
            if request.expression is None or request.faults:
                continue
            hidden = published_values(request.fitting, each.attribute)
            differing = [i for i, value in hidden.items() if request.values.get(i) != value]
            if differing:
                pairs = [
                    f"{value_text(hidden[i])} becomes {value_text(request.values.get(i, ()))}"
                    for i in differing
                ]
                shown = listed(list(dict.fromkeys(pairs)), shown_max=VALUES_SHOWN_MAX)
                yield Oddity(
                    _derived_place(case, request, each.attribute),
                    f"hides the published {each.attribute} of "
                    f"{counted(len(differing), 'device')} in request {request.name}: {shown}",
                    "that may be meant; a name in a domain of your own hides nothing",
                )


def _derived_place(case: Case, request: ComparedRequest, attribute: str) -> Place:
    for selection in selections_of(case.subject):
        for name, expression in selection.derived:
            if selection.reference == request.name and name == attribute:
                return expression.place
    return ()
