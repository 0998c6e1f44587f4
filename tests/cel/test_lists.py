from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.semver import parse_version
from moorage.cel.lang.ast import Literal
from moorage.cel.lang.costs import UNBOUNDED, Argument, CallEstimate, Range
from moorage.cel.lang.errors import COST_EXCEEDED, Cancelled
from moorage.cel.lang.library.lists import library
from moorage.cel.lang.time import Duration
from moorage.cel.lang.values import UInt
from tests.cel.calls import Caller, size
from tests.cel.calls import argument as make_argument
from tests.cel.extensions import differences, recorded

LISTS = Caller(library())
SORT_BY = "@sortByAssociatedKeys"

RESULTS: list[tuple[str, tuple[Any, ...], list[Any]]] = [
    ("slice", ([1, 2, 3], 0, 2), [1, 2]),
    ("slice", ([1, 2, 3], 1, 1), []),
    ("reverse", ([1, 2, 3],), [3, 2, 1]),
    ("reverse", ([],), []),
    ("lists.range", (3,), [0, 1, 2]),
    ("lists.range", (0,), []),
    ("flatten", ([[1, 2], [], [3]],), [1, 2, 3]),
    ("flatten", ([[1, [2]]],), [1, [2]]),
    ("flatten", ([[1, [2, [3]]]], 2), [1, 2, [3]]),
    ("flatten", ([[1]], 0), [[1]]),
    ("flatten", ([[1, [2, [3]]], "a"], 2**63 - 1), [1, 2, 3, "a"]),
    ("distinct", ([1, 2, 1, 3],), [1, 2, 3]),
    ("distinct", (["b", "a", "b"],), ["b", "a"]),
    ("distinct", ([1, 1.0, UInt(1), True],), [1, True]),
    ("distinct", ([[1], [1.0], None, None],), [[1], None]),
    ("sort", ([3, 1, 2],), [1, 2, 3]),
    ("sort", (["b", "é", "a"],), ["a", "b", "é"]),
    ("sort", ([True, False],), [False, True]),
    ("sort", ([b"b", b""],), [b"", b"b"]),
    ("sort", ([2.5, -1.0],), [-1.0, 2.5]),
    ("sort", ([UInt(2), UInt(1)],), [1, 2]),
    ("sort", ([Duration(2), Duration(1)],), [Duration(1), Duration(2)]),
    ("sort", ([],), []),
    (SORT_BY, (["bb", "a", "ccc"], [-2, -1, -3]), ["ccc", "bb", "a"]),
    (SORT_BY, (["b", "a", "c"], [1, 0, 1]), ["a", "b", "c"]),
]

REFUSALS: list[tuple[str, tuple[Any, ...], str]] = [
    ("slice", ([1], -1, 2), "cannot slice(-1, 2), negative indexes not supported"),
    (
        "slice",
        ([1], 2, 1),
        "cannot slice(2, 1), start index must be less than or equal to end index",
    ),
    ("slice", ([1, 2, 3], 0, 4), "cannot slice(0, 4), list is length 3"),
    ("lists.range", (-1,), "lists.range: size must be non-negative, got -1"),
    (
        "lists.range",
        (1_000_001,),
        "lists.range: size 1000001 exceeds maximum allowed (1000000)",
    ),
    ("flatten", ([[1]], -1), "level must be non-negative"),
    ("sort", ([1, "a"],), "list elements must have the same type"),
    ("sort", ([1, UInt(1)],), "list elements must have the same type"),
    (
        SORT_BY,
        ([1, 2], [1]),
        (
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            "but got 2 and 1 elements respectively"
        ),
    ),
]

COSTS: list[tuple[str, tuple[Any, ...], int]] = [
    ("slice", ([1, 2, 3], 0, 2), 13),
    ("slice", ([1, 2, 3], 0, 4), 12),  # an error has the size 1
    ("lists.range", (5,), 16),
    ("reverse", ([1, 2, 3],), 14),
    ("flatten", ([[1, 2], [3]],), 13),
    ("flatten", ([[1, 2], [3]], 3), 17),
    ("flatten", ([[1]], -1), 12),
    ("flatten", ([[1], [2]], 2**63 - 1), 2**63 + 11),
    ("distinct", ([1, 2, 1, 3],), 43),
    ("distinct", (["b", "a", "b"],), 29),
    ("distinct", ([],), 11),
    ("sort", ([True, False],), 19),
    ("sort", (["a"] * 10,), 221),
    (SORT_BY, (["a", "b"], [1, 2]), 19),
]


@pytest.mark.parametrize(("name", "args", "result"), RESULTS)
def test_lists_are_taken_apart_and_put_in_order(
    name: str, args: tuple[Any, ...], result: list[Any]
) -> None:
    assert list(LISTS.call(name, *args)) == result


@pytest.mark.parametrize(("name", "args", "message"), REFUSALS)
def test_bad_arguments_are_errors(name: str, args: tuple[Any, ...], message: str) -> None:
    assert LISTS.refusal(name, *args) == message


@pytest.mark.parametrize(("name", "args", "cost"), COSTS)
def test_calls_are_charged_by_what_they_make_or_compare(
    name: str, args: tuple[Any, ...], cost: int
) -> None:
    assert LISTS.cost(name, *args) == cost


def test_what_has_no_order_cannot_be_sorted() -> None:
    sort = LISTS.by_id("sort", "list_int_sort").evaluate
    assert sort is not None
    versions = [parse_version("1.0.0")]
    with pytest.raises(Exception, match="list elements must be comparable"):
        sort(versions)


