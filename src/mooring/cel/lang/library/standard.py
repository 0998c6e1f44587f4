"""The standard library: operators, conversions, strings, time, and the standard macros.

Operators and most functions here are one function for all values (see TOTAL): what the checker
chose among their overloads decides the cost and the type, never what is done. `&&`, `||`, `?:`,
`[]` have no function at all, because they do not evaluate all of their operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mooring.cel.lang.declarations import CostEstimate, Function, Library, Overload, RuntimeCost
from mooring.cel.lang.equality import equal
from mooring.cel.lang.library import arithmetic, conversions, costs, timestamps
from mooring.cel.lang.library.concatenation import Concatenation
from mooring.cel.lang.library.conversions import id_name
from mooring.cel.lang.macros import STANDARD_MACROS
from mooring.cel.lang.regex import Regex, compile_regex
from mooring.cel.lang.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    list_of,
    map_of,
    param,
)
from mooring.cel.lang.values import EvalError, no_such_overload

# Functions that take any values, whatever their overloads declare, and refuse them themselves.
TOTAL: Final = frozenset(
    {"_+_", "_-_", "_*_", "_/_", "_%_", "-_", "!_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"}
    | {"@in", "_in_", "in", "size", "contains", "startsWith", "endsWith", "matches", "dyn"}
)

_A: Final = param("A")
_B: Final = param("B")
_LIST: Final = list_of(_A)
_MAP: Final = map_of(_A, _B)


def library() -> Library:
    """Return the library `cel.lib.std`."""
    return Library(
        "cel.lib.std",
        functions=(
            *_logic(),
            *_equality(),
            *_operators(),
            *_relations(),
            *_containers(),
            *conversions.functions(),
            *_strings(),
            *timestamps.functions(),
        ),
        macros=STANDARD_MACROS,
        types=(
            BOOL,
            BYTES,
            DOUBLE,
            DURATION,
            INT,
            _LIST,
            _MAP,
            NULL,
            STRING,
            TIMESTAMP,
            TYPE,
            UINT,
        ),
        python_types={**conversions.PYTHON_TYPES, Concatenation: list_of(DYN)},
    )


# --- logic and equality ---------------------------------------------------------------------------


def _logic() -> tuple[Function, ...]:
    going_on = arithmetic.not_strictly_false
    old = "__not_strictly_false__"
    return (
        Function("_?_:_", (Overload("conditional", (BOOL, _A, _A), _A),)),
        Function("_&&_", (Overload("logical_and", (BOOL, BOOL), BOOL),)),
        Function("_||_", (Overload("logical_or", (BOOL, BOOL), BOOL),)),
        Function("!_", (Overload("logical_not", (BOOL,), BOOL, arithmetic.logical_not),)),
        Function("@not_strictly_false", (Overload("not_strictly_false", (BOOL,), BOOL, going_on),)),
        Function(old, (Overload(old, (BOOL,), BOOL, going_on),)),
    )


def _equality() -> tuple[Function, ...]:
    return tuple(
        Function(
            name,
            (
                Overload(
                    id_,
                    (_A, _A),
                    BOOL,
                    evaluate,
                    runtime_cost=costs.shorter_traversed,
                    estimate=costs.estimate_shorter,
                ),
            ),
        )
        for name, id_, evaluate in (("_==_", "equals", equal), ("_!=_", "not_equals", not_equal))
    )


def not_equal(a: Any, b: Any) -> bool:
    """Return whether `a != b`; what cannot be compared is not equal."""
    try:
        return not equal(a, b)
    except EvalError:
        return True


# --- operators ------------------------------------------------------------------------------------

_CONCATENATION: Final[dict[str, tuple[RuntimeCost | None, CostEstimate]]] = {
    "add_bytes": (costs.both_traversed, costs.estimate_concatenation),
    "add_list": (None, costs.estimate_list_concatenation),
    "add_string": (costs.both_traversed, costs.estimate_concatenation),
}


def _operators() -> tuple[Function, ...]:
    return (
        Function("_+_", tuple(_addition(*signature) for signature in _sums())),
        _operator("_-_", "subtract", arithmetic.subtract, DOUBLE, INT, UINT, others=_differences()),
        _operator("_*_", "multiply", arithmetic.multiply, DOUBLE, INT, UINT),
        _operator("_/_", "divide", arithmetic.divide, DOUBLE, INT, UINT),
        _operator("_%_", "modulo", arithmetic.modulo, INT, UINT),
        Function(
            "-_",
            (
                Overload("negate_double", (DOUBLE,), DOUBLE, arithmetic.negate),
                Overload("negate_int64", (INT,), INT, arithmetic.negate),
            ),
        ),
    )


def _sums() -> tuple[tuple[str, tuple[Type, Type], Type], ...]:
    return (
        ("add_bytes", (BYTES, BYTES), BYTES),
        ("add_double", (DOUBLE, DOUBLE), DOUBLE),
        ("add_duration_duration", (DURATION, DURATION), DURATION),
        ("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP),
        ("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        ("add_int64", (INT, INT), INT),
        ("add_list", (_LIST, _LIST), _LIST),
        ("add_string", (STRING, STRING), STRING),
        ("add_uint64", (UINT, UINT), UINT),
    )


def _addition(id_: str, params: tuple[Type, Type], result: Type) -> Overload:
    cost, estimate = _CONCATENATION.get(id_, (None, None))
    return Overload(id_, params, result, arithmetic.add, runtime_cost=cost, estimate=estimate)


def _differences() -> tuple[tuple[str, tuple[Type, Type], Type], ...]:
    return (
        ("subtract_duration_duration", (DURATION, DURATION), DURATION),
        ("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        ("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION),
    )


def _operator(
    name: str,
    id_prefix: str,
    evaluate: arithmetic.Binary,
    *types: Type,
    others: tuple[tuple[str, tuple[Type, Type], Type], ...] = (),
) -> Function:
    """Return an operator on two values of one type, and other signatures that it has."""
    same = ((f"{id_prefix}_{id_name(type_)}", (type_, type_), type_) for type_ in types)
    return Function(
        name,
        tuple(Overload(id_, params, result, evaluate) for id_, params, result in (*same, *others)),
    )


_ORDERED: Final = (
    (BOOL, BOOL),
    (INT, INT),
    (INT, DOUBLE),
    (INT, UINT),
    (UINT, UINT),
    (UINT, DOUBLE),
    (UINT, INT),
    (DOUBLE, DOUBLE),
    (DOUBLE, INT),
    (DOUBLE, UINT),
    (STRING, STRING),
    (BYTES, BYTES),
    (TIMESTAMP, TIMESTAMP),
    (DURATION, DURATION),
)


def _relations() -> tuple[Function, ...]:
    return (
        _relation("_<_", "less", arithmetic.less),
        _relation("_<=_", "less_equals", arithmetic.less_equals),
        _relation("_>_", "greater", arithmetic.greater),
        _relation("_>=_", "greater_equals", arithmetic.greater_equals),
    )


def _relation(name: str, id_prefix: str, evaluate: Callable[[Any, Any], bool]) -> Function:
    overloads = []
    for left, right in _ORDERED:
        id_ = f"{id_prefix}_{id_name(left)}" + ("" if left == right else f"_{id_name(right)}")
        is_text = left in (STRING, BYTES)
        overloads.append(
            Overload(
                id_,
                (left, right),
                BOOL,
                evaluate,
                runtime_cost=costs.shorter_traversed if is_text else None,
                estimate=costs.estimate_shorter if is_text else None,
            )
        )
    return Function(name, tuple(overloads))


# --- lists, maps, sizes ---------------------------------------------------------------------------


def _containers() -> tuple[Function, ...]:
    index = (Overload("index_list", (_LIST, INT), _A), Overload("index_map", (_MAP, _A), _B))
    membership = (
        Overload(
            "in_list",
            (_A, _LIST),
            BOOL,
            arithmetic.is_in,
            runtime_cost=costs.each_looked_at,
            estimate=costs.estimate_list_search,
        ),
        Overload("in_map", (_A, _MAP), BOOL, arithmetic.is_in),
    )
    return (
        Function("_[_]", index),
        *(Function(name, membership) for name in ("@in", "_in_", "in")),
        Function("size", tuple(_sizes())),
    )


def _sizes() -> list[Overload]:
    overloads = []
    for type_ in (BYTES, _LIST, _MAP, STRING):
        overloads += [
            Overload(f"size_{type_.name}", (type_,), INT, arithmetic.size),
            Overload(f"{type_.name}_size", (type_,), INT, arithmetic.size, is_member=True),
        ]
    return overloads


# --- strings --------------------------------------------------------------------------------------


def _strings() -> tuple[Function, ...]:
    return (
        _on_strings(
            "contains",
            "contains_string",
            str.__contains__,
            costs.each_in_each,
            costs.estimate_text_search,
        ),
        _on_strings(
            "endsWith",
            "ends_with_string",
            str.endswith,
            costs.second_traversed,
            costs.estimate_argument,
        ),
        _on_strings(
            "startsWith",
            "starts_with_string",
            str.startswith,
            costs.second_traversed,
            costs.estimate_argument,
        ),
        Function("matches", (_matching("matches"), _matching("matches_string", is_member=True))),
    )


def _on_strings(
    name: str,
    id_: str,
    holds: Callable[[str, str], bool],
    cost: RuntimeCost,
    estimate: CostEstimate,
) -> Function:
    def evaluate(text: Any, part: Any) -> bool:
        if type(text) is str and type(part) is str:
            return holds(text, part)
        raise no_such_overload()

    overload = Overload(
        id_,
        (STRING, STRING),
        BOOL,
        evaluate,
        is_member=True,
        runtime_cost=cost,
        estimate=estimate,
    )
    return Function(name, (overload,))


def _matching(id_: str, *, is_member: bool = False) -> Overload:
    return Overload(
        id_,
        (STRING, STRING),
        BOOL,
        matches,
        is_member=is_member,
        runtime_cost=costs.matched,
        estimate=costs.estimate_match,
    )


def matches(text: Any, pattern: Any) -> bool:
    """Return whether a regular expression matches somewhere in a text."""
    if type(text) is not str:
        raise arithmetic.missing_overload("matches", text)
    if type(pattern) is not str:
        raise no_such_overload()
    return compile_regex(pattern).search(text)


def matches_literal(regex: Regex) -> Callable[[Any, Any], bool]:
    """Return `matches` for a pattern that is known beforehand, which differs in its error."""

    def evaluate(text: Any, _pattern: Any) -> bool:
        if type(text) is not str:
            raise no_such_overload()
        return regex.search(text)

    return evaluate
