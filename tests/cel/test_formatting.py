from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cel.lang.ast import (
    Call,
    CheckedAST,
    CreateList,
    CreateMap,
    Expr,
    Ident,
    Literal,
    MapEntry,
    ParsedAST,
    ReferenceInfo,
)
from moorage.cel.lang.costs import CallEstimate, Range
from moorage.cel.lang.library.format_clauses import fixed, scientific
from moorage.cel.lang.library.formatting import check_format, library
from moorage.cel.lang.library.strings import CHARACTERS_MAX
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    struct,
    type_of,
)
from moorage.cel.lang.values import TRUE_KEY, Optional, TypeValue, UInt
from tests.cel.calls import Caller, size

FORMAT = Caller(library())


class Opaque:
    """A value of a type that the language does not know."""


RESULTS: list[tuple[str, list[Any], str]] = [
    ("no args", [], "no args"),
    ("100%% of %s", ["it"], "100% of it"),
    ("%d %s %f %x", [1, "a", 2.0, 255], "1 a 2.000000 ff"),
    ("é%sé", ["😀"], "é😀é"),
    ("%s", [None], "null"),
    ("%s", [True], "true"),
    ("%s", [-3], "-3"),
    ("%s", [UInt(3)], "3"),
    ("%s", [1.0], "1"),
    ("%s", [123456789.0], "1.23456789e+08"),
    ("%s", [math.inf], "+Inf"),
    ("%s", [b"abc"], "abc"),
    ("%s", [TypeValue(INT)], "int"),
    ("%s", [Duration.parse("1.5s")], "1.5s"),
    ("%s", [Timestamp.parse("2024-01-01T00:00:00Z")], "2024-01-01T00:00:00Z"),
    ("%s", [[]], "[]"),
    ("%s", [[1, UInt(2), 1.5, True, None]], "[1, 2, 1.500000, true, null]"),
    ("%s", [['a"\n\u200b', b"x"]], '["a\\"\\n\\u200b", b"x"]'),
    ("%s", [[math.nan, math.inf, -math.inf]], '["NaN", "+Inf", "-Inf"]'),
    ("%s", [[Duration.parse("90s")]], '[duration("90s")]'),
    ("%s", [[Timestamp.parse("2024-01-01T00:00:00Z")]], '[timestamp("2024-01-01T00:00:00Z")]'),
    ("%s", [[TypeValue(INT), [[], {}]]], "[int, [[], {}]]"),
    ("%s", [{2: "b", 10: "a"}], '{10:"a", 2:"b"}'),
    ("%s", [{"b": [1], "a": {}}], '{"a":{}, "b":[1]}'),
    ("%s", [{TRUE_KEY: 1.0}], "{true:1.000000}"),
    ("%.2s", ["abc"], "abc"),
    ("%d", [UInt(7)], "7"),
    ("%b", [-5], "-101"),
    ("%b", [True], "1"),
    ("%o", [-8], "-10"),
    ("%x", [-255], "-ff"),
    ("%X", ["xyz"], "78797A"),
    ("%x", ["é"], "c3a9"),
    ("%x", [b"\x00\xff"], "00ff"),
    ("%f", ["-Infinity"], "-∞"),
    ("%f", ["NaN"], "NaN"),
    ("%.3f", [1234567.891], "1,234,567.891"),
    ("%.0f", [2.5], "2"),
    ("%e", [1234.5], "1.234500×10⁰³"),
    ("%.3e", [0.00012345], "1.234500×10⁻⁰⁴"),
    ("%.16e|%e", [1.0, math.nan], "   1.000000×10⁰⁰|   NaN"),
]

