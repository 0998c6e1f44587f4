"""Finding in expressions."""

from __future__ import annotations

import pytest

from moorage.cel.lang.costs import Range
from moorage.cel.library import strings
from tests.cel.kubernetes import (
    answer,
    argument,
    assert_answers_as_recorded,
    assert_declared_as_recorded,
    error_of,
    estimate,
    value_of,
)


def test_functions_are_declared_as_kubernetes_declares_them() -> None:
    assert_declared_as_recorded(strings.regex_library())


def test_answers_are_the_recorded_ones() -> None:
    assert_answers_as_recorded({"regex"}, at_least=60)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'abc 123'.find('[0-9]+')", "123"),
        ("'abc'.find('[0-9]+')", ""),
        ("'a1b22'.findAll('[0-9]+')", ["1", "22"]),
        ("'a1b22'.findAll('[0-9]*')", ["", "1", "22"]),
        ("'a1b22'.findAll('[0-9]*', 2)", ["", "1"]),
        ("'a1b22'.findAll('[0-9]+', 0)", []),
        ("'a1b22'.findAll('[0-9]+', -7)", ["1", "22"]),
        ("'日本'.findAll('')", ["", "", ""]),
        ("'abab'.findAll('(?:ab)*|x')", ["abab"]),
    ],
)
def test_values(expression: str, value: object) -> None:
    assert value_of(expression) == value


def test_a_pattern_that_is_none_is_an_error() -> None:
    illegal = "Illegal regex: error parsing regexp: missing closing ]: `[`"
    assert error_of("'abc'.find('[')") == illegal
    assert error_of("'abc'.findAll('[', 1)") == illegal


def test_finding_costs_by_text_and_pattern() -> None:
    assert answer("'0123456789'.find('abcde')").cost == 4
    assert answer("''.find('a')").cost == 1
    assert answer("'abc'.find('')").cost == 0


def test_finding_is_estimated_by_text_and_pattern() -> None:
    target, pattern = argument(0, 64), argument(9)
    assert estimate("find", "string_find_string", pattern, target=target) == Range(3, 21)
