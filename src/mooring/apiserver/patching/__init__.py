"""Patches of objects, and the managers of their fields: trees in, trees out.

    apply_patch     JSON patch, merge patch and strategic merge patch
    FieldManager    server-side apply, and the owners of fields after every other write
    read_applied    the body of an apply
    manager_name    who writes
    with_times_kept the live object, if a write changed nothing but times
    PatchError      why something was refused, as the server answers it

What lists and maps mean is in `tables`: one table a group, from the Go types of Kubernetes.
"""

from __future__ import annotations

from mooring.apiserver.patching.errors import PatchCause, PatchError
from mooring.apiserver.patching.field_manager import FieldManager, manager_name, with_times_kept
from mooring.apiserver.patching.patch import (
    APPLY_PATCH,
    CONTENT_TYPES,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    apply_patch,
    read_applied,
)

__all__ = [
    "APPLY_PATCH",
    "CONTENT_TYPES",
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_MERGE_PATCH",
    "FieldManager",
    "PatchCause",
    "PatchError",
    "apply_patch",
    "manager_name",
    "read_applied",
    "with_times_kept",
]
