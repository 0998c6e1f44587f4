from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.semver import parse_version
from moorage.cel.lang.ast import Call, Expr, Literal
from moorage.cel.lang.costs import UNBOUNDED, Argument, Range
from moorage.cel.lang.environment import Function, Overload, guarded
from moorage.cel.lang.errors import NO_SUCH_OVERLOAD, CompileError, EvalError
from moorage.cel.lang.library.operators import COPIED_MAX, FLAT_MAX, Concatenation
from moorage.cel.lang.library.standard import TOTAL, library, matches_literal
from moorage.cel.lang.parser import parse
from moorage.cel.lang.regex import compile_regex
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.types import Type, TypeKind
from moorage.cel.lang.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Optional,
    TypeValue,
    UInt,
    double_text,
    parse_double,
    parse_int,
    parse_uint,
)
from tests.cel.calls import size
from tests.corpus import corpus

STANDARD = library()
FUNCTIONS = {function.name: function for function in STANDARD.functions}
PYTHON_TYPES = STANDARD.python_types
# What is worked out when an expression is compiled, and so costs nothing later.
FOLDED = {
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "uint",
    "type",
}

ints = st.integers(INT_MIN, INT_MAX)
uints = st.integers(0, UINT_MAX).map(UInt)


def call(name: str, *args: Any) -> Any:
    function = FUNCTIONS[name]
    if name in TOTAL:
        evaluate = function.overloads[0].evaluate
        assert evaluate is not None
        return evaluate(*args)
    return guarded(function, function.overloads, PYTHON_TYPES)(*args)


def _fitting(function: Function, args: tuple[Any, ...]) -> Overload | None:
    return next((o for o in function.overloads if o.accepts(args, PYTHON_TYPES)), None)


def refusal(name: str, *args: Any) -> str:
    with pytest.raises(EvalError) as refused:
        call(name, *args)
    return str(refused.value)


def overload(name: str, id_: str) -> Overload:
    return next(each for each in FUNCTIONS[name].overloads if each.id == id_)


# --- declarations ---------------------------------------------------------------------------------


def _text(type_: Type) -> str:
    if type_.kind is TypeKind.TYPE_PARAM:
        return f"<{type_.name}>"
    if not type_.params:
        return type_.name
    return f"{type_.name}({', '.join(map(_text, type_.params))})"


def _signature(declared: Overload) -> str:
    params = list(map(_text, declared.params))
    target = params.pop(0) + "." if declared.is_member else ""
    return f"{declared.id}: {target}({', '.join(params)}) -> {_text(declared.result)}"


def test_declarations_are_those_of_kubernetes() -> None:
    recorded = json.loads(corpus("cel", "environment.json").read_text())
    functions = recorded["NewExpressions,list=false,consumable=true"]["functions"]
    of_other_libraries = re.compile("optional_|ip_to_string|cidr_to_string")
    for function in STANDARD.functions:
        wanted = {s for s in functions[function.name] if not of_other_libraries.match(s)}
        assert {_signature(each) for each in function.overloads} == wanted


def test_functions_that_take_anything_are_one_function() -> None:
    for name in TOTAL:
        assert len({each.evaluate for each in FUNCTIONS[name].overloads}) == 1


# --- recorded answers -----------------------------------------------------------------------------


class Unsupported(Exception):  # noqa: N818
    """An expression that is more than calls of the standard library on literals."""


def _value(node: Expr) -> Any:
    match node:
        case Literal(value=value):
            return value
        case Call(function=function, target=target, args=args) if function in FUNCTIONS:
            operands = args if target is None else (target, *args)
            if any(each.evaluate is None for each in FUNCTIONS[function].overloads):
                raise Unsupported
            return call(function, *map(_value, operands))
        case _:
            raise Unsupported


@cache
def _records() -> tuple[dict[str, Any], ...]:
    lines = corpus("cel", "public.jsonl").read_text().splitlines()
    return tuple(map(json.loads, lines))


