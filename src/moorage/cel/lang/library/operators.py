"""Operators: `+ - * / %`, negation, order, `!`, `in` and `size`, and lists that `+` makes.

As in cel-go each operator is one function for all values, whatever the checker chose: it takes any
value and raises `no such overload` itself, in two forms. For values that the operator supports in
other combinations that is the whole message; for others it also has the name of the operator.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any, Final, SupportsIndex, overload

from moorage.cel.lang.equality import compare, contains, has_key
from moorage.cel.lang.errors import EvalError, no_such_overload
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.values import INT_MIN, INT_OVERFLOW, UInt, fitting_int, fitting_uint

DIVISION_BY_ZERO: Final = "division by zero"
MODULUS_BY_ZERO: Final = "modulus by zero"
Binary = Callable[[Any, Any], Any]
_COMPARABLE: Final = frozenset({bool, bytes, float, Duration, int, str, Timestamp, UInt})
_MULTIPLIABLE: Final = frozenset({float, int, UInt})
_SUBTRACTABLE: Final = _MULTIPLIABLE | {Duration, Timestamp}
# Values with member functions are looked up for one of that name, and have none.
_RECEIVERS: Final = frozenset({str, Duration, Timestamp})
# What each operator supports on its left.
_ABLE: Final[dict[str, frozenset[type]]] = {
    "_+_": _SUBTRACTABLE | {bytes, str, list},
    "_-_": _SUBTRACTABLE,
    "_*_": _MULTIPLIABLE,
    "_/_": _MULTIPLIABLE,
    "_%_": frozenset({int, UInt}),
    "-_": frozenset({bool, float, Duration, int}),
    "matches": frozenset({str}),
    "size": frozenset({bytes, str, list, dict}),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _COMPARABLE),
}


def missing_overload(function: str, left: Any) -> EvalError:
    """Return the error of an operator that cannot take its operands."""
    class_ = list if isinstance(left, list | tuple) else type(left)
    if class_ in _ABLE[function] or class_ in _RECEIVERS:
        return no_such_overload()
    return EvalError(f"no such overload: {function}")


# --- concatenation --------------------------------------------------------------------------------


# `a + b` has a fixed price whatever the lengths are. If it were a copy, an expression of a few
# hundred characters could double a list until no memory holds it, and a loop that adds one element
# at a time would take the square of its length. Short lists are copied anyway: that is faster.
COPIED_MAX: Final = 128
# Longer lists are iterated but never made one list; no cost limit allows to use all of it.
FLAT_MAX: Final = 4_000_000
AnyList = list[Any] | tuple[Any, ...]


def concatenated(first: AnyList, second: AnyList) -> AnyList:
    """Return the elements of both lists."""
    if not second:
        return first
    if not first:
        return second
    if len(first) + len(second) <= COPIED_MAX:
        return [*first, *second]
    return Concatenation(first, second)


class Concatenation(list[Any]):
    """Two lists, one after the other, that become one list when it is used.

    As a list of Python's it is empty: everything that reads its elements is defined here.
    """

    __slots__ = ("_flat", "_halves", "_length")
    __hash__ = None

    def __init__(self, first: AnyList, second: AnyList) -> None:
        super().__init__()
        self._halves: tuple[AnyList, ...] = (first, second)
        self._length = fitting_int(len(first) + len(second))
        self._flat: list[Any] | None = None

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        return self._walk() if self._length > FLAT_MAX else iter(self._flattened())

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if self._length <= FLAT_MAX or isinstance(index, slice):
            return self._flattened()[index]
        return self._descend(int(index))

    def __contains__(self, value: object) -> bool:
        return any(value is each or value == each for each in self)

    def __reversed__(self) -> Iterator[Any]:
        return iter(self._flattened()[::-1])

    def __add__(self, other: Any) -> Any:
        return concatenated(self, other)

    def __radd__(self, other: Any) -> Any:
        return concatenated(other, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and self._flattened() == list(other)

    def __repr__(self) -> str:
        return f"Concatenation({self._length} elements)"

    def copy(self) -> list[Any]:
        """Return the elements as one list."""
        return list(self._flattened())

    def index(self, *args: Any) -> int:
        """Return the first position of a value."""
        return self._flattened().index(*args)

    def count(self, value: Any) -> int:
        """Return how often a value occurs."""
        return self._flattened().count(value)

    def _flattened(self) -> list[Any]:
        if self._flat is None:
            if self._length > FLAT_MAX:
                raise EvalError(f"list of {self._length} elements is too long")
            self._flat = list(self._walk())
            self._halves = ()
        return self._flat

    def _walk(self) -> Iterator[Any]:
        """Yield the elements. Loops build lists that are very deep on the left: no recursion."""
        pending: list[AnyList] = [self]
        while pending:
            part = pending.pop()
            if isinstance(part, Concatenation):
                pending.extend(reversed(part._halves) if part._flat is None else (part._flat,))
            else:
                yield from part

    def _descend(self, index: int) -> Any:
        if not 0 <= index < self._length:
            raise IndexError(index)
        part: AnyList = self
        while isinstance(part, Concatenation) and part._flat is None:
            first, second = part._halves
            if index < len(first):
                part = first
            else:
                index -= len(first)
                part = second
        return part[index]


# --- arithmetic -----------------------------------------------------------------------------------


def _divide_ints(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return fitting_int(quotient if (a < 0) == (b < 0) else -quotient)


def _divide_doubles(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1, b)


def _modulo_ints(a: int, b: int) -> int:
    if a == INT_MIN and b == -1:
        raise EvalError(INT_OVERFLOW)
    return -(-a % abs(b)) if a < 0 else a % abs(b)


def _on_uints(operation: Callable[[int, int], int]) -> Binary:
    return lambda a, b: fitting_uint(operation(int(a), int(b)))


def _refusing_zero(operation: Callable[[int, int], int], message: str) -> Callable[[int, int], int]:
    def evaluate(a: int, b: int) -> int:
        if b == 0:
            raise EvalError(message)
        return operation(a, b)

    return evaluate


_SUMS: Final[dict[tuple[type, type], Binary]] = {
    (int, int): lambda a, b: fitting_int(a + b),
    (str, str): operator.add,
    (float, float): operator.add,
    (UInt, UInt): _on_uints(operator.add),
    (bytes, bytes): operator.add,
    (Duration, Duration): Duration.plus,
    (Timestamp, Duration): Timestamp.plus,
    (Duration, Timestamp): lambda a, b: b.plus(a),
}
_DIFFERENCES: Final[dict[tuple[type, type], Binary]] = {
    (int, int): lambda a, b: fitting_int(a - b),
    (float, float): operator.sub,
    (UInt, UInt): _on_uints(operator.sub),
    (Duration, Duration): Duration.minus,
    (Timestamp, Duration): Timestamp.minus,
    (Timestamp, Timestamp): Timestamp.since,
}
_PRODUCTS: Final[dict[tuple[type, type], Binary]] = {
    (int, int): lambda a, b: fitting_int(a * b),
    (float, float): operator.mul,
    (UInt, UInt): _on_uints(operator.mul),
}
_QUOTIENTS: Final[dict[tuple[type, type], Binary]] = {
    (int, int): _refusing_zero(_divide_ints, DIVISION_BY_ZERO),
    (float, float): _divide_doubles,
    (UInt, UInt): _on_uints(_refusing_zero(operator.floordiv, DIVISION_BY_ZERO)),
}
_REMAINDERS: Final[dict[tuple[type, type], Binary]] = {
    (int, int): _refusing_zero(_modulo_ints, MODULUS_BY_ZERO),
    (UInt, UInt): _on_uints(_refusing_zero(operator.mod, MODULUS_BY_ZERO)),
}


def _by_classes(function: str, operations: dict[tuple[type, type], Binary]) -> Binary:
    """Return the operator that dispatches on the classes of its operands."""

    def evaluate(a: Any, b: Any) -> Any:
        operation = operations.get((type(a), type(b)))
        if operation is None:
            raise missing_overload(function, a)
        return operation(a, b)

    return evaluate


def add(a: Any, b: Any) -> Any:
    """Return `a + b`."""
    operation = _SUMS.get((type(a), type(b)))
    if operation is not None:
        return operation(a, b)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return concatenated(a, b)
    raise missing_overload("_+_", a)


subtract = _by_classes("_-_", _DIFFERENCES)
multiply = _by_classes("_*_", _PRODUCTS)
divide = _by_classes("_/_", _QUOTIENTS)
modulo = _by_classes("_%_", _REMAINDERS)


def negate(value: Any) -> Any:
    """Return `-value`; a duration is declared nowhere, but dyn(duration) can be negated."""
    class_ = type(value)
    if class_ is int:
        return fitting_int(-value)
    if class_ is float:
        return -value
    if class_ is Duration:
        return value.negated()
    raise missing_overload("-_", value)


def _relation(function: str, holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return the operator that compares its operands."""

    def evaluate(a: Any, b: Any) -> bool:
        class_ = type(a)
        if class_ is type(b) and (class_ is int or class_ is str):
            return holds(a, b)
        if class_ not in _COMPARABLE:
            raise missing_overload(function, a)
        return holds(compare(a, b), 0)

    return evaluate


less = _relation("_<_", operator.lt)
less_equals = _relation("_<=_", operator.le)
greater = _relation("_>_", operator.gt)
greater_equals = _relation("_>=_", operator.ge)


def logical_not(value: Any) -> bool:
    """Return `!value`."""
    if value is True:
        return False
    if value is False:
        return True
    raise no_such_overload()


def not_strictly_false(value: Any) -> bool:
    """Return whether a loop that ends with false has to continue."""
    return value is not False


def is_in(value: Any, container: Any) -> bool:
    """Return `value in container`."""
    if isinstance(container, list | tuple):
        return contains(container, value)
    if isinstance(container, dict):
        return has_key(container, value)
    raise no_such_overload()


def size(value: Any) -> int:
    """Return the number of characters, bytes, elements or entries."""
    if isinstance(value, str | bytes | list | tuple | dict):
        return len(value)
    raise missing_overload("size", value)
