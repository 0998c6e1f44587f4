"""Forms of objects in the KEPs and on the concept page, rewritten to what Kubernetes 1.37 ships.

`rewrite` works on JSON before it is decoded. It rewrites everything that has a released form, warns
about extensions of Moorage, and leaves unknown content alone, because the decoder reports that
better. It never changes its argument; an object without such a form is returned itself.

claims       ResourceClaim and ResourceClaimTemplate
other_kinds  ResourceSlice, and kinds with a form or two
trees        JSON trees, and the notices of one rewrite
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from moorage.api.gates import Gates
from moorage.api.kep_forms.claims import is_shipped_claim, rewrite_claim, rewrite_template
from moorage.api.kep_forms.other_kinds import (
    is_shipped_slice,
    is_slashed_driver_name,
    rewrite_class,
    rewrite_pod,
    rewrite_pod_group,
    rewrite_pool_status_request,
    rewrite_quota,
    rewrite_slice,
    rewrite_taint_rule,
)
from moorage.api.kep_forms.trees import FormNotice, RewriteNotes, Tree
from moorage.api.resource import v1

__all__ = [
    "FormNotice",
    "RewrittenForm",
    "is_shipped_object",
    "is_slashed_driver_name",
    "is_surely_shipped",
    "rewrite",
]

_REWRITERS: dict[tuple[str, str], Callable[[Tree, RewriteNotes], Tree]] = {
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

# An object that fits its kind has no form of a KEP if its text has none of these words. Kinds
# without words must be searched.
_WORDS: dict[tuple[str, str], tuple[bytes, ...]] = {
    ("", "Pod"): (b"extendedResourceClaimStatus",),
    ("resource.k8s.io", "ResourceClaim"): (b"selectors", b"derivedAttributes", b"constraints"),
}


def is_surely_shipped(text: bytes, group: str, kind: str) -> bool:
    """Return whether JSON text that fits its kind surely has no form of a KEP."""
    which = (group, kind)
    if which not in _REWRITERS:
        return True
    words = _WORDS.get(which)
    return words is not None and not any(word in text for word in words)


# The same can be seen in the objects themselves, of kinds that dumps have thousands of.
_OBJECTS: dict[type, Callable[[Any], bool]] = {
    v1.ResourceClaim: is_shipped_claim,
    v1.ResourceSlice: is_shipped_slice,
}


def is_shipped_object(value: Any) -> bool:
    """Return whether an object surely was in its shipped form when it was read."""
    judge = _OBJECTS.get(type(value))
    return judge is not None and judge(value)


class RewrittenForm(NamedTuple):
    """An object in its shipped form, and notices about its original form."""

    tree: Tree
    warnings: tuple[FormNotice, ...] = ()
    errors: tuple[FormNotice, ...] = ()


def rewrite(
    tree: Tree, *, gates: Gates, fits: bool = False, is_part: bool = False
) -> RewrittenForm:
    """Return the object in its shipped form; the same object if it has that already.

    `fits` means that the tree has only fields and types of its kind. Then slices, which are many
    and large, are not searched for forms that would not fit. `is_part` means that it is a patch,
    from which fields may be absent.
    """
    version, kind = tree.get("apiVersion"), tree.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return RewrittenForm(tree)
    group, _, version = version.rpartition("/")
    rewriter = _REWRITERS.get((group, kind))
    if rewriter is None:
        return RewrittenForm(tree)
    notes = RewriteNotes(version=version, gates=gates, fits=fits, is_part=is_part)
    shipped = rewriter(tree, notes)
    return RewrittenForm(shipped, tuple(notes.warnings.values()), tuple(notes.errors))
