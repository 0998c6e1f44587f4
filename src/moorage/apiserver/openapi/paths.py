"""The paths of a version of a group, what may be done there, and the parameters of queries.

# action: what Kubernetes calls an operation (x-kubernetes-action)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from moorage.api.kinds import Kind
from moorage.apiserver.openapi import schemas
from moorage.apiserver.patching import CONTENT_TYPES, STRATEGIC_MERGE_PATCH
from moorage.apiserver.resources import Resource, Review, Subresource, subresource_of

# --- parameters of queries ---------------------------------------------------------------------


Tree = dict[str, Any]


def _query(name: str, kind: str, description: str) -> Tree:
    return {
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"type": kind, "uniqueItems": True},
    }


_DRY_RUN = _query("dryRun", "string", "All for a dry run, which stores nothing.")
_MANAGER = _query("fieldManager", "string", "Name of the field manager.")
_VALIDATION = _query(
    "fieldValidation", "string", "Ignore, Warn or Strict: how unknown fields are handled."
)
_FORCE = _query("force", "boolean", "Whether an apply takes fields over from other managers.")
_GRACE = _query("gracePeriodSeconds", "integer", "Seconds before the object is deleted.")
_ORPHAN = _query("orphanDependents", "boolean", "Deprecated form of propagationPolicy.")
_PROPAGATION = _query(
    "propagationPolicy", "string", "Orphan, Background or Foreground: what happens to dependents."
)
_VERSION = _query("resourceVersion", "string", "Resource version to start from.")
_VERSION_MATCH = _query(
    "resourceVersionMatch", "string", "Exact or NotOlderThan: how resourceVersion applies."
)
_LABELS = _query("labelSelector", "string", "Selector by labels.")
_FIELDS = _query("fieldSelector", "string", "Selector by fields.")
_LIMIT = _query("limit", "integer", "Maximum number of objects.")
_CONTINUE = _query("continue", "string", "Token of the previous page.")
_TIMEOUT = _query("timeoutSeconds", "integer", "Timeout of the request in seconds.")
_WATCH = _query("watch", "boolean", "Whether to watch for changes.")
_BOOKMARKS = _query("allowWatchBookmarks", "boolean", "Whether a watch sends bookmarks.")
_INITIAL = _query(
    "sendInitialEvents", "boolean", "Whether a watch begins with the existing objects."
)

PRETTY = _query("pretty", "string", "Whether the output is indented.")

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


# --- operations --------------------------------------------------------------------------------


_ANSWERS = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")
_STREAMS = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")

# Each verb in a path of one object: its method, action and part of the operation's id.
_OF_ONE = {
    "get": ("get", "get", "read"),
    "update": ("put", "put", "replace"),
    "delete": ("delete", "delete", "delete"),
    "patch": ("patch", "patch", "patch"),
}
_OF_MANY = {
    "list": ("get", "list", "list"),
    "create": ("post", "post", "create"),
    "deletecollection": ("delete", "deletecollection", "deleteCollection"),
}
_DONE = {
    "read": "Read one object",
    "list": "List or watch objects",
    "create": "Create an object",
    "replace": "Replace an object",
    "patch": "Change some fields of an object",
    "delete": "Delete an object",
    "deleteCollection": "Delete many objects",
}


class _PathInfo(NamedTuple):
    """A path, and the subject of its operations."""

    tag: str  # group and version in CamelCase, for the ids of operations
    label: str  # of the kind and the part, likewise
    gvk: Tree
    component: str  # the type of bodies and responses
    patches: tuple[str, ...] = CONTENT_TYPES  # the media types of patches


def paths_of(
    group: str, version: str, resources: Iterable[Resource], reviews: Iterable[Review]
) -> dict[str, Tree]:
    """Return what may be done in a version of a group, by path."""
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    paths: dict[str, Tree] = {}
    for resource in resources:
        paths.update(_resource_paths(base, resource, resource.kinds[version]))
    for review in reviews:
        paths.update(_review_paths(base, review))
    return dict(sorted(paths.items()))


def _resource_paths(base: str, resource: Resource, kind: Kind) -> Iterator[tuple[str, Tree]]:
    inner = f"{base}/namespaces/{{namespace}}" if kind.namespaced else base
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.name}
    component = schemas.component_of(kind)
    scope = "Namespaced" if kind.namespaced else ""
    patches: tuple[str, ...] = CONTENT_TYPES
    if resource.definition is not None:  # kubectl looks here for how to patch.
        patches = tuple(each for each in patches if each != STRATEGIC_MERGE_PATCH)
    tag, label = _tag(kind.group, kind.version), f"{scope}{kind.name}"
    place = _PathInfo(tag, label, gvk, component, patches)
    verbs = resource.verbs
    many = {verb: _OF_MANY[verb] for verb in _OF_MANY if verb in verbs}
    one = {verb: _OF_ONE[verb] for verb in _OF_ONE if verb in verbs}
    path = f"{inner}/{resource.plural}"
    yield path, _operations(place, many, _shared(kind.namespaced))
    if kind.namespaced and "list" in verbs:
        everywhere = place._replace(label=f"{kind.name}ForAllNamespaces")
        listing = _operations(everywhere, {"list": _OF_MANY["list"]}, [])
        yield f"{base}/{resource.plural}", listing
    if one:
        yield f"{path}/{{name}}", _operations(place, one, _shared(kind.namespaced, kind.name))
    for name in sorted(resource.subresources_in(kind.version)):
        shared = _shared(kind.namespaced, kind.name)
        yield f"{path}/{{name}}/{name}", _part_operations(place, name, subresource_of(name), shared)


def _part_operations(place: _PathInfo, name: str, part: Subresource, shared: list[Tree]) -> Tree:
    verbs = {verb: _OF_ONE[verb] for verb in _OF_ONE if verb in part.verbs}
    if "create" in part.verbs:
        verbs["create"] = _OF_MANY["create"]
    if part.kind:
        component = schemas.RAW  # of another group, which this document does not describe
        gvk = {**place.gvk, "kind": part.kind}
        if part.group:
            gvk = {"group": part.group, "version": part.version, "kind": part.kind}
        place = place._replace(gvk=gvk, component=component)
    label = f"{place.label}{name.capitalize()}"
    return _operations(place._replace(label=label), verbs, shared)


def _review_paths(base: str, review: Review) -> Iterator[tuple[str, Tree]]:
    inner = f"{base}/namespaces/{{namespace}}" if review.namespaced else base
    gvk = {"group": review.group, "version": review.version, "kind": review.kind}
    component = f"{schemas.package_of(review.group, review.version)}.{review.kind}"
    scope = "Namespaced" if review.namespaced else ""
    place = _PathInfo(_tag(review.group, review.version), f"{scope}{review.kind}", gvk, component)
    verbs = {"create": _OF_MANY["create"]}
    yield f"{inner}/{review.plural}", _operations(place, verbs, _shared(review.namespaced))


def _tag(group: str, version: str) -> str:
    words = (group.removesuffix(".k8s.io") or "core").split(".")
    return "".join(word.capitalize() for word in (*words, version))


def _shared(namespaced: bool, kind: str = "") -> list[Tree]:
    """Return the parameters that all operations of a path have."""
    shared = [path_parameter("name", f"Name of the {kind}.")] if kind else []
    if namespaced:
        shared.append(path_parameter("namespace", "Namespace of the object."))
    return [*shared, PRETTY]


def _operations(
    place: _PathInfo, verbs: dict[str, tuple[str, str, str]], shared: list[Tree]
) -> Tree:
    found = {
        method: _operation(place, method, action, word) for method, action, word in verbs.values()
    }
    return {**found, "parameters": shared or [PRETTY]}


def _operation(place: _PathInfo, method: str, action: str, word: str) -> Tree:
    tree: Tree = {
        "description": f"{_DONE[word]}: {place.gvk['kind']}.",
        "operationId": _operation_id(place, word),
        "parameters": PARAMETERS[action if action in PARAMETERS else method],
    }
    if (body := _body(place, action)) is not None:
        tree["requestBody"] = body
    answer = f"{place.component}List" if action == "list" else place.component
    if action in ("delete", "deletecollection"):
        answer = schemas.STATUS
    types = _ANSWERS + (_STREAMS if action == "list" else ())
    tree["responses"] = {"200": _answer(answer, types), "401": {"description": "Unauthorized"}}
    return {**tree, "x-kubernetes-action": action, "x-kubernetes-group-version-kind": place.gvk}


def _operation_id(place: _PathInfo, word: str) -> str:
    verb, is_collection, _ = word.partition("Collection")
    return f"{verb}{place.tag}{is_collection}{place.label}"


def _body(place: _PathInfo, action: str) -> Tree | None:
    """Return the body of a request."""
    match action:
        case "post" | "put":
            schema = {"schema": schemas.reference(place.component)}
            return {"content": {"*/*": schema}, "required": True}
        case "patch":
            schema = {"schema": schemas.reference(schemas.PATCH)}
            return {"content": dict.fromkeys(place.patches, schema), "required": True}
        case "delete" | "deletecollection":
            return {"content": {"*/*": {"schema": schemas.reference(schemas.DELETE_OPTIONS)}}}
    return None


def _answer(component: str, types: tuple[str, ...]) -> Tree:
    schema = {"schema": schemas.reference(component)}
    return {"description": "OK", "content": dict.fromkeys(types, schema)}