def _recorded() -> Iterator[tuple[dict[str, Any], Expr]]:
    """Yield what was evaluated, with its tree, if it is made of nothing but the library."""
    for record in _records():
        expect = record["expect"]
        error = expect["compile_error"] or ""
        if "cost_limit" in record or (error and not error.startswith("program instantiation")):
            continue
        try:
            yield record, parse(record["expression"], ()).expr
        except CompileError:
            continue


def _shown(value: Any, type_name: str) -> Any:
    match value:
        case float():
            return double_text(value)
        case bytes():
            return base64.b64encode(value).decode()
        case Duration():
            return f"{value.nanoseconds}ns"
        case Timestamp():
            return str(value)
        case TypeValue():
            return value.name
    return int(value) if type_name in ("int", "uint") else value


def _outcome(tree: Expr) -> tuple[Any, str | None]:
    """Return the value and None, or None and the error."""
    try:
        return _value(tree), None
    except EvalError as refused:
        return None, str(refused)


def _recorded_error(expect: dict[str, Any]) -> str | None:
    """Return the error of the expression, or an empty text if something else went wrong."""
    error: str | None = expect["eval_error"] or expect["compile_error"]
    if error is not None and error.startswith(("CEL result", "unsupported CEL", "attribute ")):
        return ""
    return error and error.removeprefix("program instantiation failed: ")


def test_recorded_expressions_on_literals_have_the_recorded_values_and_errors() -> None:
    count = 0
    for record, tree in _recorded():
        expect = record["expect"]
        recorded_error = _recorded_error(expect)
        if recorded_error == "":
            continue
        try:
            value, error = _outcome(tree)
        except Unsupported:
            continue
        assert error == recorded_error, record["expression"]
        if error is None:
            assert _shown(value, expect["value_type"]) == expect["value"], record["expression"]
        count += 1
    assert count > 800


def test_recorded_calls_on_literals_have_the_recorded_costs_and_estimates() -> None:
    count = 0
    for record, tree in _recorded():
        if not isinstance(tree, Call) or tree.function not in FUNCTIONS:
            continue
        operands = tree.args if tree.target is None else (tree.target, *tree.args)
        literals = [each.value for each in operands if isinstance(each, Literal)]
        chosen = _fitting(FUNCTIONS[tree.function], tuple(literals))
        is_plain = len(literals) == len(operands) and tree.function not in FOLDED
        if not is_plain or chosen is None or chosen.evaluate is None:
            continue
        if record["expect"]["cost"] is None:
            continue
        if chosen.is_member != (tree.target is not None):
            chosen = next(o for o in FUNCTIONS[tree.function].overloads if o.id != chosen.id)
        cost = 1 if chosen.runtime_cost is None else chosen.runtime_cost(tuple(literals), None)
        assert cost == record["expect"]["cost"], record["expression"]
        if record["kind"] != "raw":
            assert _estimated(chosen, tree) == record["expect"]["max_cost_estimate"]
        count += 1
    assert count > 300


def _estimated(chosen: Overload, tree: Call) -> int:
    if chosen.estimate is None:
        return 1
    target = None if tree.target is None else _argument(tree.target)
    estimate = chosen.estimate(target, tuple(map(_argument, tree.args)))
    assert estimate is not None
    return estimate.cost.high


def _argument(node: Expr) -> Argument:
    assert isinstance(node, Literal)
    length = len(node.value) if isinstance(node.value, str | bytes) else 1
    return size(length, length)


# --- arithmetic -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("_+_", (INT_MAX, 1), "integer overflow"),
        ("_-_", (INT_MIN, 1), "integer overflow"),
        ("_*_", (INT_MIN, -1), "integer overflow"),
        ("_/_", (INT_MIN, -1), "integer overflow"),
        ("_%_", (INT_MIN, -1), "integer overflow"),
        ("-_", (INT_MIN,), "integer overflow"),
        ("_+_", (UInt(UINT_MAX), UInt(1)), "unsigned integer overflow"),
        ("_-_", (UInt(0), UInt(1)), "unsigned integer overflow"),
        ("_*_", (UInt(2**63), UInt(2)), "unsigned integer overflow"),
        ("_/_", (1, 0), "division by zero"),
        ("_/_", (UInt(1), UInt(0)), "division by zero"),
        ("_%_", (1, 0), "modulus by zero"),
        ("_%_", (UInt(1), UInt(0)), "modulus by zero"),
    ],
)
def test_arithmetic_that_has_no_result(name: str, args: tuple[Any, ...], message: str) -> None:
    assert refusal(name, *args) == message


