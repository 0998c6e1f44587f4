"""Costs of calls: ranges, known sizes, and the charges of cel-go and Kubernetes.

    # range: an estimate, from at least to at most, never beyond UNBOUNDED
    # size: what `size()` would return: characters, bytes, elements or entries; otherwise 1
    # traverse: to look at every part once, at a tenth of a unit each

Where a value comes from a variable, its path leads from the variable through fields, `@keys`,
`@values`, `@items` and `@indices`; the caller knows the sizes along such paths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from moorage.cel.lang import ast
from moorage.cel.lang.environment import Costs
from moorage.cel.lang.equality import size_of
from moorage.cel.lang.types import Type, TypeKind, is_optional
from moorage.cel.lang.values import key_value

UNBOUNDED: Final = 2**64 - 1
TRAVERSAL_FACTOR: Final = 0.1
# A part of a pattern is taken to be four characters long.
PATTERN_FACTOR: Final = 0.25


# --- ranges ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Range:
    """An estimate: at least, and at most. Sums and products saturate at UNBOUNDED."""

    low: int
    high: int


NOTHING: Final = Range(0, 0)
UNKNOWN: Final = Range(0, UNBOUNDED)
# The neutral element of `union`: an estimate that no case has contributed to yet.
IMPOSSIBLE: Final = Range(UNBOUNDED, 0)


def exactly(amount: int) -> Range:
    """Return the estimate of a known amount."""
    return Range(amount, amount)


def add(*ranges: Range) -> Range:
    """Return the sum."""
    low = sum(each.low for each in ranges)
    high = sum(each.high for each in ranges)
    return Range(min(low, UNBOUNDED), min(high, UNBOUNDED))


def multiply(first: Range, second: Range) -> Range:
    """Return the product."""
    return Range(min(first.low * second.low, UNBOUNDED), min(first.high * second.high, UNBOUNDED))


def scale(range_: Range, factor: float) -> Range:
    """Return the estimate multiplied by a factor, rounded up."""
    # In floating point, as Kubernetes does it: the last digits of huge estimates come from there.
    low, high = (math.ceil(float(bound) * factor) for bound in (range_.low, range_.high))
    return Range(min(low, UNBOUNDED), min(high, UNBOUNDED))


def traversal(size: Range, times: int = 1) -> Range:
    """Return the estimate of traversing a value of a size."""
    return scale(size, times * TRAVERSAL_FACTOR)


def union(first: Range, second: Range) -> Range:
    """Return the estimate that covers both."""
    return Range(min(first.low, second.low), max(first.high, second.high))


# --- the costs of an overload ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """The estimated cost of a call, and the size of its result if that is known."""

    cost: Range
    result_size: Range | None = None


@dataclass(slots=True)
class Argument:
    """An argument of a call, as the estimate of its overload sees it."""

    expr: ast.Expr
    type: Type
    known_size: Range | None
    items_size: Range | None = None  # of the elements of a list, if the size hints have it

    @property
    def size(self) -> Range:
        """The size that the value may have; 0 to UNBOUNDED if nothing is known."""
        return UNKNOWN if self.known_size is None else self.known_size


Arguments = tuple[Argument, ...]
# The cost of an evaluated call, from its arguments (the target first) and its result.
RuntimeCost = Callable[[tuple[Any, ...], Any], int]
# The estimate of a call, from its target (if a member) and arguments; None: use the default.
CostEstimate = Callable[[Argument | None, Arguments], CallEstimate | None]


def traversal_cost(value: Any, times: int = 1) -> int:
    """Return the cost of traversing a value."""
    return math.ceil(size_of(value) * times * TRAVERSAL_FACTOR)


def deep_traversal_cost(value: Any) -> int:
    """Return the cost of traversing a value with everything in it.

    Texts count by their bytes, rounded down, so that short ones cost nothing.
    """
    match value:
        case str():
            length = len(value) if value.isascii() else len(value.encode(errors="surrogateescape"))
            return int(length * TRAVERSAL_FACTOR)
        case bytes():
            return int(len(value) * TRAVERSAL_FACTOR)
        case list() | tuple():
            return sum(map(deep_traversal_cost, value))
        case dict():
            parts = (part for key, item in value.items() for part in (key_value(key), item))
            return sum(map(deep_traversal_cost, parts))
        case _:
            return 1


def traverses_first(*, times: int = 1, keeps_size: bool = False) -> Costs:
    """Return the costs of a function that traverses its target or first argument.

    With keeps_size its result is as large as that.
    """

    def cost(args: tuple[Any, ...], _result: Any) -> int:
        return math.ceil(float(size_of(args[0])) * times * TRAVERSAL_FACTOR)

    def estimate(target: Argument | None, args: Arguments) -> CallEstimate:
        size = (args[0] if target is None else target).size
        return CallEstimate(traversal(size, times), size if keeps_size else None)

    return cost, estimate


def _estimate_shorter(_target: Argument | None, args: Arguments) -> CallEstimate:
    high = min(args[0].size.high, args[1].size.high)
    return CallEstimate(traversal(Range(min(high, 1), high)))


def _estimate_concatenation(_target: Argument | None, args: Arguments) -> CallEstimate:
    size = add(args[0].size, args[1].size)
    return CallEstimate(traversal(size), size)


def _estimate_substring(target: Argument | None, args: Arguments) -> CallEstimate:
    assert target is not None
    return CallEstimate(multiply(traversal(target.size), traversal(args[0].size)))


def _match_cost(args: tuple[Any, ...], _result: Any) -> int:
    text = math.ceil((1 + size_of(args[0])) * TRAVERSAL_FACTOR)  # An empty text is not free.
    return text * math.ceil(size_of(args[1]) * PATTERN_FACTOR)


def estimate_match(target: Argument | None, args: Arguments) -> CallEstimate:
    """Return the estimate of matching a text, which may be the target, with a pattern."""
    text, pattern = args if target is None else (target, args[0])
    text_cost = traversal(add(text.size, exactly(1)))
    return CallEstimate(multiply(text_cost, scale(pattern.size, PATTERN_FACTOR)))


# A comparison ends with the shorter side, and a concatenation of texts copies both; one of lists
# copies nothing.
SHORTER: Final[Costs] = (
    lambda args, _: math.ceil(min(size_of(args[0]), size_of(args[1])) * TRAVERSAL_FACTOR),
    _estimate_shorter,
)
CONCATENATION: Final[Costs] = (
    lambda args, _: math.ceil((size_of(args[0]) + size_of(args[1])) * TRAVERSAL_FACTOR),
    _estimate_concatenation,
)
LIST_CONCATENATION: Final[Costs] = (
    None,
    lambda _, args: CallEstimate(exactly(1), add(args[0].size, args[1].size)),
)
LIST_SEARCH: Final[Costs] = (
    lambda args, _: size_of(args[1]),
    lambda _, args: CallEstimate(scale(args[1].size, 1)),
)
PREFIX: Final[Costs] = (
    lambda args, _: traversal_cost(args[1]),
    lambda _, args: CallEstimate(traversal(args[0].size)),
)
SUBSTRING: Final[Costs] = (
    lambda args, _: traversal_cost(args[0]) * traversal_cost(args[1]),
    _estimate_substring,
)
MATCH: Final[Costs] = (_match_cost, estimate_match)


# --- sizes ----------------------------------------------------------------------------------------


class SizeHints(Protocol):
    """The sizes of variables that the caller knows."""

    def size(self, path: tuple[str, ...], type_: Type) -> Range | None:
        """Return the size at the end of a path, None if it is not known."""
        ...


@dataclass(frozen=True, slots=True)
class SizeBound:
    """The largest size of a declared value and of its parts.

    `any_field` bounds fields that are not listed: those of a map whose keys are written as names.
    """

    size_max: int
    keys: SizeBound | None = None
    values: SizeBound | None = None
    fields: Mapping[str, SizeBound] = field(default_factory=dict)
    any_field: SizeBound | None = None

    def inside(self, step: str) -> SizeBound | None:
        """Return the bound at the end of one step of a path."""
        if step in ("@items", "@values"):
            return self.values
        if step == "@keys":
            return self.keys
        return self.fields.get(step, self.any_field)


@dataclass(frozen=True, slots=True)
class DeclaredSizes:
    """Size hints from the bounds of variables."""

    variables: Mapping[str, SizeBound]

    def size(self, path: tuple[str, ...], type_: Type) -> Range | None:  # noqa: ARG002
        """Return the size at the end of a path, None if no variable starts it."""
        bound = self.variables.get(path[0]) if path else None
        for step in path[1:]:
            if bound is None:
                return None
            bound = bound.inside(step)
        return None if bound is None else Range(0, bound.size_max)


class Path:
    """A path that grows as a Go slice does.

    cel-go appends to slices that share memory: of two paths that extend the same one, the later may
    overwrite the last step of the earlier. Estimates depend on it, so the same sharing is kept
    here: one list of steps belongs to all paths with the same beginning.
    """

    __slots__ = ("_capacity", "_length", "_steps")

    def __init__(self, *steps: str) -> None:
        self._steps = list(steps)
        self._length = self._capacity = len(steps)

    def then(self, step: str) -> Path:
        """Return the path one step further."""
        longer = Path()
        longer._length = self._length + 1
        if self._length < self._capacity:
            longer._steps, longer._capacity = self._steps, self._capacity
            longer._steps[self._length : self._length + 1] = [step]
        else:
            longer._steps = [*self._steps[: self._length], step]
            longer._capacity = max(1, 2 * self._capacity)
        return longer

    @property
    def steps(self) -> tuple[str, ...]:
        """The present steps."""
        return tuple(self._steps[: self._length])


@dataclass(frozen=True, slots=True)
class EntrySize:
    """The sizes of the entries of a container: of a list the key is the index."""

    is_list: bool
    key: Range
    value: Range


def union_entries(first: EntrySize | None, second: EntrySize | None) -> EntrySize | None:
    """Return the sizes that cover both, None if either is unknown."""
    if first is None or second is None:
        return None
    return EntrySize(first.is_list, union(first.key, second.key), union(first.value, second.value))


def written_size(node: ast.Expr) -> Range | None:
    """Return the size of a literal, None for anything else."""
    match node:
        case ast.Literal(value=str() | bytes() as text):
            return exactly(len(text))
        case ast.Literal(value=None | bool() | int() | float()):
            return exactly(1)
        case ast.CreateList(elements=elements):
            return exactly(len(elements))
        case ast.CreateMap(entries=entries):
            return exactly(len(entries))
        case _:
            return None


_SCALARS: Final = frozenset(
    {TypeKind.BOOL, TypeKind.DOUBLE, TypeKind.DURATION, TypeKind.INT, TypeKind.TIMESTAMP}
    | {TypeKind.UINT}
)


def type_size(type_: Type) -> Range | None:
    """Return the size that all values of a type have, None if it varies."""
    if is_optional(type_):
        return type_size(type_.params[0])
    return exactly(1) if type_.kind in _SCALARS else None
