from __future__ import annotations

from typing import Any

import pytest

from moorage.api.semver import parse_version
from moorage.cel.lang.library.optionals import library
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.values import NONE, Optional, UInt
from tests.cel.calls import Caller
from tests.cel.extensions import differences, error_of, recorded, value_of

OPTIONALS = Caller(library())


@pytest.mark.parametrize(
    "zero",
    [
        *(None, False, 0, UInt(0), 0.0, -0.0, "", b"", [], {}, Duration(0)),
        Timestamp.parse("0001-01-01T00:00:00Z"),
    ],
)
def test_zero_values_are_absent(zero: Any) -> None:
    assert OPTIONALS.call("optional.ofNonZeroValue", zero) is NONE


@pytest.mark.parametrize(
    "value",
    [
        *(True, -1, UInt(1), float("nan"), "0", b"\x00", [0], {"": 0}, Duration(-1), NONE),
        Timestamp.parse("1970-01-01T00:00:00Z"),
        parse_version("0.0.0"),
    ],
)
def test_other_values_are_present_opaque_ones_always(value: Any) -> None:
    assert OPTIONALS.call("optional.ofNonZeroValue", value).value is value


def test_null_can_be_present() -> None:
    assert OPTIONALS.call("hasValue", OPTIONALS.call("optional.of", None)) is True


def test_the_value_of_none_is_an_error() -> None:
    assert OPTIONALS.refusal("value", NONE) == "optional.none() dereference"


def test_the_first_that_has_a_value_counts() -> None:
    one, two = Optional(1), Optional(2)
    assert OPTIONALS.call("or", one, two) is one
    assert OPTIONALS.call("or", NONE, two) is two
    assert OPTIONALS.call("orValue", one, 3) == 1
    assert OPTIONALS.call("orValue", NONE, 3) == 3


def test_first_and_last_of_an_empty_list_are_absent() -> None:
    assert OPTIONALS.call("first", [1, 2]).value == 1
    assert OPTIONALS.call("last", [1, 2]).value == 2
    assert OPTIONALS.call("first", []) is NONE
    assert OPTIONALS.call("last", []) is NONE


def test_unwrapping_keeps_what_is_present() -> None:
    values = [Optional(1), NONE, Optional(None)]
    assert OPTIONALS.call("optional.unwrap", values) == [1, None]
    assert OPTIONALS.call("unwrapOpt", values) == [1, None]
    assert OPTIONALS.refusal("unwrapOpt", [NONE, {"a": 1}]) == "value {a: 1} is not optional"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("optional.of(2).optMap(x, x * x).value()", 4),
        ("optional.none().optMap(x, x * x).hasValue()", False),
        ("optional.of([1]).optFlatMap(x, x[?0]).value()", 1),
        ("optional.of([]).optFlatMap(x, x[?0]).hasValue()", False),
        ("optional.none().optFlatMap(x, optional.of(1)).hasValue()", False),
        ("optional.of(1).optMap(x, optional.of(x)).value().value()", 1),
    ],
)
def test_macros_transform_what_is_present(expression: str, value: Any) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize("macro", ["optMap", "optFlatMap"])
def test_macros_want_a_name(macro: str) -> None:
    expected = f"{macro}() variable name must be a simple identifier"
    assert error_of(f"optional.of(1).{macro}(1, 2)") == expected


def test_answers_are_those_recorded() -> None:
    tried, different = differences(recorded("optional"))
    assert different == []
    assert tried >= 36
