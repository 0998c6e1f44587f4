"""Which devices an expression selects, as `moor cel` says it, painted over the fleet.

Whoever looks may ask with any expression, and the limit of Kubernetes is for one device. So there
is a limit for all devices together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from moorage.cel.device import COST_LIMIT, DeviceCompiler
from moorage.cel.lang.metering import Interrupt, Interrupted
from moorage.insight.expressions.candidates import Devices
from moorage.insight.expressions.evaluation import (
    TOO_LONG,
    EvaluationReport,
    ExpressionEvaluator,
    InvalidExpression,
    MatchOutcome,
    compiler_for,
    condensed,
    evaluator_of,
)
from moorage.insight.expressions.mistake import RepairKind
from moorage.insight.expressions.published_devices import PublishedDevice, PublishedDevices
from moorage.insight.expressions.repairs import diagnose
from moorage.web.columns import encode
from moorage.web.errors import UnusableError
from moorage.web.questions.moment import EVALUATION_S, ShownMoment, ends_after

NO, YES, ERROR = range(3)
PARTS_MAX: Final = 20
ERRORS_MAX: Final = 20
_PLACE: Final = re.compile(r"<input>:(\d{1,6}):(\d{1,6})")


def cel_answer(
    moment: ShownMoment, expression: str, *, interrupt: Interrupt | None = None
) -> dict[str, Any]:
    """Return which devices an expression selects, its cost, and what may have been meant.

    Raise UnusableError if `interrupt` ends it, by default after some seconds.
    """
    context = moment.context
    compiler = compiler_for(context.gates, extensions=context.extensions)
    try:
        with compiler.meter.bounded(interrupt or ends_after(EVALUATION_S)):
            return _answer(moment, expression, compiler)
    except Interrupted as cause:
        raise UnusableError(f"The expression is too much work for all devices: {cause}.") from None


def _answer(moment: ShownMoment, expression: str, compiler: DeviceCompiler) -> dict[str, Any]:
    evaluator = evaluator_of(expression, compiler)
    if isinstance(evaluator, InvalidExpression):
        is_long = evaluator.error == TOO_LONG
        found = _Hints() if is_long else _hints(moment, expression, compiler)
        place = _offset(evaluator.error, expression)
        return {
            "compileError": {"message": evaluator.error, "offset": place},
            "counts": {"yes": 0, "no": 0, "error": 0},
            "cost": {"estimate": None, "limit": COST_LIMIT, "worst": None},
            "errors": [],
            "parts": [],
            "hints": found.texts,
            "meant": found.meant,
        }
    report = EvaluationReport(evaluator, moment.published)
    marks = [(each.devices, _value(report, each.outcome)) for each in report.results]
    counted: Counter[int] = Counter()
    for devices, mark in marks:
        counted[mark] += len(devices)
    needs_no_hint = counted[YES] or report.is_about_values
    found = _Hints() if needs_no_hint else _hints(moment, expression, compiler)
    hints = found.texts
    if report.caveat:
        hints.insert(0, f"Kubernetes refuses this as a selector: {report.caveat}")
    return {
        "devices": encode(moment.column(marks)),
        "counts": {"yes": counted[YES], "no": counted[NO], "error": counted[ERROR]},
        "cost": _cost(evaluator, report),
        "errors": list(_errors(report)),
        "parts": list(_parts(report)),
        "hints": hints,
        "meant": found.meant,
    }


def _value(report: EvaluationReport, outcome: MatchOutcome) -> int:
    if outcome is MatchOutcome.ERROR:
        return ERROR
    return YES if outcome is report.wanted else NO


def _cost(evaluator: ExpressionEvaluator, report: EvaluationReport) -> dict[str, int | None]:
    worst = None if report.costs is None else report.costs[1]
    return {"estimate": evaluator.compiled.cost_max, "limit": COST_LIMIT, "worst": worst}


def _errors(report: EvaluationReport) -> Iterator[dict[str, Any]]:
    found: dict[str, list[PublishedDevice]] = {}
    for result in report.results:
        if result.outcome is MatchOutcome.ERROR:
            found.setdefault(result.error, []).extend(result.devices)
    for message, devices in list(found.items())[:ERRORS_MAX]:
        yield {"message": message, "count": len(devices), "example": str(devices[0])}


def _parts(report: EvaluationReport) -> Iterator[dict[str, Any]]:
    """Yield the parts that rejected devices, with the values that they read."""
    total = len(report.devices)
    refused: Counter[str] = Counter()
    values: dict[str, str] = {}
    for explained in condensed(report.explained):
        for reason in explained.reasons:
            refused[reason.part] += len(explained.devices)
            values.setdefault(reason.part, str(reason))
    for part, count in refused.most_common(PARTS_MAX):
        yield {"text": part, "yes": max(total - count, 0), "of": total, "why": values[part]}


class _Hints(NamedTuple):
    """Why too few devices match, and the expression that was meant."""

    cause: str = ""
    lead: str = ""
    expression: str = ""

    @property
    def texts(self) -> list[str]:
        return [self.cause] if self.cause else []

    @property
    def meant(self) -> dict[str, str] | None:
        return {"lead": self.lead, "expression": self.expression} if self.lead else None


def _hints(moment: ShownMoment, expression: str, compiler: DeviceCompiler) -> _Hints:
    published: PublishedDevices = moment.published
    if not published:
        return _Hints()
    devices = Devices(published.devices, published, is_class_known=False)
    meant = diagnose([expression], compiler, devices)
    if meant is None or not meant.cause:
        return _Hints()
    for repair in [each for each in meant.repairs if each.kind < RepairKind.DROPPED][:1]:
        lead = "did you mean" if repair.kind <= RepairKind.GUARD else "nearest that matches:"
        return _Hints(meant.cause, lead, repair.expressions[0])
    return _Hints(meant.cause)


def _offset(error: str, expression: str) -> int:
    """Return the position of an error in characters, or 0 if unknown."""
    found = _PLACE.search(error)
    if found is None:
        return 0
    lines = expression.split("\n")[: int(found[1]) - 1]
    return min(sum(len(line) + 1 for line in lines) + int(found[2]), len(expression))
