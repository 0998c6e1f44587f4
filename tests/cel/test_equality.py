from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.quantity import Quantity
from moorage.api.semver import Version, parse_version
from moorage.cel.lang.equality import (
    ELEMENTS_MAX,
    NAN_UNORDERED,
    compare,
    contains,
    equal,
    has_key,
    size_of,
)
from moorage.cel.lang.errors import NO_SUCH_OVERLOAD, Cancelled, EvalError
from moorage.cel.lang.library.operators import COPIED_MAX, concatenated
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.types import INT, STRING
from moorage.cel.lang.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    TRUE_KEY,
    UINT_MAX,
    Optional,
    TypeValue,
    UInt,
)

NAN = math.nan

ints = st.integers(INT_MIN, INT_MAX)
uints = st.integers(0, UINT_MAX).map(UInt)
doubles = st.floats(allow_nan=False)
# Numbers that are likely to be equal to one of another type.
small = st.sampled_from([0, 1, 2, -1, 2**53, INT_MAX])
numbers = st.one_of(
    ints,
    uints,
    doubles,
    small,
    small.filter(lambda n: n >= 0).map(UInt),
    small.map(float),
)
exact_numbers = st.one_of(
    st.integers(-(2**53), 2**53),
    st.integers(0, 2**53).map(UInt),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3).map(float),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    numbers,
    st.text(max_size=3),
    st.binary(max_size=3),
    ints.map(Duration),
    st.integers(0, 10**12).map(Timestamp),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | inner.map(Optional)
    ),
    max_leaves=8,
)


def refusal_of(function: Any, *args: Any) -> str:
    with pytest.raises(EvalError) as refusal:
        function(*args)
    return str(refusal.value)


# --- equal ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (None, None),
        (1, 1),
        (1, UInt(1)),
        (1, 1.0),
        (UInt(1), 1.0),
        (UInt(UINT_MAX), 2.0**64),
        (INT_MAX, 2.0**63),
        (2**53 + 1, 2.0**53),
        (0.0, -0.0),
        ("é", "é"),
        (b"\xff", b"\xff"),
        ([1, 2.0], (UInt(1), 2)),
        ({"a": 1}, {"a": UInt(1)}),
        ({1: "x"}, {1.0: "x"}),
        ({TRUE_KEY: 1}, {TRUE_KEY: 1.0}),
        (TypeValue(INT), TypeValue(INT)),
        (NONE, NONE),
        (Optional(1), Optional(UInt(1))),
        (Duration(1), Duration(1)),
        (Timestamp(5, 3600), Timestamp(5)),
        (parse_version("1.2.3+a"), parse_version("1.2.3+b")),
        (Quantity.parse("1000m"), Quantity.parse("1")),
    ],
)
def test_equal_values_are_equal_both_ways(a: Any, b: Any) -> None:
    assert equal(a, b)
    assert equal(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (None, False),
        (None, 0),
        (1, True),
        (0, False),
        (1, "1"),
        ("1", b"1"),
        (-1, UInt(UINT_MAX)),
        (NAN, NAN),
        (1, NAN),
        (1.5, 1),
        ([1], [1, 1]),
        ([1], {0: 1}),
        ([1], 1),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": "1"}),
        ({TRUE_KEY: 1}, {1: 1}),
        (TypeValue(INT), TypeValue(STRING)),
        (TypeValue(INT), "int"),
        (NONE, None),
        (NONE, Optional(None)),
        (Optional(1), 1),
        (Duration(1), Timestamp(1)),
        (Duration(1), 1),
    ],
)
def test_other_values_are_not_equal_either_way(a: Any, b: Any) -> None:
    assert not equal(a, b)
    assert not equal(b, a)


@pytest.mark.parametrize("other", ["1.0.0", 1, [], {}, Quantity.parse("1")])
def test_the_left_side_decides_about_opaque_values(other: Any) -> None:
    version = parse_version("1.0.0")
    assert refusal_of(equal, version, other) == NO_SUCH_OVERLOAD
    if not isinstance(other, Quantity):
        assert not equal(other, version)


def test_null_is_equal_to_no_opaque_value() -> None:
    assert not equal(parse_version("1.0.0"), None)
    assert not equal(None, parse_version("1.0.0"))


def test_an_opaque_class_may_answer_for_itself() -> None:
    class Anything:
        def cel_equal(self, _other: Any) -> bool:
            return True

    assert equal(Anything(), "x")


def test_elements_that_cannot_be_compared_count_as_equal_within_containers() -> None:
    version = parse_version("1.0.0")
    assert equal([version], ["1.0.0"])
    assert equal({"a": version}, {"a": "1.0.0"})
    assert not equal([version, 1], ["1.0.0", 2])
    assert refusal_of(equal, Optional(version), Optional("1.0.0")) == NO_SUCH_OVERLOAD


def test_a_map_may_know_keys_that_it_does_not_list() -> None:
    class Generous(dict[str, Any]):
        def __missing__(self, key: str) -> dict[str, Any]:
            return {}

    assert equal({"x": {}}, Generous(y={"z": 1}))
    assert not equal(Generous(y={"z": 1}), {"x": {}})


def test_deep_nesting_is_no_obstacle() -> None:
    a: Any = []
    b: Any = []
    for _ in range(20_000):
        a, b = [a], [b]
    assert equal(a, b)


