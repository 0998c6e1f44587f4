"""Derived attributes that cannot be evaluated: the error, and the expression without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.api.gates import Gate
from moorage.api.resource.v1 import DeviceDerivedAttribute
from moorage.insight.answer.changes.edits import APPEND, Edit, EditPath
from moorage.insight.answer.devices.bridges import bridges
from moorage.insight.answer.devices.compared import compared
from moorage.insight.answer.devices.shortages import DeviceCase
from moorage.insight.answer.finding import Finding, FixRank, Proposal
from moorage.insight.explain.situation import DropConstraint, RequestPath
from moorage.insight.expressions.derived_repairs import (
    DerivedFault,
    derived_repairs,
    fault_of,
    stored_evaluator,
)
from moorage.insight.expressions.evaluation import ExpressionEvaluator
from moorage.insight.expressions.published_devices import PublishedDevice, qualified, written
from moorage.insight.expressions.syntax import DeviceField
from moorage.insight.messages import CAUSE_LENGTH_MAX, counted, nearest

REPAIRS_MAX: Final = 3
DISABLED: Final = "derived attributes, the feature is disabled"
GATE: Final = Gate.DRA_DERIVED_ATTRIBUTES


def ends_search(case: DeviceCase) -> bool:
    """Return whether a derived attribute ended the search with an error."""
    return "derived attribute" in case.diagnosis.message


def derived_findings(case: DeviceCase) -> Iterator[Finding]:
    """Find derived attributes that have no value for some device."""
    if DISABLED in case.diagnosis.message:
        yield _disabled(case)
    for place, details in case.diagnosis.situation.requests():
        if not details.derived_attributes:
            continue
        devices = case.chosen(details)
        for number, each in enumerate(details.derived_attributes):
            evaluator = stored_evaluator(each.expression, case.compiler)
            if evaluator is not None:
                fault = fault_of(evaluator, devices)
                if fault is not None:
                    path = (*case.edits.request(place), "derivedAttributes", number, "expression")
                    proposals = (
                        *_proposals(case, place, path, evaluator, fault, devices),
                        *_bridged(case, place, path, each.name),
                    )
                    yield Finding(_cause(case, place, each, fault, devices), proposals)


def _bridged(case: DeviceCase, place: RequestPath, path: EditPath, name: str) -> Iterator[Proposal]:
    """Yield expressions that read the fact from an attribute that all devices have."""
    source = case.edits.source(place.claim)
    constraints = case.diagnosis.situation.claims[place.claim].spec.devices.constraints
    for number, constraint in enumerate(constraints):
        found = compared(case, DropConstraint(place.claim, number))
        if found is None or constraint.match_attribute != name or source is None:
            continue
        for bridge in bridges(case, found, name):
            if len(bridge.parts) == 1 and bridge.parts[0].request.place == place:
                change = source.change(Edit(path, bridge.parts[0].expression))
                yield Proposal(str(bridge), FixRank.GIVE, (change,))


def _disabled(case: DeviceCase) -> Finding:
    names = [
        case.diagnosis.situation.request_name(place)
        for place, details in case.diagnosis.situation.requests()
        if details.derived_attributes
    ]
    return Finding(
        f"request {names[0]} has derivedAttributes, but feature gate {GATE} is off in the "
        "scheduler, which refuses such claims",
        (Proposal(f"turn on feature gate {GATE} (an administrator's change)", FixRank.ADVICE),),
    )


def _cause(
    case: DeviceCase,
    place: RequestPath,
    derived: DeviceDerivedAttribute,
    fault: DerivedFault,
    devices: list[PublishedDevice],
) -> str:
    request = case.diagnosis.situation.request_name(place)
    what = f"derived attribute {derived.name} of request {request}"
    error = f"{what} fails on device {fault.devices[0].name}: {fault.message}"
    if not fault.lacking:
        return error
    read = fault.lacking[0]
    name = qualified(read) or written(read)
    count, total = len(fault.devices), len(devices)
    verb = "has" if count == 1 else "have"
    fact = f"{count:,} of {counted(total, 'device')} {verb} no {name}"
    if count == total:
        fact = f"no device has {name}{_hint(read, devices)}"
    full = f"{error}; {fact}"
    return full if len(full) <= CAUSE_LENGTH_MAX else f"{what} fails: {fact}"


def _hint(read: DeviceField, devices: list[PublishedDevice]) -> str:
    names = {
        name
        for device in devices
        if device.variables is not None
        for name in device.variables["device"][read.field].get(read.domain, {})
    }
    near = nearest(read.name, names)
    return f": did you mean {near}?" if near else ""


def _proposals(
    case: DeviceCase,
    place: RequestPath,
    path: EditPath,
    evaluator: ExpressionEvaluator,
    fault: DerivedFault,
    devices: list[PublishedDevice],
) -> Iterator[Proposal]:
    source = case.edits.source(place.claim)
    request = case.diagnosis.situation.request_name(place)
    repairs = list(derived_repairs(evaluator, devices, case.case.fleet, case.compiler))
    if source is None:
        repairs = []
    for repair in repairs[:REPAIRS_MAX]:
        assert source is not None
        change = source.change(Edit(path, repair.expression))
        rank = FixRank.GIVE if repair.is_guard else FixRank.REPAIR
        yield Proposal(f"request {request}: {repair.text}", rank, (change,))
    some = len(fault.devices) < len(devices)
    if fault.lacking and some and source is not None:
        condition = " && ".join(f"has({written(read)})" for read in fault.lacking)
        where = (*case.edits.request(place), "selectors", APPEND)
        change = source.change(Edit(where, {"cel": {"expression": condition}}))
        text = f"keep other devices out of request {request} by a selector: {condition}"
        yield Proposal(text, FixRank.GIVE, (change,))
    text = f"write the expression so that it has a value on device {fault.devices[0].name}"
    yield Proposal(f"{text}: moor cel --derived tries it", FixRank.ADVICE)