REFUSALS: list[tuple[str, list[Any], str]] = [
    ("%s", [], "index 0 out of range"),
    ("%", [], "index 0 out of range"),
    ("%", [1], "unexpected end of string"),
    ("%s%", [1, 2], "unexpected end of string"),
    ("%-5d", [1], 'could not parse formatting clause: unrecognized formatting clause "-"'),
    ("%é", [1], 'could not parse formatting clause: unrecognized formatting clause "Ã"'),
    (
        "%.5",
        [1],
        (
            "could not parse formatting clause: error while parsing precision: "
            "could not find end of precision specifier"
        ),
    ),
    (
        "%.f",
        [1.5],
        (
            "could not parse formatting clause: error while parsing precision: error while "
            'converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
        ),
    ),
    (
        "%.99999999999999999999f",
        [1.5],
        (
            "could not parse formatting clause: error while parsing precision: error while "
            "converting precision to integer: strconv.Atoi: "
            'parsing "99999999999999999999": value out of range'
        ),
    ),
    (
        "%d",
        [1.5],
        "error during formatting: decimal clause can only be used on integers, was given double",
    ),
    (
        "%d",
        [True],
        "error during formatting: decimal clause can only be used on integers, was given bool",
    ),
    (
        "%f",
        [1],
        "error during formatting: fixed-point clause can only be used on doubles, was given int",
    ),
    (
        "%e",
        ["1"],
        "error during formatting: scientific clause can only be used on doubles, was given string",
    ),
    (
        "%b",
        ["1"],
        (
            "error during formatting: only integers and bools can be formatted as binary, "
            "was given string"
        ),
    ),
    (
        "%o",
        [True],
        "error during formatting: octal clause can only be used on integers, was given bool",
    ),
    (
        "%x",
        [None],
        (
            "error during formatting: only integers, byte buffers, and strings can be formatted as "
            "hex, was given null_type"
        ),
    ),
    (
        "%s",
        [Optional(1)],
        (
            "error during formatting: string clause can only be used on strings, bools, bytes, "
            "ints, doubles, maps, lists, types, durations, and timestamps, "
            "was given optional_type"
        ),
    ),
    ("%s", [[Optional(1)]], "error during formatting: no formatting function for optional_type"),
    (
        "%s",
        [{1.5: 1}],
        "error during formatting: no formatting function for map key of type double",
    ),
    (
        "%s",
        [b"\xff"],
        (
            "error during formatting: could not convert argument "
            '"invalid UTF-8 in bytes, cannot convert to string" to string'
        ),
    ),
]


@pytest.mark.parametrize(("template", "args", "result"), RESULTS)
def test_values_are_shown_as_their_clauses_ask(template: str, args: list[Any], result: str) -> None:
    assert FORMAT.call("format", template, args) == result


@pytest.mark.parametrize(("template", "args", "message"), REFUSALS)
def test_what_cannot_be_shown_is_an_error(template: str, args: list[Any], message: str) -> None:
    assert FORMAT.refusal("format", template, args) == message


def test_opaque_values_are_called_by_their_types() -> None:
    named = Caller(library({Opaque: struct("example.Opaque")}))
    assert named.refusal("format", "%d", [Opaque()]).endswith("was given example.Opaque")


def test_a_result_too_long_to_be_made_is_refused() -> None:
    values: list[Any] = ["a" * 1000]
    for _ in range(40):
        values = [values, values]
    expected = f"string would be longer than {CHARACTERS_MAX} characters"
    assert FORMAT.refusal("format", "%s", [values]) == expected


def test_formatting_is_charged_by_the_template_alone() -> None:
    assert FORMAT.cost("format", "%s", ["a" * 1000]) == 1
    assert FORMAT.cost("format", "%s" + "a" * 99, ["a"]) == 11
    estimate = FORMAT.by_id("format", "string_format").estimate
    assert estimate is not None
    assert estimate(size(5, 63), (size(1, 1),)) == CallEstimate(Range(1, 7))


@given(st.text(max_size=9))
def test_a_text_is_its_own_string(text: str) -> None:
    assert FORMAT.call("format", "%s", [text]) == text


@given(st.text("%s.0 é", max_size=9))
def test_percent_signs_survive_when_doubled(text: str) -> None:
    assert FORMAT.call("format", text.replace("%", "%%"), []) == text


# --- numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "precision", "text"),
    [
        (0.0, 6, "0.000000"),
        (-0.0, 6, "0.000000"),
        (-1e-9, 6, "-0.000000"),
        (1.005, 2, "1.00"),
        (-1234.5, 0, "-1,234"),
        (999999.5, 0, "1,000,000"),
        (0.1, 10, "0.1000000000"),
        (1e21, 1, "1,000,000,000,000,000,000,000.0"),
        (0.5, 256, "0.5"),  # at least 0 digits
        (0.5, 258, "0.50"),
        (0.1, 65535, "0.1" + "0" * 254),  # no limit, so the shortest that is exact
        (1.5, 10_000_010, "%!(NOVERB)"),
        (math.inf, 2, "∞"),
        (-math.inf, 2, "-∞"),
        (math.nan, 2, "NaN"),
    ],
)
def test_fixed_point_has_groups_and_as_many_digits_as_its_fields_hold(
    value: float, precision: int, text: str
) -> None:
    assert fixed(value, precision) == text


