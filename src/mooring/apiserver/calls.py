"""A request as the verbs see it: what it is about, who asks, and how to read its body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from msgspec import Struct

from mooring.api import protobuf
from mooring.api.codec import decode_tree, has_extra, to_tree
from mooring.api.documents import CORE, KUBERNETES, Document, read
from mooring.api.documents.schemas import Schema
from mooring.api.errors import ApiError, DecodeError
from mooring.api.gates import Gates
from mooring.api.kinds import Kind
from mooring.api.raw_fields import holds_raw
from mooring.api.raw_json import keep_texts, remarshal
from mooring.api.reading import (
    UNKNOWN_FIELDS_MAX,
    Reading,
    read_document,
    read_tree,
    unknown_field,
)
from mooring.api.structs import Open
from mooring.api.typed_json import go_words
from mooring.apiserver.negotiation import JSON, OBJECT_TYPES, YAML, Form
from mooring.apiserver.patching import manager_name
from mooring.apiserver.patching.tables import find_shape
from mooring.apiserver.paths import Target
from mooring.apiserver.resources import Resource
from mooring.apiserver.status import StatusError, bad_request, unsupported_media, warned
from mooring.apiserver.unknownfields import unknown_places, without_places

SHOWN_MAX = 256
MANAGER_BYTES_MAX = 128
DELETE_OPTIONS = "DeleteOptions"

IGNORE, WARN, STRICT = "Ignore", "Warn", "Strict"


class User(NamedTuple):
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}
    actor: User | None = None  # who acts as this user, if somebody else does


class Call(Struct, frozen=True):
    """A request for a resource."""

    target: Target
    resource: Resource
    user: User
    query: Mapping[str, str]
    agent: str = ""
    content_type: str = JSON
    body: bytes = b""
    form: Form = Form()

    @property
    def kind(self) -> Kind:
        """The kind in the version that was asked for."""
        return self.resource.kinds[self.target.version]

    @property
    def manager(self) -> str:
        """Who owns the fields that the request sets."""
        named = self.query.get("fieldManager", "")
        if len(named.encode()) > MANAGER_BYTES_MAX or not named.isprintable():
            raise bad_request(
                "fieldManager: Invalid value: not printable, or longer than 128 bytes"
            )
        return manager_name(named, self.agent) or "unknown"

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        wanted = self.query.get("dryRun", "")
        if wanted not in ("", "All"):
            raise bad_request(f'invalid dryRun: must be "All", not "{wanted[:32]}"')
        return wanted == "All"

    @property
    def field_validation(self) -> str:
        """What happens to fields that the kind does not have."""
        wanted = self.query.get("fieldValidation") or WARN
        if wanted not in (IGNORE, WARN, STRICT):
            raise bad_request(
                f'invalid fieldValidation: "{wanted[:32]}" is none of Ignore, Strict, Warn'
            )
        return wanted


class Body(NamedTuple):
    """The object of a request, and what there is to say of its text."""

    value: Any
    warnings: tuple[str, ...] = ()


def read_body(call: Call, *, gates: Gates, extensions: bool) -> Body:
    """Return the object that a request brings, or raise why it cannot be read."""
    try:
        reading = _reading(call, gates=gates, extensions=extensions)
    except (ApiError, RecursionError) as error:
        raise bad_request(
            f'{call.kind.name} in version "{call.target.version}" cannot be handled as a '
            f"{call.kind.name}: {error}"
        ) from None
    return checked(reading, call)


def read_plain_tree(call: Call, api_version: str, kind: str) -> Any:
    """Return the tree of a body that is no object of the resource, such as options; {} if none."""
    if not call.body:
        return {}
    media = call.content_type.partition(";")[0].strip().lower() or JSON
    try:
        if media == protobuf.CONTENT_TYPE:
            return protobuf.decode(call.body, api_version=api_version, kind=kind).tree
        if media not in (JSON, YAML):
            raise unsupported_media(OBJECT_TYPES)
        documents = list(read(call.body, source="body", schema=KUBERNETES))
    except (ApiError, RecursionError) as error:
        raise bad_request(f"the body of the request cannot be read: {error}") from None
    if len(documents) != 1 or not isinstance(documents[0].tree, dict):
        raise bad_request(f"the body of the request must be one {kind}")
    return documents[0].tree


def checked(reading: Reading, call: Call) -> Body:
    """Return an object whose text is as strict as the request wants it."""
    reading = _without_unknown(reading)
    strict = [remark.message for remark in reading.remarks if remark.is_strict]
    others = [remark.message for remark in reading.remarks if not remark.is_strict]
    mode = call.field_validation
    warnings = (*others, *(strict if mode == WARN else ()))
    with warned(warnings):
        if reading.problems:
            raise bad_request("; ".join(problem.message for problem in reading.problems))
        if strict and mode == STRICT:
            raise bad_request(
                f'{call.kind.name} in version "{call.target.version}" cannot be handled as a '
                f"{call.kind.name}: strict decoding error: {', '.join(strict)}"
            )
    return Body(reading.value, warnings)


def _without_unknown(reading: Reading) -> Reading:
    """Return a reading without the fields that the kind does not have, and that our struct kept."""
    kind = reading.kind
    shape = find_shape(kind.api_version, kind.name) if issubclass(kind.struct, Open) else None
    if shape is None or reading.problems or not has_extra(reading.value):
        return reading  # The tables have all fields that our structs declare.
    tree = to_tree(reading.value)
    places = list(islice(unknown_places(shape, tree), UNKNOWN_FIELDS_MAX))
    if not places:
        return reading
    struct: type[Any] = kind.struct
    value = decode_tree(without_places(tree, places), struct).value
    remarks = (*reading.remarks, *map(unknown_field, places))
    return reading._replace(value=value, remarks=remarks)


def _reading(call: Call, *, gates: Gates, extensions: bool) -> Reading:
    media = call.content_type.partition(";")[0].strip().lower() or JSON
    if media == protobuf.CONTENT_TYPE:
        tree = protobuf.decode(call.body).tree
        return read_tree(typed(tree, call), gates=gates, extensions=extensions)
    if media not in (JSON, YAML):
        raise unsupported_media(OBJECT_TYPES)
    document = _document(call, CORE if extensions else KUBERNETES)
    typed(document.tree, call)
    if holds_raw(call.kind.struct):
        if media == JSON:
            keep_texts(document.tree, call.body)
        else:
            remarshal(document.tree)
    try:
        return read_document(document, gates=gates, extensions=extensions)
    except DecodeError as error:
        words = go_words(document.tree, call.kind.api_version, call.kind.name)
        raise DecodeError(words or str(error), error.place) from None


def _document(call: Call, schema: Schema) -> Document:
    try:
        documents = list(read(call.body, source="body", schema=schema))
    except (ApiError, RecursionError) as error:
        raise _unreadable(call, _fault(call.body) or str(error)) from None
    if len(documents) != 1:
        raise _unreadable(call, "one object is expected")
    return documents[0]


def _fault(body: bytes) -> str:
    """Return why a body is no JSON, as Go says it of what ends too soon."""
    try:
        json.loads(body)
    except json.JSONDecodeError as error:
        if error.pos >= len(error.doc.rstrip()):
            shown = error.doc[:SHOWN_MAX]
            return f"unexpected end of JSON input ({shown})"
    except (ValueError, RecursionError):
        pass
    return ""


def _unreadable(call: Call, why: str) -> StatusError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {call.kind.name}): "
        f"couldn't get version/kind; json parse error: {why}"
    )


def typed(tree: Any, call: Call) -> Any:
    """Return the tree as being of the kind that the URL names; another one is refused."""
    if not isinstance(tree, dict):
        raise _unreadable(call, "not an object")
    kind = call.kind
    version, name = tree.get("apiVersion") or kind.api_version, tree.get("kind") or kind.name
    if name != kind.name:
        raise _wrong_kind(str(version), str(name), kind)
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