def test_flattening_takes_lists_of_anything_but_nothing_else() -> None:
    flatten = LISTS.by_id("flatten", "list_flatten").evaluate
    assert flatten is not None
    assert flatten([1, [2]]) == [1, 2]
    with pytest.raises(Exception, match=r"no such overload: int\.flatten\(\)"):
        flatten(5)


def test_flattening_lists_that_hold_one_list_many_times_is_bounded() -> None:
    values: list[Any] = [1]
    for _ in range(60):
        values = [values, values]
    with pytest.raises(Cancelled, match=COST_EXCEEDED):
        LISTS.call("flatten", values, 60)


def test_long_lists_of_one_class_are_sorted_fast() -> None:
    many = [i * 7919 % 100_003 for i in range(100_003)]
    assert LISTS.call("sort", many) == list(range(100_003))


@pytest.mark.parametrize(
    ("name", "id_", "args", "message"),
    [
        (
            "distinct",
            "list_distinct",
            (None,),
            "*types.Err is not traits.Lister: missing method Add",
        ),
        (
            "distinct",
            "list_distinct",
            (5,),
            "types.Int is not traits.Lister: missing method Contains",
        ),
        ("sort", "list_int_sort", (None,), "*types.Err is not traits.Lister: missing method Add"),
        (
            SORT_BY,
            "list_int_sortByAssociatedKeys",
            ([1], None),
            "*types.Err is not traits.Lister: missing method Add",
        ),
        ("flatten", "list_flatten_int", ([1], None), "ref.Val is *types.Err, not types.Int"),
    ],
)
def test_charging_a_call_whose_list_failed_ends_the_evaluation(
    name: str, id_: str, args: tuple[Any, ...], message: str
) -> None:
    cost = LISTS.by_id(name, id_).runtime_cost
    assert cost is not None
    with pytest.raises(Cancelled) as cancelled:
        cost(args, None)
    assert str(cancelled.value) == f"internal error: interface conversion: {message}"


def test_answers_are_those_recorded() -> None:
    tried, different = differences(recorded("lists"))
    assert different == []
    assert tried >= 50


# --- order --------------------------------------------------------------------------------


def sort_by(keys: list[Any]) -> list[int]:
    found = LISTS.call(SORT_BY, list(range(len(keys))), keys)
    assert isinstance(found, list)
    return found


@given(st.lists(st.integers(0, 9), max_size=200))
def test_sorting_by_keys_is_a_permutation_in_order(keys: list[int]) -> None:
    order = sort_by(keys)
    assert sorted(order) == list(range(len(keys)))
    assert [keys[i] for i in order] == sorted(keys)


@given(st.lists(st.integers(0, 3)))
def test_elements_with_equal_keys_keep_their_order(keys: list[int]) -> None:
    assert sort_by(keys) == sorted(range(len(keys)), key=keys.__getitem__)


def test_falling_keys_are_reversed() -> None:
    assert sort_by(list(range(100, 0, -1))) == list(range(99, -1, -1))


def test_nan_is_before_and_after_nothing() -> None:
    nan = math.nan
    first, second, third = LISTS.call("sort", [2.0, nan, 1.0])
    assert (first, third) == (2.0, 1.0)
    assert math.isnan(second)


# --- estimates ----------------------------------------------------------------------------


def estimate(name: str, id_: str, target: Argument | None, *args: Argument) -> CallEstimate | None:
    estimator = LISTS.by_id(name, id_).estimate
    assert estimator is not None
    return estimator(target, args)


def written(number: int) -> Argument:
    return make_argument(Range(1, 1), expr=Literal(1, 0, number))


def exactly(cost: int, elements: int) -> CallEstimate:
    return CallEstimate(Range(cost, cost), Range(elements, elements))


def test_slices_and_ranges_are_estimated_by_the_numbers_written() -> None:
    list_ = size(0, 64)
    assert estimate("slice", "list_slice", list_, written(1), written(3)) == exactly(13, 2)
    assert estimate("slice", "list_slice", list_, written(-1), written(2)) == exactly(13, 2)
    assert estimate("slice", "list_slice", list_, written(1), size(1, 1)) == exactly(74, 63)
    assert estimate("slice", "list_slice", list_, written(3), written(1)) == exactly(
        UNBOUNDED, 2**64 - 2
    )
    assert estimate("lists.range", "lists_range", None, written(5)) == exactly(16, 5)
    assert estimate("lists.range", "lists_range", None, size(1, 1)) == exactly(UNBOUNDED, UNBOUNDED)


def test_comparing_all_elements_is_estimated_by_the_square() -> None:
    assert estimate("distinct", "list_distinct", size(2, 64)) == CallEstimate(
        Range(19, 8203), Range(4, 4096)
    )
    assert estimate("sort", "list_string_sort", size(2, 10)) == CallEstimate(
        Range(20, 221), Range(4, 100)
    )
    assert estimate(SORT_BY, "list_int_sortByAssociatedKeys", size(0, 9), size(2, 2)) == exactly(
        19, 4
    )


def test_flattening_is_estimated_by_its_depth() -> None:
    assert estimate("flatten", "list_flatten", size(2, 2)) == exactly(13, 2)
    assert estimate("flatten", "list_flatten_int", size(2, 2), written(3)) == exactly(17, 2)
    assert estimate("flatten", "list_flatten_int", size(2, 2), size(1, 1)) == exactly(UNBOUNDED, 2)
    assert estimate("reverse", "list_reverse", size(3, 3)) == exactly(14, 3)
