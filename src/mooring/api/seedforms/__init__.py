"""The forms in which the KEPs and the concept page write objects, brought to what 1.37 ships.

`rewrite` works on plain JSON before it is decoded. It changes what has a shipped form, warns of
what is an extension of Mooring, and leaves alone what it does not understand: the decoder says
better what is wrong with it. The given tree is never changed; an object that uses no such form is
given back itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mooring.api.gates import Gates
from mooring.api.seedforms.claims import rewrite_claim, rewrite_template
from mooring.api.seedforms.classes import rewrite_class
from mooring.api.seedforms.notes import Notes, Notice
from mooring.api.seedforms.podgroups import rewrite_pod_group
from mooring.api.seedforms.pods import rewrite_pod
from mooring.api.seedforms.poolstatus import is_slashed_driver_name, rewrite_pool_status_request
from mooring.api.seedforms.quotas import rewrite_quota
from mooring.api.seedforms.slices import rewrite_slice
from mooring.api.seedforms.taintrules import rewrite_taint_rule
from mooring.api.seedforms.trees import Tree

__all__ = ["Notice", "Rewritten", "is_slashed_driver_name", "rewrite"]

_REWRITERS: dict[tuple[str, str], Callable[[Tree, Notes], Tree]] = {
    ("", "Pod"): rewrite_pod,
    ("", "ResourceQuota"): rewrite_quota,
    ("resource.k8s.io", "DeviceClass"): rewrite_class,
    ("resource.k8s.io", "DeviceTaintRule"): rewrite_taint_rule,
    ("resource.k8s.io", "ResourceClaim"): rewrite_claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): rewrite_template,
    ("resource.k8s.io", "ResourcePoolStatusRequest"): rewrite_pool_status_request,
    ("resource.k8s.io", "ResourceSlice"): rewrite_slice,
    ("scheduling.k8s.io", "PodGroup"): rewrite_pod_group,
    ("scheduling.k8s.io", "Workload"): rewrite_pod_group,
}


class Rewritten(NamedTuple):
    """An object in its shipped form, and what is to be said about the form it came in."""

    tree: Tree
    warnings: tuple[Notice, ...] = ()
    errors: tuple[Notice, ...] = ()


def rewrite(tree: Tree, *, gates: Gates, fits: bool = False, is_part: bool = False) -> Rewritten:
    """Return the object in its shipped form; the same object where it has that already.

    `fits` says that the tree is known to have only fields, and types, that its kind has. Then
    slices, which are many and large, are not searched for forms that would not fit. `is_part` says
    that it is a patch: what it does not have is not missing.
    """
    version, kind = tree.get("apiVersion"), tree.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return Rewritten(tree)
    group, _, version = version.rpartition("/")
    rewriter = _REWRITERS.get((group, kind))
    if rewriter is None:
        return Rewritten(tree)
    notes = Notes(version=version, gates=gates, fits=fits, is_part=is_part)
    shipped = rewriter(tree, notes)
    return Rewritten(shipped, tuple(notes.warnings.values()), tuple(notes.errors))