@given(ints, ints.filter(bool))
def test_division_is_towards_zero_and_the_remainder_makes_up_for_it(a: int, b: int) -> None:
    if (a, b) == (INT_MIN, -1):
        return
    quotient, remainder = call("_/_", a, b), call("_%_", a, b)
    assert quotient * b + remainder == a
    assert abs(remainder) < abs(b)
    assert remainder == 0 or (remainder < 0) == (a < 0)


@given(uints, uints.filter(bool))
def test_unsigned_results_are_unsigned(a: UInt, b: UInt) -> None:
    assert type(call("_/_", a, b)) is UInt
    assert type(call("_%_", a, b)) is UInt


def test_doubles_divide_by_zero() -> None:
    assert call("_/_", 1.0, 0.0) == math.inf
    assert call("_/_", 1.0, -0.0) == -math.inf
    assert math.isnan(call("_/_", 0.0, 0.0))
    assert math.isnan(call("_/_", math.nan, 0.0))
    assert call("_*_", 1e308, 10.0) == math.inf


def test_times_are_added_and_subtracted() -> None:
    start, hour = Timestamp.parse("2024-01-01T00:00:00Z"), Duration.parse("1h")
    assert str(call("_+_", hour, start)) == str(call("_+_", start, hour)) == "2024-01-01T01:00:00Z"
    assert str(call("_-_", start, hour)) == "2023-12-31T23:00:00Z"
    assert call("_-_", start, start) == Duration(0)
    assert call("-_", hour) == Duration.parse("-1h")


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("_+_", (1, "a"), NO_SUCH_OVERLOAD),
        ("_+_", (1, UInt(1)), NO_SUCH_OVERLOAD),
        ("_+_", ([1], 1), NO_SUCH_OVERLOAD),
        ("_+_", (None, None), "no such overload: _+_"),
        ("_+_", (True, True), "no such overload: _+_"),
        ("_+_", ({}, {}), "no such overload: _+_"),
        ("_-_", ("a", "b"), NO_SUCH_OVERLOAD),
        ("_-_", ([], []), "no such overload: _-_"),
        ("_*_", (Duration(1), 2), NO_SUCH_OVERLOAD),
        ("_*_", (True, 2), "no such overload: _*_"),
        ("_/_", (b"", 2), "no such overload: _/_"),
        ("_%_", (1.0, 2.0), "no such overload: _%_"),
        ("-_", (True,), NO_SUCH_OVERLOAD),
        ("-_", ("a",), NO_SUCH_OVERLOAD),
        ("-_", (UInt(1),), "no such overload: -_"),
        ("!_", (1,), NO_SUCH_OVERLOAD),
        ("!_", (None,), NO_SUCH_OVERLOAD),
        ("_<_", (1, "a"), NO_SUCH_OVERLOAD),
        ("_<_", (True, 1), NO_SUCH_OVERLOAD),
        ("_<_", (None, 1), "no such overload: _<_"),
        ("_<=_", ([1], [2]), "no such overload: _<=_"),
        ("_>_", (parse_version("1.0.0"), 1), "no such overload: _>_"),
        ("_>=_", (TypeValue(Type(TypeKind.INT, "int")), 1), "no such overload: _>=_"),
        ("_<_", (math.nan, None), "NaN values cannot be ordered"),
        ("@in", (1, "a"), NO_SUCH_OVERLOAD),
        ("@in", (1, None), NO_SUCH_OVERLOAD),
        ("size", (1,), "no such overload: size"),
        ("size", (Duration(1),), NO_SUCH_OVERLOAD),
        ("contains", ("a", 1), NO_SUCH_OVERLOAD),
        ("startsWith", (1, "a"), NO_SUCH_OVERLOAD),
        ("matches", ("a", 1), NO_SUCH_OVERLOAD),
        ("matches", (1, "a"), "no such overload: matches"),
        ("matches", (Timestamp(0), "a"), NO_SUCH_OVERLOAD),
        ("string", (None,), "no such overload: string(null_type)"),
        ("int", ([],), "no such overload: int(list)"),
        ("getHours", (1,), "no such overload: getHours(int)"),
    ],
)
def test_values_that_a_function_does_not_take(
    name: str, args: tuple[Any, ...], message: str
) -> None:
    assert refusal(name, *args) == message


