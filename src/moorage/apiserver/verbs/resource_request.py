"""ResourceRequest: a request as the verbs see it, and the decoding of its body.

Field validation: strict decoding errors (unknown and duplicate fields) are ignored, reported as
warnings, or refused, as `fieldValidation` says. Structs of foreign kinds declare only the fields
that Moorage uses; the tables of `patching` know all fields, so unknown ones are found by them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from msgspec import Struct, field

from moorage.api import protobuf
from moorage.api.codec import decode_tree, has_extra, parse_json, to_tree
from moorage.api.documents import CORE, KUBERNETES, Document
from moorage.api.documents.scalars import Schema
from moorage.api.errors import ApiError, DecodeError
from moorage.api.field_path import Place
from moorage.api.gates import Gates
from moorage.api.go_type_names import json_type
from moorage.api.go_types import go_words
from moorage.api.kinds import Kind
from moorage.api.object_reader import (
    UNKNOWN_FIELDS_MAX,
    ReadObject,
    read_document,
    read_json,
    read_tree,
    unknown_field,
)
from moorage.api.plain_reader import read_plain_json
from moorage.api.raw_json import holds_raw, keep_texts, remarshal
from moorage.api.structs import Open
from moorage.apiserver.auth.users import User
from moorage.apiserver.body_limits import check_items, check_values, read_documents
from moorage.apiserver.http.messages import JSON, Request, Target
from moorage.apiserver.http.negotiation import OBJECT_TYPES, YAML, Representation
from moorage.apiserver.http.status import (
    StatusError,
    bad_request,
    forbidden,
    too_large,
    unsupported_media,
    warned,
)
from moorage.apiserver.patching import manager_name, shapes
from moorage.apiserver.patching.shapes import Shape, find_shape
from moorage.apiserver.resources import Resource

SHOWN_MAX = 256
MANAGER_BYTES_MAX = 128
AGENT_LENGTH_MAX = 256  # of agents whose names are remembered
PLAIN_BYTES_MAX = 32 * 1024  # of options, bindings, reviews and the like

IGNORE, WARN, STRICT = "Ignore", "Warn", "Strict"
FIELD_VALIDATIONS = (IGNORE, STRICT, WARN)


class ResourceRequest(Struct, frozen=True):
    """A request for a resource."""

    target: Target
    resource: Resource
    user: User
    query: Mapping[str, str]
    agent: str = ""
    content_type: str = JSON
    body: bytes = b""
    form: Representation = Representation()
    warnings: list[str] = field(default_factory=list)  # of admission plugins
    annotate: Callable[[str, str], None] = lambda *_: None  # adds one to the audit event
    is_direct: bool = False  # of a client in this process, which encoded the body from a struct

    @property
    def kind(self) -> Kind:
        """The kind in the version of the request."""
        return self.resource.kinds[self.target.version]

    @property
    def manager(self) -> str:
        """The field manager of the request."""
        named = self.query.get("fieldManager", "")
        if len(named) > MANAGER_BYTES_MAX or len(self.agent) > AGENT_LENGTH_MAX:
            return _manager_of(named, self.agent)
        return _repeated_manager(named, self.agent)

    @property
    def is_dry_run(self) -> bool:
        """Whether the request stores nothing."""
        return self.query.get("dryRun", "") == "All"

    @property
    def field_validation(self) -> str:
        """Ignore, Warn or Strict: what strict decoding errors lead to."""
        return self.query.get("fieldValidation") or WARN

    def forbidden(self, value: Any, why: str) -> StatusError:
        """Return 403 Forbidden for an object of the request."""
        metadata = value.metadata
        return forbidden(self.resource.about, metadata.name or metadata.generate_name, why)


def _manager_of(named: str, agent: str) -> str:
    return manager_name(named, agent) or "unknown"


_repeated_manager = lru_cache(maxsize=256)(_manager_of)


class DecodedBody(Struct, frozen=True):
    """The object of a request, with warnings about its text."""

    value: Any
    warnings: tuple[str, ...] = ()


def read_body(request: ResourceRequest, *, gates: Gates, extensions: bool) -> DecodedBody:
    """Return the object of a request, or raise 400 if it cannot be decoded."""
    if extensions and request.content_type in ("", JSON):
        plain = read_plain_json(request.body, request.kind, is_from_struct=request.is_direct)
        if plain is not None and request.field_validation:  # which must be valid in any case
            return DecodedBody(plain)
    try:
        reading = _reading(request, gates=gates, extensions=extensions)
    except (ApiError, RecursionError) as error:
        raise bad_request(
            f'{request.kind.name} in version "{request.target.version}" cannot be handled as a '
            f"{request.kind.name}: {error}"
        ) from None
    return validated(reading, request)


def check_plain_size(request: ResourceRequest) -> None:
    """Raise 413 for a body that is larger than what is read on the event loop."""
    if len(request.body) > PLAIN_BYTES_MAX:
        raise too_large(PLAIN_BYTES_MAX)


def read_plain_tree(request: ResourceRequest, api_version: str, kind: str) -> Any:
    """Return the tree of a body that is not an object of the resource, such as DeleteOptions."""
    if not request.body:
        return {}
    check_plain_size(request)
    if request.is_direct:
        return parse_json(request.body)
    media = request.content_type.partition(";")[0].strip().lower() or JSON
    try:
        if media == protobuf.CONTENT_TYPE:
            return protobuf.decode(request.body, api_version=api_version, kind=kind).tree
        if media not in (JSON, YAML):
            raise unsupported_media(OBJECT_TYPES)
        documents = read_documents(request.body, "body", KUBERNETES)
    except (ApiError, RecursionError) as error:
        raise bad_request(f"the body of the request cannot be read: {error}") from None
    if len(documents) != 1 or not isinstance(documents[0].tree, dict):
        raise bad_request(f"the body of the request must be one {kind}")
    return documents[0].tree


def validated(reading: ReadObject, request: ResourceRequest) -> DecodedBody:
    """Return an object that passes the field validation of its request, or raise 400."""
    reading = _without_unknown(reading)
    strict = [remark.message for remark in reading.remarks if remark.is_strict]
    others = [remark.message for remark in reading.remarks if not remark.is_strict]
    mode = request.field_validation
    warnings = (*others, *(strict if mode == WARN else ()))
    with warned(warnings):
        if reading.problems:
            raise bad_request("; ".join(problem.message for problem in reading.problems))
        if strict and mode == STRICT:
            raise bad_request(
                f'{request.kind.name} in version "{request.target.version}" cannot be handled as a '
                f"{request.kind.name}: strict decoding error: {', '.join(strict)}"
            )
    return DecodedBody(reading.value, warnings)


def _without_unknown(reading: ReadObject) -> ReadObject:
    """Return a reading without unknown fields that an open struct kept."""
    kind = reading.kind
    shape = find_shape(kind.api_version, kind.name) if issubclass(kind.struct, Open) else None
    if shape is None or reading.problems or not has_extra(reading.value):
        return reading  # The tables have all fields that our structs declare.
    tree = to_tree(reading.value)
    places = list(islice(_unknown_fields(shape, tree), UNKNOWN_FIELDS_MAX))
    if not places:
        return reading
    struct: type[Any] = kind.struct
    value = decode_tree(without_places(tree, places), struct).value
    remarks = (*reading.remarks, *map(unknown_field, places))
    return reading._replace(value=value, remarks=remarks)


def _reading(request: ResourceRequest, *, gates: Gates, extensions: bool) -> ReadObject:
    if request.is_direct:
        return read_json(request.body, request.kind, extensions=extensions)
    media = request.content_type.partition(";")[0].strip().lower() or JSON
    if media == protobuf.CONTENT_TYPE:
        tree = with_type(protobuf.decode(request.body).tree, request)
        check_items(tree)
        return read_tree(tree, gates=gates, extensions=extensions)
    if media not in (JSON, YAML):
        raise unsupported_media(OBJECT_TYPES)
    document = read_one_document(request, CORE if extensions else KUBERNETES)
    with_type(document.tree, request)
    check_items(document.tree)
    if holds_raw(request.kind.struct):
        if media == JSON:
            keep_texts(document.tree, request.body)
        else:
            remarshal(document.tree)
    try:
        return read_document(document, gates=gates, extensions=extensions)
    except DecodeError as error:
        words = go_words(document.tree, request.kind.api_version, request.kind.name)
        raise DecodeError(words or str(error), error.place) from None


def read_one_document(request: ResourceRequest, schema: Schema) -> Document:
    """Return the document that a body is, or raise 400."""
    try:
        documents = read_documents(request.body, "body", schema)
    except (ApiError, RecursionError) as error:
        raise _unreadable(request, _fault(request.body) or str(error)) from None
    if len(documents) != 1:
        raise _unreadable(request, "one object is expected")
    return documents[0]


def _fault(body: bytes) -> str:
    """Return Go's message for truncated JSON; "" for other bodies."""
    try:
        check_values(body)
        json.loads(body)
    except json.JSONDecodeError as error:
        if error.pos >= len(error.doc.rstrip()):
            shown = error.doc[:SHOWN_MAX]
            return f"unexpected end of JSON input ({shown})"
    except (ApiError, ValueError, RecursionError):
        pass
    return ""


