"""Patches of objects, and the managers of their fields: trees in, trees out.

patch               JSON patch, merge patch and strategic merge patch: apply_patch, read_applied
json_patch          the operations of JSON patch
strategic_lists     lists of strategic merge patches
field_manager       server-side apply, and the owners of fields after every other write
usual_writes        owners of fields after usual writes, without trees of whole objects
usual_applies       the same after an apply that only adds
updater             who owns which fields after a write; conflicts
managed_fields      metadata.managedFields, read and written
field_set           sets of field paths, as fieldsV1 has them
structured_merge    merges by the schema; structured_compare finds what changed
shapes              how the schema merges lists and maps
json_values         JSON trees, and values as Go prints them
errors              PatchError, which the server answers with
"""

from __future__ import annotations

from moorage.apiserver.patching.errors import PatchCause, PatchError
from moorage.apiserver.patching.field_manager import FieldManager, manager_name, with_times_kept
from moorage.apiserver.patching.patch import (
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
