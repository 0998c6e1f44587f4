"""Rules about expressions, put to devices.

An expression is evaluated for the devices that get as far as this expression; its results are
facts, not guesses. So guards by `has()`, by the driver, or by the class need no rule of their own.
Where some device cannot be read by any expression, no rule says that something is true for none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mooring.api.resource.v1 import DeviceClass
from mooring.cel.device_values import KEY_HINT, NO_SUCH_KEY
from mooring.cel.lang import ast
from mooring.cel.lang.interpretable import Failure
from mooring.insight.expressions.evaluation import ExpressionEvaluator, tallied
from mooring.insight.expressions.explanation import Atom, atoms
from mooring.insight.expressions.published_devices import (
    PublishedDevice,
    did_you_mean,
    written,
)
from mooring.insight.expressions.syntax import DeviceField, DeviceRead, chains, readings, shown
from mooring.insight.lint.advice import guarded, lacking_fields, repaired
from mooring.insight.lint.context import ExpressionStage
from mooring.insight.lint.rule import SELECTING, Case, E, Needs, Oddity, RuleTable, W
from mooring.insight.lint.subjects import selections_of
from mooring.insight.messages import counted, nearest

RULES = RuleTable(SELECTING)
VALUES_SHOWN_MAX: Final = 5
_Tally = dict[str, Counter[str]]  # part: how many devices have which value


# --- names ------------------------------------------------------------------------------


@RULES.add(W, Needs.DEVICES)
def unknown_domain(case: Case) -> Iterator[Oddity]:
    """A domain in which no device has attributes or capacity."""
    for stage, reading in _unknown(case):
        read = reading.read
        if case.context.devices.carriers[DeviceField(read.field, read.domain)] == 0:
            what = "attributes" if read.field == "attributes" else "capacity"
            message = f'no device has {what} in the domain "{read.domain}"'
            yield Oddity(stage.expression.place, message, did_you_mean(read, case.context.devices))


@RULES.add(W, Needs.DEVICES)
def unknown_attribute(case: Case) -> Iterator[Oddity]:
    """An attribute or capacity that no device has."""
    for stage, reading in _unknown(case):
        read = reading.read
        if case.context.devices.carriers[DeviceField(read.field, read.domain)] > 0:
            message = f"no device has {written(read)}"
            yield Oddity(stage.expression.place, message, did_you_mean(read, case.context.devices))


def _unknown(case: Case) -> Iterator[tuple[ExpressionStage, DeviceRead]]:
    for stage in case.stages if not case.context.unreadable else ():
        if isinstance(stage.evaluator, ExpressionEvaluator):
            for reading in readings(stage.evaluator.root):
                if _is_unknown(reading.read, case):
                    yield stage, reading


def _is_unknown(read: DeviceField, case: Case) -> bool:
    return bool(read.domain) and case.context.devices.carriers[read] == 0


# --- errors -----------------------------------------------------------------------------


class _Fault(NamedTuple):
    """An error of an expression: its origin, its message, and the devices."""

    part: str
    message: str
    devices: list[PublishedDevice]
    read: DeviceField | None  # what is missing, if that is the error


@RULES.add(E, Needs.DEVICES)
def missing_guard(case: Case) -> Iterator[Oddity]:
    """An attribute that only some devices have, read without has() or .?."""
    for stage in case.stages:
        for fault in _faults(stage):
            read = fault.read
            if read is None or _is_unknown(read, case):
                continue
            devices = _concerned(stage, fault, read)
            if not devices:
                continue
            yield Oddity(
                stage.expression.place,
                f"{fault.part} is read without a guard, but {_of(devices, stage)} "
                f"not have it, such as {devices[0]}: scheduling aborts when it looks at one",
                guarded(stage, lacking_fields(stage), case.context),
            )


def _of(devices: list[PublishedDevice], stage: ExpressionStage) -> str:
    verb = "does" if len(devices) == 1 else "do"
    return f"{len(devices):,} of {counted(len(stage.candidates), 'device')} {verb}"


@RULES.add(E, Needs.DEVICES)
def run_time_error(case: Case) -> Iterator[Oddity]:
    """An expression that has no value for some device."""
    for stage in case.stages:
        for fault in _faults(stage):
            if fault.read is None:
                yield Oddity(
                    stage.expression.place,
                    f"{fault.part} gives an error on {counted(len(fault.devices), 'device')} "
                    f"such as {fault.devices[0]}, at which scheduling aborts: {fault.message}",
                    repaired(stage, case.context)
                    if stage.expression.purpose == "derived"
                    else "keep such devices out by a condition before it: "
                    "`&&` does not look further once it is false",
                )


def _faults(stage: ExpressionStage) -> Iterator[_Fault]:
    """Yield the errors of an expression on its candidates, grouped by origin."""
    if not isinstance(stage.evaluator, ExpressionEvaluator):
        return
    places = {
        stage.evaluator.parts.text(reading.node): reading.read
        for reading in readings(stage.evaluator.root)
        if reading.read.name
    }
    found: dict[tuple[str, str], _Fault] = {}
    for result, devices in stage.looked_at():
        if not result.error:
            continue
        part = stage.evaluator.reasons(result)[0].part
        message = result.error.replace(KEY_HINT, "")
        read = places.get(part) if NO_SUCH_KEY in message else None
        fault = found.setdefault((part, message), _Fault(part, message, [], read))
        fault.devices.extend(devices)
    yield from found.values()


def _concerned(stage: ExpressionStage, fault: _Fault, read: DeviceField) -> list[PublishedDevice]:
    """Return the devices that lack an attribute and that the expression is really evaluated for.

    If the class is not given, devices of other drivers do not count.
    """
    if stage.is_class_known:
        return fault.devices
    return [device for device in fault.devices if _knows_domain(device, read.domain)]


def _knows_domain(device: PublishedDevice, domain: str) -> bool:
    if device.driver == domain or device.variables is None:
        return device.driver == domain
    fields = device.variables["device"]
    return domain in fields["attributes"] or domain in fields["capacity"]


# --- results ----------------------------------------------------------------------------


@RULES.add(W, Needs.DEVICES)
def never_true(case: Case) -> Iterator[Oddity]:
    """A comparison that is true for no device."""
    for stage in case.stages if not case.context.unreadable else ():
        if (
            isinstance(stage.evaluator, ExpressionEvaluator)
            and stage.expression.purpose == "selector"
        ):
            for atom in atoms(stage.evaluator.root):
                if _is_never_true(atom, stage, stage.evaluator, case):
                    tally = _tally(atom, stage, stage.evaluator)
                    if not _is_of_class(case) or _nearest_value(atom.node, tally):
                        yield _never_true(atom, stage, stage.evaluator, tally)


def _is_of_class(case: Case) -> bool:
    """Whether the object is a class, which may be for devices that are still to come."""
    return isinstance(case.subject.value, DeviceClass)


def _is_never_true(
    atom: Atom, stage: ExpressionStage, evaluator: ExpressionEvaluator, case: Case
) -> bool:
    """Whether a question that should be true never is, but is false for some device."""
    if not atom.wants_yes or any(_is_unknown(r.read, case) for r in readings(atom.node)):
        return False
    is_ever_false = False
    for result, _ in stage.looked_at():
        variables = atom.variables(evaluator.parts, result.devices[0].variables or {})
        value = evaluator.parts.value(atom.node, variables)
        if value is True:
            return False
        is_ever_false = is_ever_false or value is False
    return is_ever_false and _is_about_devices(atom)


def _tally(atom: Atom, stage: ExpressionStage, evaluator: ExpressionEvaluator) -> _Tally:
    """Return the values of the attributes that a question reads."""
    tally: _Tally = {}
    for result, devices in stage.looked_at():
        variables = atom.variables(evaluator.parts, result.devices[0].variables or {})
        for chain in chains(atom.node, variables):
            value = evaluator.parts.value(chain, variables)
            if not isinstance(value, Failure):
                part = evaluator.parts.text(chain)
                tally.setdefault(part, Counter())[shown(value)] += len(devices)
    return tally


def _is_about_devices(atom: Atom) -> bool:
    """Whether a question depends on devices; a plain `false` is deliberate."""
    return bool(atom.bindings) or any(True for _ in readings(atom.node))


def _never_true(
    atom: Atom, stage: ExpressionStage, evaluator: ExpressionEvaluator, tally: _Tally
) -> Oddity:
    devices = counted(len(stage.candidates), "device")
    scope = f"of class {stage.selection.class_name}" if stage.selection.class_name else "given"
    if not stage.is_class_known:
        scope = "given"
    facts = "; ".join(
        f"{part} is {tallied(values, shown_max=VALUES_SHOWN_MAX)}" for part, values in tally.items()
    )
    message = f"{evaluator.parts.text(atom.node)} is true for none of the {devices} {scope}"
    remedy = _nearest_value(atom.node, tally) or "compare with a value that devices have"
    return Oddity(stage.expression.place, f"{message}: {facts}" if facts else message, remedy)


def _nearest_value(node: ast.Expr, tally: _Tally) -> str | None:
    """Return the value that a compared string may represent."""
    known = {value for values in tally.values() for value in values}
    for text in _strings(node):
        near = nearest(shown(text), known)
        if near is not None:
            devices = sum(values[near] for values in tally.values())
            return f"did you mean {near}? {counted(devices, 'device')} {_have(devices)} it"
    return None


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _strings(node: ast.Expr) -> Iterator[str]:
    """Yield the strings that a comparison compares with, without keys."""
    match node:
        case ast.Literal(value=str(text)):
            yield text
        case ast.Call(function="_[_]" | "_[?_]" | "_?._"):
            return
        case _:
            for child in ast.children(node):
                yield from _strings(child)


@RULES.add(W, Needs.DEVICES)
def matches_nothing(case: Case) -> Iterator[Oddity]:
    """Selectors that no device passes, for no reason that another rule finds."""
    if _is_of_class(case) or case.context.unreadable:
        return
    others = (never_true, unknown_domain, unknown_attribute)
    odd = {oddity.place for rule in others for oddity in case.once(rule)}
    for selection in selections_of(case.subject):
        own = (stage for stage in case.stages if stage.selection.place == selection.place)
        stages = [stage for stage in own if stage.expression.purpose == "selector"]
        if not stages or not stages[0].candidates or any(_is_broken(s, odd) for s in stages):
            continue
        if not stages[-1].passing:
            devices = counted(len(stages[0].candidates), "device")
            yield Oddity(
                stages[-1].expression.place,
                f"none of the {devices} that come this far passes the selectors together",
                "`moor cel` tells for each device which part says no",
            )


def _is_broken(stage: ExpressionStage, odd: set[Any]) -> bool:
    """Whether another rule reports a selector."""
    is_odd = stage.expression.place in odd or not isinstance(stage.evaluator, ExpressionEvaluator)
    return is_odd or any(result.error for result, _ in stage.looked_at())
