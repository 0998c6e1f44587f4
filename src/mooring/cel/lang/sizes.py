"""How large values may be, as far as declarations and the expression tell.

A size is what `size()` would return: characters, bytes, elements or entries. Where a value comes
from a variable, its path leads from the variable through fields, `@keys`, `@values`, `@items` and
`@indices`; the caller knows the sizes along such paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mooring.cel.lang import ast
from mooring.cel.lang.declarations import Range
from mooring.cel.lang.inference import is_optional
from mooring.cel.lang.ranges import exactly, union
from mooring.cel.lang.types import Kind, Type

_SCALARS = {
    Kind.BOOL,
    Kind.DOUBLE,
    Kind.DURATION,
    Kind.INT,
    Kind.TIMESTAMP,
    Kind.UINT,
}


class SizeHints(Protocol):
    """What the caller knows of sizes."""

    def size(self, path: tuple[str, ...], type_: Type) -> Range | None:
        """Return the size of what a path leads to, None if nothing is known of it."""
        ...


class NoHints:
    """A caller that knows nothing."""

    def size(self, path: tuple[str, ...], type_: Type) -> Range | None:  # noqa: ARG002
        """Return None."""
        return None


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest size of a declared value and of what is inside it.

    `any_field` bounds fields that are not listed: those of a map whose keys are written as names.
    """

    size_max: int
    keys: Bound | None = None
    values: Bound | None = None
    fields: Mapping[str, Bound] = field(default_factory=dict)
    any_field: Bound | None = None

    def inside(self, step: str) -> Bound | None:
        """Return the bound of what one step of a path leads to."""
        if step in ("@items", "@values"):
            return self.values
        if step == "@keys":
            return self.keys
        return self.fields.get(step, self.any_field)


@dataclass(frozen=True, slots=True)
class DeclaredSizes:
    """Size hints from the bounds of variables."""

    variables: Mapping[str, Bound]

    def size(self, path: tuple[str, ...], type_: Type) -> Range | None:  # noqa: ARG002
        """Return the size of what a path leads to, None if no variable starts it."""
        bound = self.variables.get(path[0]) if path else None
        for step in path[1:]:
            if bound is None:
                return None
            bound = bound.inside(step)
        return None if bound is None else Range(0, bound.size_max)


class Path:
    """A path that grows as a Go slice does.

    The reference implementation appends to slices that share memory: of two paths that extend the
    same one, the later may overwrite the last step of the earlier. Estimates depend on it, so the
    same sharing is kept here: one list of steps belongs to all paths with the same beginning.
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
        """The steps as they are now."""
        return tuple(self._steps[: self._length])


@dataclass(frozen=True, slots=True)
class EntrySize:
    """The sizes of the entries of a container: of a list the key is the index."""

    is_list: bool
    key: Range
    value: Range


def key_size(entries: EntrySize | None) -> Range | None:
    """Return the size of the keys, None if unknown."""
    return None if entries is None else entries.key


def value_size(entries: EntrySize | None) -> Range | None:
    """Return the size of the values, None if unknown."""
    return None if entries is None else entries.value


def union_entries(first: EntrySize | None, second: EntrySize | None) -> EntrySize | None:
    """Return what covers both, None if either is unknown."""
    if first is None or second is None:
        return None
    return EntrySize(first.is_list, union(first.key, second.key), union(first.value, second.value))


def written_size(node: ast.Expr) -> Range | None:
    """Return the size of what is written out in the expression, None for anything else."""
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


def type_size(type_: Type) -> Range | None:
    """Return the size that all values of a type have, None if it varies."""
    if is_optional(type_):
        return type_size(type_.params[0])
    return exactly(1) if type_.kind in _SCALARS else None
