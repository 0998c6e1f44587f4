"""Selectors of requests that leave too few devices: the mistake in them, and the repair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mooring.insight.answer.finding import Finding, FixRank, Proposal
from mooring.insight.answer.shortages import DeviceCase, Shortage
from mooring.insight.explain.funnel import SELECTED
from mooring.insight.expressions.evaluation import ExpressionEvaluator, evaluator_of
from mooring.insight.expressions.repairs import ExpressionRepair, RepairKind, repairs
from mooring.insight.messages import counted

REPAIRS_MAX: Final = 6
_RANKS: Final = {
    RepairKind.NAME: FixRank.REPAIR,
    RepairKind.TYPE: FixRank.REPAIR,
    RepairKind.VALUE: FixRank.REPAIR,
    RepairKind.GUARD: FixRank.GIVE,
    RepairKind.AMOUNT: FixRank.LESS,
    RepairKind.OTHER_VALUE: FixRank.LESS,
}


def unselected(case: DeviceCase, short: Shortage) -> Iterator[Finding]:
    """Find the selector that leaves too few of the devices that came as far."""
    candidates = case.of_class(short.class_name)
    for number, selector in enumerate(short.details.selectors):
        expression = "" if selector.cel is None else selector.cel.expression
        evaluator = evaluator_of(expression, case.compiler)
        passing = case.passing([expression], candidates)
        if len(passing) >= short.wanted or not isinstance(evaluator, ExpressionEvaluator):
            candidates = passing
            continue
        found = list(repairs(evaluator, candidates, case.case.fleet))[:REPAIRS_MAX]
        if found:
            yield Finding(found[0].cause, tuple(_proposals(case, short, number, found)))
        elif passing:
            devices = counted(len(passing), "device")
            cause = f"{short.name} wants {short.wanted} devices, its selectors match {devices}"
            yield Finding(cause, tuple(case.fewer(short, len(passing))))
        else:
            text = "see which part of it is false: moor cel shows it for each device"
            cause = f"no device matches `{expression}` of {short.name}"
            yield Finding(cause, (Proposal(text, FixRank.ADVICE),))
        return


def faulty_selectors(case: DeviceCase) -> Iterator[Finding]:
    """Find selectors that cannot be evaluated on some device, which ends the search."""
    situation = case.diagnosis.situation
    funnels = {funnel.request: funnel for funnel in case.diagnosis.funnels}
    for place, details in situation.requests():
        funnel = funnels.get(situation.request_name(place))
        if funnel is None:
            continue
        short = Shortage(place, details, funnel, SELECTED)
        candidates = case.of_class(short.class_name)
        for number, selector in enumerate(details.selectors):
            expression = "" if selector.cel is None else selector.cel.expression
            evaluator = evaluator_of(expression, case.compiler)
            if isinstance(evaluator, ExpressionEvaluator):
                found = list(repairs(evaluator, candidates, case.case.fleet))[:REPAIRS_MAX]
                if found:
                    yield Finding(found[0].cause, tuple(_proposals(case, short, number, found)))
            candidates = case.passing([expression], candidates)


def _proposals(
    case: DeviceCase, short: Shortage, number: int, found: list[ExpressionRepair]
) -> Iterator[Proposal]:
    for each in found:
        change = case.edits.selector(short.place, number, each.expression)
        if change is not None:
            yield Proposal(f"{short.name}: {each.text}", _RANKS[each.kind], (change,))
