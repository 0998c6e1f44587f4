"""JSON Merge Patch (RFC 7386), as Kubernetes applies it."""

from __future__ import annotations

from mooring.apiserver.patching.errors import bad_request
from mooring.apiserver.patching.values import Tree


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
