"""Kubernetes' list functions: `[1, 2].sum()`, `['b', 'a'].min()`, `[1, 2].indexOf(2)`.

Where elements cannot be compared (NaN, or values of different types in a list of dyn), the order
is taken to be right: such a list is sorted, and the earlier element is both minimum and maximum.
Only values that have no order at all, such as lists, are an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from mooring.cel.lang.declarations import (
    CallEstimate,
    EstimatedArgument,
    Function,
    Library,
    Overload,
    Range,
)
from mooring.cel.lang.equality import compare, equal
from mooring.cel.lang.library.costs import TRAVERSAL_FACTOR
from mooring.cel.lang.numbers import fitting_int, fitting_uint
from mooring.cel.lang.ranges import UNKNOWN, add, exactly, multiply, scale
from mooring.cel.lang.time import Duration, Timestamp
from mooring.cel.lang.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Kind,
    Type,
    list_of,
    param,
)
from mooring.cel.lang.values import EvalError, UInt, key_value, no_such_overload

Values = Sequence[Any]

_A: Final = param("A")
# In the order in which Kubernetes declares them: a list of dyn takes the first that fits.
_ORDERED_TYPES: Final = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "string": STRING,
    "bytes": BYTES,
}
_ORDERED_CLASSES: Final = (bool, int, float, str, bytes, Duration, Timestamp)


def library() -> Library:
    """Return the library `kubernetes.lists` without `includes`."""
    return Library(
        "kubernetes.lists",
        functions=(
            Function(
                "isSorted",
                tuple(
                    _overload(f"list_{name}_is_sorted_bool", (list_of(type_),), BOOL, _is_sorted)
                    for name, type_ in _ORDERED_TYPES.items()
                ),
            ),
            Function("sum", _sums()),
            Function("max", _choices("max", preferred=-1)),
            Function("min", _choices("min", preferred=1)),
            _search("indexOf", "list_a_index_of_int", _index_of),
            _search("lastIndexOf", "list_a_last_index_of_int", _last_index_of),
        ),
    )


def includes_library() -> Library:
    """Return the one function that is newer than the others: `includes`."""
    overload = replace(
        _overload("list_includes_dyn_dyn", (DYN, DYN), BOOL, _includes),
        estimate=_includes_estimate,
    )
    return Library("kubernetes.lists.includes", functions=(Function("includes", (overload,)),))


def include_library() -> Library:
    """Return `include`, an alias of `includes` that KEP-5491 uses and Kubernetes does not have."""
    (includes,) = includes_library().functions
    alias = replace(includes.overloads[0], id="mooring_include_dyn_dyn")
    return Library("mooring.include", functions=(Function("include", (alias,)),))


# --- declarations ---------------------------------------------------------------------------------


def _sums() -> tuple[Overload, ...]:
    adders: tuple[tuple[str, Type, Callable[[Values], Any]], ...] = (
        ("int", INT, _adder(int, 0, lambda total, number: fitting_int(total + number))),
        ("uint", UINT, _adder(UInt, UInt(0), lambda total, number: fitting_uint(total + number))),
        ("double", DOUBLE, _adder(float, 0.0, lambda total, number: total + number)),
        ("duration", DURATION, _adder(Duration, Duration(0), Duration.plus)),
    )
    return tuple(
        _overload(f"list_{name}_sum_{name}", (list_of(type_),), type_, evaluate)
        for name, type_, evaluate in adders
    )


def _choices(function: str, *, preferred: int) -> tuple[Overload, ...]:
    choose = _chooser(function, preferred)
    return tuple(
        _overload(f"list_{name}_{function}_{name}", (list_of(type_),), type_, choose)
        for name, type_ in _ORDERED_TYPES.items()
    )


def _search(name: str, id_: str, evaluate: Callable[..., Any]) -> Function:
    return Function(name, (_overload(id_, (list_of(_A), _A), INT, evaluate),))


# --- what they do ---------------------------------------------------------------------------------


def _is_sorted(values: Values) -> bool:
    for index, value in enumerate(values):
        _check_ordered(value)
        if index and _order(values[index - 1], value) == 1:
            return False
    return True


def _chooser(function: str, preferred: int) -> Callable[[Values], Any]:
    """Return the function that replaces its choice by a value which the choice so compares with."""

    def choose(values: Values) -> Any:
        if not values:
            raise EvalError(f"{function} called on empty list")
        _check_ordered(values[0])
        choice = values[0]
        for value in values[1:]:
            _check_ordered(value)
            if _order(choice, value) == preferred:
                choice = value
        return choice

    return choose


def _check_ordered(value: Any) -> None:
    if not isinstance(value, _ORDERED_CLASSES):
        raise no_such_overload()


def _order(a: Any, b: Any) -> int | None:
    try:
        return compare(a, b)
    except EvalError:
        return None


def _adder(class_: type, zero: Any, plus: Callable[[Any, Any], Any]) -> Callable[[Values], Any]:
    def total_of(values: Values) -> Any:
        total = zero
        for value in values:
            if type(value) is not class_:
                raise no_such_overload()
            total = plus(total, value)
        return total

    return total_of


def _index_of(values: Values, wanted: Any) -> int:
    return next((i for i, value in enumerate(values) if _is_equal(value, wanted)), -1)


def _last_index_of(values: Values, wanted: Any) -> int:
    indices = range(len(values) - 1, -1, -1)
    return next((i for i in indices if _is_equal(values[i], wanted)), -1)


def _includes(target: Any, wanted: Any) -> bool:
    if isinstance(target, list | tuple):
        return any(_is_equal(value, wanted) for value in target)
    return _is_equal(target, wanted)


def _is_equal(a: Any, b: Any) -> bool:
    try:
        return equal(a, b)
    except EvalError:
        return False


# --- costs ----------------------------------------------------------------------------------------


def traversal_of(value: Any) -> int:
    """Return what it costs to traverse a value with all that is in it.

    Texts count by their bytes, rounded down, so that short ones cost nothing.
    """
    if isinstance(value, str):
        length = len(value) if value.isascii() else len(value.encode("utf-8", "surrogateescape"))
        return int(length * TRAVERSAL_FACTOR)
    if isinstance(value, bytes):
        return int(len(value) * TRAVERSAL_FACTOR)
    if isinstance(value, list | tuple):
        return sum(map(traversal_of, value))
    if isinstance(value, dict):
        return sum(traversal_of(key_value(k)) + traversal_of(v) for k, v in value.items())
    return 1


def _runtime_cost(args: tuple[Any, ...], _result: Any) -> int:
    return traversal_of(args[0])


def _estimate(
    target: EstimatedArgument | None, _args: tuple[EstimatedArgument, ...]
) -> CallEstimate | None:
    if target is None:
        return None
    if not target.type.params:  # Of what may be anything Kubernetes thinks as of a text.
        return CallEstimate(scale(target.size, TRAVERSAL_FACTOR))
    return _includes_estimate(target, _args)


def _includes_estimate(
    target: EstimatedArgument | None, _args: tuple[EstimatedArgument, ...]
) -> CallEstimate | None:
    return None if target is None else CallEstimate(multiply(target.size, _element_cost(target)))


def _element_cost(target: EstimatedArgument) -> Range:
    """Return the cost of comparing one element: more, if it is a text that has to be traversed.

    The first parameter of a type counts as that of its elements, even for maps.
    """
    if target.type.params and target.type.params[0].kind in (Kind.STRING, Kind.BYTES):
        return add(exactly(1), scale(_element_size(target), TRAVERSAL_FACTOR))
    return exactly(1)


def _element_size(target: EstimatedArgument) -> Range:
    # Only the estimator itself knows it; a plain argument tells no more than its own size.
    size: Range | None = getattr(target, "items_size", None)
    return UNKNOWN if size is None else size


def _overload(
    id_: str, params: tuple[Type, ...], result: Type, evaluate: Callable[..., Any]
) -> Overload:
    return Overload(
        id_,
        params,
        result,
        evaluate,
        is_member=True,
        runtime_cost=_runtime_cost,
        estimate=_estimate,
    )
