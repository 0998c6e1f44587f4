"""The standard library: operators, conversions, strings, time, and the standard macros.

Operators and most functions here are one function for all values (see TOTAL): the overload that the
checker chose decides the cost and the type, never the implementation. `&&`, `||`, `?:` and `[]`
have no function, because they do not evaluate all of their operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from moorage.cel.lang import costs
from moorage.cel.lang.environment import UNIT_COST, Function, Library, Overload, functions_of
from moorage.cel.lang.equality import equal, not_equal
from moorage.cel.lang.errors import no_such_overload
from moorage.cel.lang.library import conversions, operators
from moorage.cel.lang.library.conversions import id_name
from moorage.cel.lang.macros import STANDARD_MACROS
from moorage.cel.lang.regex import Regex, compile_regex
from moorage.cel.lang.types import (
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
    python_types = {**conversions.PYTHON_TYPES, operators.Concatenation: list_of(DYN)}
    basic = (BOOL, BYTES, DOUBLE, DURATION, INT)
    return Library(
        "cel.lib.std",
        functions=(
            *_logic(),
            *_operators(),
            *_relations(),
            *_containers(),
            *conversions.functions(),
            *_strings(),
            *conversions.accessor_functions(),
        ),
        macros=STANDARD_MACROS,
        types=(*basic, _LIST, _MAP, NULL, STRING, TIMESTAMP, TYPE, UINT),
        python_types=python_types,
    )


def _logic() -> tuple[Function, ...]:
    goes_on = operators.not_strictly_false
    old = "__not_strictly_false__"
    same = (_A, _A)
    return (
        Function("_?_:_", (Overload("conditional", (BOOL, _A, _A), _A),)),
        Function("_&&_", (Overload("logical_and", (BOOL, BOOL), BOOL),)),
        Function("_||_", (Overload("logical_or", (BOOL, BOOL), BOOL),)),
        functions_of("!_", ("logical_not", (BOOL,), BOOL, operators.logical_not)),
        functions_of("@not_strictly_false", ("not_strictly_false", (BOOL,), BOOL, goes_on)),
        functions_of(old, (old, (BOOL,), BOOL, goes_on)),
        functions_of("_==_", ("equals", same, BOOL, equal), costs=costs.SHORTER),
        functions_of("_!=_", ("not_equals", same, BOOL, not_equal), costs=costs.SHORTER),
    )


# --- operators ------------------------------------------------------------------------------------

_Signature = tuple[str, tuple[Type, Type], Type]

_SUMS: Final[tuple[_Signature, ...]] = (
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
_SUM_COSTS: Final = {
    "add_bytes": costs.CONCATENATION,
    "add_list": costs.LIST_CONCATENATION,
    "add_string": costs.CONCATENATION,
}
_DIFFERENCES: Final[tuple[_Signature, ...]] = (
    ("subtract_duration_duration", (DURATION, DURATION), DURATION),
    ("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
    ("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION),
)


def _operators() -> tuple[Function, ...]:
    sums = (
        Overload(id_, params, result, operators.add, False, *_SUM_COSTS.get(id_, UNIT_COST))
        for id_, params, result in _SUMS
    )
    return (
        Function("_+_", tuple(sums)),
        _operator("_-_", "subtract", operators.subtract, DOUBLE, INT, UINT, others=_DIFFERENCES),
        _operator("_*_", "multiply", operators.multiply, DOUBLE, INT, UINT),
        _operator("_/_", "divide", operators.divide, DOUBLE, INT, UINT),
        _operator("_%_", "modulo", operators.modulo, INT, UINT),
        functions_of(
            "-_",
            ("negate_double", (DOUBLE,), DOUBLE, operators.negate),
            ("negate_int64", (INT,), INT, operators.negate),
        ),
    )


def _operator(
    name: str,
    id_prefix: str,
    evaluate: operators.Binary,
    *types: Type,
    others: tuple[_Signature, ...] = (),
) -> Function:
    """Return an operator on two values of one type, and other signatures that it has."""
    same = ((f"{id_prefix}_{id_name(type_)}", (type_, type_), type_) for type_ in types)
    return functions_of(name, *((*signature, evaluate) for signature in (*same, *others)))


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
        _relation("_<_", "less", operators.less),
        _relation("_<=_", "less_equals", operators.less_equals),
        _relation("_>_", "greater", operators.greater),
        _relation("_>=_", "greater_equals", operators.greater_equals),
    )


def _relation(name: str, id_prefix: str, evaluate: Callable[[Any, Any], bool]) -> Function:
    overloads = []
    for left, right in _ORDERED:
        id_ = f"{id_prefix}_{id_name(left)}" + ("" if left == right else f"_{id_name(right)}")
        charged = costs.SHORTER if left in (STRING, BYTES) else UNIT_COST
        overloads.append(Overload(id_, (left, right), BOOL, evaluate, False, *charged))
    return Function(name, tuple(overloads))


# --- lists, maps, strings -------------------------------------------------------------------------


def _containers() -> tuple[Function, ...]:
    index = (Overload("index_list", (_LIST, INT), _A), Overload("index_map", (_MAP, _A), _B))
    membership = (
        Overload("in_list", (_A, _LIST), BOOL, operators.is_in, False, *costs.LIST_SEARCH),
        Overload("in_map", (_A, _MAP), BOOL, operators.is_in),
    )
    sizes: list[Overload] = []
    for type_ in (BYTES, _LIST, _MAP, STRING):
        sizes += [
            Overload(f"size_{type_.name}", (type_,), INT, operators.size),
            Overload(f"{type_.name}_size", (type_,), INT, operators.size, is_member=True),
        ]
    return (
        Function("_[_]", index),
        *(Function(name, membership) for name in ("@in", "_in_", "in")),
        Function("size", tuple(sizes)),
    )


def _strings() -> tuple[Function, ...]:
    signature = ((STRING, STRING), BOOL)
    tests: tuple[tuple[str, str, Callable[[str, str], bool], Any], ...] = (
        ("contains", "contains_string", str.__contains__, costs.SUBSTRING),
        ("endsWith", "ends_with_string", str.endswith, costs.PREFIX),
        ("startsWith", "starts_with_string", str.startswith, costs.PREFIX),
    )
    matching = (
        Overload("matches", *signature, matches, False, *costs.MATCH),
        Overload("matches_string", *signature, matches, True, *costs.MATCH),
    )
    return (
        *(
            Function(name, (Overload(id_, *signature, _on_strings(holds), True, *charged),))
            for name, id_, holds, charged in tests
        ),
        Function("matches", matching),
    )


def _on_strings(holds: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    def evaluate(text: Any, part: Any) -> bool:
        if type(text) is str and type(part) is str:
            return holds(text, part)
        raise no_such_overload()

    return evaluate


def matches(text: Any, pattern: Any) -> bool:
    """Return whether a regular expression matches somewhere in a text."""
    if type(text) is not str:
        raise operators.missing_overload("matches", text)
    if type(pattern) is not str:
        raise no_such_overload()
    return compile_regex(pattern).search(text)


def matches_literal(regex: Regex) -> Callable[[Any, Any], bool]:
    """Return `matches` for a literal pattern, which differs in its error."""

    def evaluate(text: Any, _pattern: Any) -> bool:
        if type(text) is not str:
            raise no_such_overload()
        return regex.search(text)

    return evaluate
