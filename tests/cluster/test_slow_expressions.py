"""The slowest CEL expressions, as `moor status` reads them from the scheduler's metrics."""

from __future__ import annotations

from moorage.cel.lang.metering import ExpressionWork
from moorage.cluster.slow_expressions import SHOWN_MAX, read_slow_expressions
from moorage.kit.metrics import exposition
from moorage.scheduler.live.metrics import GaugeSources, Metrics


def page(**works: ExpressionWork) -> str:
    sources = GaugeSources(slowest=lambda: list(works.items()))
    return exposition(Metrics(sources).families())


def test_the_slowest_come_first_and_quick_ones_are_not_shown() -> None:
    text = page(
        a=ExpressionWork(evaluations=3, seconds=0.5),
        b=ExpressionWork(evaluations=1_200, seconds=24.87),
        c=ExpressionWork(evaluations=9, seconds=0.01),
    )
    assert [each.line for each in read_slow_expressions(text)] == [
        "24.9 s in 1,200 evaluations of b",
        "0.5 s in 3 evaluations of a",
    ]


def test_any_expression_comes_back_as_it_is_written() -> None:
    odd = 'device.attributes["a\\\\b"].x == "\\n" &&\n  "{" == "}"'
    (found,) = read_slow_expressions(page(**{odd: ExpressionWork(1, seconds=1.0)}))
    assert found.expression == odd
    assert "\n" not in found.line


def test_few_are_shown_each_in_a_short_line() -> None:
    works = {f"{n:03}" * 100: ExpressionWork(1, seconds=1.0 + n) for n in range(20)}
    found = read_slow_expressions(page(**works))
    assert len(found) == SHOWN_MAX
    assert all(len(each.line) < 100 for each in found)


def test_a_page_of_something_else_has_none() -> None:
    odd = 'moorage_cel_expression_seconds{expression="x"} many\n'
    for text in ("", "<html>", "a 1\n", odd):
        assert read_slow_expressions(text) == ()
