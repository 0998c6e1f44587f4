"""Bodies of patch requests: from bytes to the patched object, or to the reason why not."""

from __future__ import annotations

from mooring.api.codec import parse_json
from mooring.api.documents import KUBERNETES, read
from mooring.api.errors import ApiError, DecodeError
from mooring.api.kinds import Kind
from mooring.apiserver.patching.errors import PatchError, Refusal, bad_request
from mooring.apiserver.patching.jsonpatch import json_patch
from mooring.apiserver.patching.mergepatch import merge_patch
from mooring.apiserver.patching.strategic import strategic_merge
from mooring.apiserver.patching.tables import find_shape
from mooring.apiserver.patching.values import Tree

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

CONTENT_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)


def apply_patch(kind: Kind, content_type: str, body: bytes, current: Tree) -> Tree | PatchError:
    """Return the current object with a patch of any type but apply, or why not.

    The current object is in the version of the kind, as the codec writes it. The result is not
    decoded yet: it may have fields and types that the kind does not have.
    """
    try:
        return _patched(kind, content_type.partition(";")[0].strip(), body, current)
    except Refusal as refusal:
        return refusal.error
    except RecursionError:
        return bad_request("error decoding patch: nested too deeply").error


def read_applied(body: bytes) -> Tree | PatchError:
    """Return the object that is applied, from YAML or JSON, or why it cannot be read."""
    try:
        documents = list(read(body, source="patch", schema=KUBERNETES))
    except (ApiError, RecursionError) as error:
        return bad_request(f"error decoding patch: {error or 'nested too deeply'}").error
    if len(documents) > 1:
        return bad_request("error decoding patch: one object is expected, there are more").error
    return documents[0].tree if documents else {}


def _patched(kind: Kind, content_type: str, body: bytes, current: Tree) -> Tree:
    if content_type not in CONTENT_TYPES or content_type == APPLY_PATCH:
        raise Refusal(PatchError(415, "UnsupportedMediaType", "415: Unsupported Media Type"))
    try:
        patch = parse_json(body)
    except DecodeError as error:
        raise Refusal(
            PatchError(400, "BadRequest", "invalid JSON patch", detail=str(error))
        ) from None
    match content_type:
        case "application/json-patch+json":
            return json_patch(current, patch)
        case "application/merge-patch+json":
            return merge_patch(current, patch)
        case _:
            shape = find_shape(kind.api_version, kind.name)
            if shape is None:
                raise bad_request("strategic merge patch format is not supported")
            return strategic_merge(shape, current, patch)
