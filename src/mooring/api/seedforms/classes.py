"""DeviceClass: helpers in its selectors that only Mooring has."""

from __future__ import annotations

from mooring.api.seedforms.expressions import warn_of_selectors
from mooring.api.seedforms.notes import Notes
from mooring.api.seedforms.trees import Tree


def rewrite_class(tree: Tree, notes: Notes) -> Tree:
    """Return a DeviceClass as it is, its helpers noted."""
    spec = tree.get("spec")
    if isinstance(spec, dict):
        warn_of_selectors(spec, ("spec",), notes)
    return tree
