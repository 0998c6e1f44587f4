"""Changing JSON trees without touching them: each function gives its input back where nothing
changed, and a copy of the changed path where something did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import is_not

# A JSON object. Whatever lies below it may have any shape: nobody has validated it yet.
Tree = dict[str, object]


def replaced(tree: Tree, name: str, value: object) -> Tree:
    """Return the tree with a field set."""
    return tree if tree.get(name) is value else {**tree, name: value}


def renamed(tree: Tree, names: Mapping[str, str]) -> Tree:
    """Return the tree with fields renamed, in the same order."""
    if not any(name in tree for name in names):
        return tree
    return {names.get(name, name): value for name, value in tree.items()}


def without(tree: Tree, *names: str) -> Tree:
    """Return the tree less some fields."""
    if not any(name in tree for name in names):
        return tree
    return {name: value for name, value in tree.items() if name not in names}


def within(tree: Tree, names: tuple[str, ...], rewrite: Callable[[Tree], Tree]) -> Tree:
    """Return the tree with the object below these fields rewritten, if there is one."""
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
    """Give the objects of a list field with their positions."""
    items = tree.get(name)
    if isinstance(items, list):
        for position, item in enumerate(items):
            if isinstance(item, dict):
                yield position, item


def is_absent(tree: Tree, *names: str) -> bool:
    """Whether none of the fields is there; null is absence, as for Kubernetes' decoder."""
    return all(tree.get(name) is None for name in names)
