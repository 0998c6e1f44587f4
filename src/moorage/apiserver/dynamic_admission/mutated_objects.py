"""Applies the changes of mutating policies and webhooks: patches, decodes and defaults objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from moorage.apiserver.custom_resources.requests import read_custom_body
from moorage.apiserver.dynamic_admission.attributes import Attributes, ResourceEndpoint
from moorage.apiserver.http.messages import JSON
from moorage.apiserver.http.status import StatusError, internal, unavailable
from moorage.apiserver.patching.errors import PatchRefused
from moorage.apiserver.patching.json_patch import json_patch
from moorage.apiserver.patching.json_values import Tree
from moorage.apiserver.patching.shapes import Relation, Shape, shape_of_kind
from moorage.apiserver.patching.structured_compare import ShapeError, check
from moorage.apiserver.patching.structured_merge import merge
from moorage.apiserver.verbs.resource_request import read_body
from moorage.validation.registry import defaulted_hub
from moorage.validation.strategy import Context

_TEST_FAILED = "test failed"


class MutationError(Exception):
    """An object cannot be changed as requested."""


def take_tree(
    attributes: Attributes, endpoint: ResourceEndpoint, tree: Any, *, is_strict: bool
) -> bool:
    """Replace the object of a request with a changed tree and its defaults; return if it differs.

    Raises 500 for a tree that is not an object of its kind or, with `is_strict`, has unknown
    fields. Custom objects lose unknown fields, because Kubernetes has no type to check them
    against.
    """
    server, before = attributes.server, attributes.new
    if isinstance(before, dict) or not _is_stored(attributes, endpoint):
        attributes.replace(tree)  # the body of a request that is not stored
        return bool(tree != before)
    is_custom = attributes.request.resource.definition is not None
    request = replace(
        attributes.request,
        target=attributes.request.target._replace(version=endpoint.version),
        query={"fieldValidation": "Strict" if is_strict and not is_custom else "Ignore"},
        content_type=JSON,
        body=msgspec.json.encode(tree),
        is_direct=False,
    )
    try:
        if is_custom:
            body = read_custom_body(request)
        else:
            body = read_body(request, gates=server.gates, extensions=server.extensions)
    except StatusError as error:
        raise internal(error.status.message) from None
    context = Context(gates=server.gates, now=server.now(), extensions=server.extensions)
    attributes.replace(defaulted_hub(body.value, request.kind, context))
    return bool(attributes.new != before)


def _is_stored(attributes: Attributes, endpoint: ResourceEndpoint) -> bool:
    """Return whether a request has an object of its resource, and not of a subresource."""
    kind = attributes.request.resource.kinds.get(endpoint.version)
    return kind is not None and (kind.api_version, kind.name) == (
        endpoint.api_version,
        endpoint.kind,
    )


def patched_tree(tree: Any, operations: list[dict[str, Any]]) -> Any | None:
    """Return a tree after a JSON patch, or None if a `test` failed; raises MutationError."""
    try:
        return json_patch(tree, operations)
    except PatchRefused as refused:
        detail = refused.error.detail or refused.error.message
        if detail.endswith(_TEST_FAILED):
            return None
        raise MutationError(detail) from None


def shape_for(attributes: Attributes, endpoint: ResourceEndpoint) -> Shape:
    """Return how to merge objects of an endpoint, or raise 503 if that is unknown."""
    kind = attributes.request.resource.kinds.get(endpoint.version)
    shape = None if kind is None else shape_of_kind(kind)
    if shape is None:
        where = f"{endpoint.kind_group}/{endpoint.kind_version}, Kind={endpoint.kind}"
        raise unavailable(
            f"Resource kind {where} not found. There can be a delay between when "
            "CustomResourceDefinitions are created and when they are available."
        )
    return shape


def applied_tree(
    shape: Shape, endpoint: ResourceEndpoint, live: Any, applied: dict[str, Any]
) -> Any:
    """Return a tree with an apply configuration merged in; raises MutationError."""
    applied = {**applied, "apiVersion": endpoint.api_version, "kind": endpoint.kind}
    try:
        check(shape, applied)
    except ShapeError as error:
        fact = f"failed to convert patch object to typed object: {error}"
        raise MutationError(f"error applying patch: {fact}") from None
    if atomics := list(_atomics(shape, applied)):
        raise MutationError(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps "
            f"or structs: {', '.join(atomics)}"
        )
    return merge(shape, live, applied)


def _atomics(shape: Shape, value: Tree, place: str = "") -> Iterator[str]:
    """Yield the paths of atomic lists, maps and structs, which a partial change would replace."""
    if isinstance(value, dict) and shape.map is not None:
        if shape.map.is_atomic:
            yield place
        for name, item in value.items():
            declared = shape.map.fields.get(name)
            if declared is not None:
                yield from _atomics(declared.shape, item, f"{place}.{name}")
    elif isinstance(value, list) and shape.list is not None:
        if shape.list.relation is Relation.ATOMIC:
            yield place
        for number, item in enumerate(value):
            yield from _atomics(shape.list.element, item, f"{place}[{number}]")