def test_not_equal_takes_what_equal_refuses() -> None:
    version = parse_version("1.0.0")
    assert refusal("_==_", version, "1.0.0") == NO_SUCH_OVERLOAD
    assert call("_!=_", version, "1.0.0") is True
    assert call("_!=_", 1, 1.0) is False


def test_membership() -> None:
    assert call("@in", 1.0, [1, 2]) is True
    assert call("@in", "a", {"a": 1}) is True
    assert call("@in", True, {1: 1}) is False
    assert call("@in", None, (None,)) is True


def test_sizes_count_code_points_and_bytes() -> None:
    assert call("size", "e\u0301😀") == 3
    assert call("size", "é".encode()) == 2
    assert call("size", {"a": 1}) == 1


# --- concatenation of lists -----------------------------------------------------------------------


def test_long_lists_are_concatenated_without_copying() -> None:
    doubled: Any = list(range(100))
    for _ in range(50):
        doubled = call("_+_", doubled, doubled)
    assert call("size", doubled) == 100 * 2**50
    assert doubled[5] == 5
    assert doubled[100 * 2**50 - 1] == 99
    assert next(iter(doubled)) == 0
    for _ in range(6):
        doubled = call("_+_", doubled, doubled)
    assert refusal("_+_", doubled, doubled) == "integer overflow"


def test_a_list_grown_by_one_element_at_a_time_is_in_order() -> None:
    grown: Any = []
    for number in range(20_000):
        grown = call("_+_", grown, [number])
    assert isinstance(grown, Concatenation)
    assert list(grown) == list(range(20_000))
    assert grown[19_999] == 19_999


@given(st.lists(st.lists(st.integers(0, 9), max_size=COPIED_MAX), max_size=8))
def test_a_concatenation_is_the_list_that_it_stands_for(parts: list[list[int]]) -> None:
    joined: Any = []
    flat: list[int] = []
    for part in parts:
        joined = call("_+_", joined, tuple(part))
        flat += part
    assert len(joined) == len(flat)
    assert bool(joined) == bool(flat)
    assert list(joined) == list(reversed(list(reversed(joined)))) == flat
    assert [*joined] == flat
    assert call("_==_", joined, flat)
    assert call("_==_", flat, joined)
    assert list(joined[1:3]) == flat[1:3]
    assert all(number in joined for number in flat)
    if isinstance(joined, Concatenation):
        assert list(joined + [5]) == [*flat, 5]  # noqa: RUF005
        assert list([5] + joined) == [5, *flat]  # noqa: RUF005
        assert (joined.copy(), joined.count(1)) == (flat, flat.count(1))


def test_a_concatenation_too_long_for_memory_is_not_made_one_list() -> None:
    endless: Any = list(range(100))
    while len(endless) <= FLAT_MAX:
        endless = call("_+_", endless, endless)
    with pytest.raises(EvalError, match="too long"):
        endless[1:2]
    with pytest.raises(IndexError):
        endless[len(endless)]


# --- conversions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5.", 5.0),
        (".5", 0.5),
        ("1_000", 1000.0),
        ("1_23.50_0_0e+1_2", 1.235e14),
        ("0x1p-2", 0.25),
        ("-0X_1.8p1", -3.0),
        ("inf", math.inf),
        ("-INFINITY", -math.inf),
        ("1e-400", 0.0),
        ("18446744073709551615", 2.0**64),
    ],
)
def test_doubles_are_read(text: str, value: float) -> None:
    assert call("double", text) == value


def test_nan_is_read_without_a_sign_only() -> None:
    assert math.isnan(call("double", "NaN"))
    assert parse_double("-nan") is None


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "e5", "1e", "1e400", "0x10", "0x1p1024", "_1", "1_", "1__0", "1_.5", "0b1"),
        *(" 1", "1\n", "infinit", "１", "+-1", "1e+_5", "0x_p1", "1e5_"),
    ],
)
def test_other_texts_are_no_doubles(text: str) -> None:
    assert refusal("double", text) == "type conversion error from 'string' to 'double'"