@pytest.mark.parametrize(
    ("value", "width", "text"),
    [
        (0.0, 0, "0.000000×10⁰⁰"),
        (-1.5e300, 6, "-1.500000×10³⁰⁰"),
        (9.9999995, 6, "9.999999×10⁰⁰"),
        (1.0, 15, "  1.000000×10⁰⁰"),
        (1.0, 65536 + 14, " 1.000000×10⁰⁰"),
        (-math.inf, 6, "    -∞"),
        (1.0, 10_000_010, "%!(NOVERB)"),
    ],
)
def test_scientific_takes_the_precision_for_a_width(value: float, width: int, text: str) -> None:
    assert scientific(value, width) == text


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 30))
def test_fixed_point_without_its_groups_is_what_python_prints(value: float, precision: int) -> None:
    printed = f"{value:.{precision}f}" if value else f"{0.0:.{precision}f}"
    assert fixed(value, precision).replace(",", "") == printed


# --- checks of literals -------------------------------------------------------------------

CALL_ID, TARGET_ID, LIST_ID = 1, 2, 3
STRING_REFUSAL = (
    "error during formatting: string clause can only be used on strings, bools, bytes, ints, "
    "doubles, maps, lists, types, durations, and timestamps, was given "
)


def findings(template: str, *types: Type, overload: str = "string_format") -> list[tuple[int, str]]:
    """Return what is wrong with a call: numbers of arguments, -1 for the call, and messages."""
    args = tuple(Ident(10 + i, 0, "x") for i in range(len(types)))
    return found(
        template,
        args,
        {10 + i: type_ for i, type_ in enumerate(types)},
        overload=overload,
    )


def found(
    template: str, args: tuple[Expr, ...], types: dict[int, Type], *, overload: str
) -> list[tuple[int, str]]:
    target = Literal(TARGET_ID, 0, template)
    call = Call(CALL_ID, 0, "format", (CreateList(LIST_ID, 0, args),), target)
    checked = CheckedAST(
        ParsedAST(call, "", {}), types, {CALL_ID: ReferenceInfo(overload_ids=(overload,))}
    )
    return [
        (-1 if node is call else node.id - 10, message)
        for node, message in check_format(call, checked)
    ]


@pytest.mark.parametrize(
    ("template", "types"),
    [
        ("", ()),
        ("%%", ()),
        ("%s%s%s", (STRING, NULL, type_of(INT))),
        ("%s%s", (list_of(optional_of(INT)), map_of(STRING, ANY))),
        ("%d%x%X%o%b", (INT, UINT, BYTES, INT, BOOL)),
        ("%f%.3e%f", (DOUBLE, STRING, DYN)),
    ],
)
def test_arguments_that_fit_their_clauses_are_accepted(
    template: str, types: tuple[Type, ...]
) -> None:
    assert findings(template, *types) == []


@pytest.mark.parametrize(
    ("template", "types", "expected"),
    [
        ("%s %s", (STRING,), (-1, "index 1 out of range")),
        ("100%", (), (-1, "unexpected end of string")),
        (
            "%q",
            (INT,),
            (-1, 'could not parse formatting clause: unrecognized formatting clause "q"'),
        ),
        (
            "x",
            (INT, INT),
            (-1, "too many arguments supplied to string.format (expected 0, got 2)"),
        ),
        ("%s", (ANY,), (0, STRING_REFUSAL + "google.protobuf.Any")),
        ("%s%s", (INT, optional_of(INT)), (1, STRING_REFUSAL + "optional_type")),
        (
            "%d",
            (BOOL,),
            (
                0,
                (
                    "error during formatting: decimal clause can only be used on integers, "
                    "was given bool"
                ),
            ),
        ),
    ],
)
def test_literal_calls_that_must_fail_are_found(
    template: str, types: tuple[Type, ...], expected: tuple[int, str]
) -> None:
    assert findings(template, *types) == [expected]


def test_elements_of_literal_lists_and_maps_are_looked_at() -> None:
    bad = Ident(12, 0, "q")
    inner = CreateList(11, 0, (bad,))
    outer = CreateMap(10, 0, (MapEntry(20, 0, Literal(21, 0, "a"), inner),))
    types = {
        10: map_of(STRING, list_of(DYN)),
        21: STRING,
        11: list_of(DYN),
        12: struct("kubernetes.Semver"),
    }
    expected = [(2, STRING_REFUSAL + "kubernetes.Semver")]
    assert found("%s", (outer,), types, overload="string_format") == expected


def test_other_functions_of_the_name_are_left_alone() -> None:
    assert findings("%d", BOOL, overload="other_format") == []