def test_a_list_that_is_held_many_times_is_compared_once() -> None:
    a: Any = [1]
    b: Any = [1.0]
    for _ in range(200):
        a, b = [a, a], [b, b]
    assert equal(a, b)


@given(values)
def test_a_value_is_equal_to_itself(value: Any) -> None:
    assert equal(value, value)


@given(values, values)
def test_equality_is_symmetric(a: Any, b: Any) -> None:
    assert equal(a, b) == equal(b, a)


@given(numbers, numbers)
def test_numbers_are_equal_as_doubles_if_one_is_a_double_and_exactly_otherwise(
    a: Any, b: Any
) -> None:
    if isinstance(a, float) or isinstance(b, float):
        assert equal(a, b) == (float(a) == float(b))
    else:
        assert equal(a, b) == (int(a) == int(b))


@given(exact_numbers, exact_numbers, exact_numbers)
def test_equality_is_transitive_where_doubles_are_exact(a: Any, b: Any, c: Any) -> None:
    if equal(a, b) and equal(b, c):
        assert equal(a, c)


# --- membership -----------------------------------------------------------------------------------


def test_a_list_contains_what_is_equal_to_an_element() -> None:
    assert contains([1, "a"], 1.0)
    assert contains(("a", parse_version("1.0.0")), "a")
    assert contains([None], None)
    assert not contains([1], True)
    assert not contains([parse_version("1.0.0")], "1.0.0")


def test_an_element_that_cannot_be_compared_is_passed_over() -> None:
    version = parse_version("1.0.0")
    assert contains(["1.0.0", version], version)
    assert not contains(["1.0.0", None], version)


def test_a_map_has_keys_by_number_and_never_by_what_cannot_be_a_key() -> None:
    assert has_key({1: "x"}, UInt(1))
    assert has_key({1: "x"}, 1.0)
    assert has_key({TRUE_KEY: "x"}, True)
    assert not has_key({1: "x"}, True)
    assert not has_key({"a": 1}, ["a"])


def test_a_list_of_endless_repetition_is_not_gone_through() -> None:
    endless: Any = list(range(COPIED_MAX))
    while len(endless) <= ELEMENTS_MAX:
        endless = concatenated(endless, endless)
    with pytest.raises(Cancelled):
        contains(endless, -1)
    with pytest.raises(Cancelled):
        equal(endless, concatenated(endless, []))


# --- order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (False, True),
        (1, 2),
        (-1, UInt(0)),
        (INT_MAX, UInt(INT_MAX + 1)),
        (-math.inf, INT_MIN),
        (UInt(UINT_MAX), math.inf),
        (1, 1.5),
        (UInt(1), 1.5),
        ("A", "a"),
        ("z", "é"),
        ("\uffff", "\U0001f600"),
        (b"a", b"a\x00"),
        (Duration(-1), Duration(0)),
        (Timestamp(1, 7200), Timestamp(2)),
    ],
)
def test_order(before: Any, after: Any) -> None:
    assert compare(before, after) == -1
    assert compare(after, before) == 1
    assert compare(before, before) == 0


@pytest.mark.parametrize("other", [NAN, 1, UInt(1), 1.0, "a", None, Timestamp(1)])
def test_nan_has_no_order(other: Any) -> None:
    assert refusal_of(compare, NAN, other) == NAN_UNORDERED
    if isinstance(other, int | float):
        assert refusal_of(compare, other, NAN) == NAN_UNORDERED


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, "1"),
        ("1", NAN),
        (True, 1),
        (1, True),
        (1.0, None),
        (None, None),
        ([1], [2]),
        (Duration(1), 1),
        (Timestamp(1), Duration(1)),
        (Version(1, 0, 0), Version(2, 0, 0)),
        (Optional(1), Optional(2)),
    ],
)
def test_values_without_an_order_are_refused(a: Any, b: Any) -> None:
    assert refusal_of(compare, a, b) == NO_SUCH_OVERLOAD


@given(exact_numbers, exact_numbers)
def test_order_of_numbers_is_that_of_their_exact_values(a: Any, b: Any) -> None:
    exact_a, exact_b = Fraction(a), Fraction(b)
    assert compare(a, b) == (exact_a > exact_b) - (exact_a < exact_b)


@given(numbers, numbers)
def test_order_is_opposite_the_other_way_round_and_agrees_with_equality(a: Any, b: Any) -> None:
    assert compare(a, b) == -compare(b, a)
    assert (compare(a, b) == 0) == equal(a, b)


# --- size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("", 0),
        ("é😀", 2),
        (b"\xc3\xa9", 2),
        ([1, 2], 2),
        ((), 0),
        ({"a": 1}, 1),
        (5, 1),
        (None, 1),
        (True, 1),
        (Duration(1), 1),
        (TypeValue(INT), 1),
        (parse_version("1.0.0"), 1),
        (NONE, 1),
        (Optional("abc"), 3),
        (Optional(Optional([])), 0),
    ],
)
def test_size(value: Any, size: int) -> None:
    assert size_of(value) == size


def test_an_opaque_class_may_have_a_size() -> None:
    class Sized:
        cel_size = 16

    assert size_of(Sized()) == 16