def _unreadable(request: ResourceRequest, why: str) -> StatusError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {request.kind.name}): "
        f"couldn't get version/kind; json parse error: {why}"
    )


def with_type(tree: Any, request: ResourceRequest) -> Any:
    """Return the tree with the apiVersion and kind of the URL, or raise that it has others."""
    if not isinstance(tree, dict):
        raise _unreadable(request, "not an object")
    kind = request.kind
    version, name = tree.get("apiVersion") or kind.api_version, tree.get("kind") or kind.name
    for place, value in (("apiVersion", version), ("kind", name)):
        if not isinstance(value, str):
            why = (
                f"json: cannot unmarshal {json_type(value)} into Go struct field .{place} of type "
            )
            raise _unreadable(request, f"{why}string")
    if name != kind.name:
        raise _wrong_kind(version, name, kind)
    if version != kind.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({kind.api_version})"
        )
    tree["apiVersion"], tree["kind"] = version, name
    return tree


def _wrong_kind(version: str, name: str, kind: Kind) -> StatusError:
    short = version.rpartition("/")[2]
    group = kind.group.partition(".")[0] or "core"
    return bad_request(
        f'{name} in version "{short}" cannot be handled as a {kind.name}: converting '
        f"({short}.{name}) to ({group}.{kind.name}): unknown conversion"
    )