@pytest.mark.parametrize("text", ["", "+", "1_0", "0x1", "1.0", " 1", "１", str(2**63), "9" * 5000])
def test_other_texts_are_no_ints(text: str) -> None:
    assert refusal("int", text) == "type conversion error from 'string' to 'int'"


@pytest.mark.parametrize("text", ["", "-1", "+1", "1u", str(2**64), "9" * 5000])
def test_other_texts_are_no_uints(text: str) -> None:
    assert refusal("uint", text) == "type conversion error from 'string' to 'uint'"


def test_leading_zeros_and_signs_are_fine() -> None:
    assert parse_int("+007") == 7
    assert parse_int("-" + "0" * 5000 + "7") == -7
    assert parse_uint("0" * 5000 + "7") == UInt(7)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (100000.0, "100000"),
        (1e6, "1e+06"),
        (1234567.0, "1.234567e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1e100, "1e+100"),
        (-1.5e-300, "-1.5e-300"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
        (True, "true"),
        (UInt(5), "5"),
        (-5, "-5"),
        (b"\xc3\xa9", "é"),
        (Duration(-1_000_000), "-0.001s"),
        (Timestamp.parse("2024-01-01T00:00:00+01:00"), "2024-01-01T00:00:00+01:00"),
    ],
)
def test_texts_of_values(value: Any, text: str) -> None:
    assert call("string", value) == text


@given(st.floats(allow_nan=False))
def test_printed_doubles_are_read_back(value: float) -> None:
    assert call("double", call("string", value)) == value


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("int", 2.0**63, "integer overflow"),
        ("int", -(2.0**63), "integer overflow"),
        ("int", math.nan, "integer overflow"),
        ("int", UInt(2**63), "integer overflow"),
        ("uint", -0.5, "unsigned integer overflow"),
        ("uint", 2.0**64, "unsigned integer overflow"),
        ("uint", math.inf, "unsigned integer overflow"),
        ("uint", -1, "unsigned integer overflow"),
        ("timestamp", 253402300800, "timestamp overflow"),
        ("string", b"\xed\xa0\x80", "invalid UTF-8 in bytes, cannot convert to string"),
        ("bool", "yes", "type conversion error from 'string' to 'bool'"),
    ],
)
def test_conversions_that_fail(name: str, value: Any, message: str) -> None:
    assert refusal(name, value) == message


def test_conversions_truncate() -> None:
    assert call("int", -1.9) == -1
    assert call("uint", 5.7) == UInt(5)
    assert call("int", Timestamp.parse("1969-12-31T23:59:59.5Z")) == -1
    assert call("double", 2**53 + 1) == 2.0**53


def test_types_of_values() -> None:
    assert call("type", UInt(1)).name == "uint"
    assert call("type", Duration(1)).name == "google.protobuf.Duration"
    assert call("type", [1]).name == "list"
    assert call("type", Optional(1)).name == "optional_type"
    assert call("type", call("type", 1)).name == "type"


# --- parts of timestamps --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("getFullYear", 2024),
        ("getMonth", 1),
        ("getDayOfYear", 59),
        ("getDayOfMonth", 28),
        ("getDate", 29),
        ("getDayOfWeek", 4),
        ("getHours", 23),
        ("getMinutes", 5),
        ("getSeconds", 6),
        ("getMilliseconds", 789),
    ],
)
def test_parts_of_a_timestamp(name: str, value: int) -> None:
    timestamp = Timestamp.parse("2024-02-29T23:05:06.789Z")
    assert call(name, timestamp) == value
    assert call(name, timestamp, "+00:00") == value
    assert refusal(name, timestamp, "bogus") == "unknown time zone bogus"


# --- matches --------------------------------------------------------------------------------------


def test_matches_searches_anywhere() -> None:
    assert call("matches", "xabcx", "b") is True
    assert call("matches", "abc", "^b") is False
    assert refusal("matches", "a", "(") == "error parsing regexp: missing closing ): `(`"


