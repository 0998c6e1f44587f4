"""Quantities in expressions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.quantity import Quantity
from moorage.cel.lang.costs import UNBOUNDED, Range
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
    assert_declared_as_recorded(quantity.library())


def test_answers_are_the_recorded_ones() -> None:
    assert_answers_as_recorded({"quantity"}, at_least=180)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("quantity('1Gi').isGreaterThan(quantity('1G'))", True),
        ("quantity('1Gi').isLessThan(quantity('1G'))", False),
        ("quantity('1Ki').compareTo(quantity('1024'))", 0),
        ("sign(quantity('-5'))", -1),
        ("quantity('2k').asInteger()", 2000),
        ("quantity('1500m').isInteger()", False),
        ("quantity('1.5').asApproximateFloat()", 1.5),
        ("isQuantity('1 Gi')", False),
        ("isQuantity('+1.5Ki')", True),
        ("quantity('1') == quantity('1000m')", True),
        ("quantity('1').add(1).add(quantity('2')).asInteger()", 4),
        ("quantity('1').sub(3).asInteger()", -2),
        ("quantity('3').isGreaterThan(quantity('1').add(quantity('1')))", True),
    ],
)
def test_values(expression: str, value: object) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("quantity('1Ki').add(quantity('1024'))", "2Ki"),
        ("quantity('1Ki').add(1)", "1025"),
        ("quantity('0').add(5000)", "5e3"),
        ("quantity('9223372036854775807').add(1)", "9223372036854775808"),
        ("quantity('1').sub(quantity('1500m'))", "-500m"),
    ],
)
def test_sums_keep_the_notation_of_the_first(expression: str, text: str) -> None:
    assert str(value_of(expression)) == text


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        (
            "quantity('x')",
            (
                "quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ),
        ),
        ("quantity('1K')", "unable to parse quantity's suffix"),
        ("quantity('100m').asInteger()", "cannot convert value to integer"),
        ("dyn(quantity('1')) == dyn('1')", "no such overload"),
    ],
)
def test_errors(expression: str, error: str) -> None:
    assert error_of(expression) == error


def test_a_sum_is_equal_from_the_left_only() -> None:
    assert value_of("quantity('1').add(1) == quantity('2')") is True
    assert error_of("quantity('2') == quantity('1').add(1)") == "no such overload"
    assert error_of("quantity('1').add(1) == quantity('1').add(1)") == "no such overload"


@given(st.integers(-(2**40), 2**40), st.integers(-(2**40), 2**40))
def test_adding_an_int_is_adding_its_quantity(first: int, second: int) -> None:
    total = value_of(f"quantity('{first}').add({second})").quantity
    assert total == Quantity.parse(str(first + second))


def test_reading_costs_by_length_and_the_rest_one() -> None:
    assert answer("quantity('12345678901')").cost == 2
    assert answer("isQuantity('')").cost == 0
    assert answer("quantity('1').add(1).asInteger()").cost == 3
    assert answer("quantity('1') == quantity('1')").cost == 3


def test_reading_is_estimated_by_length() -> None:
    assert estimate("quantity", "string_to_quantity", argument(0, 64)) == Range(0, 7)
    unknown = estimate("isQuantity", "is_quantity_string", argument(0, UNBOUNDED))
    assert unknown == Range(0, 1844674407370955264)
