"""Pod: the status of extended resources under the names of KEP-5004."""

from __future__ import annotations

from mooring.api.seedforms.notes import Notes
from mooring.api.seedforms.trees import Tree, each, is_absent, renamed, within, without

_AT = ("status", "extendedResourceClaimStatus")


def rewrite_pod(tree: Tree, notes: Notes) -> Tree:
    """Return a Pod in its shipped form."""
    return within(tree, _AT, lambda status: _status(status, notes))


def _status(status: Tree, notes: Notes) -> Tree:
    if isinstance(status.get("requestMapping"), list) and is_absent(status, "requestMappings"):
        notes.warn(
            "request mapping",
            (*_AT, "requestMapping"),
            'stored as "requestMappings", the name that Kubernetes 1.37 has',
        )
        status = without(status, "requestMappings")
        status = renamed(status, {"requestMapping": "requestMappings"})
    return each(status, "requestMappings", lambda mapping, i: _mapping(mapping, i, notes))


def _mapping(mapping: Tree, position: int, notes: Notes) -> Tree:
    if "extendedResourceName" not in mapping or "resourceName" in mapping:
        return mapping
    notes.warn(
        "mapped resource name",
        (*_AT, "requestMappings", position, "extendedResourceName"),
        'stored as "resourceName", the name that Kubernetes 1.37 has',
    )
    return renamed(mapping, {"extendedResourceName": "resourceName"})
