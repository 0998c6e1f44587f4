"""Patches of objects, and who owns their fields: trees in, trees out.

    apply_patch     JSON patch, merge patch and strategic merge patch
    FieldManager    server-side apply, and the owners of fields after every other write
    read_applied    the body of an apply
    manager_name    who writes
    with_times_kept the live object, if a write changed nothing but times
    PatchError      why something was refused, as the server answers it

What lists and maps mean is in `tables`: one table a group, from the Go types of Kubernetes.
"""

from __future__ import annotations

from mooring.apiserver.patching.door import (
    APPLY_PATCH,
    CONTENT_TYPES,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    apply_patch,
    read_applied,
)
from mooring.apiserver.patching.errors import Cause, PatchError
from mooring.apiserver.patching.owning import FieldManager
from mooring.apiserver.patching.owning.fieldmanager import with_times_kept
from mooring.apiserver.patching.owning.managername import manager_name

__all__ = [
    "APPLY_PATCH",
    "CONTENT_TYPES",
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_MERGE_PATCH",
    "Cause",
    "FieldManager",
    "PatchError",
    "apply_patch",
    "manager_name",
    "read_applied",
    "with_times_kept",
]
