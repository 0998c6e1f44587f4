"""Rules of lint about constraints that need devices."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.insight.expressions.published_devices import PublishedDevice, did_you_mean, qualified
from mooring.insight.expressions.syntax import DeviceField
from mooring.insight.lint.cases import (
    Case,
    Needs,
    Oddity,
    Rule,
    W,
)
from mooring.insight.lint.subjects import DeviceSelection, asks_of, constraints_of


def unknown_constraint_attribute(case: Case) -> Iterator[Oddity]:
    """Give the constraints on attributes that no device of one of their requests has."""
    for place, constraint in constraints_of(case.subject) if not case.world.unreadable else ():
        field = "distinctAttribute" if constraint.match_attribute is None else "matchAttribute"
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        domain, _, identifier = name.partition("/")
        read = DeviceField("attributes", domain, identifier)
        if not identifier:
            continue
        lacking = [
            ask.reference
            for ask in asks_of(case.subject)
            if _is_concerned(ask, constraint.requests) and _never_has(ask, name, read, case)
        ]
        if not lacking:
            continue
        if case.world.fleet.carriers[read] == 0:
            message = f"no device has the attribute {name}"
            remedy = did_you_mean(read, case.world.fleet, write=qualified)
        else:
            message = f"no device that {_requests(lacking)} can get has the attribute {name}"
            remedy = "take the request out of the constraint, or choose an attribute that all have"
        yield Oddity((*place, field), message, remedy)


def _is_concerned(ask: DeviceSelection, requests: tuple[str, ...]) -> bool:
    return not requests or bool({ask.reference, ask.reference.partition("/")[0]} & {*requests})


def _never_has(ask: DeviceSelection, name: str, read: DeviceField, case: Case) -> bool:
    if any(derived == name for derived, _ in ask.derived):
        return False
    if case.world.fleet.carriers[read] == 0:
        return True
    selected = case.world.selected(ask)
    devices = (case.world.fleet.devices[index] for index in selected)
    return bool(selected) and not any(_has(device, read) for device in devices)


def _has(device: PublishedDevice, read: DeviceField) -> bool:
    if device.variables is None:
        return False
    return read.name in device.variables["device"][read.field].get(read.domain, {})


def _requests(references: list[str]) -> str:
    noun = "request" if len(references) == 1 else "requests"
    return f"{noun} {', '.join(references)}"


RULES = (
    Rule(
        "unknown-constraint-attribute",
        W,
        Needs.DEVICES,
        "a constraint on an attribute that no device of a request has",
        unknown_constraint_attribute,
    ),
)
