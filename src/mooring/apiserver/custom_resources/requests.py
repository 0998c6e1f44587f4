"""Requests for custom resources: served versions, and the objects in request bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any

from mooring.api.apiextensions import GROUP, TERMINATING
from mooring.api.codec import decode_tree, dotted
from mooring.api.documents import KUBERNETES
from mooring.api.errors import ApiError, DecodeError
from mooring.api.field_path import Place, root
from mooring.api.json_schema import plain_json
from mooring.api.meta import ObjectMeta
from mooring.api.object_reader import UNKNOWN_FIELDS_MAX, ReadObject, Remark, unknown_field
from mooring.apiserver.body_limits import check_items
from mooring.apiserver.http.messages import JSON, Response, StreamingResponse
from mooring.apiserver.http.negotiation import YAML
from mooring.apiserver.http.response_encoder import warning_headers
from mooring.apiserver.http.status import (
    About,
    bad_request,
    failure,
    internal,
    invalid,
    unsupported_media,
)
from mooring.apiserver.resources import Resource
from mooring.apiserver.verbs.resource_request import (
    DecodedBody,
    ResourceRequest,
    read_one_document,
    validated,
    with_type,
)
from mooring.apiserver.worker_threads import EXPRESSIONS_BYTES_MAX, WorkerThreads
from mooring.validation.custom_resources.definition import definition_of
from mooring.validation.custom_resources.pruning import pruned
from mooring.validation.errors import FieldError
from mooring.validation.errors import invalid as invalid_value
from mooring.validation.metadata import METADATA

BRANCHES_OF_A_SIZE = 16  # their validation takes about as long as everything else

_REVISION = METADATA.child("resourceVersion")
_HEAD = ("apiVersion", "kind", "metadata")


def has_only_json(resource: Resource) -> bool:
    """Return whether objects have no protobuf form, like custom resources and their definitions."""
    return resource.definition is not None or resource.group == GROUP


def check_served(resource: Resource, version: str, verb: str) -> None:
    """Raise an error if a version of a custom resource cannot be used."""
    definition = resource.definition
    if definition is None:
        return
    kind = resource.kinds[version]
    if definition.has_webhook and kind.api_version != kind.hub_version:
        stored = kind.hub_version.rpartition("/")[2]
        raise internal(
            f"conversion webhook for {kind.api_version}, Kind={kind.name} failed: this server "
            f"calls no conversion webhooks; use version {stored}"
        )
    if verb == "create" and definition.given.is_true(TERMINATING):
        words = f"{verb} not allowed while custom resource definition is terminating"
        raise failure(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", words)


def with_deprecation(
    response: Response | StreamingResponse, resource: Resource, version: str
) -> Response | StreamingResponse:
    """Return a response with the warning of a deprecated version."""
    definition = resource.definition
    if definition is None or isinstance(response, StreamingResponse):
        return response
    given = definition.versions[version].given
    if not given.deprecated:
        return response
    kind = resource.kinds[version]
    words = given.deprecation_warning or f"{kind.api_version} {kind.name} is deprecated"
    return response._replace(headers=(*response.headers, *warning_headers((words,))))


def about_refused(request: ResourceRequest, errors: Sequence[FieldError]) -> About:
    """Return what a refused object is called: by its store if no revision is named, as there."""
    about = request.resource.about
    if request.resource.definition is None or errors[0].path != _REVISION:
        return about
    return About(about.plural, about.plural, about.group)


def strategy_lane(
    workers: WorkerThreads, request: ResourceRequest, size: int
) -> tuple[Callable[..., Any], int]:
    """Return where the strategy of a custom resource runs: off the event loop for expressions.

    A value that many branches of a schema validate counts as larger than it is.
    """
    version = definition_of(request.kind).version(request.kind.api_version)
    if version.has_rules or not version.is_compiled:
        return workers.run_expressions, max(size, EXPRESSIONS_BYTES_MAX + 1)
    return workers.run, size * (1 + version.branches // BRANCHES_OF_A_SIZE)


# --- bodies ---------------------------------------------------------------------------------------


def read_custom_body(request: ResourceRequest) -> DecodedBody:
    """Return the object of a request without fields that its schema lacks, or raise 400."""
    media = request.content_type.partition(";")[0].strip().lower() or JSON
    if media not in (JSON, YAML):
        raise unsupported_media((JSON, YAML))
    try:
        document = read_one_document(request, KUBERNETES)
        _check_kind(document.tree, request)
        tree = with_type(document.tree, request)
        check_items(tree)
        places = (found.segments for found in document.duplicates)
        return read_custom_tree(tree, request, places)
    except (ApiError, RecursionError) as error:
        kind = request.kind
        raise bad_request(
            f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: {error}'
        ) from None


def _check_kind(tree: Any, request: ResourceRequest) -> None:
    """Raise 422 for an object of another kind."""
    wanted, found = request.kind.name, tree.get("kind") if isinstance(tree, dict) else None
    if not found or not isinstance(found, str) or found == wanted:
        return
    metadata = tree.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    about = About(request.resource.plural, found, request.resource.group)
    raise invalid(about, str(name or ""), [invalid_value(root("kind"), found, f"must be {wanted}")])


def read_custom_tree(
    tree: dict[str, Any], request: ResourceRequest, duplicates: Iterable[Place] = ()
) -> DecodedBody:
    """Return the object of a tree; the request decides how unknown fields are handled."""
    kind = request.kind
    try:
        metadata, unknown = decode_tree(tree.get("metadata") or {}, ObjectMeta)
    except ApiError as error:
        raise DecodeError(f"metadata: {error}", ("metadata",)) from None
    places: list[Place] = []
    content = plain_json({name: each for name, each in tree.items() if name not in _HEAD})
    schema = definition_of(kind).version(kind.api_version).structural
    content = pruned(content, schema, places)
    places += [("metadata", *place) for place in unknown]
    remarks = [
        Remark(place, f'duplicate field "{dotted(place)}"', is_strict=True) for place in duplicates
    ]
    remarks += [unknown_field(place) for place in sorted(places, key=dotted)[:UNKNOWN_FIELDS_MAX]]
    struct: type[Any] = kind.struct
    value = struct(api_version=kind.api_version, kind=kind.name, metadata=metadata, content=content)
    return validated(ReadObject(kind, value, tuple(remarks)), request)