# --- unknown fields ------------------------------------------------------------------------------


def _unknown_fields(shape: Shape, tree: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the places of fields that a shape does not have."""
    if shape is shapes.JSON or shape is shapes.DEDUCED:
        return
    if isinstance(tree, list) and shape.list is not None:
        for index, item in enumerate(tree):
            yield from _unknown_fields(shape.list.element, item, (*place, index))
    elif isinstance(tree, dict) and shape.map is not None:
        for name, value in tree.items():
            field = shape.map.fields.get(name)
            below = field.shape if field is not None else shape.map.element
            if below is None:
                yield (*place, name)
            else:
                yield from _unknown_fields(below, value, (*place, name))


def without_places(tree: Any, places: Iterable[Place]) -> Any:
    """Return a tree without some places; it shares everything else with the original."""
    for place in places:
        tree = _without(tree, place)
    return tree


def _without(tree: Any, place: Place) -> Any:
    first, *rest = place
    if isinstance(tree, list) and isinstance(first, int):
        return [_without(v, tuple(rest)) if i == first else v for i, v in enumerate(tree)]
    if not isinstance(tree, dict) or first not in tree:
        return tree
    if not rest:
        return {name: value for name, value in tree.items() if name != first}
    return {**tree, first: _without(tree[first], tuple(rest))}


# --- requests of clients --------------------------------------------------------------------------


def resource_request_of(
    request: Request, target: Target, resource: Resource, user: User
) -> ResourceRequest:
    """Return the request for a resource."""
    return ResourceRequest(
        target=target,
        resource=resource,
        user=user,
        query=request.query,
        agent=request.headers.get("user-agent", ""),
        content_type=request.headers.get("content-type", ""),
        body=request.body,
    )


def is_misplaced(target: Target, resource: Resource) -> bool:
    """Return whether a path has a namespace where there is none, or none where one is needed."""
    if resource.holds_namespaces:
        return False
    if resource.namespaced:
        return bool(target.name) and not target.namespace
    return bool(target.namespace)
