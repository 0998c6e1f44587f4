"""Versions in expressions."""

from __future__ import annotations

import pytest

from moorage.cel.lang.costs import Range
from moorage.cel.library import quantity
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
    assert_declared_as_recorded(quantity.semver_library())


def test_answers_are_the_recorded_ones() -> None:
    assert_answers_as_recorded({"semver"}, at_least=160)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("semver('1.2.3') == semver('1.2.3+build')", True),
        ("semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))", True),
        ("semver('1.10.0').isGreaterThan(semver('1.9.0'))", True),
        ("semver('1.0.0').compareTo(semver('2.0.0'))", -1),
        ("semver('1.2.3').major()", 1),
        ("semver('1.2.3').minor()", 2),
        ("semver('1.2.3').patch()", 3),
        ("isSemver('v1.2')", False),
        ("isSemver('v1.2', true)", True),
        ("semver('v01.02', true) == semver('1.2.0')", True),
    ],
)
def test_values(expression: str, value: object) -> None:
    assert value_of(expression) == value


def test_numbers_above_an_int_wrap_around() -> None:
    assert value_of("semver('18446744073709551615.0.0').major()") == -1
    assert value_of("semver('9223372036854775808.0.0').major()") == -(2**63)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("semver('')", "Version string empty"),
        ("semver('1.2')", "No Major.Minor.Patch elements found"),
        ("semver('01.2.3')", 'Major number must not contain leading zeroes "01"'),
        ("semver('1.2-a', true)", "short version cannot contain PreRelease/Build meta data"),
        ("dyn(semver('1.0.0')) == dyn('1.0.0')", "no such overload"),
    ],
)
def test_errors(expression: str, error: str) -> None:
    assert error_of(expression) == error


def test_a_text_is_asked_about_a_version_without_error() -> None:
    assert value_of("dyn('1.0.0') == dyn(semver('1.0.0'))") is False


def test_reading_costs_by_length_and_the_rest_one() -> None:
    assert answer("semver('1.0.0-alpha')").cost == 2
    assert answer("semver('1.0.0').major()").cost == 2
    assert estimate("semver", "string_bool_to_semver", argument(5), argument(1)) == Range(1, 1)
