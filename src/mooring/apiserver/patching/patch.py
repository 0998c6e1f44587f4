"""JSON Merge Patch (RFC 7386), as Kubernetes applies it."""

from __future__ import annotations

from mooring.api.codec import parse_json
from mooring.api.documents import KUBERNETES, read
from mooring.api.errors import ApiError, DecodeError
from mooring.api.kinds import Kind
from mooring.apiserver.patching.errors import PatchError, PatchRefused, bad_request
from mooring.apiserver.patching.json_patch import json_patch
from mooring.apiserver.patching.json_values import Tree
from mooring.apiserver.patching.strategic_merge import strategic_merge
from mooring.apiserver.patching.tables import find_shape


def merge_patch(current: dict[str, Tree], patch: Tree) -> Tree:
    """Return the document with the patch merged in, or raise Refusal."""
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        word = _words(patch)
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {word} into Go value of type"
            " map[string]interface {}"
        )
    return _merged(current, patch)


def _merged(current: dict[str, Tree], patch: dict[str, Tree]) -> dict[str, Tree]:
    result = dict(current)
    for key, value in patch.items():
        present = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(present, dict) and isinstance(value, dict):
            result[key] = _merged(present, value)
        elif isinstance(present, dict):
            result[key] = value  # Nulls in a list that replaces a map stay.
        else:
            result[key] = _without_nulls(value)
    return result


def _without_nulls(value: Tree) -> Tree:
    """Return a value without fields that are null; items that are null stay."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _words(value: Tree) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "array"


# ---- from mooring.apiserver.patching.door: Bodies of patch requests: from bytes to the patched object, or to the reason why not.

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
    except PatchRefused as refusal:
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
        raise PatchRefused(PatchError(415, "UnsupportedMediaType", "415: Unsupported Media Type"))
    try:
        patch = parse_json(body)
    except DecodeError as error:
        raise PatchRefused(
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
