"""Kubernetes' list functions: `[1, 2].sum()`, `['b', 'a'].min()`, `[1, 2].indexOf(2)`.

Where elements cannot be compared (NaN, or values of different types in a list of dyn), the order
is taken to be right: such a list is sorted, and the earlier element is both minimum and maximum.
Only values without an order, such as lists, are an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from moorage.cel.lang.costs import (
    UNKNOWN,
    Argument,
    Arguments,
    CallEstimate,
    Range,
    add,
    deep_traversal_cost,
    exactly,
    multiply,
    traversal,
)
from moorage.cel.lang.environment import Function, Library, members_of
from moorage.cel.lang.equality import compare, equal
from moorage.cel.lang.errors import EvalError, no_such_overload
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    TypeKind,
    list_of,
    param,
)
from moorage.cel.lang.values import UInt, fitting_int, fitting_uint

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
    ordered = [(name, type_, (list_of(type_),)) for name, type_ in _ORDERED_TYPES.items()]
    search = (list_of(_A), _A)
    smallest, largest = _chooser("min", 1), _chooser("max", -1)
    return Library(
        "kubernetes.lists",
        functions=(
            _members(
                "isSorted",
                *((f"list_{n}_is_sorted_bool", p, BOOL, _is_sorted) for n, _, p in ordered),
            ),
            _members("sum", *((f"list_{n}_sum_{n}", (list_of(t),), t, add) for n, t, add in _SUMS)),
            _members("max", *((f"list_{n}_max_{n}", p, t, largest) for n, t, p in ordered)),
            _members("min", *((f"list_{n}_min_{n}", p, t, smallest) for n, t, p in ordered)),
            _members("indexOf", ("list_a_index_of_int", search, INT, _index_of)),
            _members("lastIndexOf", ("list_a_last_index_of_int", search, INT, _last_index_of)),
        ),
    )


def includes_library() -> Library:
    """Return the one function that is newer than the others: `includes`."""
    return _includes_library("kubernetes.lists.includes", "includes", "list_includes_dyn_dyn")


def include_library() -> Library:
    """Return `include`, an alias of `includes` that KEP-5491 uses and Kubernetes does not have."""
    return _includes_library("moorage.include", "include", "moorage_include_dyn_dyn")


def _includes_library(name: str, function: str, id_: str) -> Library:
    costs = (_runtime_cost, _estimate_includes)
    return Library(
        name, functions=(members_of(function, (id_, (DYN, DYN), BOOL, _includes), costs=costs),)
    )


def _members(name: str, *rows: Any) -> Function:
    return members_of(name, *rows, costs=(_runtime_cost, _estimate))


# --- functions ------------------------------------------------------------------------------------


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


_SUMS: Final = (
    ("int", INT, _adder(int, 0, lambda total, number: fitting_int(total + number))),
    ("uint", UINT, _adder(UInt, UInt(0), lambda total, number: fitting_uint(total + number))),
    ("double", DOUBLE, _adder(float, 0.0, lambda total, number: total + number)),
    ("duration", DURATION, _adder(Duration, Duration(0), Duration.plus)),
)


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


def _runtime_cost(args: tuple[Any, ...], _result: Any) -> int:
    return deep_traversal_cost(args[0])


def _estimate(target: Argument | None, args: Arguments) -> CallEstimate | None:
    if target is not None and not target.type.params:
        # A value that may be anything is estimated as a text.
        return CallEstimate(traversal(target.size))
    return _estimate_includes(target, args)


def _estimate_includes(target: Argument | None, _args: Arguments) -> CallEstimate | None:
    return None if target is None else CallEstimate(multiply(target.size, _element_cost(target)))


def _element_cost(target: Argument) -> Range:
    """Return the cost of comparing one element: more, if it is a text that has to be traversed.

    The first parameter of a type counts as its element type, even for maps.
    """
    if target.type.params and target.type.params[0].kind in (TypeKind.STRING, TypeKind.BYTES):
        return add(exactly(1), traversal(target.items_size or UNKNOWN))
    return exactly(1)
