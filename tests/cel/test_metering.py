"""The meter: evaluations can be ended at any part of their cost, and the slowest are known."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cel.device import COST_LIMIT, CelFeatures, Compiled, DeviceCompiler
from moorage.cel.lang.errors import COST_EXCEEDED
from moorage.cel.lang.metering import (
    CHECK_EVERY_COST,
    EXPRESSIONS_MAX,
    Interrupted,
    Meter,
    NotAdmitted,
)

TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
VARIABLES: dict[str, Any] = {"device": {"driver": "d", "attributes": {}, "capacity": {}}}


def loops(depth: int, body: str, over: str = "all") -> str:
    text = body
    for number in range(depth):
        text = f"{TEN}.{over}(x{number}, {text})"
    return text


EXPRESSIONS = {
    "generated code": loops(4, 'device.driver != "x"'),
    "a loop that costs little": loops(5, "true"),
    "lists": f"size({loops(4, 'x0 + x1', 'map')}) > 0",
    "a plan, for it has a map": f"{{device.driver: {loops(4, 'true')}}}.size() == 1",
    "a plan, for it fails": f'{loops(4, "true")} && device.attributes["d"].x == 1',
}


def compiled(text: str) -> Compiled:
    found = DeviceCompiler(CelFeatures(list_attributes=True)).compile(text)
    assert found.program is not None, found.error
    return found


@pytest.mark.parametrize("text", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_an_evaluation_is_checked_at_every_part_of_its_cost(text: str) -> None:
    expression = compiled(text)
    calls: list[int] = []
    with expression.meter.bounded(interrupt=lambda: calls.append(1)):
        cost = expression.evaluate_variables(VARIABLES).cost
    assert cost is not None
    assert cost > 3 * CHECK_EVERY_COST
    # Where the plan runs after generated code, both are checked.
    assert cost // (CHECK_EVERY_COST + 100) <= len(calls) <= 2 * (cost // CHECK_EVERY_COST) + 1


@pytest.mark.parametrize("text", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_a_cause_ends_an_evaluation_at_once(text: str) -> None:
    expression = compiled(text)
    causes = iter([None, None, "no time left", "asked again"])
    with (
        expression.meter.bounded(interrupt=lambda: next(causes)),
        pytest.raises(Interrupted, match="no time left"),
    ):
        expression.evaluate_variables(VARIABLES)
    assert next(causes) == "asked again"
    assert expression.evaluate_variables(VARIABLES).cost


@pytest.mark.parametrize("text", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_checks_change_neither_value_nor_cost_nor_error(text: str) -> None:
    expression = compiled(text)
    assert expression.program is not None
    alone = expression.program.evaluate(VARIABLES, cost_limit=COST_LIMIT)
    with expression.meter.bounded(interrupt=lambda: None):
        assert expression.program.evaluate(
            VARIABLES, cost_limit=COST_LIMIT, meter=expression.meter
        ) == (alone)


@pytest.mark.parametrize("limit", [1, CHECK_EVERY_COST - 1, CHECK_EVERY_COST, 25_000])
def test_the_cost_limit_is_exact_between_checks(limit: int) -> None:
    expression = compiled(EXPRESSIONS["generated code"])
    assert expression.program is not None
    expected = expression.program.run_plan(VARIABLES, cost_limit=limit)
    found = expression.program.evaluate(VARIABLES, cost_limit=limit, meter=Meter())
    assert found == expected
    assert found.error == COST_EXCEEDED


def test_who_does_not_admit_an_evaluation_is_told_its_estimate() -> None:
    meter = Meter()
    meter.admit(5)
    with meter.bounded(admit=lambda cost: "too much" if cost > 10 else None):
        meter.admit(10)
        with pytest.raises(NotAdmitted, match="too much"):
            meter.admit(11)
    meter.admit(11)


def test_inner_and_outer_interrupts_count() -> None:
    meter = Meter()
    with (
        meter.bounded(interrupt=lambda: "outer"),
        meter.bounded(interrupt=lambda: None),
        pytest.raises(Interrupted, match="outer"),
    ):
        meter.check()
    meter.check()


def test_the_slowest_expressions_are_known_and_few() -> None:
    meter = Meter()
    meter.clock = lambda: 1000.0
    for number in range(3 * EXPRESSIONS_MAX):
        meter.record(f"expression {number}", 1, 1000.0 - number % 100, (number,))
    meter.record("slowest", 2, 0.0, (7, 9))
    ((text, work), *_) = meter.slowest(5)
    assert (text, work.evaluations, work.cost, work.cost_most) == ("slowest", 2, 16, 9)
    assert len(meter.slowest(10 * EXPRESSIONS_MAX)) <= EXPRESSIONS_MAX
    assert meter.evaluations == 3 * EXPRESSIONS_MAX + 2
