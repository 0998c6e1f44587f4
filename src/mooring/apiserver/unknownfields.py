"""Fields that a kind does not have, where our structs keep what they do not declare.

Of kinds that others own we declare the fields that we use; the tables of patching know them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mooring.api.codec import Place
from mooring.apiserver.patching import shapes
from mooring.apiserver.patching.shapes import Shape


def unknown_places(shape: Shape, tree: Any, place: Place = ()) -> Iterator[Place]:
    """Return where a tree has fields that its shape does not have."""
    if shape is shapes.JSON or shape is shapes.DEDUCED:
        return
    if isinstance(tree, list) and shape.list is not None:
        for index, item in enumerate(tree):
            yield from unknown_places(shape.list.element, item, (*place, index))
    elif isinstance(tree, dict) and shape.map is not None:
        for name, value in tree.items():
            field = shape.map.fields.get(name)
            below = field.shape if field is not None else shape.map.element
            if below is None:
                yield (*place, name)
            else:
                yield from unknown_places(below, value, (*place, name))


def without_places(tree: Any, places: Iterable[Place]) -> Any:
    """Return a tree without what is at some places; nothing else of it is copied."""
    for place in places:
        tree = _without(tree, place)
    return tree


def _without(tree: Any, place: Place) -> Any:
    first, *rest = place
    if isinstance(tree, list) and isinstance(first, int):
        return [_without(v, tuple(rest)) if i == first else v for i, v in enumerate(tree)]
    if not isinstance(tree, dict) or first not in tree:
        return tree
    if not rest:
        return {name: value for name, value in tree.items() if name != first}
    return {**tree, first: _without(tree[first], tuple(rest))}
