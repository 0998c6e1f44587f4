"""Rules for structural schemas: every field has its type in one place, outside of logic.

- `anyOf`, `oneOf`, `allOf` and `not` restrict values; they declare no types, defaults or texts
- the fields that they mention are also declared outside of them
- at the root, only name and generateName of the metadata may be restricted
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from moorage.api.field_path import Path
from moorage.api.json_schema import Schema
from moorage.cel.lang.errors import Cancelled, EvalError
from moorage.cel.lang.regex import compile_regex
from moorage.cel.lang.unpaid_work import begin_evaluation
from moorage.validation.errors import ErrorList, forbidden, invalid, required

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED = ("id", "$schema", "patternProperties", "dependencies", "definitions")
# Fields that logic must not have, and how errors name them.
_NESTED = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


class Level(Enum):
    """Where a schema is; the value is what its type must not be empty for."""

    ROOT = "at the root"
    ITEM = "for specified array items"
    FIELD = "for specified object fields"


def unsupported_field(tree: Schema) -> str | None:
    """Return why a schema cannot be structural: a field that is not supported, if there is one."""
    for name in _UNSUPPORTED:
        if tree.get(name):
            return f"OpenAPIV3Schema '{name.removeprefix('$')}' is not supported"
    if tree.get("$ref"):
        return "OpenAPIV3Schema '$ref' is not supported"
    if "additionalItems" in tree:
        return "OpenAPIV3Schema 'additionalItems' is not supported"
    if tree.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(tree.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    faults = (unsupported_field(each) for _, each in children(tree))
    return next((fault for fault in faults if fault), None)


def children(tree: Schema) -> Iterator[tuple[tuple[str | int, ...], Schema]]:
    """Yield the schemas directly below one, with the steps to them."""
    for name in ("items", "additionalProperties", "not", "additionalItems"):
        if isinstance(tree.get(name), dict):
            yield (name,), tree[name]
    for name in ("properties", "patternProperties", "definitions"):
        for key, each in tree.get(name, {}).items():
            yield (name, key), each
    for name in ("allOf", "oneOf", "anyOf"):
        for index, each in enumerate(tree.get(name, ())):
            yield (name, index), each
    if isinstance(tree.get("items"), list):
        for index, each in enumerate(tree["items"]):
            yield ("items", index), each


def validate_structural(tree: Schema, path: Path) -> ErrorList:
    """Validate that a schema is structural; the errors are in order of their texts."""
    found = _validate_node(tree, Level.ROOT, path)
    found += _validate_complete(tree, tree, path, path)
    return sorted(found, key=str)


def _validate_node(tree: Schema, level: Level, path: Path) -> ErrorList:
    found: ErrorList = []
    items, additional = tree.get("items"), tree.get("additionalProperties")
    properties: dict[str, Schema] = tree.get("properties", {})
    if tree.get("type") == "array" and items is None:
        found.append(required(path.child("items"), "must be specified"))
    if isinstance(items, dict):
        found += _validate_node(items, Level.ITEM, path.child("items"))
    for name, each in properties.items():
        found += _validate_node(each, Level.FIELD, path.child("properties").key(name))
    if additional is not None:
        if level is Level.ROOT:
            place = path.child("additionalProperties")
            found.append(forbidden(place, "must not be used at the root"))
        if isinstance(additional, dict):
            found += _validate_node(additional, Level.FIELD, path.child("additionalProperties"))
    found += _validate_extensions(tree, path)
    is_any = tree.get("anyOf") == _INT_OR_STRING
    all_of = tree.get("allOf") or [{}]
    is_all = all_of[0].get("anyOf") == _INT_OR_STRING
    found += _validate_logic(tree, path, skips_any=is_any, skips_first=is_all)
    found += _validate_type(tree, level, path)
    return found + _validate_resource(tree, level, path)


def _validate_extensions(tree: Schema, path: Path) -> ErrorList:
    if not tree.get("x-kubernetes-int-or-string"):
        return []
    names = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")
    words = "must be false if x-kubernetes-int-or-string is true"
    return [invalid(path.child(name), True, words) for name in names if tree.get(name)]


def _validate_type(tree: Schema, level: Level, path: Path) -> ErrorList:
    found: ErrorList = []
    kind = tree.get("type", "")
    place = path.child("type")
    is_any = "x-kubernetes-int-or-string" in tree or "x-kubernetes-preserve-unknown-fields" in tree
    if tree.get("x-kubernetes-embedded-resource") and kind != "object":
        words = "must be object if x-kubernetes-embedded-resource is true"
        found.append(invalid(place, kind, words) if kind else required(place, words))
    elif not kind and not is_any:
        found.append(required(place, f"must not be empty {level.value}"))
    if tree.get("x-kubernetes-embedded-resource") and "additionalProperties" in tree:
        words = "must not be used if x-kubernetes-embedded-resource is set"
        found.append(forbidden(path.child("additionalProperties"), words))
    if level is Level.ROOT and kind not in ("", "object"):
        found.append(invalid(place, kind, "must be object at the root"))
    return found


def _validate_resource(tree: Schema, level: Level, path: Path) -> ErrorList:
    """Validate the schemas of apiVersion, kind and metadata."""
    found: ErrorList = []
    properties: dict[str, Schema] = tree.get("properties", {})
    is_embedded = tree.get("x-kubernetes-embedded-resource", False)
    is_resource = level is Level.ROOT or is_embedded
    for name in ("kind", "apiVersion"):
        if is_resource and name in properties and properties[name].get("type") != "string":
            place = path.child("properties").key(name).child("type")
            found.append(invalid(place, properties[name].get("type", ""), "must be string"))
    if "metadata" in properties:
        metadata, place = properties["metadata"], path.child("properties").key("metadata")
        if is_resource and metadata.get("type") != "object":
            found.append(invalid(place.child("type"), metadata.get("type", ""), "must be object"))
        if level is Level.ROOT and not _is_plain_metadata(metadata):
            words = (
                "must not specify anything other than name and generateName, but metadata is "
                "implicitly specified"
            )
            found.append(forbidden(place, words))
    preserves = tree.get("x-kubernetes-preserve-unknown-fields")
    if is_embedded and not preserves and not properties:
        words = (
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields"
        )
        found.append(required(path.child("properties"), words))
    return found


def _is_plain_metadata(tree: Schema) -> bool:
    rest = {name for name in tree if name not in ("type", "properties", "default")}
    return not rest and set(tree.get("properties", {})) <= {"name", "generateName"}


# --- logic ----------------------------------------------------------------------------------------


def _validate_logic(
    tree: Schema, path: Path, *, skips_any: bool = False, skips_first: bool = False
) -> ErrorList:
    found: ErrorList = []
    if not skips_any:
        for index, each in enumerate(tree.get("anyOf", ())):
            found += _validate_nested(each, path.child("anyOf").index(index))
    for index, each in enumerate(tree.get("allOf", ())):
        is_skipped = skips_first and index == 0
        found += _validate_nested(each, path.child("allOf").index(index), skips_any=is_skipped)
    for index, each in enumerate(tree.get("oneOf", ())):
        found += _validate_nested(each, path.child("oneOf").index(index))
    if "not" in tree:
        found += _validate_nested(tree["not"], path.child("not"))
    if "pattern" in tree and (fault := pattern_fault(tree["pattern"])):
        words = f"must be a valid regular expression, but isn't: {fault}"
        found.append(invalid(path.child("pattern"), tree["pattern"], words))
    return found


def pattern_fault(pattern: str) -> str:
    """Return the error of a regular expression, or "" if it is valid."""
    begin_evaluation()
    try:
        compile_regex(pattern)
    except (EvalError, Cancelled) as error:
        return str(error)
    return ""


def _validate_nested(tree: Schema, path: Path, *, skips_any: bool = False) -> ErrorList:
    found = _validate_logic(tree, path, skips_any=skips_any)
    if isinstance(tree.get("items"), dict):
        found += _validate_nested(tree["items"], path.child("items"))
    for name, each in tree.get("properties", {}).items():
        found += _validate_nested(each, path.child("properties").key(name))
    for name, words in _NESTED.items():
        if tree.get(name) not in (None, False):
            found.append(forbidden(path.child(name), words))
    if "metadata" in tree.get("properties", {}):
        words = "must not be specified in a nested context"
        found.append(forbidden(path.child("properties").key("metadata"), words))
    return found


def _validate_complete(tree: Schema, spine: Any, spine_path: Path, path: Path) -> ErrorList:
    """Validate that every field that logic mentions is declared outside of it."""
    found: ErrorList = []
    nested = [(path.child("not"), tree["not"])] if "not" in tree else []
    for name in ("allOf", "anyOf", "oneOf"):
        nested += [(path.child(name).index(i), each) for i, each in enumerate(tree.get(name, ()))]
    for place, each in nested:
        found += _validate_declared(each, spine, spine_path, place)
    return found


def _validate_declared(tree: Schema, spine: Any, spine_path: Path, path: Path) -> ErrorList:
    if not isinstance(spine, dict):
        return [required(spine_path, f"because it is defined in {path}")]
    found = _validate_complete(tree, spine, spine_path, path)
    if isinstance(tree.get("items"), dict):
        below = spine_path.child("items")
        found += _validate_declared(tree["items"], spine.get("items"), below, path.child("items"))
    for name, each in tree.get("properties", {}).items():
        below = spine_path.child("properties").key(name)
        place = path.child("properties").key(name)
        found += _validate_declared(each, spine.get("properties", {}).get(name), below, place)
    return found
