"""Lists of which the order says nothing: sets and maps of custom resources.

Kubernetes compares them by their elements, or by the keys of their elements. Joining two keeps each
element once: of a map, the right side's in the place of the left side's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Identity = Callable[[Any], Any]  # of an element: what makes it the same as another


class UnorderedList(list[Any]):
    """A list whose elements have identities; only the identities of a map are their keys."""

    __slots__ = ("identity",)

    def __init__(self, elements: Iterable[Any], identity: Identity) -> None:
        super().__init__(elements)
        self.identity = identity

    def __add__(self, other: Any) -> Any:
        joined = {self.identity(each): each for each in self}
        joined.update((self.identity(each), each) for each in other)
        return UnorderedList(joined.values(), self.identity)


def unordered_pairs(a: Any, b: Any) -> Iterator[tuple[Any, Any]] | None:
    """Return the elements that have to be equal, or None if one has no counterpart."""
    identity = (a if isinstance(a, UnorderedList) else b).identity
    here = {identity(each): each for each in a}
    there = {identity(each): each for each in b}
    if here.keys() != there.keys():
        return None
    return iter([(each, there[key]) for key, each in here.items()])
