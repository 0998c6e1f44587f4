"""Rules of lint about expressions that need no devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mooring.cel.device import COST_LIMIT
from mooring.insight.expressions.evaluation import TOO_COMPLEX, TOO_LONG, InvalidExpression
from mooring.insight.expressions.text import shown_cost
from mooring.insight.lint.cases import (
    Case,
    E,
    Needs,
    Oddity,
    Rule,
    W,
)
from mooring.insight.lint.context import ExpressionStage
from mooring.insight.lint.subjects import claim_of

NEAR_THE_LIMIT: Final = COST_LIMIT // 2
CHEAPER: Final = "loop over less, or compare with includes(), in or == instead of in a loop"


def does_not_compile(case: Case) -> Iterator[Oddity]:
    """Give the expressions that are refused."""
    for stage in case.stages:
        if isinstance(stage.inquiry, InvalidExpression):
            remedy = _how_to_compile(stage, stage.inquiry, case)
            yield Oddity(stage.expression.place, stage.inquiry.error, remedy)


def _how_to_compile(stage: ExpressionStage, refusal: InvalidExpression, case: Case) -> str:
    if refusal.error == TOO_LONG:
        return "split it: all selectors of a request must be true"
    if case.world.compiles_when_stored(stage.expression):
        return "switch on DRAListTypeAttributes and DRAConsumableCapacity: with them it compiles"
    return "correct it; `moor cel` tries it on devices"


def too_expensive(case: Case) -> Iterator[Oddity]:
    """Give the expressions over the limit, and claims whose derived attributes are together."""
    for stage, cost in _estimates(case):
        if cost > COST_LIMIT:
            message = f"{TOO_COMPLEX}: it may cost {shown_cost(cost)} of {COST_LIMIT:,}"
            yield Oddity(stage.expression.place, message, CHEAPER)
    derived = [cost for stage, cost in _estimates(case) if stage.expression.purpose == "derived"]
    if sum(derived) > COST_LIMIT >= max(derived, default=0):
        place, _ = claim_of(case.subject)
        message = (
            f"too complex, the derived attributes of the claim may cost {sum(derived):,} together; "
            f"the limit is {COST_LIMIT:,}"
        )
        yield Oddity(place, message, CHEAPER)


def expensive(case: Case) -> Iterator[Oddity]:
    """Give the expressions near the limit."""
    for stage, cost in _estimates(case):
        if NEAR_THE_LIMIT <= cost <= COST_LIMIT:
            message = f"near the cost limit: it may cost {cost:,} of {COST_LIMIT:,}"
            yield Oddity(stage.expression.place, message, CHEAPER)


def _estimates(case: Case) -> Iterator[tuple[ExpressionStage, int]]:
    for stage in case.stages:
        if not isinstance(stage.inquiry, InvalidExpression):
            yield stage, stage.inquiry.compiled.cost_max


RULES = (
    Rule(
        "does-not-compile",
        E,
        Needs.NOTHING,
        "an expression that Kubernetes refuses",
        does_not_compile,
    ),
    Rule(
        "too-expensive",
        E,
        Needs.NOTHING,
        "an expression, or all derived attributes of a claim, over the cost limit",
        too_expensive,
    ),
    Rule(
        "expensive",
        W,
        Needs.NOTHING,
        "an expression that may use half of the cost limit or more",
        expensive,
    ),
)
