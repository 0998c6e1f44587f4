from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.semver import parse_version
from moorage.cel.lang.costs import CallEstimate, Range
from moorage.cel.lang.errors import COST_EXCEEDED, Cancelled
from moorage.cel.lang.library.lists import sets_library
from moorage.cel.lang.values import UInt
from tests.cel.calls import Caller, size

SETS = Caller(sets_library())
# Numbers of all kinds, of which several are equal, and what is equal to none of them.
values = st.sampled_from([0, 1, 2, UInt(1), 1.0, 2.5, True, "1", None, [1], [1.0]])
lists = st.lists(values, max_size=5)

RESULTS: list[tuple[str, list[Any], list[Any], bool]] = [
    ("contains", [1, 2, 3], [2, 2], True),
    ("contains", [1, 2, 3], [4], False),
    ("contains", [1], [], True),
    ("contains", [1], [1.0, UInt(1)], True),
    ("contains", [1], [True], False),
    ("contains", [math.nan], [math.nan], False),
    ("equivalent", [], [], True),
    ("equivalent", [1], [UInt(1), 1.0], True),
    ("equivalent", [1], [1, 2], False),
    ("intersects", [1, 2], [2, 3], True),
    ("intersects", [], [1], False),
    ("intersects", [[1]], [[1.0]], True),
    ("intersects", [1], ["1"], False),
]


@pytest.mark.parametrize(("name", "first", "second", "result"), RESULTS)
def test_elements_are_compared_as_equality_compares_them(
    name: str, first: list[Any], second: list[Any], result: bool
) -> None:
    assert SETS.call(f"sets.{name}", first, second) is result


def test_elements_that_cannot_be_compared_are_not_equal() -> None:
    assert SETS.call("sets.contains", ["1.0.0"], [parse_version("1.0.0")]) is False


@given(lists, lists)
def test_equivalent_means_that_each_contains_the_other(first: list[Any], second: list[Any]) -> None:
    both = SETS.call("sets.contains", first, second) and SETS.call("sets.contains", second, first)
    assert SETS.call("sets.equivalent", first, second) is both


@given(lists, lists)
def test_intersecting_means_to_contain_one_element_of_the_other(
    first: list[Any], second: list[Any]
) -> None:
    some = any(SETS.call("sets.contains", second, [value]) for value in first)
    assert SETS.call("sets.intersects", first, second) is some


def test_every_comparison_is_charged_and_those_of_equivalent_twice() -> None:
    first, second = [1, 2, 3], [1, 2]
    assert SETS.cost("sets.contains", first, second) == 7
    assert SETS.cost("sets.intersects", first, second) == 7
    assert SETS.cost("sets.equivalent", first, second) == 13


def test_estimates_are_of_every_comparison() -> None:
    for name, cost in (("contains", Range(3, 13)), ("equivalent", Range(5, 25))):
        estimate = SETS.by_id(f"sets.{name}", f"list_sets_{name}_list").estimate
        assert estimate is not None
        assert estimate(None, (size(1, 3), size(2, 4))) == CallEstimate(cost)


def test_long_lists_of_one_class_are_compared_fast() -> None:
    many = list(range(300_000))
    assert SETS.call("sets.equivalent", many, many[::-1]) is True


def test_more_comparisons_than_anybody_pays_for_end_the_evaluation() -> None:
    mixed = [1, "a"] * 2000
    with pytest.raises(Cancelled, match=COST_EXCEEDED):
        SETS.call("sets.contains", mixed, mixed)
