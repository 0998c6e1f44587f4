"""Lists taken as sets: `sets.contains([1, 2], [2, 2])`.

Every element of one list is compared with every one of the other, and charged for. Lists of one
simple class do not need the comparisons, only the charge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mooring.cel.lang.costs import (
    Argument,
    Arguments,
    CallEstimate,
    add,
    exactly,
    multiply,
    scale,
)
from mooring.cel.lang.environment import Function, Library, functions_of
from mooring.cel.lang.equality import contains, size_of
from mooring.cel.lang.errors import COST_EXCEEDED, Cancelled
from mooring.cel.lang.types import BOOL, list_of, param
from mooring.cel.lang.values import UInt

# No cost limit allows more; the evaluation ends here instead of a little later.
COMPARISONS_MAX: Final = 10_000_000

# Classes whose own == and hash are CEL's, among themselves.
_SIMPLE: Final = frozenset({bool, int, UInt, str, bytes})

_LIST: Final = list_of(param("T"))

Values = list[Any] | tuple[Any, ...]


def library() -> Library:
    """Return the library `cel.lib.ext.sets`."""
    return Library(
        "cel.lib.ext.sets",
        functions=(
            _function("contains", _contains, comparisons=1),
            # Each list has to hold the other.
            _function("equivalent", _equivalent, comparisons=2),
            _function("intersects", _intersects, comparisons=1),
        ),
    )


def simple_class(*lists: Values) -> type | None:
    """Return the class that all elements of the lists have, if it is one Python can hash."""
    classes = {type(value) for values in lists for value in values}
    return classes.pop() if len(classes) == 1 and classes <= _SIMPLE else None


def limit_comparisons(count: int) -> None:
    """End the evaluation if it would compare more than any cost limit allows."""
    if count > COMPARISONS_MAX:
        raise Cancelled(COST_EXCEEDED)


def _function(name: str, evaluate: Callable[[Any, Any], bool], *, comparisons: int) -> Function:
    def cost(args: tuple[Any, ...], _result: Any) -> int:
        return 1 + size_of(args[0]) * size_of(args[1]) * comparisons

    def estimate(_target: Argument | None, args: Arguments) -> CallEstimate:
        pairs = multiply(args[0].size, args[1].size)
        return CallEstimate(add(scale(pairs, comparisons), exactly(1)))

    row = (f"list_sets_{name}_list", (_LIST, _LIST), BOOL, evaluate)
    return functions_of(f"sets.{name}", row, costs=(cost, estimate))


def _contains(values: Values, wanted: Values) -> bool:
    if simple_class(values, wanted) is not None:
        return set(wanted) <= set(values)
    limit_comparisons(len(values) * len(wanted))
    return all(contains(values, value) for value in wanted)


def _equivalent(values: Values, others: Values) -> bool:
    return _contains(values, others) and _contains(others, values)


def _intersects(values: Values, others: Values) -> bool:
    if simple_class(values, others) is not None:
        return not set(values).isdisjoint(others)
    limit_comparisons(len(values) * len(others))
    return any(contains(others, value) for value in values)
