"""Expressions whose error ended the search for devices: where they are, and how they are guarded.

An error on one device ends the attempt for the whole pod: no other device, alternative or node is
tried. So nothing else is worth saying before it. The message names the class or claim, the
selector and the device; which request it is, and which devices are alike, is found by evaluation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from moorage.api.resource.v1 import DeviceClass
from moorage.cel.device_values import NO_SUCH_KEY
from moorage.cel.lang import ast
from moorage.cel.lang.interpretable import Failure
from moorage.insight.answer.changes.edits import Edit, ObjectChange, change_of
from moorage.insight.answer.devices.shortages import DeviceCase, expressions_of
from moorage.insight.answer.finding import Finding, FixRank, Proposal
from moorage.insight.explain.situation import RequestPath
from moorage.insight.expressions.candidates import Devices
from moorage.insight.expressions.evaluation import ExpressionEvaluator, evaluator_of
from moorage.insight.expressions.mistake import RepairKind
from moorage.insight.expressions.published_devices import (
    PublishedDevice,
    PublishedDevices,
    written,
)
from moorage.insight.expressions.repairs import ExpressionRepair, diagnose
from moorage.insight.expressions.syntax import DeviceField, readings, shown, terms
from moorage.insight.expressions.values import type_name, with_article
from moorage.insight.messages import counted, fitting

REPAIRS_MAX: Final = 4
DRIVERS_MAX: Final = 3  # that a guard names
ADMINISTRATOR: Final = "an administrator's change"
_ERROR: Final = re.compile(
    r"(?P<whose>claim|class) (?P<name>\S+): selector #(?P<number>\d+) on device (?P<device>\S+): "
    r"CEL runtime error: (?P<text>.*)",
    re.DOTALL,
)
_AGAINST_ERRORS: Final = (*(RepairKind.NAME, RepairKind.SYNTAX, RepairKind.TYPE, RepairKind.GUARD),)


class _Fault(NamedTuple):
    """An expression that fails on devices that it is put to."""

    where: str  # that has the expression: `class x`, `request r`
    evaluator: ExpressionEvaluator
    devices: Sequence[PublishedDevice]  # that it is put to on the node
    failing: Sequence[PublishedDevice]
    text: str  # of the error
    place: RequestPath | None = None  # of the request, if it has the expression
    number: int = 0  # of the selector
    device_class: DeviceClass | None = None  # if that has the expression

    @property
    def lacking(self) -> list[DeviceField]:
        """What is read, and some device on which that fails does not have."""
        return [
            read
            for read in dict.fromkeys(
                each.read
                for each in readings(self.evaluator.root)
                if each.read.name and not each.is_guarded
            )
            if NO_SUCH_KEY in self.text and not all(device.has(read) for device in self.failing)
        ]


def error_findings(case: DeviceCase) -> Iterator[Finding]:
    """Find the selectors whose errors ended the search."""
    said = _ERROR.search(case.diagnosis.message)
    if said is None:
        return
    for fault in _faults(case, said):
        found = _repairs(case, fault)
        if _is_published(case, fault):
            found = [each for each in found if each.kind is RepairKind.GUARD]
        is_mistake = bool(found) and found[0].kind is not RepairKind.GUARD
        cause = _mistake(case, fault, found[0]) if is_mistake else _cause(case, fault)
        offered = tuple(_proposals(case, fault, found))
        yield Finding(cause, offered or (_advice(fault),))


# --- expressions that fail ------------------------------------------------------------------


def _faults(case: DeviceCase, said: re.Match[str]) -> Iterator[_Fault]:
    """Yield the expressions of the named class or claim that fail on devices of the node."""
    situation, number = case.diagnosis.situation, int(said["number"])
    here = PublishedDevices(situation.slices, names=case.case.context.extensions).devices
    seen: set[str] = set()
    for place, details in situation.requests():
        name = details.device_class_name
        found = next((c for c in situation.classes if c.metadata.name == name), None)
        if said["whose"] == "class":
            if found is None or name != said["name"] or name in seen:
                continue
            seen.add(name)
            fault = _fault(
                case, f"class {name}", expressions_of(found.spec.selectors), number, here
            )
            if fault is not None:
                yield fault._replace(device_class=found)
            continue
        claim = situation.claims[place.claim].metadata
        if f"{claim.namespace}/{claim.name}" != said["name"]:
            continue
        of_class = _passing(case, case.class_expressions(name), here)
        where = case.request_text(place)
        fault = _fault(case, where, expressions_of(details.selectors), number, of_class)
        if fault is not None:
            yield fault._replace(place=place)


def _fault(
    case: DeviceCase,
    where: str,
    expressions: Sequence[str],
    number: int,
    devices: Sequence[PublishedDevice],
) -> _Fault | None:
    """Return the expression with its failures, if it fails on any of the devices."""
    if number >= len(expressions):
        return None
    evaluator = evaluator_of(expressions[number], case.compiler)
    if not isinstance(evaluator, ExpressionEvaluator):
        return None
    asked = _passing(case, expressions[:number], devices)
    failures = [
        (each, value) for each in asked if isinstance(value := _value(evaluator, each), Failure)
    ]
    if not failures:
        return None
    failing = [device for device, _ in failures]
    return _Fault(where, evaluator, asked, failing, failures[0][1].message, number=number)


def _passing(
    case: DeviceCase, expressions: Sequence[str], devices: Sequence[PublishedDevice]
) -> Sequence[PublishedDevice]:
    """Return the devices for which all expressions are true."""
    for expression in expressions:
        evaluator = evaluator_of(expression, case.compiler)
        if not isinstance(evaluator, ExpressionEvaluator):
            return ()
        devices = [each for each in devices if _value(evaluator, each) is True]
    return devices


def _value(evaluator: ExpressionEvaluator, device: PublishedDevice) -> Any:
    if device.variables is None:
        return Failure(device.problem or "")
    return evaluator.parts.value(evaluator.root, device.variables)


# --- causes ---------------------------------------------------------------------------------


def _mistake(case: DeviceCase, fault: _Fault, repair: ExpressionRepair) -> str:
    """Return a mistake in the words of lint, with its place and effect where there are others."""
    cause = repair.cause
    if fault.device_class is None and sum(1 for _ in case.diagnosis.situation.requests()) == 1:
        return cause
    ends = "" if repair.kind is RepairKind.NAME else "; the error ends the search"
    return fitting(f"{fault.where}: {cause}{ends}", f"{fault.where}: {cause}", cause)


def _cause(case: DeviceCase, fault: _Fault) -> str:
    ends = f"the error ends the whole search{_beside(case, fault)}"
    plain = "the error ends the search"
    first = fault.failing[0]
    if not fault.lacking:
        fact = _type_fact(fault)
        return fitting(
            f"{fault.where} fails on device {first.name}: {fact}; {ends}",
            f"{fault.where} fails on device {first.name}: {fact}",
            f"{fault.where} fails: {fact}",
        )
    read = fault.lacking[0]
    name = f"{read.domain}/{read.name}"
    without = [device for device in fault.devices if not device.has(read)]
    total, count = len(fault.devices), len(without)
    verb = "has" if count == 1 else "have"
    fact, where = f"{count:,} of {counted(total, 'device')} {verb} no", f"{fault.where} reads"
    such = f" ({without[0].name})" if count == 1 else f" (such as {without[0].name})"
    if count == total:
        is_elsewhere = bool(case.case.fleet.carriers[read])
        fact, such = f"no device of node {case.node} has" if is_elsewhere else "no device has", ""
        where += f" on {counted(total, 'device')}"
    return fitting(
        f"{fact} {name}{such}, which {where}: {ends}",
        f"{fact} {name}, which {where}: {ends}",
        f"{fact} {name}, which {fault.where} reads: {plain}",
        f"{fact} {read.name}, which {fault.where} reads: {plain}",
        f"{fact} {read.name}, which {fault.where} reads",
    )


def _beside(case: DeviceCase, fault: _Fault) -> str:
    """Return the alternatives that are not tried because of the error."""
    place, situation = fault.place, case.diagnosis.situation
    if place is None or place.alternative is None:
        return ""
    rest = [
        situation.request_name(other).partition("/")[2]
        for other, _ in situation.requests()
        if (other.claim, other.request) == (place.claim, place.request)
        and (other.alternative or 0) > place.alternative
    ]
    return f", so alternative {rest[0]} is not tried" if rest else ""


def _type_fact(fault: _Fault) -> str:
    """Return the error, and the type of what is read."""
    variables = fault.failing[0].variables
    for each in readings(fault.evaluator.root):
        read = each.read
        if variables is not None and read.name and fault.failing[0].has(read):
            value = variables["device"][read.field][read.domain][read.name]
            noun = with_article(type_name(value))
            return f"{read.name} is {noun}, {shown(value)}: {fault.text}"
    return fault.text


# --- proposals ------------------------------------------------------------------------------


def _is_published(case: DeviceCase, fault: _Fault) -> bool:
    """Return whether devices of other nodes have what is read: then the name is right."""
    return any(case.case.fleet.carriers[read] for read in fault.lacking)


def _repairs(case: DeviceCase, fault: _Fault) -> list[ExpressionRepair]:
    """Return the repairs that take the error away; another value would not."""
    text = fault.evaluator.parts.text(fault.evaluator.root)
    devices: Sequence[PublishedDevice] = fault.devices
    if fault.lacking and not _is_published(case, fault) and fault.place is not None:
        # No device has it: what was meant may be true on other nodes only.
        details = case.diagnosis.situation.details(fault.place)
        devices = case.of_class(details.device_class_name)
    found = diagnose([text], case.compiler, Devices(tuple(devices), case.case.fleet))
    repairs = () if found is None else found.repairs
    return [each for each in repairs if each.kind in _AGAINST_ERRORS][:REPAIRS_MAX]


def _proposals(
    case: DeviceCase, fault: _Fault, found: Sequence[ExpressionRepair]
) -> Iterator[Proposal]:
    """Yield the expression without the error, the surest first."""
    if fault.device_class is not None:
        yield from _of_drivers(case, fault)
    offered: set[str] = set()
    for repair in found:
        offered.add(repair.text)
        rank = FixRank.GIVE if repair.kind is RepairKind.GUARD else FixRank.REPAIR
        yield from _proposal(case, fault, repair.text, repair.expressions[0], rank)
    if fault.lacking and (_is_published(case, fault) or not offered):
        guards = " && ".join(f"has({written(read)})" for read in fault.lacking)
        text = f"guard it: {guards} && …"
        if text not in offered:
            yield from _proposal(case, fault, text, _guarded(fault), FixRank.GIVE)


def _of_drivers(case: DeviceCase, fault: _Fault) -> Iterator[Proposal]:
    """Yield the class with a condition on the drivers whose devices have what it reads."""
    by_driver: dict[str, list[PublishedDevice]] = {}
    for device in case.case.fleet.devices:
        by_driver.setdefault(device.driver, []).append(device)
    drivers = [
        driver
        for driver, devices in by_driver.items()
        if not any(isinstance(_value(fault.evaluator, device), Failure) for device in devices)
    ]
    if not 0 < len(drivers) <= DRIVERS_MAX:
        return
    guard = f'device.driver == "{drivers[0]}"'
    if len(drivers) > 1:
        guard = f"device.driver in {shown(drivers)}"
    expression = f"{guard} && {_tight(fault.evaluator)}"
    text = f"ask for the driver first, {guard} && …"
    yield from _proposal(case, fault, text, expression, FixRank.GIVE)


def _guarded(fault: _Fault) -> str:
    """Return the expression with a guard before each alternative of it that fails."""
    parts, root = fault.evaluator.parts, fault.evaluator.root
    if isinstance(root, ast.Call) and root.function == "_||_":
        return " || ".join(_with_guard(parts.text(each), each, fault) for each in terms(root))
    return _with_guard(_tight(fault.evaluator), root, fault)


def _with_guard(text: str, node: ast.Expr, fault: _Fault) -> str:
    read_here = {each.read for each in readings(node) if not each.is_guarded}
    guards = [f"has({written(read)})" for read in fault.lacking if read in read_here]
    return " && ".join([*guards, text])


def _tight(evaluator: ExpressionEvaluator) -> str:
    """Return an expression as a term of `&&`."""
    text, root = evaluator.parts.text(evaluator.root), evaluator.root
    is_loose = isinstance(root, ast.Call) and root.function in ("_||_", "_?_:_")
    return f"({text})" if is_loose else text


def _proposal(
    case: DeviceCase, fault: _Fault, text: str, expression: str, rank: FixRank
) -> Iterator[Proposal]:
    change: ObjectChange | None = None
    if fault.device_class is not None:
        path = ("spec", "selectors", fault.number, "cel", "expression")
        change = change_of(fault.device_class, Edit(path, expression))
        said = f"{fault.where}: {text} ({ADMINISTRATOR})"
        yield Proposal(said, FixRank.ADMINISTRATOR, (change,))
    elif fault.place is not None:
        change = case.edits.selector(fault.place, fault.number, expression)
        if change is not None:
            yield Proposal(f"{fault.where}: {text}", rank, (change,))


def _advice(fault: _Fault) -> Proposal:
    who = "have an administrator correct" if fault.device_class is not None else "correct"
    text = f"{who} selector #{fault.number} of {fault.where}: moor cel shows it for each device"
    return Proposal(text, FixRank.ADVICE)
