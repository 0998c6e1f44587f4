"""An object in another version of its kind, with the shape that it has there."""

from __future__ import annotations

from typing import NamedTuple

from mooring.api.catalogue import CATALOGUE, from_hub, to_hub
from mooring.api.codec import decode_tree, to_tree
from mooring.apiserver.patching.shapes import Shape
from mooring.apiserver.patching.tables import find_shape
from mooring.apiserver.patching.values import Tree


class Typed(NamedTuple):
    """An object and its shape."""

    shape: Shape
    tree: Tree

    def with_tree(self, tree: Tree) -> Typed:
        """Return another object of the same shape."""
        return Typed(self.shape, tree)


def in_version(value: Typed, api_version: str) -> Typed | None:
    """Return the object in another version, or None if its kind has no such version."""
    tree = value.tree
    if not isinstance(tree, dict) or tree.get("apiVersion") == api_version:
        return value
    name = str(tree.get("kind"))
    shape = find_shape(api_version, name)
    if shape is None or (api_version, name) not in CATALOGUE:
        return None
    here = CATALOGUE.find(str(tree.get("apiVersion")), name)
    # Also where both versions are alike: what is written then is what a server would write, with
    # fields that are always there, which matters to what counts as present.
    converted = from_hub(to_hub(decode_tree(tree, here.struct).value, here), api_version)
    return Typed(shape, to_tree(converted))
