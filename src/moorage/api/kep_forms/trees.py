"""JSON trees, rewritten without mutation, and the notices of one rewrite.

Each function returns its input if nothing changed, and a copy of the changed path otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import is_not
from typing import NamedTuple

from moorage.api.field_path import Segment, render
from moorage.api.gates import Gates

# A JSON object. The values in it may have any type: they are not validated yet.
Tree = dict[str, object]
Segments = tuple[Segment, ...]


def replaced(tree: Tree, name: str, value: object) -> Tree:
    """Return the tree with a field set."""
    return tree if tree.get(name) is value else {**tree, name: value}


def renamed(tree: Tree, names: Mapping[str, str]) -> Tree:
    """Return the tree with fields renamed, in the same order."""
    if not any(name in tree for name in names):
        return tree
    return {names.get(name, name): value for name, value in tree.items()}


def without(tree: Tree, *names: str) -> Tree:
    """Return the tree without some fields."""
    if not any(name in tree for name in names):
        return tree
    return {name: value for name, value in tree.items() if name not in names}


def within(tree: Tree, names: tuple[str, ...], rewrite: Callable[[Tree], Tree]) -> Tree:
    """Return the tree with the object at a path rewritten, if it exists."""
    if not names:
        return rewrite(tree)
    inner = tree.get(names[0])
    if not isinstance(inner, dict):
        return tree
    return replaced(tree, names[0], within(inner, names[1:], rewrite))


def each(tree: Tree, name: str, rewrite: Callable[[Tree, int], Tree]) -> Tree:
    """Return the tree with the objects of a list field rewritten."""
    items = tree.get(name)
    if not isinstance(items, list):
        return tree
    copies = [rewrite(item, i) if isinstance(item, dict) else item for i, item in enumerate(items)]
    return {**tree, name: copies} if any(map(is_not, copies, items)) else tree


def objects(tree: Tree, name: str) -> Iterator[tuple[int, Tree]]:
    """Yield the objects of a list field with their positions."""
    items = tree.get(name)
    if isinstance(items, list):
        for position, item in enumerate(items):
            if isinstance(item, dict):
                yield position, item


def is_absent(tree: Tree, *names: str) -> bool:
    """Return whether all fields are absent; null is absent, as in Kubernetes' decoder."""
    return all(tree.get(name) is None for name in names)


class FormNotice(NamedTuple):
    """A fact and its path in the object."""

    segments: Segments
    message: str

    def __str__(self) -> str:
        return f"{render(self.segments)}: {self.message}"


class RewriteNotes:
    """The notices of one object, and what its rewriters need besides the tree.

    There is one warning for each form, at its first place: one for a slice of a hundred devices.
    """

    __slots__ = ("errors", "fits", "gates", "is_part", "version", "warnings")

    def __init__(
        self, *, version: str, gates: Gates, fits: bool = False, is_part: bool = False
    ) -> None:
        self.version = version
        self.is_part = is_part
        self.gates = gates
        self.fits = fits
        self.warnings: dict[str, FormNotice] = {}
        self.errors: list[FormNotice] = []

    def warn(self, form: str, segments: Segments, message: str) -> None:
        """Warn that the object uses a form, unless there is a warning already."""
        self.warnings.setdefault(form, FormNotice(segments, message))

    def fail(self, segments: Segments, message: str) -> None:
        """Report an error."""
        self.errors.append(FormNotice(segments, message))
