"""DeviceTaintRule: selecting by class and by CEL, which Kubernetes had until 1.34 and Mooring
still honours."""

from __future__ import annotations

from mooring.api.seedforms.expressions import warn_of_selectors
from mooring.api.seedforms.notes import Notes
from mooring.api.seedforms.trees import Tree, is_absent

_EXTENSIONS = {"deviceClassName": "a class", "selectors": "CEL"}


def rewrite_taint_rule(tree: Tree, notes: Notes) -> Tree:
    """Return a DeviceTaintRule as it is, its extensions noted."""
    spec = tree.get("spec")
    selector = spec.get("deviceSelector") if isinstance(spec, dict) else None
    if not isinstance(selector, dict):
        return tree
    at = ("spec", "deviceSelector")
    for field, means in _EXTENSIONS.items():
        if not is_absent(selector, field):
            notes.warn(
                f"taint rule {field}",
                (*at, field),
                f"selecting devices by {means} is an extension of Mooring: "
                "Kubernetes 1.37 selects by driver, pool and device",
            )
    warn_of_selectors(selector, at, notes)
    return tree
