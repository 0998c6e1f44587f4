"""Components that every document has: scalars with a form of their own, options and statuses."""

from __future__ import annotations

from typing import Any

from mooring.api.kinds import Kind
from mooring.apiserver.openapi import names

Tree = dict[str, Any]

API_VERSION = {
    "description": "Group and version of what the object is written in.",
    "type": "string",
}
KIND = {"description": "Name of what the object is, in CamelCase.", "type": "string"}


def _struct(description: str, /, *, required: tuple[str, ...] = (), **properties: Tree) -> Tree:
    tree: Tree = {"description": description, "type": "object"}
    if required:
        tree["required"] = list(required)
    return {**tree, "properties": properties} if properties else tree


def _text(description: str) -> Tree:
    return {"description": description, "type": "string"}


def _whole(description: str, digits: int = 32) -> Tree:
    return {"description": description, "type": "integer", "format": f"int{digits}"}


def _flag(description: str) -> Tree:
    return {"description": description, "type": "boolean"}


def _part(description: str, component: str) -> Tree:
    return {"description": description, "allOf": [names.reference(component)]}


SCALARS: dict[str, Tree] = {
    names.QUANTITY: {
        "description": (
            "A number with a suffix for its magnitude: decimal (n, u, m, k, M, G, T, P, E), "
            "binary (Ki, Mi, Gi, Ti, Pi, Ei), or an exponent such as e3."
        ),
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    names.TIME: {
        "description": "An instant as RFC 3339 writes it, to the second.",
        "type": "string",
        "format": "date-time",
    },
    names.MICRO_TIME: {
        "description": "An instant as RFC 3339 writes it, to the microsecond.",
        "type": "string",
        "format": "date-time",
    },
    names.INT_OR_STRING: {
        "description": "A whole number, or a text such as a name or a percentage.",
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    names.FIELDS: {"description": "A set of fields, as a tree of their names.", "type": "object"},
    names.RAW: {"description": "JSON of any shape.", "type": "object"},
}

COMPONENTS: dict[str, Tree] = {
    **SCALARS,
    names.PATCH: {"description": "A change to an object.", "type": "object"},
    names.LIST_META: {
        "description": "Where a list stands in the history of the store, and where it goes on.",
        "type": "object",
        "properties": {
            "continue": _text("Token that gets the next part; empty at the end."),
            "remainingItemCount": _whole("How many more objects there are after this part.", 64),
            "resourceVersion": _text("Version of the store that the list was taken from."),
            "selfLink": _text("No longer set."),
        },
    },
    names.PRECONDITIONS: _struct(
        "What must be so of an object for it to be deleted.",
        uid=_text("The object's identity."),
        resourceVersion=_text("The object's version."),
    ),
    names.DELETE_OPTIONS: _struct(
        "How an object is deleted.",
        apiVersion=API_VERSION,
        kind=KIND,
        dryRun={
            "description": "All if nothing is to be stored.",
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "atomic",
        },
        gracePeriodSeconds=_whole("Seconds until the object is gone; 0 for at once.", 64),
        orphanDependents=_flag("Older form of propagationPolicy."),
        preconditions=_part("What must be so of the object.", names.PRECONDITIONS),
        propagationPolicy=_text("Orphan, Background or Foreground: what becomes of dependents."),
    ),
    names.STATUS_CAUSE: _struct(
        "One thing that is wrong.",
        field=_text("The field that it is about."),
        message=_text("What is wrong, for people."),
        reason=_text("What is wrong, for programs."),
    ),
    names.STATUS_DETAILS: _struct(
        "What an answer is about.",
        causes={
            "description": "All that is wrong.",
            "type": "array",
            "items": names.reference(names.STATUS_CAUSE),
            "x-kubernetes-list-type": "atomic",
        },
        group=_text("Group of the object."),
        kind=_text("Resource or kind of the object."),
        name=_text("Name of the object."),
        retryAfterSeconds=_whole("Seconds after which trying again makes sense."),
        uid=_text("Identity of the object."),
    ),
    names.STATUS: _struct(
        "The answer to a request that returns no object.",
        apiVersion=API_VERSION,
        code=_whole("HTTP status."),
        details=_part("What the answer is about.", names.STATUS_DETAILS),
        kind=KIND,
        message=_text("The answer, for people."),
        metadata=_part("Metadata of the answer.", names.LIST_META),
        reason=_text("The answer in one word, for programs."),
        status=_text("Success or Failure."),
    ),
}


def list_of(kind: Kind, component: str) -> Tree:
    """Return the schema of a list of objects."""
    tree = _struct(
        f"Objects of kind {kind.name}.",
        required=("items",),
        apiVersion=API_VERSION,
        items={
            "description": "The objects.",
            "type": "array",
            "items": names.reference(component),
        },
        kind=KIND,
        metadata=_part("Where the list stands.", names.LIST_META),
    )
    gvk = [{"group": kind.group, "kind": f"{kind.name}List", "version": kind.version}]
    return {**tree, "x-kubernetes-group-version-kind": gvk}
