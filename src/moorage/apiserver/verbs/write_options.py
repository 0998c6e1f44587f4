"""Options in the query of a write: dryRun, fieldManager, fieldValidation and force."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.field_path import root
from moorage.api.names import byte_length
from moorage.apiserver.http.status import About, invalid
from moorage.apiserver.patching import APPLY_PATCH
from moorage.apiserver.verbs.resource_request import FIELD_VALIDATIONS, ResourceRequest
from moorage.validation.errors import (
    ErrorList,
    forbidden,
    not_supported,
    required,
    too_long,
)
from moorage.validation.field_rules import each_invalid
from moorage.validation.metadata import MANAGER_MAX_BYTES, unprintable_characters

_KINDS = {
    "create": "CreateOptions",
    "update": "UpdateOptions",
    "patch": "PatchOptions",
    "delete": "DeleteOptions",
    "deletecollection": "DeleteOptions",
}
_DELETIONS = ("delete", "deletecollection")


def check_write_options(request: ResourceRequest, verb: str) -> None:
    """Raise 422 if a write has options that do not exist or contradict each other."""
    kind = _KINDS.get(verb)
    if kind is None or (not request.query.keys() & _CHECKED and verb != "patch"):
        return
    found = _validate_dry_run(request.query)
    if verb not in _DELETIONS:
        found = _validate_manager(request.query) + found + _validate_strictness(request.query)
    if verb == "patch":
        found = _validate_force(request) + found
    if found:
        raise invalid(About(kind.lower(), kind, "meta.k8s.io"), "", found)


_CHECKED = {"dryRun", "fieldManager", "fieldValidation"}


def _validate_force(request: ResourceRequest) -> ErrorList:
    if request.content_type.partition(";")[0].strip() != APPLY_PATCH:
        is_given = "force" in request.query
        detail = "may not be specified for non-apply patch"
        return [forbidden(root("force"), detail)] if is_given else []
    if request.query.get("fieldManager"):
        return []
    return [required(root("fieldManager"), "is required for apply patch")]


def _validate_manager(query: Mapping[str, str]) -> ErrorList:
    path, name = root("fieldManager"), query.get("fieldManager", "")
    found = each_invalid(path, name, unprintable_characters(name))
    return [too_long(path, MANAGER_MAX_BYTES)] if byte_length(name) > MANAGER_MAX_BYTES else found


def _validate_dry_run(query: Mapping[str, str]) -> ErrorList:
    wanted = query.get("dryRun", "")
    return [] if wanted in ("", "All") else [not_supported(root("dryRun"), [wanted], ("All",))]


def _validate_strictness(query: Mapping[str, str]) -> ErrorList:
    wanted = query.get("fieldValidation", "")
    allowed = ("", *FIELD_VALIDATIONS)
    return [] if wanted in allowed else [not_supported(root("fieldValidation"), wanted, allowed)]
