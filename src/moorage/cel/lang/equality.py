"""Equality, order and size of values.

Numbers of different types are equal when their values are; whole numbers are turned into doubles to
be compared with doubles, so beyond 2^53 several of them are equal to one double, as in cel-go.

Values of the opaque classes of libraries know no other class: `version == 'text'` is an error,
while `'text' == version` is false, because the left side decides. A class may define
`cel_equal(other)`. Inside lists and maps such an error is ignored, and the elements count as equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType
from typing import Any, Final

from moorage.cel.lang.errors import COST_EXCEEDED, Cancelled, EvalError, no_such_overload
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.unordered import UnorderedList, unordered_pairs
from moorage.cel.lang.unpaid_work import count_unpaid
from moorage.cel.lang.values import Optional, TypeValue, UInt, map_key

# Longer lists, which only repeated concatenation makes, cost more to traverse than any limit.
ELEMENTS_MAX: Final = 4_000_000
NAN_UNORDERED: Final = "NaN values cannot be ordered"

# Classes whose own == is CEL's, among themselves.
_PLAIN: Final = frozenset(
    {str, int, bool, UInt, bytes, float, NoneType, Timestamp, Duration, TypeValue}
)
_NUMBERS: Final = frozenset({int, UInt, float})
# Classes whose own < is CEL's, among themselves. Doubles have NaN.
_ORDERED: Final = frozenset({int, str, UInt, bool, bytes, Timestamp, Duration})
_CONTAINERS: Final = (list, tuple, dict)
_SIZED: Final = (str, bytes, list, tuple, dict)


# --- equal ----------------------------------------------------------------------------------------


def equal(a: Any, b: Any) -> bool:
    """Return whether `a == b`; raise EvalError where the left side does not know the right."""
    class_ = type(a)
    if class_ is type(b) and class_ in _PLAIN:
        return bool(a == b)
    if a is None or b is None:
        return False
    return _left_equal(a, b)


def not_equal(a: Any, b: Any) -> bool:
    """Return whether `a != b`; what cannot be compared is not equal."""
    try:
        return not equal(a, b)
    except EvalError:
        return True


def contains(values: list[Any] | tuple[Any, ...], wanted: Any) -> bool:
    """Return whether a list has an element that the wanted value calls equal."""
    _refuse_endless(values)
    if type(wanted) is str:
        return wanted in values  # Whatever else is in there is not equal to a string.
    return any(_is_surely_equal(wanted, value) for value in values)


def has_key(values: dict[Any, Any], key: Any) -> bool:
    """Return whether a map has a key; a value that cannot be a key is in no map."""
    try:
        return map_key(key) in values
    except TypeError:
        return False


def _left_equal(a: Any, b: Any) -> bool:
    """Return whether the class of `a` makes it equal to `b`; b may be null."""
    class_, other = type(a), type(b)
    if class_ in _PLAIN:
        if class_ is other:
            return bool(a == b)
        return class_ in _NUMBERS and other in _NUMBERS and _are_equal_numbers(a, b)
    if isinstance(a, _CONTAINERS):
        return _are_equal_containers(a, b)
    if class_ is Optional:
        return other is Optional and _are_equal_optionals(a, b)
    if hasattr(a, "cel_equal"):
        return bool(a.cel_equal(b))
    if class_ is not other:
        raise no_such_overload()
    return bool(a == b)


def _are_equal_numbers(a: Any, b: Any) -> bool:
    if type(a) is float or type(b) is float:
        return float(a) == float(b)
    return int(a) == int(b)


def _are_equal_optionals(a: Optional, b: Optional) -> bool:
    if not (a.has_value and b.has_value):
        return a.has_value == b.has_value
    return _left_equal(a.value, b.value)


def _are_equal_containers(a: Any, b: Any) -> bool:
    """Return whether no element differs.

    Inner containers are queued instead of descended into: they may be nested deeply. A pair is
    compared once: one list may be contained in very many places.
    """
    pending = [(a, b)]
    seen: set[tuple[int, int]] = set()
    while pending:
        a, b = pending.pop()
        if seen:  # the outer ones are paid for
            count_unpaid(len(a))
        pairs = _paired(a, b)
        if pairs is None:
            return False
        for x, y in pairs:
            if not isinstance(x, _CONTAINERS):
                if not _may_be_equal(x, y):
                    return False
            elif (id(x), id(y)) not in seen:
                seen.add((id(x), id(y)))
                pending.append((x, y))
    return True


def _paired(a: Any, b: Any) -> Iterable[tuple[Any, Any]] | None:
    """Return the elements that have to be equal, or None if the containers differ anyway."""
    if isinstance(a, dict) != isinstance(b, dict) or not isinstance(b, _CONTAINERS):
        return None
    if len(a) != len(b):
        return None
    if not isinstance(a, dict):
        _refuse_endless(a)
        if isinstance(a, UnorderedList) or isinstance(b, UnorderedList):
            return unordered_pairs(a, b)
        return zip(a, b, strict=True)
    try:
        # Not get(): a map may have an answer for keys that it does not list.
        return [(value, b[key]) for key, value in a.items()]
    except KeyError:
        return None


def _refuse_endless(values: Any) -> None:
    if len(values) > ELEMENTS_MAX:
        raise Cancelled(COST_EXCEEDED)


def _may_be_equal(a: Any, b: Any) -> bool:
    try:
        return equal(a, b)
    except EvalError:
        return True


def _is_surely_equal(a: Any, b: Any) -> bool:
    if isinstance(a, _CONTAINERS):
        count_unpaid(len(a))
    try:
        return _left_equal(a, b)
    except EvalError:
        return False


# --- less -----------------------------------------------------------------------------------------


def compare(a: Any, b: Any) -> int:
    """Return -1, 0 or 1: a before, equal to or after b; or raise EvalError."""
    class_, other = type(a), type(b)
    if class_ is other and class_ in _ORDERED:
        return bool(a > b) - bool(a < b)
    if class_ not in _NUMBERS:
        raise no_such_overload()
    if class_ is float and a != a:  # NaN is what differs from itself
        raise EvalError(NAN_UNORDERED)
    if other not in _NUMBERS:
        raise no_such_overload()
    if other is float and b != b:
        raise EvalError(NAN_UNORDERED)
    if class_ is float or other is float:
        a, b = float(a), float(b)
    return bool(a > b) - bool(a < b)


# --- size -----------------------------------------------------------------------------------------


def size_of(value: Any) -> int:
    """Return the size that costs depend on: characters, bytes, elements, entries, otherwise 1.

    An optional has the size of its value. An opaque class may have a `cel_size`.
    """
    if isinstance(value, _SIZED):
        return len(value)
    if type(value) is Optional:
        return size_of(value.value) if value.has_value else 1
    return int(getattr(value, "cel_size", 1))
