"""What requests may say in their query, by verb."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]


def _query(name: str, kind: str, description: str) -> Tree:
    return {
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"type": kind, "uniqueItems": True},
    }


_DRY_RUN = _query("dryRun", "string", "All if nothing is to be stored.")
_MANAGER = _query("fieldManager", "string", "Who owns the fields that are written.")
_VALIDATION = _query(
    "fieldValidation", "string", "Ignore, Warn or Strict: what becomes of unknown fields."
)
_FORCE = _query("force", "boolean", "Whether an apply takes fields from other owners.")
_GRACE = _query("gracePeriodSeconds", "integer", "Seconds until the object is gone.")
_ORPHAN = _query("orphanDependents", "boolean", "Older form of propagationPolicy.")
_PROPAGATION = _query(
    "propagationPolicy", "string", "Orphan, Background or Foreground: what becomes of dependents."
)
_VERSION = _query("resourceVersion", "string", "Version of the store to start from.")
_VERSION_MATCH = _query(
    "resourceVersionMatch", "string", "Exact or NotOlderThan: how the version is meant."
)
_LABELS = _query("labelSelector", "string", "Labels that objects must have.")
_FIELDS = _query("fieldSelector", "string", "Values that fields of objects must have.")
_LIMIT = _query("limit", "integer", "Objects to send at most.")
_CONTINUE = _query("continue", "string", "Token of the part before.")
_TIMEOUT = _query("timeoutSeconds", "integer", "Seconds after which the answer ends.")
_WATCH = _query("watch", "boolean", "Whether to send changes as they happen.")
_BOOKMARKS = _query("allowWatchBookmarks", "boolean", "Whether a watch sends bookmarks.")
_INITIAL = _query(
    "sendInitialEvents", "boolean", "Whether a watch begins with what is there already."
)

PRETTY = _query("pretty", "string", "Whether the answer is indented.")

_LIST = (
    _BOOKMARKS,
    _CONTINUE,
    _FIELDS,
    _LABELS,
    _LIMIT,
    _VERSION,
    _VERSION_MATCH,
    _INITIAL,
    _TIMEOUT,
    _WATCH,
)
_DELETE = (_DRY_RUN, _GRACE, _ORPHAN, _PROPAGATION)

PARAMETERS: dict[str, tuple[Tree, ...]] = {
    "get": (),
    "list": _LIST,
    "post": (_DRY_RUN, _MANAGER, _VALIDATION),
    "put": (_DRY_RUN, _MANAGER, _VALIDATION),
    "patch": (_DRY_RUN, _MANAGER, _VALIDATION, _FORCE),
    "delete": _DELETE,
    "deletecollection": (
        _CONTINUE,
        _DRY_RUN,
        _FIELDS,
        _GRACE,
        _LABELS,
        _LIMIT,
        _ORPHAN,
        _PROPAGATION,
        _VERSION,
        _VERSION_MATCH,
        _INITIAL,
        _TIMEOUT,
    ),
}


def path_parameter(name: str, description: str) -> Tree:
    """Return a part of a path that requests fill in."""
    return {
        "name": name,
        "in": "path",
        "description": description,
        "required": True,
        "schema": {"type": "string", "uniqueItems": True},
    }
