"""Validation: decoding, defaulting, dropping and rules, against Kubernetes' API server code.

P counts lines in which the outcome, the stored object and the set of (field, type) of the errors
are equal. Detail texts are counted apart, in a figure above the last line.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from conformance.runner import Case, Outcome, Suite, compared
from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_json, encode_json
from moorage.api.errors import DecodeError, GateError
from moorage.api.gates import Gates
from moorage.api.kinds import Kind
from moorage.api.object_reader import ReadObject, read_json
from moorage.api.timestamp import Timestamp
from moorage.validation.registry import (
    GENERATED_SUFFIX,
    RegistryResult,
    before_create,
    before_status_update,
    before_update,
    defaulted_hub,
)
from moorage.validation.strategy import Context, DriverRefusal

NOW = Timestamp(datetime(2031, 7, 9, 11, 13, 17, tzinfo=UTC))


class _Line(msgspec.Struct):
    """The parts of a line that must be read from their own text."""

    object: msgspec.Raw
    old: msgspec.Raw


def _forbidden(name: str, verb: str, subresource: str, scope: str) -> str:
    return (
        f'resourceclaims.resource.k8s.io{name} is forbidden: User "oracle" cannot {verb} resource '
        f'"resourceclaims/{subresource}" in API group "resource.k8s.io" {scope}: denied by oracle'
    )


class _Denying:
    """An authorizer that denies the named subresources."""

    def __init__(self, denied: Iterable[str], namespace: str) -> None:
        self._denied = set(denied)
        self._namespace = namespace

    def refuse_binding(self) -> str | None:
        if "binding" not in self._denied:
            return None
        return _forbidden("", "update", "binding", "at the cluster scope")

    def refuse_driver(self, driver: str, *, node: str | None) -> DriverRefusal | None:  # noqa: ARG002
        if "driver" not in self._denied:
            return None
        scope = f'in the namespace "{self._namespace}"'
        verb = "arbitrary-node:update"
        return DriverRefusal((verb,), _forbidden(f' "{driver}"', verb, "driver", scope))


def open_suite() -> Suite:
    """Return the suite."""
    return ValidationSuite()


class ValidationSuite(Suite):
    """The suite of validation/*.jsonl."""

    def __init__(self) -> None:
        self._lines_with_details = 0
        self._lines_with_equal_details = 0
        self._warnings = [0, 0]

    def fits(self, case: Case) -> bool:
        """Return whether the case is one of validation."""
        return case.id.startswith("val-")

    def compare(self, case: Case) -> Outcome:
        """Compare the outcome, the stored object and the places and types of errors."""
        expected = case.fields["expect"]
        actual = answer(case)
        self._count_details(expected, actual)
        self._count_warnings(expected, actual)
        return compared(_essence(expected), _essence(actual))

    def figures(self) -> Iterable[str]:
        """Return how many texts are equal."""
        equal, total = self._lines_with_equal_details, self._lines_with_details
        yield f"detail texts: {equal}/{total} lines with errors equal"
        equal, total = self._warnings
        yield f"warnings and unknown fields: {equal}/{total} lines equal"

    def _count_details(self, expected: dict[str, Any], actual: dict[str, Any]) -> None:
        if not expected["errors"]:
            return
        self._lines_with_details += 1
        self._lines_with_equal_details += _details(expected) == _details(actual)

    def _count_warnings(self, expected: dict[str, Any], actual: dict[str, Any]) -> None:
        wanted, got = _warnings(expected), _warnings(actual)
        if wanted or got:
            self._warnings[1] += 1
            self._warnings[0] += wanted == got


def answer(case: Case) -> dict[str, Any]:
    """Return our answer to a case, in the form of the recorded one."""
    line = msgspec.json.decode(case.line, type=_Line)
    fields = case.fields
    try:
        gates = Gates.from_mapping(fields["gates"], preset="kubernetes-1.37")
    except GateError as error:
        return {"gate_error": str(error), "errors": []}
    context = Context(
        gates=gates,
        now=NOW,
        extensions=False,
        namespace_is_admin=fields["namespace_admin"],
        authorizer=_Denying(fields.get("authz_deny") or (), _namespace(fields)),
    )
    kind = CATALOGUE.find(fields["apiVersion"], fields["kind"])
    try:
        new = read_json(bytes(line.object), kind, extensions=False)
        old = _stored(line.old, kind, context)
    except DecodeError as error:
        return {"decode_error": str(error), "errors": []}
    admission = _admit(new.value, old, kind, context, fields)
    return _recorded(admission, new, is_create=old is None)


def _namespace(fields: Any) -> str:
    metadata = fields["object"].get("metadata") if isinstance(fields["object"], dict) else None
    return (isinstance(metadata, dict) and metadata.get("namespace")) or "default"


def _stored(raw: msgspec.Raw, kind: Kind, context: Context) -> Any:
    if bytes(raw) == b"null":
        return None
    data = bytes(raw)
    version = msgspec.json.decode(data).get("apiVersion") or kind.api_version
    stored_kind = CATALOGUE.find(version, kind.name)
    hub = defaulted_hub(decode_json(data, stored_kind.struct).value, stored_kind, context)
    if kind.namespaced and not hub.metadata.namespace:
        metadata = msgspec.structs.replace(hub.metadata, namespace="default")
        hub = msgspec.structs.replace(hub, metadata=metadata)
    return hub


def _admit(new: Any, old: Any, kind: Kind, context: Context, fields: Any) -> RegistryResult:
    if old is None:
        namespace = new.metadata.namespace or "default"
        return before_create(new, kind, context, namespace=namespace)
    if fields["subresource"] == "status":
        return before_status_update(new, old, kind, context)
    return before_update(new, old, kind, context)


def _recorded(admission: RegistryResult, reading: ReadObject, *, is_create: bool) -> dict[str, Any]:
    stored = None
    if admission.stored is not None:
        stored = msgspec.json.decode(encode_json(admission.stored))
        for name in ("managedFields", *(("resourceVersion",) if is_create else ())):
            stored["metadata"].pop(name, None)
    return {
        "request_error": admission.refused,
        "errors": [
            {"type": str(error.type), "field": error.field, "detail": error.detail}
            for error in admission.errors
        ],
        "stored": stored,
        "warnings": list(admission.warnings),
        "strict_warnings": [remark.message for remark in reading.remarks],
    }


# --- comparison ---------------------------------------------------------------------------


def _essence(answer: dict[str, Any]) -> dict[str, Any]:
    stored = answer.get("stored")
    return {
        "outcome": _outcome(answer),
        "errors": sorted({f"{e['field']} {e['type']}" for e in answer["errors"]}),
        "stored": stored and _normalised(stored),
    }


def _outcome(answer: dict[str, Any]) -> str:
    for name in ("gate_error", "decode_error", "request_error"):
        if answer.get(name):
            return name
    return "invalid" if answer["errors"] else "accepted"


def _details(answer: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(e["field"], e["type"], e["detail"]) for e in answer["errors"]}


def _warnings(answer: dict[str, Any]) -> list[str]:
    return sorted([*(answer.get("warnings") or ()), *(answer.get("strict_warnings") or ())])


def _normalised(value: Any) -> Any:
    """Return a stored object with the names and times of the moment replaced."""
    match value:
        case dict():
            return {key: _normalised(item) for key, item in value.items()}
        case list():
            return [_normalised(item) for item in value]
        case str() if value == str(NOW):
            return "<now>"
        case str() if value.endswith("<generated>"):
            return value.removesuffix("<generated>") + GENERATED_SUFFIX
        case _:
            return value
