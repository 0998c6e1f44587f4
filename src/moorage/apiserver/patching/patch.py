"""Patches of type JSON patch, merge patch and strategic merge patch: from bytes to the result.

JSON patch is RFC 6902 (`json_patch`), merge patch RFC 7386 as Kubernetes applies it. Strategic
merge patch merges lists by the identity of their items (`strategic_lists`), not as a whole.
"""

from __future__ import annotations

from moorage.api.codec import parse_json
from moorage.api.documents import KUBERNETES
from moorage.api.errors import ApiError, DecodeError
from moorage.api.go_type_names import type_name
from moorage.api.kinds import Kind
from moorage.apiserver.body_limits import check_values, read_documents
from moorage.apiserver.patching import strategic_lists
from moorage.apiserver.patching.errors import PatchError, PatchRefused, bad_request
from moorage.apiserver.patching.json_patch import json_patch, unmarshal_error
from moorage.apiserver.patching.json_values import Tree
from moorage.apiserver.patching.shapes import Shape, ShapeField, find_shape
from moorage.kit.go_quote import go_quote

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

CONTENT_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)


def apply_patch(kind: Kind, content_type: str, body: bytes, current: Tree) -> Tree | PatchError:
    """Return the current object with a patch of any type but apply, or the error.

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
    """Return an applied object from YAML or JSON, or the error."""
    try:
        documents = read_documents(body, "patch", KUBERNETES)
    except (ApiError, RecursionError) as error:
        return bad_request(f"error decoding patch: {error or 'nested too deeply'}").error
    if len(documents) > 1:
        return bad_request("error decoding patch: one object is expected, there are more").error
    return documents[0].tree if documents else {}


def _patched(kind: Kind, content_type: str, body: bytes, current: Tree) -> Tree:
    if content_type not in CONTENT_TYPES or content_type == APPLY_PATCH:
        raise PatchRefused(PatchError(415, "UnsupportedMediaType", "415: Unsupported Media Type"))
    try:
        check_values(body)
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


# --- merge patch ----------------------------------------------------------------------------------


def merge_patch(current: dict[str, Tree], patch: Tree) -> Tree:
    """Return the document with the patch merged in, or raise PatchRefused."""
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise bad_request(unmarshal_error(patch, "value of type map[string]interface {}"))
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
            result[key] = strategic_lists.without_nulls(value)
    return result


# --- strategic merge patch ------------------------------------------------------------------------


def strategic_merge(shape: Shape, current: dict[str, Tree], patch: Tree) -> dict[str, Tree]:
    """Return an object with the patch merged in, or raise PatchRefused."""
    if not isinstance(patch, dict):
        word = "array" if isinstance(patch, list) else type_name(patch)
        raise bad_request(
            f"json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"
        )
    return merged_maps(current, patch, shape)


def merged_maps(original: dict[str, Tree], patch: dict[str, Tree], shape: Shape) -> dict[str, Tree]:
    """Return the merged map.

    1. `$patch` replaces or deletes everything.
    2. `$retainKeys` removes other keys.
    3. `$setElementOrder` merges its list and puts it in order.
    4. All other fields are merged one by one.
    """
    if strategic_lists.MARKER in patch:
        return _directed(patch)
    result, rest = dict(original), dict(patch)
    _retain_keys(result, rest)
    for key in [key for key in rest if key.startswith(strategic_lists.SET_ORDER)]:
        _put_in_order(result, rest, key, shape)
    for key, value in rest.items():
        is_deletion = key.startswith(strategic_lists.DELETE_FROM_LIST)
        name = (
            strategic_lists.field_of(key, strategic_lists.DELETE_FROM_LIST) if is_deletion else key
        )
        _merge_field(result, name, value, shape, is_deletion=is_deletion)
    return result


def find_field(shape: Shape, name: str) -> ShapeField:
    """Return a declared field, whatever its case, or raise PatchRefused."""
    if not shape.is_struct or shape.map is None:
        raise bad_request(
            f"merging an object in json but data type is not struct, instead is: {shape.name}"
        )
    if (exact := shape.map.fields.get(name)) is not None:
        return exact
    for declared, field in shape.map.fields.items():
        if declared.casefold() == name.casefold():
            return field
    raise bad_request(
        f"unable to find api field in struct {shape.name} for the json field {go_quote(name)}"
    )


def _directed(patch: dict[str, Tree]) -> dict[str, Tree]:
    match patch[strategic_lists.MARKER]:
        case strategic_lists.REPLACE:
            return {key: value for key, value in patch.items() if key != strategic_lists.MARKER}
        case strategic_lists.DELETE:
            return {}
        case directive:
            raise strategic_lists.unknown_directive(directive, patch)


def _retain_keys(result: dict[str, Tree], rest: dict[str, Tree]) -> None:
    """Remove keys that `$retainKeys` does not name, and the directive from the patch."""
    if strategic_lists.RETAIN_KEYS not in rest:
        return
    retained = rest.pop(strategic_lists.RETAIN_KEYS)
    if not isinstance(retained, list):
        raise strategic_lists.bad_retain_keys()
    kept = {key for key in retained if isinstance(key, str)}
    for key, value in rest.items():
        if value is None or key.startswith(
            (strategic_lists.DELETE_FROM_LIST, strategic_lists.SET_ORDER)
        ):
            continue
        if key not in kept:
            raise strategic_lists.bad_retain_keys()
    for key in [key for key in result if key not in kept]:
        del result[key]


def _put_in_order(result: dict[str, Tree], rest: dict[str, Tree], key: str, shape: Shape) -> None:
    """Merge the list of a `$setElementOrder` directive; remove both from the patch."""
    order = rest.pop(key)
    if not isinstance(order, list):
        raise strategic_lists.bad_type("[]interface {}", order)
    name = strategic_lists.field_of(key, strategic_lists.SET_ORDER)
    for holder in (result, rest):
        if name in holder and not isinstance(holder[name], list):
            raise strategic_lists.bad_type("[]interface {}", holder[name])
    if name not in result and name not in rest:
        find_field(shape, name)
        return
    field = find_field(shape, name)
    original, patch = result.get(name), rest.pop(name, None)
    result[name] = strategic_lists.ordered(field, original, patch, order, merged_maps)


def _merge_field(
    result: dict[str, Tree], name: str, value: Tree, shape: Shape, *, is_deletion: bool
) -> None:
    if value is None:
        result.pop(name, None)
        return
    present = result.get(name)
    if name not in result or type_name(present) != type_name(value):
        if not is_deletion:
            _take(result, name, strategic_lists.without_nulls(value))
        return
    if isinstance(present, dict):
        field = find_field(shape, name)
        is_replaced = strategic_lists.REPLACE in field.strategy
        result[name] = value if is_replaced else merged_maps(present, value, field.shape)
    elif isinstance(present, list):
        field = find_field(shape, name)
        if strategic_lists.MERGE in field.strategy or is_deletion:
            value = strategic_lists.merged_lists(
                field, present, value, merged_maps, is_deletion=is_deletion
            )
        result[name] = value
    else:
        result[name] = value


def _take(result: dict[str, Tree], name: str, value: Tree) -> None:
    """Set a value of the patch unchanged, without directives."""
    if strategic_lists.is_marked(value):
        result.pop(name, None)
    else:
        result[name] = strategic_lists.without_directives(value)
