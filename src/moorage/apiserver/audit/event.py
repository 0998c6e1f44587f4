"""Audit events: lines of the audit log, in the form of audit.k8s.io/v1.

A request leaves a note at once; the thread of the log builds the event later, because decoding
bodies takes time.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from moorage.api import protobuf
from moorage.api.documents import CORE, read
from moorage.api.errors import ApiError
from moorage.api.timestamp import Timestamp
from moorage.apiserver.audit.policy import LEVEL_NAMES, AuditLevel
from moorage.apiserver.auth.access import RequestAttributes
from moorage.apiserver.auth.users import User

BODY_BYTES_MAX: Final = 1024 * 1024
TEXT_LENGTH_MAX: Final = 4096
TRUNCATED: Final = "audit.k8s.io/truncated"

Tree = dict[str, Any]


class AuditBody(Struct, frozen=True):
    """The body of a request or response."""

    data: bytes
    content_type: str


class AuditNote(Struct, frozen=True):
    """The facts about a request at a stage."""

    level: AuditLevel
    stage: str
    audit_id: str
    uri: str
    asked: RequestAttributes
    user: User | None
    received: Timestamp
    noted: Timestamp
    source: str = ""
    agent: str = ""
    annotations: tuple[tuple[str, str], ...] = ()
    code: int = 0  # of the response; 0: there is none yet
    request: AuditBody | None = None
    response: AuditBody | None = None
    omits_managed_fields: bool = False

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        bodies = (self.request, self.response)
        size = 1000 + sum(len(text) for _, text in self.annotations)
        return size + sum(len(body.data) for body in bodies if body is not None)


class AuditEvent(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An event, with its fields in Kubernetes' order."""

    kind: str
    api_version: str
    level: str
    audit_id: str = msgspec.field(name="auditID")
    stage: str
    request_uri: str = msgspec.field(name="requestURI")
    verb: str
    user: Tree
    request_received_timestamp: str
    stage_timestamp: str
    impersonated_user: Tree | UnsetType = UNSET
    source_ips: list[str] | UnsetType = msgspec.field(default=UNSET, name="sourceIPs")
    user_agent: str | UnsetType = UNSET
    object_ref: Tree | UnsetType = UNSET
    response_status: Tree | UnsetType = UNSET
    request_object: Any = UNSET
    response_object: Any = UNSET
    annotations: dict[str, str] | UnsetType = UNSET


def line_of(note: AuditNote) -> bytes:
    """Return the event of a note as one line of JSON, whatever the bodies are."""
    bodies = _Bodies(note)
    actor = note.user.actor if note.user is not None else None
    line = AuditEvent(
        kind="Event",
        api_version="audit.k8s.io/v1",
        level=LEVEL_NAMES[note.level],
        audit_id=note.audit_id,
        stage=note.stage,
        request_uri=_short(note.uri),
        verb=note.asked.verb,
        user=_user(actor or note.user),
        impersonated_user=UNSET if actor is None else _user(note.user),
        source_ips=[note.source] if note.source else UNSET,
        user_agent=_short(note.agent) or UNSET,
        object_ref=_reference(note.asked, bodies.sent),
        response_status=_status(note, bodies) if note.code else UNSET,
        request_object=UNSET if note.level < AuditLevel.REQUEST else bodies.request,
        response_object=UNSET if note.level < AuditLevel.REQUEST_RESPONSE else bodies.response,
        request_received_timestamp=_time(note.received),
        stage_timestamp=_time(note.noted),
        annotations=dict((*note.annotations, *bodies.annotations)) or UNSET,
    )
    return msgspec.json.encode(line) + b"\n"


class _Bodies:
    """The bodies of a note as trees, if they can be decoded and are not too large."""

    def __init__(self, note: AuditNote) -> None:
        self.annotations: tuple[tuple[str, str], ...] = ()
        self._omits = note.omits_managed_fields
        # The request body has the name of a created object.
        self.sent = self._tree(note.request, is_noted=note.level >= AuditLevel.REQUEST)
        is_noted = note.level >= AuditLevel.REQUEST_RESPONSE
        self.answered = self._tree(note.response, is_noted=is_noted)
        self.request = UNSET if self.sent is None else self.sent
        self.response = UNSET if self.answered is None else self.answered

    def _tree(self, body: AuditBody | None, *, is_noted: bool) -> Any:
        if body is None or not body.data:
            return None
        if len(body.data) > BODY_BYTES_MAX:
            self.annotations = ((TRUNCATED, "true"),) if is_noted else self.annotations
            return None
        tree = _read(body)
        return _without_managers(tree) if self._omits else tree


def _read(body: AuditBody) -> Any:
    media = body.content_type.partition(";")[0].strip().lower()
    try:
        if media == protobuf.CONTENT_TYPE:
            return protobuf.decode(body.data).tree
        if media.endswith("yaml"):
            documents = list(read(body.data, source="body", schema=CORE))
            return documents[0].tree if len(documents) == 1 else None
        return msgspec.json.decode(body.data)
    except (ApiError, msgspec.MsgspecError, RecursionError, ValueError):
        return None  # the request is refused, and its event says why


def _without_managers(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    changed = dict(tree)
    if isinstance(metadata := tree.get("metadata"), dict):
        changed["metadata"] = {k: v for k, v in metadata.items() if k != "managedFields"}
    if isinstance(items := tree.get("items"), list):
        changed["items"] = [_without_managers(item) for item in items]
    return changed


def _user(user: User | None) -> Tree:
    if user is None:
        return {}
    tree: Tree = {"username": user.name}
    if user.uid:
        tree["uid"] = user.uid
    if user.groups:
        tree["groups"] = list(user.groups)
    if user.extra:
        tree["extra"] = {key: list(values) for key, values in user.extra.items()}
    return tree


def _reference(asked: RequestAttributes, sent: Any) -> Tree | UnsetType:
    if not asked.resource:
        return UNSET
    metadata = sent.get("metadata") if isinstance(sent, dict) else None
    known = metadata if isinstance(metadata, dict) else {}
    parts = {
        "resource": asked.resource,
        "namespace": asked.namespace,
        "name": asked.name or known.get("name"),
        "uid": known.get("uid"),
        "apiGroup": asked.group,
        "apiVersion": asked.version,
        "resourceVersion": known.get("resourceVersion"),
        "subresource": asked.subresource,
    }
    return {key: value for key, value in parts.items() if value and isinstance(value, str)}


def _status(note: AuditNote, bodies: _Bodies) -> Tree:
    status: Tree = {"metadata": {}}
    answered = bodies.answered
    if note.code >= 400 and isinstance(answered, dict) and answered.get("kind") == "Status":
        for key in ("status", "message", "reason", "details"):
            if answered.get(key):
                status[key] = answered[key]
    status["code"] = note.code
    return status


def _time(moment: Timestamp) -> str:
    return moment.instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _short(text: str) -> str:
    return text if len(text) <= TEXT_LENGTH_MAX else f"{text[:TEXT_LENGTH_MAX]}…"
