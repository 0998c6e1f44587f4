"""Columns come back from every form; what is no column is refused; rows keep their numbers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.web.columns import Rows, Strings, decode, encode

NUMBERS = st.integers(-(2**53), 2**53)
COLUMNS = st.one_of(
    st.lists(NUMBERS, max_size=60),
    st.lists(st.integers(0, 2), max_size=60),
    st.lists(st.integers(0, 9), max_size=60).map(sorted),
    st.integers(0, 60).map(lambda count: list(range(count))),
    st.lists(st.integers(0, 9), max_size=20).map(
        lambda most: [n for n in sorted(most) for _ in range(5)]
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["rle", "steps", "delta", "x"]), inner, max_size=2)
    ),
    max_leaves=8,
)


@given(COLUMNS)
def test_a_column_comes_back_as_it_was(column: list[int]) -> None:
    assert decode(msgspec.json.decode(msgspec.json.encode(encode(column)))) == column


def test_repeated_and_growing_values_are_short() -> None:
    assert encode([7] * 500) == {"rle": [7, 500]}
    assert encode([n for n in range(100, 140) for _ in range(8)]) == {
        "steps": [100, 8, *[1, 8] * 39]
    }
    assert encode(list(range(100, 200))) == {"delta": [100, *[1] * 99]}
    assert encode([3, 1, 2]) == [3, 1, 2]
    assert encode([]) == []


@given(JSON)
def test_what_is_no_column_is_refused(tree: Any) -> None:
    try:
        found = decode(tree)
    except ValueError:
        return
    assert all(isinstance(each, int) for each in found)


@pytest.mark.parametrize(
    "tree",
    [{"steps": [1, 10**12]}, {"rle": [1, 10**12]}, {"rle": [1, -1]}, {"rle": [1]}, [True], 3],
)
def test_impossible_columns_are_refused(tree: Any) -> None:
    with pytest.raises(ValueError, match=r"not a|a run"):
        decode(tree)


@given(st.lists(st.text(max_size=3)))
def test_names_keep_their_numbers(names: list[str]) -> None:
    strings = Strings()
    numbers = [strings.number(name) for name in names]
    assert [strings.names[number] for number in numbers] == names
    assert strings.number("") == 0
    assert len(set(strings.names)) == len(strings)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=40))
def test_rows_keep_their_numbers_and_vacant_ones_are_taken_up(
    steps: list[tuple[bool, int]],
) -> None:
    rows: Rows[int] = Rows(name=0)
    expected: dict[int, int] = {}
    most = 0
    for is_put, key in steps:
        if is_put:
            row = rows.put(key, name=key + 1)
            assert expected.setdefault(key, row) == row
        else:
            rows.remove(key)
            expected.pop(key, None)
        most = max(most, len(expected))
        column = rows.columns["name"]
        assert {key: column[row] for key, row in expected.items()} == {k: k + 1 for k in expected}
        assert sum(value != 0 for value in column) == len(expected)
    assert len(rows.columns["name"]) == most
