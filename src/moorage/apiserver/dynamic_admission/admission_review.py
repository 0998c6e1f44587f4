"""AdmissionReview: requests to webhooks, and their responses."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from moorage.apiserver.dynamic_admission.attributes import Attributes, ResourceEndpoint
from moorage.apiserver.dynamic_admission.evaluation import request_tree
from moorage.apiserver.http.status import (
    Status,
    StatusCause,
    StatusDetails,
    StatusError,
)
from moorage.kit.go_quote import go_quote

GROUP = "admission.k8s.io"
KIND = "AdmissionReview"
VERSIONS = ("v1", "v1beta1")
JSON_PATCH = "JSONPatch"
WARNINGS_MAX = 64
ANNOTATIONS_MAX = 64
CAUSES_MAX = 64
_BAD_REQUEST = 400


class ReviewError(Exception):
    """An invalid response of a webhook."""


class AdmissionResponse(NamedTuple):
    """The response of a webhook."""

    is_allowed: bool
    status: Mapping[str, Any] | None
    patch: bytes
    patch_type: str
    warnings: tuple[str, ...]
    annotations: Mapping[str, str]


def version_for(accepted: tuple[str, ...]) -> str | None:
    """Return the review version for a webhook: the first that it accepts and Moorage supports."""
    return next((each for each in accepted if each in VERSIONS), None)


def encode_review(
    attributes: Attributes, endpoint: ResourceEndpoint, version: str, uid: str
) -> bytes:
    """Return the review of a request as JSON."""
    request = {
        "uid": uid,
        **request_tree(attributes, endpoint),
        "object": attributes.object(endpoint),
        "oldObject": attributes.old_object(endpoint),
    }
    review = {"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": request}
    return msgspec.json.encode(review)


def read_response(data: bytes, version: str, uid: str, *, is_mutating: bool) -> AdmissionResponse:
    """Return the response to a review, or raise ReviewError."""
    try:
        tree = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ReviewError(f"couldn't get version/kind; json parse error: {error}") from None
    response = tree.get("response") if isinstance(tree, dict) else None
    if not isinstance(response, dict):
        raise ReviewError("webhook response was absent")
    if version == "v1":
        _check_identity(tree, response, uid)
    patch, patch_type = _patch(response, version, is_mutating=is_mutating)
    status = response.get("status")
    return AdmissionResponse(
        is_allowed=response.get("allowed") is True,
        status=status if isinstance(status, dict) else None,
        patch=patch,
        patch_type=patch_type,
        warnings=tuple(text for text in _list(response.get("warnings")) if isinstance(text, str))[
            :WARNINGS_MAX
        ],
        annotations=_texts(response.get("auditAnnotations")),
    )


def _check_identity(tree: dict[str, Any], response: dict[str, Any], uid: str) -> None:
    if response.get("uid") != uid:
        given = go_quote(str(response.get("uid") or ""))
        raise ReviewError(f"expected response.uid={go_quote(uid)}, got {given}")
    group, _, version = str(tree.get("apiVersion") or "").rpartition("/")
    kind = str(tree.get("kind") or "")
    if (group, version, kind) != (GROUP, "v1", KIND):
        wanted = f"{GROUP}/v1, Kind={KIND}"
        raise ReviewError(
            f"expected webhook response of {wanted}, got {group}/{version}, Kind={kind}"
        )


def _patch(response: dict[str, Any], version: str, *, is_mutating: bool) -> tuple[bytes, str]:
    text, patch_type = response.get("patch") or "", response.get("patchType")
    try:
        patch = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise ReviewError("illegal base64 data in response.patch") from None
    if version != "v1":
        return (patch, JSON_PATCH) if is_mutating and patch else (b"", "")
    if not is_mutating:
        if patch:
            raise ReviewError("validating webhook may not return response.patch")
        if patch_type is not None:
            raise ReviewError("validating webhook may not return response.patchType")
        return b"", ""
    if patch and patch_type is None:
        raise ReviewError("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise ReviewError("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise ReviewError('webhook returned invalid response.patchType of ""')
    return patch, str(patch_type or "")


def rejection(webhook: str, given: Mapping[str, Any] | None) -> StatusError:
    """Return the error for a request that a webhook denied."""
    status = given or {}
    code = status.get("code")
    code = code if isinstance(code, int) and 100 <= code < 600 else 0
    message, reason = str(status.get("message") or ""), str(status.get("reason") or "")
    denied = f"admission webhook {go_quote(webhook)} denied the request"
    told = message or reason
    return StatusError(
        Status(
            status="Failure",
            message=f"{denied}: {told}" if told else f"{denied} without explanation",
            reason=reason,
            code=max(code, _BAD_REQUEST),
            details=_details(status.get("details")),
        )
    )


def _details(given: Any) -> StatusDetails | None:
    if not isinstance(given, dict):
        return None
    causes = tuple(
        StatusCause(**{name: str(cause.get(name) or "") for name in ("reason", "message", "field")})
        for cause in _list(given.get("causes"))[:CAUSES_MAX]
        if isinstance(cause, dict)
    )
    name, group, kind, uid = (
        str(given.get(each) or "") for each in ("name", "group", "kind", "uid")
    )
    return StatusDetails(name=name, group=group, kind=kind, uid=uid, causes=causes)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    texts = {key: text for key, text in value.items() if isinstance(text, str)}
    return dict(list(texts.items())[:ANNOTATIONS_MAX])
