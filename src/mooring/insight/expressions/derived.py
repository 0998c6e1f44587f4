"""Derived attributes that have no value on some devices, and how to give them one.

A guard by has() makes a bool of a derived attribute. What helps is a value for devices without the
attribute, or a selector that keeps them out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.api.semver import Version
from mooring.cel.device import DeviceCompiler
from mooring.insight.expressions.evaluation import (
    ExpressionEvaluator,
    InvalidExpression,
    MatchOutcome,
    evaluator_of,
)
from mooring.insight.expressions.fields import unknown_field
from mooring.insight.expressions.mistake import Mistake, MistakeKind, RepairKind, fitting
from mooring.insight.expressions.published_devices import carriers_of, written
from mooring.insight.expressions.questions import Devices
from mooring.insight.expressions.syntax import DeviceField, DeviceRead, readings
from mooring.insight.expressions.values import literal
from mooring.insight.messages import counted


def derived_mistakes(
    expression: str, compiler: DeviceCompiler, devices: Devices
) -> Iterator[Mistake]:
    """Yield the fields of a derived attribute that no device, or not every device, has."""
    evaluator = evaluator_of(expression, compiler, derived=True)
    if isinstance(evaluator, InvalidExpression):
        return
    carriers = carriers_of(devices.candidates)
    for reading in readings(evaluator.root):
        read = reading.read
        if read.domain and not carriers[read]:
            yield _tried(
                unknown_field(reading, carriers, devices.fleet), evaluator, compiler, devices
            )
        elif read.name and not reading.is_guarded:
            yield from _unguarded(reading, evaluator, compiler, devices)


def _tried(
    mistake: Mistake, evaluator: ExpressionEvaluator, compiler: DeviceCompiler, devices: Devices
) -> Mistake:
    for option in mistake.options:
        text = evaluator.parts.rewritten(option.instead)
        if _failing(text, compiler, devices) == 0:
            cause = option.cause or mistake.cause
            return mistake._replace(cause=cause, remedy=option.text, repair=option.kind)
    return mistake


def _unguarded(
    reading: DeviceRead, evaluator: ExpressionEvaluator, compiler: DeviceCompiler, devices: Devices
) -> Iterator[Mistake]:
    read = reading.read
    concerned = devices.concerned([read])
    lacking = [device for device in concerned if device.is_readable and not device.has(read)]
    text = evaluator.parts.text(evaluator.root)
    if not lacking or not _failing(text, compiler, devices):
        return
    verb = "has" if len(lacking) == 1 else "have"
    fact = f"{len(lacking):,} of {counted(len(concerned), 'device')} {verb} no"
    cause = fitting(
        f"{fact} {read.domain}/{read.name}, and reading it there ends the search",
        f"{fact} {read.name}, and reading it there ends the search",
    )
    remedy = f"keep such devices out by the selector has({written(read)})"
    optional = f"{written(read, optional=True)}.orValue({_default(read, devices)})"
    given = evaluator.parts.rewritten({reading.node.id: optional})
    if not _failing(given, compiler, devices):
        remedy = f"{remedy}, or read it as {optional}"
    yield Mistake(MistakeKind.GUARD, cause, (), written(read), 0, remedy, RepairKind.GUARD)


def _default(read: DeviceField, devices: Devices) -> str:
    """Return a value of the type that devices have."""
    sample: Any = next((each.value(read) for each in devices.candidates if each.has(read)), "")
    match sample:
        case bool():
            return "false"
        case int():
            return "-1"
        case Version():
            return literal(Version(0, 0, 0))
        case list() | tuple():
            return "[]"
    return '""'


def _failing(expression: str, compiler: DeviceCompiler, devices: Devices) -> int:
    """Return on how many devices a derived attribute has no value; all, if it does not compile."""
    evaluator = evaluator_of(expression, compiler, derived=True)
    concerned = devices.concerned(())
    if isinstance(evaluator, InvalidExpression):
        return len(concerned) or 1
    results = evaluator.results(devices.fleet, concerned)
    return sum(len(each.devices) for each in results if each.outcome is MatchOutcome.ERROR)
