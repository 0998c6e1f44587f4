"""Rules for the schemas of definitions, except those for structural schemas.

Schemas may use a part of OpenAPI v3 and extensions of Kubernetes, each with rules of its own.
Expressions are compiled only in schemas that break no other rule.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from moorage.api.field_path import Path
from moorage.api.json_schema import Schema
from moorage.validation.custom_resources.field_paths import FieldPathError, find_field
from moorage.validation.custom_resources.structural import META_FIELDS, structural
from moorage.validation.errors import ErrorList, forbidden, invalid, not_supported, required

TYPES = ("array", "boolean", "integer", "number", "object", "string")
_REASONS = (
    *("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"),
)
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_LINE_BREAK = re.compile(r"[\n\r]")
_RULES = "x-kubernetes-validations"


class Place(NamedTuple):
    """Where a schema is, and what is forbidden there."""

    path: Path
    is_root: bool = False
    no_defaults: str | None = None  # why there are none
    is_inside_metadata: bool = False


def validate_schema(tree: Schema, place: Place) -> ErrorList:
    """Validate a schema and all schemas below it, except for expressions."""
    path = place.path
    found = _validate_fields(tree, place)
    if tree.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(forbidden(path.child("uniqueItems"), words))
    found += _validate_below(tree, place)
    if tree.get("x-kubernetes-preserve-unknown-fields") is False:
        where = path.child("x-kubernetes-preserve-unknown-fields")
        found.append(invalid(where, False, "must be true or undefined"))
    found += _validate_map_type(tree, path)
    found += _validate_list_type(tree, path)
    found += _validate_map_keys(tree, path)
    for index, rule in enumerate(tree.get(_RULES, ())):
        found += _validate_rule(rule, tree, path.child(_RULES).index(index))
    return found


def _validate_fields(tree: Schema, place: Place) -> ErrorList:
    path = place.path
    found: ErrorList = []
    if "type" in tree and tree["type"] not in TYPES:
        found.append(not_supported(path.child("type"), tree["type"], sorted(TYPES)))
    if "default" in tree and place.no_defaults is not None:
        words = f"must not be set {place.no_defaults}".strip()
        found.append(forbidden(path.child("default"), words))
    found += [
        forbidden(path.child(name), f"{name} is not supported")
        for name in _UNSUPPORTED
        if name in tree
    ]
    if tree.get("type") == "null":
        words = "type cannot be set to null, use nullable as an alternative"
        found.append(forbidden(path.child("type"), words))
    if isinstance(tree.get("items"), list):
        words = "items must be a schema object and not an array"
        found.append(forbidden(path.child("items"), words))
    if place.is_inside_metadata and tree.get("x-kubernetes-embedded-resource"):
        words = "must not be used inside of resource meta"
        found.append(forbidden(path.child("x-kubernetes-embedded-resource"), words))
    return found


def _validate_below(tree: Schema, place: Place) -> ErrorList:
    path, found = place.path, []
    inner = place._replace(is_root=False)
    additional = tree.get("additionalProperties")
    if additional is not None:
        if tree.get("properties") and additional is not True:
            words = "additionalProperties and properties are mutual exclusive"
            found.append(forbidden(path.child("additionalProperties"), words))
        if isinstance(additional, dict):
            below = inner._replace(path=path.child("additionalProperties"))
            if place.is_inside_metadata:
                why = "inside additionalProperties applying to object metadata"
                below = below._replace(no_defaults=why)
            found += validate_schema(additional, below)
    is_resource = place.is_root or tree.get("x-kubernetes-embedded-resource", False)
    for name, each in tree.get("properties", {}).items():
        below = inner._replace(path=path.child("properties").key(name))
        if is_resource and name in META_FIELDS:
            below = below._replace(is_inside_metadata=True)
            if place.is_root:
                below = below._replace(no_defaults=f"in top-level {name}")
        found += validate_schema(each, below)
    if "not" in tree:
        found += validate_schema(tree["not"], inner._replace(path=path.child("not")))
    for name in ("allOf", "oneOf", "anyOf"):
        for index, each in enumerate(tree.get(name, ())):
            found += validate_schema(each, inner._replace(path=path.child(name).index(index)))
    if isinstance(tree.get("items"), dict):
        found += validate_schema(tree["items"], inner._replace(path=path.child("items")))
    return found


def _validate_map_type(tree: Schema, path: Path) -> ErrorList:
    map_type = tree.get("x-kubernetes-map-type")
    if map_type is None:
        return []
    found = _validate_type_for(tree, "object", "x-kubernetes-map-type", path)
    if map_type not in ("atomic", "granular"):
        where = path.child("x-kubernetes-map-type")
        found.append(not_supported(where, map_type, ("atomic", "granular")))
    return found


def _validate_type_for(tree: Schema, wanted: str, extension: str, path: Path) -> ErrorList:
    kind = tree.get("type", "")
    if kind == wanted:
        return []
    words = f"must be {wanted} if {extension} is specified"
    place = path.child("type")
    return [invalid(place, kind, words) if kind else required(place, words)]


def _validate_list_type(tree: Schema, path: Path) -> ErrorList:
    list_type = tree.get("x-kubernetes-list-type")
    keys = tree.get("x-kubernetes-list-map-keys", [])
    where = path.child("x-kubernetes-list-type")
    found: ErrorList = []
    if list_type is not None:
        found += _validate_type_for(tree, "array", "x-kubernetes-list-type", path)
        if not found and list_type == "set":
            found += _validate_set_items(tree.get("items"), path.child("items"))
        if list_type not in ("atomic", "set", "map"):
            found.append(not_supported(where, list_type, ("atomic", "set", "map")))
    if keys and list_type != "map":
        words = "must be map if x-kubernetes-list-map-keys is non-empty"
        found.append(
            required(where, words) if list_type is None else invalid(where, list_type, words)
        )
    if list_type == "map":
        found += _validate_map_list(tree, keys, path)
    return found


def _validate_set_items(items: Any, path: Path) -> ErrorList:
    if not isinstance(items, dict):
        return []
    words = "must be atomic as item of a list with x-kubernetes-list-type=set"
    inner_list, inner_map = items.get("x-kubernetes-list-type"), items.get("x-kubernetes-map-type")
    if items.get("type") == "array" and inner_list not in (None, "atomic"):
        return [invalid(path.child("x-kubernetes-list-type"), inner_list, words)]
    if items.get("type") == "object" and inner_map != "atomic":
        return [invalid(path.child("x-kubernetes-map-type"), inner_list, words)]
    return []


def _validate_map_list(tree: Schema, keys: list[str], path: Path) -> ErrorList:
    found: ErrorList = []
    where, items = path.child("x-kubernetes-list-map-keys"), tree.get("items")
    if not keys:
        found.append(required(where, "must not be empty if x-kubernetes-list-type is map"))
    if items is None:
        words = "must have a schema if x-kubernetes-list-type is map"
        return [*found, required(path.child("items"), words)]
    if not isinstance(items, dict):
        words = "must only have a single schema if x-kubernetes-list-type is map"
        return [*found, invalid(path.child("items"), items, words)]
    kind = items.get("type", "")
    if kind != "object":
        words = "must be object if parent array's x-kubernetes-list-type is map"
        return [*found, invalid(path.child("items").child("type"), kind, words)]
    properties = items.get("properties", {})
    for index, key in enumerate(keys):
        if key not in properties:
            found.append(invalid(where, keys, "entries must all be names of item properties"))
        elif properties[key].get("type") in ("array", "object"):
            words = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            place = path.child("items").child("properties").key(key).child("type")
            found.append(invalid(place, kind, words))
        if key in keys[:index]:
            found.append(invalid(where, keys, "must not contain duplicate entries"))
    return found


def _validate_map_keys(tree: Schema, path: Path) -> ErrorList:
    """Validate that items, and the keys of items, are never null, and that keys are there."""
    list_type, items = tree.get("x-kubernetes-list-type"), tree.get("items")
    if list_type not in ("set", "map") or not isinstance(items, dict):
        return []
    found: ErrorList = []
    below = path.child("items")
    if items.get("nullable"):
        words = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        found.append(forbidden(below.child("nullable"), words))
    if list_type == "set":
        return found
    for key in tree.get("x-kubernetes-list-map-keys", ()):
        each = items.get("properties", {}).get(key)
        if each is None:
            continue
        place = below.child("properties").key(key)
        why = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in items.get("required", ()) and "default" not in each:
            words = f"{why} must have a default or be a required property"
            found.append(required(place.child("default"), words))
        if each.get("nullable"):
            found.append(forbidden(place.child("nullable"), f"{why} cannot be nullable"))
    return found


# --- rules of expressions, before they are compiled -----------------------------------------------


def _validate_rule(rule: dict[str, Any], tree: Schema, path: Path) -> ErrorList:
    found = _validate_texts(rule, path)
    expression = rule.get("messageExpression", "")
    if expression and not expression.strip():
        words = "messageExpression must be non-empty if specified"
        found.append(required(path.child("messageExpression"), words))
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        found.append(not_supported(path.child("reason"), reason, sorted(_REASONS)))
    place, where = rule.get("fieldPath", ""), path.child("fieldPath")
    if not place:
        return found
    if not place.strip():
        found.append(invalid(where, place, "must be non-empty if specified"))
    if _LINE_BREAK.search(place):
        found.append(invalid(where, place, "must not contain line breaks"))
    try:
        find_field(place, structural(tree))
    except FieldPathError:
        found.append(invalid(where, place, "must be a valid path"))
    return found


def _validate_texts(rule: dict[str, Any], path: Path) -> ErrorList:
    text, message = rule["rule"].strip(), rule.get("message", "")
    if not text:
        return [required(path.child("rule"), "rule is not specified")]
    if message and not message.strip():
        return [invalid(path.child("message"), message, "must be non-empty if specified")]
    if _LINE_BREAK.search(message.strip()):
        return [invalid(path.child("message"), message, "must not contain line breaks")]
    if _LINE_BREAK.search(text) and not message.strip():
        words = "message must be specified if rule contains line breaks"
        return [required(path.child("message"), words)]
    return []
