"""What is wrong with derived attributes: fields that no device has, or not every device.

`derived_repairs` has the expressions that help.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.cel.device import DeviceCompiler
from moorage.insight.expressions.candidates import Devices
from moorage.insight.expressions.evaluation import (
    ExpressionEvaluator,
    InvalidExpression,
    evaluator_of,
)
from moorage.insight.expressions.fields import unknown_field
from moorage.insight.expressions.mistake import Mistake, MistakeKind, RepairKind
from moorage.insight.expressions.published_devices import written
from moorage.insight.expressions.syntax import DeviceRead, readings, reads_of
from moorage.insight.messages import counted, fitting


def derived_mistakes(
    expression: str, compiler: DeviceCompiler, devices: Devices
) -> Iterator[Mistake]:
    """Yield the fields of a derived attribute that no device, or not every device, has."""
    evaluator = evaluator_of(expression, compiler, derived=True)
    if isinstance(evaluator, InvalidExpression):
        return
    carriers = devices.carriers
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
    lacking = sum(row.size for row in concerned if not row.first.has(read))
    text = evaluator.parts.text(evaluator.root)
    if not lacking or not _failing(text, compiler, devices):
        return
    verb = "has" if lacking == 1 else "have"
    total = sum(row.size for row in concerned)
    fact = f"{lacking:,} of {counted(total, 'device')} {verb} no"
    cause = fitting(
        f"{fact} {read.domain}/{read.name}, and reading it there ends the search",
        f"{fact} {read.name}, and reading it there ends the search",
    )
    yield Mistake(MistakeKind.GUARD, cause, (), written(read), repair=RepairKind.GUARD)


def _failing(expression: str, compiler: DeviceCompiler, devices: Devices) -> int:
    """Return on how many devices a derived attribute has no value; all, if it does not compile."""
    evaluator = evaluator_of(expression, compiler, derived=True)
    if isinstance(evaluator, InvalidExpression):
        return len(devices.candidates) or 1
    return sum(
        row.size
        for row in devices.concerned(reads_of(evaluator.root))
        if evaluator.compiled.evaluate_variables(row.variables).error is not None
    )
