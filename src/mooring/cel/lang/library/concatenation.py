"""Lists that are two others, one after the other, without a copy.

`a + b` has a fixed price whatever the lengths are. Were it a copy, an expression of a few hundred
characters could double a list until no memory holds it, and a loop that adds one element at a
time would take the square of its length. Short lists are copied all the same: that is faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, SupportsIndex, overload

from mooring.cel.lang.numbers import fitting_int
from mooring.cel.lang.values import EvalError

COPIED_MAX: Final = 128
# What is longer is walked through but never held as one list; nobody can pay for all of it.
FLAT_MAX: Final = 4_000_000

AnyList = list[Any] | tuple[Any, ...]


def concatenated(first: AnyList, second: AnyList) -> AnyList:
    """Return the elements of both."""
    if not second:
        return first
    if not first:
        return second
    if len(first) + len(second) <= COPIED_MAX:
        return [*first, *second]
    return Concatenation(first, second)


class Concatenation(list[Any]):
    """A list that looks up its elements in two others; it becomes one list when it is used.

    As a list of Python's it is empty: all that reads its elements is defined here.
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