def test_a_literal_pattern_says_less_about_what_is_wrong() -> None:
    evaluate = matches_literal(compile_regex("b"))
    assert evaluate("abc", "b") is True
    with pytest.raises(EvalError, match=f"^{NO_SUCH_OVERLOAD}$"):
        evaluate(1, "b")


# --- costs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "id_", "args", "cost"),
    [
        ("_==_", "equals", ("", "abc"), 0),
        ("_==_", "equals", (1, 2.0), 1),
        ("_==_", "equals", ("a" * 30, "a" * 30), 3),
        ("_!=_", "not_equals", ([1] * 25, [1] * 21), 3),
        ("_<_", "less_string", ("a" * 11, "b" * 99), 2),
        ("_>=_", "greater_equals_bytes", (b"", b""), 0),
        ("_+_", "add_string", ("a" * 5, "b" * 6), 2),
        ("_+_", "add_bytes", (b"", b""), 0),
        ("@in", "in_list", (1, [1, 2, 3]), 3),
        ("contains", "contains_string", ("a" * 25, "b" * 15), 6),
        ("startsWith", "starts_with_string", ("a", "b" * 15), 2),
        ("endsWith", "ends_with_string", ("a" * 15, ""), 0),
        ("matches", "matches_string", ("", "a" * 9), 3),
        ("matches", "matches", ("a" * 10, ""), 0),
        ("bytes", "string_to_bytes", ("é" * 11,), 2),
        ("string", "bytes_to_string", (b"a" * 11,), 2),
    ],
)
def test_costs(name: str, id_: str, args: tuple[Any, ...], cost: int) -> None:
    charged = overload(name, id_).runtime_cost
    assert charged is not None
    assert charged(args, None) == cost


@pytest.mark.parametrize(
    ("name", "id_", "args", "cost", "result_size"),
    [
        ("_==_", "equals", (size(0, 64), size(4, 4)), Range(1, 1), None),
        ("_==_", "equals", (size(0, 0), size(4, 4)), Range(0, 0), None),
        ("_<_", "less_string", (size(5, 50), size(0, 31)), Range(1, 4), None),
        ("_+_", "add_string", (size(1, 10), size(2, 11)), Range(1, 3), Range(3, 21)),
        ("_+_", "add_list", (size(1, 10), size(2, 11)), Range(1, 1), Range(3, 21)),
        ("@in", "in_list", (size(1, 1), size(2, 9)), Range(2, 9), None),
        ("bytes", "string_to_bytes", (size(1, 10),), Range(1, 1), Range(1, 40)),
        (
            "bytes",
            "string_to_bytes",
            (size(0, UNBOUNDED),),
            Range(0, 1844674407370955264),
            Range(0, 2**64 - 4),
        ),
        ("string", "bytes_to_string", (size(8, 10),), Range(1, 1), Range(2, 10)),
        ("matches", "matches", (size(0, 63), size(5, 5)), Range(2, 14), None),
    ],
)
def test_estimates(
    name: str, id_: str, args: tuple[Argument, ...], cost: Range, result_size: Range | None
) -> None:
    estimate = overload(name, id_).estimate
    assert estimate is not None
    estimated = estimate(None, args)
    assert estimated is not None
    assert (estimated.cost, estimated.result_size) == (cost, result_size)


@pytest.mark.parametrize(
    ("name", "id_", "target", "argument", "cost"),
    [
        ("contains", "contains_string", size(0, 63), size(11, 11), Range(0, 14)),
        ("startsWith", "starts_with_string", size(0, UNBOUNDED), size(11, 11), Range(2, 2)),
        ("endsWith", "ends_with_string", size(0, UNBOUNDED), size(0, 0), Range(0, 0)),
        ("matches", "matches_string", size(0, 63), size(5, 5), Range(2, 14)),
    ],
)
def test_estimates_of_member_functions(
    name: str, id_: str, target: Argument, argument: Argument, cost: Range
) -> None:
    estimate = overload(name, id_).estimate
    assert estimate is not None
    estimated = estimate(target, (argument,))
    assert estimated is not None
    assert estimated.cost == cost
