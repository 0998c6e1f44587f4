from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cel.lang.macros import MAP_INSERT, two_variable_library
from moorage.cel.lang.values import TRUE_KEY, UInt
from tests.cel.calls import Caller
from tests.cel.extensions import (
    MODULES,
    differences,
    error_of,
    recorded,
    recorded_signatures,
    signatures,
    value_of,
)

MAPS = Caller(two_variable_library())
THREE = ("all", "exists", "existsOne", "exists_one", "transformList", "transformMap")

VALUES: list[tuple[str, Any]] = [
    ("[1, 2, 3].all(i, v, v == i + 1)", True),
    ("[1, 2, 3].all(i, v, v == i)", False),
    ("{'a': 1}.all(k, v, k == 'a' && v == 1)", True),
    ("[0, 1].all(i, v, 1 / v > 0 && i > 0)", False),
    ("[5, 6].exists(i, v, i == 1 && v == 6)", True),
    ("[0, 1].exists(i, v, 1 / v == 1)", True),
    ("[].exists(i, v, true)", False),
    ("[1, 2].existsOne(i, v, v > 1)", True),
    ("{'a': 1, 'b': 2}.exists_one(k, v, v > 0)", False),
    ("[1, 2, 3].transformList(i, v, i * v)", [0, 2, 6]),
    ("[1, 2, 3].transformList(i, v, i > 0, v)", [2, 3]),
    ("{'a': 1}.transformList(k, v, k)", ["a"]),
    ("[4, 5].transformMap(i, v, v + i)", {0: 4, 1: 6}),
    ("{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v * 2)", {"b": 4}),
    ("['a', 'b'].transformMapEntry(i, v, {v: i})", {"a": 0, "b": 1}),
    ("['a', 'b'].transformMapEntry(i, v, i > 0, {v: i, 'x': 9})", {"b": 1, "x": 9}),
    ("[1].transformMap(i, v, [2].transformMap(j, w, v + w))", {0: {0: 3}}),
    ("cel.bind(x, 5, x * x)", 25),
    ("cel.bind(x, 1 / 0, 5)", 5),
    ("cel.bind(x, 1, cel.bind(x, 2, x))", 2),
    ("['bb', 'a', 'ccc'].sortBy(s, -s.size())", ["ccc", "bb", "a"]),
    ("[3, 1].map(x, x * 2).sortBy(x, x)", [2, 6]),
]

ERRORS: list[tuple[str, str]] = [
    ("[1, 2].all(i, i, true)", "duplicate variable name: i"),
    ("[1, 2].all(1, v, true)", "argument must be a simple name"),
    ("[1, 2].all(i, v.x, true)", "argument must be a simple name"),
    ("[1].exists(__result__, v, true)", "iteration variable overwrites accumulator variable"),
    ("[1].exists(i, __result__, true)", "iteration variable overwrites accumulator variable"),
    ("['x', 'x'].transformMapEntry(i, v, {v: i})", "insert failed: key x already exists"),
    ("[1, 0].existsOne(i, v, 1 / v == 1)", "division by zero"),
    ("cel.bind(1, 2, 3)", "cel.bind() variable names must be simple identifiers"),
    ("[1].sortBy(1, 2)", "argument is not an identifier"),
    (
        "{'a': 1}.sortBy(x, x)",
        (
            "sortBy can only be applied to a list, identifier, comprehension, call or select "
            "expression"
        ),
    ),
]


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_macros_loop_over_keys_and_values(expression: str, value: Any) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_mistakes_in_macros_and_duplicate_keys_are_errors(expression: str, message: str) -> None:
    assert error_of(expression) == message


@pytest.mark.parametrize("macro", THREE)
def test_macros_of_one_variable_are_not_taken_for_those_of_two(macro: str) -> None:
    arities = {m.arity for m in two_variable_library().macros if m.name == macro}
    assert arities <= {3, 4}
    assert 2 not in arities


def test_numbers_of_any_type_are_one_key() -> None:
    assert MAPS.refusal(MAP_INSERT, {1: "a"}, UInt(1), "b") == (
        "insert failed: key 1 already exists"
    )
    assert MAPS.call(MAP_INSERT, {1: "a"}, True, "b") == {1: "a", TRUE_KEY: "b"}
    assert MAPS.refusal(MAP_INSERT, {TRUE_KEY: 1}, True, 2) == (
        "insert failed: key true already exists"
    )


def test_the_map_that_a_loop_starts_with_is_not_changed() -> None:
    start = {"a": 1}
    first = MAPS.call(MAP_INSERT, start, "b", 2)
    assert MAPS.call(MAP_INSERT, first, {"c": 3}) == {"a": 1, "b": 2, "c": 3}
    assert start == {"a": 1}


@given(st.dictionaries(st.text(max_size=2), st.integers(), max_size=6))
def test_inserting_one_by_one_makes_the_same_map(entries: dict[str, int]) -> None:
    grown: dict[str, int] = {}
    for key, value in entries.items():
        grown = MAPS.call(MAP_INSERT, grown, key, value)
    assert grown == entries == MAPS.call(MAP_INSERT, {}, entries)


def test_large_maps_grow_without_being_copied_every_time() -> None:
    grown: dict[int, int] = {}
    for i in range(20_000):
        grown = MAPS.call(MAP_INSERT, grown, i, i)
    assert len(grown) == 20_000


def test_answers_are_those_recorded() -> None:
    tried, different = differences(recorded("macros", "maps"))
    assert different == []
    assert tried >= 64


@pytest.mark.parametrize("module", MODULES)
def test_signatures_are_those_recorded(module: Any) -> None:
    declared = recorded_signatures()
    for name, signature in signatures(module.library()):
        assert signature in declared[name]
