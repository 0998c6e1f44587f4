"""Kubernetes' list functions in expressions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cel.lang.ast import Ident
from moorage.cel.lang.costs import UNBOUNDED, Argument, Range, deep_traversal_cost
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.time import Duration
from moorage.cel.lang.types import DYN, INT, STRING, list_of, map_of
from moorage.cel.lang.values import UInt
from moorage.cel.library import lists
from tests.cel.kubernetes import (
    answer,
    argument,
    assert_answers_as_recorded,
    assert_declared_as_recorded,
    error_of,
    estimate,
    value_of,
)

OVERLOADS = {
    overload.id: overload
    for function in lists.library().functions
    for overload in function.overloads
}


def call(id_: str, *args: object) -> object:
    """Return what an overload gives."""
    evaluate = OVERLOADS[id_].evaluate
    assert evaluate is not None
    return evaluate(*args)


def test_functions_are_declared_as_kubernetes_declares_them() -> None:
    assert_declared_as_recorded(lists.library(), lists.includes_library())


def test_answers_are_the_recorded_ones() -> None:
    assert_answers_as_recorded({"lists", "device-lists"}, at_least=25)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[1, 2, 3].sum()", 6),
        ("[].sum()", 0),
        ("[1.5, 2.5].sum()", 4.0),
        ("[1u, 2u].sum()", UInt(3)),
        ("['b', 'a'].min()", "a"),
        ("['b', 'a'].max()", "b"),
        ("[1, 1, 2].isSorted()", True),
        ("[2, 1].isSorted()", False),
        ("[].isSorted()", True),
        ("[1, 2, 1].indexOf(1)", 0),
        ("[1, 2, 1].lastIndexOf(1)", 2),
        ("[1].indexOf(3)", -1),
        ("[dyn('a'), dyn(1)].indexOf(dyn(1.0))", 1),
        ("[dyn(1), dyn('a'), dyn(0)].max()", 1),
        ("[dyn(1), dyn('a'), dyn(0)].min()", 0),
        ("[dyn(quantity('1'))].indexOf(dyn('x'))", -1),
        ("['a', 'b'].includes('b')", True),
        ("'abc'.includes('b')", False),
        ("'abc'.includes('abc')", True),
        ("quantity('1').includes('1')", False),
        ("[1].includes(1u)", True),
    ],
)
def test_values(expression: str, value: object) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("[].min()", "min called on empty list"),
        ("[].max()", "max called on empty list"),
        ("[9223372036854775807, 1].sum()", "integer overflow"),
        ("[18446744073709551615u, 1u].sum()", "unsigned integer overflow"),
        ("[dyn(1), dyn([1])].max()", "no such overload"),
        ("[dyn(1), dyn(1.5)].sum()", "no such overload"),
        ("[dyn(1), dyn([1])].isSorted()", "no such overload"),
    ],
)
def test_errors(expression: str, error: str) -> None:
    assert error_of(expression) == error


def test_an_order_that_cannot_be_told_counts_as_right() -> None:
    assert call("list_double_is_sorted_bool", [math.nan, 1.0, 0.0]) is False
    assert call("list_double_is_sorted_bool", [math.nan, 1.0]) is True
    assert call("list_double_max_double", [2.0, math.nan, 1.0]) == 2.0
    assert math.isnan(call("list_double_min_double", [math.nan, 1.0]))  # type: ignore[arg-type]


def test_durations_add_up() -> None:
    assert call("list_duration_sum_duration", [Duration(1), Duration(2)]) == Duration(3)
    with pytest.raises(EvalError, match="integer overflow"):
        call("list_duration_sum_duration", [Duration(2**63 - 1), Duration(1)])


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=8))
def test_minimum_and_maximum_are_pythons(values: list[int]) -> None:
    assert call("list_int_min_int", values) == min(values)
    assert call("list_int_max_int", values) == max(values)
    assert call("list_int_is_sorted_bool", sorted(values)) is True


def test_traversal_counts_all_that_is_inside() -> None:
    assert deep_traversal_cost([1, None, True]) == 3
    assert deep_traversal_cost("x" * 9) == 0
    assert deep_traversal_cost("ä" * 5) == 1
    assert deep_traversal_cost([b"x" * 20, ["x" * 10]]) == 3
    assert deep_traversal_cost({"k" * 10: [1, 2]}) == 3


def test_costs_are_those_of_a_traversal() -> None:
    assert answer("[1, 2, 3].sum()").cost == 3
    assert answer("['a'].isSorted()").cost == 0


@pytest.mark.parametrize(
    ("target", "cost"),
    [
        (argument(3, type_=list_of(INT)), Range(3, 3)),
        (argument(2, type_=list_of(STRING)), Range(2, 2 * (1 + 1844674407370955264))),
        (argument(0, 64, DYN), Range(0, 64)),
        (argument(0, UNBOUNDED, list_of(DYN)), Range(0, UNBOUNDED)),
    ],
)
def test_estimates_go_by_size_and_by_what_is_in_the_list(target: Argument, cost: Range) -> None:
    assert estimate("includes", "list_includes_dyn_dyn", argument(1), target=target) == cost


def test_elements_of_a_known_size_are_estimated_by_it() -> None:
    type_ = map_of(STRING, DYN)
    domain = Argument(Ident(1, 0, "x"), type_, Range(0, 32), items_size=Range(0, 64))
    cost = estimate("includes", "list_includes_dyn_dyn", argument(1), target=domain)
    assert cost == Range(0, 32 * 8)
