"""Which devices an expression selects, as in `moor cel`, painted over the fleet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from mooring.cel.device import COST_LIMIT
from mooring.insight.expressions.candidates import Devices
from mooring.insight.expressions.evaluation import (
    TOO_LONG,
    EvaluationReport,
    ExpressionEvaluator,
    InvalidExpression,
    MatchOutcome,
    compiler_for,
    condensed,
    evaluator_of,
)
from mooring.insight.expressions.mistake import RepairKind
from mooring.insight.expressions.published_devices import PublishedDevice, PublishedDevices
from mooring.insight.expressions.repairs import diagnose
from mooring.web.columns import encode
from mooring.web.questions.moment import ShownMoment

NO, YES, ERROR = range(3)
PARTS_MAX: Final = 20
ERRORS_MAX: Final = 20
_PLACE: Final = re.compile(r"<input>:(\d{1,6}):(\d{1,6})")


def cel_answer(moment: ShownMoment, expression: str) -> dict[str, Any]:
    """Return the devices that an expression selects, its cost, and what the user may have meant."""
    gates, extensions = moment.context.gates, moment.context.extensions
    evaluator = evaluator_of(expression, compiler_for(gates, extensions=extensions))
    if isinstance(evaluator, InvalidExpression):
        hints = [] if evaluator.error == TOO_LONG else list(_hints(moment, expression))
        place = _offset(evaluator.error, expression)
        return {
            "compileError": {"message": evaluator.error, "offset": place},
            "counts": {"yes": 0, "no": 0, "error": 0},
            "cost": {"estimate": None, "limit": COST_LIMIT, "worst": None},
            "errors": [],
            "parts": [],
            "hints": hints,
        }
    report = EvaluationReport(evaluator, moment.published)
    marks = [(each.devices, _value(report, each.outcome)) for each in report.results]
    counted: Counter[int] = Counter()
    for devices, mark in marks:
        counted[mark] += len(devices)
    hints = [] if counted[YES] or report.is_about_values else list(_hints(moment, expression))
    if report.caveat:
        hints.insert(0, f"Kubernetes refuses this as a selector: {report.caveat}")
    return {
        "devices": encode(moment.column(marks)),
        "counts": {"yes": counted[YES], "no": counted[NO], "error": counted[ERROR]},
        "cost": _cost(evaluator, report),
        "errors": list(_errors(report)),
        "parts": list(_parts(report)),
        "hints": hints,
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


def _hints(moment: ShownMoment, expression: str) -> Iterator[str]:
    """Yield why too few devices match, and expressions that the user may have meant."""
    published: PublishedDevices = moment.published
    if not published:
        return
    gates, extensions = moment.context.gates, moment.context.extensions
    devices = Devices(published.devices, published, is_class_known=False)
    meant = diagnose([expression], compiler_for(gates, extensions=extensions), devices)
    if meant is None or not meant.cause:
        return
    for repair in [each for each in meant.repairs if each.kind < RepairKind.DROPPED][:1]:
        lead = "did you mean" if repair.kind <= RepairKind.GUARD else "nearest that matches:"
        yield f"{lead} {repair.expressions[0]}"
    yield meant.cause


def _offset(error: str, expression: str) -> int:
    """Return the position of an error in characters, or 0 if unknown."""
    found = _PLACE.search(error)
    if found is None:
        return 0
    lines = expression.split("\n")[: int(found[1]) - 1]
    return min(sum(len(line) + 1 for line in lines) + int(found[2]), len(expression))
