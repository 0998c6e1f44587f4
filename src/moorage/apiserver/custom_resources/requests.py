"""Requests for custom resources: served versions, and the objects in request bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from moorage.api.apiextensions import GROUP, TERMINATING
from moorage.api.built_in_kinds import deprecation_of
from moorage.api.codec import decode_tree, dotted
from moorage.api.documents import KUBERNETES
from moorage.api.errors import ApiError, DecodeError
from moorage.api.field_path import Place, root
from moorage.api.json_schema import plain_json
from moorage.api.meta import ObjectMeta
from moorage.api.object_reader import (
    UNKNOWN_FIELDS_MAX,
    ReadObject,
    duplicate_field,
    unknown_field,
)
from moorage.apiserver.body_limits import check_items
from moorage.apiserver.http.messages import JSON, Response, StreamingResponse
from moorage.apiserver.http.negotiation import YAML
from moorage.apiserver.http.response_encoder import warning_headers
from moorage.apiserver.http.status import (
    About,
    bad_request,
    failure,
    internal,
    invalid,
    unsupported_media,
)
from moorage.apiserver.resources import Resource
from moorage.apiserver.verbs.resource_request import (
    SHOWN_MAX,
    DecodedBody,
    ResourceRequest,
    read_one_document,
    validated,
    with_type,
)
from moorage.apiserver.worker_threads import EXPRESSIONS_BYTES_MAX, WorkerThreads
from moorage.validation.custom_resources.definition import definition_of
from moorage.validation.custom_resources.pruning import pruned
from moorage.validation.errors import FieldError
from moorage.validation.errors import invalid as invalid_value
from moorage.validation.metadata import METADATA

SUMMARY_MAX = 30  # characters of a body that an error shows
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


def deprecation(resource: Resource, version: str) -> tuple[str, ...]:
    """Return the warning for whoever uses a deprecated version."""
    kind, definition = resource.kinds[version], resource.definition
    if definition is None:
        words = deprecation_of(kind)
        return (words,) if words else ()
    given = definition.versions[version].given
    if not given.deprecated:
        return ()
    return (given.deprecation_warning or f"{kind.api_version} {kind.name} is deprecated",)


def with_warnings(
    response: Response | StreamingResponse, warnings: tuple[str, ...]
) -> Response | StreamingResponse:
    """Return a response with warnings before its own, each once."""
    if not warnings or isinstance(response, StreamingResponse):
        return response
    added = warning_headers(warnings)
    others = tuple(header for header in response.headers if header not in added)
    place = next((i for i, (name, _) in enumerate(others) if name == "Warning"), len(others))
    return response._replace(headers=(*others[:place], *added, *others[place:]))


def about_refused(request: ResourceRequest, errors: Sequence[FieldError]) -> About:
    """Return what a refused object is called: by its store if no revision is named, as there."""
    about, first = request.resource.about, errors[0]
    if first.path != _REVISION or first.bad_value != 0:
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
        _check_type(document.tree, request)
        tree = with_type(document.tree, request)
        check_items(tree)
        places = (found.segments for found in document.duplicates)
        return read_custom_tree(tree, request, places)
    except (ApiError, RecursionError) as error:
        kind = request.kind
        raise bad_request(
            f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: {error}'
        ) from None


def _check_type(tree: Any, request: ResourceRequest) -> None:
    """Raise 400 for an object without type, and 422 for one of another kind."""
    if not isinstance(tree, dict):
        return
    wanted, found = request.kind.name, tree.get("kind")
    if not found:
        shown = msgspec.json.encode(tree).decode()
        raise bad_request(
            f"the object provided is unrecognized (must be of type {wanted}): "
            f"Object 'Kind' is missing in '{shown[:SHOWN_MAX]}' ({_summary(shown)})"
        )
    if not tree.get("apiVersion"):
        version = request.kind.api_version
        raise bad_request(
            f"the API version in the data () does not match the expected API version ({version})"
        )
    if not isinstance(found, str) or found == wanted:
        return
    metadata = tree.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    about = About(request.resource.plural, found, request.resource.group)
    raise invalid(about, str(name or ""), [invalid_value(root("kind"), found, f"must be {wanted}")])


def _summary(text: str) -> str:
    """Return the beginning of a body, as Kubernetes shows it in errors."""
    return text if len(text) <= SUMMARY_MAX else f"{text[:SUMMARY_MAX]} ..."


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
    remarks = [duplicate_field(place) for place in duplicates]
    remarks += [unknown_field(place) for place in sorted(places, key=dotted)[:UNKNOWN_FIELDS_MAX]]
    struct: type[Any] = kind.struct
    value = struct(api_version=kind.api_version, kind=kind.name, metadata=metadata, content=content)
    return validated(ReadObject(kind, value, tuple(remarks)), request)
