"""JSON Schemas of all kinds, for editors and other tools: draft 7, one file per kind and version.

They are derived from the components of the OpenAPI documents, so descriptions, required fields and
allowed values are the same. They differ in what such tools expect:

- Schemas are standalone: each contains all definitions that its kind needs.
- Values may be null where an API server takes that as absent: those of fields that are not
  required, and all that have a definition. No field has alternatives, of which editors would have
  to guess the one that was meant.
- Strict schemas allow only declared fields that Kubernetes has, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from moorage.api.catalogue import KINDS
from moorage.api.kinds import Kind
from moorage.api.schema import Field, api_type, find_kind
from moorage.apiserver.openapi.schemas import (
    SCALARS,
    component_of,
    component_of_type,
    schemas_of,
    type_of,
    types_below,
)

Tree = dict[str, Any]

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
ALL: Final = "all"  # the schema of an object of any kind
_COMPONENTS: Final = "#/components/schemas/"
_QUANTITY: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$"


def schema_kinds(*, strict: bool = False) -> tuple[Kind, ...]:
    """Return the kinds with a schema; with `strict`, only those that Kubernetes has."""
    return tuple(
        kind
        for kind in KINDS
        if find_kind(kind.api_version, kind.name) and not (strict and kind.is_extension)
    )


def schema_name(kind: Kind) -> str:
    """Return the file name that tools expect: `resourceclaim-resource-v1`, `pod-v1`."""
    parts = (kind.name, kind.group.partition(".")[0], kind.version)
    return "-".join(filter(None, parts)).lower()


def json_schema(kind: Kind, *, strict: bool = False) -> Tree:
    """Return the standalone schema of a kind."""
    components = _components(kind.api_version, strict=strict)
    root, *others = _reachable(component_of(kind), components)
    title = {"title": f"{kind.name} ({kind.api_version})"}
    definitions = {name: components[name] for name in sorted(others)}
    return {"$schema": DIALECT, **_root(kind, components[root]), **title} | (
        {"definitions": definitions} if definitions else {}
    )


def schema_of_all(kinds: Iterable[Kind], *, strict: bool = False) -> Tree:
    """Return the schema of an object of any of the kinds."""
    definitions: Tree = {}
    roots = []
    for kind in kinds:
        components = _components(kind.api_version, strict=strict)
        root, *others = _reachable(component_of(kind), components)
        definitions.update((name, components[name]) for name in others)
        name = schema_name(kind)
        definitions[name] = _root(kind, components[root])
        roots.append({"$ref": f"#/definitions/{name}"})
    return {
        "$schema": DIALECT,
        "title": "Any object of Kubernetes that Moorage knows",
        "oneOf": roots,
        "definitions": dict(sorted(definitions.items())),
    }


def _root(kind: Kind, component: Tree) -> Tree:
    """Return the schema of an object of a kind, with its apiVersion and kind."""
    fixed = {"apiVersion": kind.api_version, "kind": kind.name}
    properties = {
        name: {"description": field.get("description", ""), "type": "string", "enum": [fixed[name]]}
        if name in fixed
        else field
        for name, field in component["properties"].items()
    }
    required = [*fixed, *component.get("required", ())]
    return {**component, "type": "object", "required": required, "properties": properties}


def _reachable(root: str, components: Mapping[str, Tree]) -> list[str]:
    found: dict[str, None] = {}
    left = [root]
    while left:
        name = left.pop()
        if name not in found:
            found[name] = None
            left += _references(components[name])
    return list(found)


def _references(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        if isinstance(target := tree.get("$ref"), str):
            yield target.removeprefix("#/definitions/")
        for value in tree.values():
            yield from _references(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _references(value)


@cache
def _components(api_version: str, *, strict: bool) -> dict[str, Tree]:
    """Return the components of a group version as JSON Schema."""
    kinds = [kind for kind in schema_kinds() if kind.api_version == api_version]
    fields = {
        component_of_type(name): {field.name: field for field in api_type(name).json_fields()}
        for kind in kinds
        for name in types_below(type_of(kind), {})
    }
    return {
        name: {"title": name.rpartition(".")[2]} | _type(tree, fields.get(name, {}), strict=strict)
        for name, tree in schemas_of(kinds).items()
        if name in fields or name in SCALARS
    }


# --- from OpenAPI to JSON Schema ------------------------------------------------------------------


def _type(tree: Tree, fields: Mapping[str, Field], *, strict: bool) -> Tree:
    """Return a definition; references to it decide whether the value may be null."""
    found = _nullable(_plain(tree))
    if "properties" not in found:
        return found
    required = found.get("required", ())
    found["properties"] = {
        name: _property(_plain(value), fields.get(name), is_required=name in required)
        for name, value in tree["properties"].items()
        if not (strict and name in fields and _is_extension(fields[name]))
    }
    if strict:
        found["additionalProperties"] = False
    return found


def _is_extension(field: Field) -> bool:
    return field.number == 0


def _property(tree: Tree, field: Field | None, *, is_required: bool) -> Tree:
    if field is not None and (gates := field.markers.feature_gates):
        words = f"{tree.get('description', '')} Feature gate: {', '.join(gates)}."
        tree = {**tree, "description": words.strip()}
    return tree if is_required else _nullable(tree)


def _nullable(tree: Tree) -> Tree:
    found = dict(tree)
    if "enum" in found:
        found["enum"] = [*found["enum"], None]
    if "type" in found:
        types = found["type"]
        found["type"] = [*([types] if isinstance(types, str) else types), "null"]
    return found


def _plain(tree: Tree) -> Tree:
    """Return a schema without the extensions of OpenAPI and Kubernetes."""
    found: Tree = {}
    for name, value in tree.items():
        match name:
            case "$ref":
                found[name] = f"#/definitions/{value.removeprefix(_COMPONENTS)}"
            case "format":
                found |= _format(value)
            case "allOf":
                found[name] = [_plain(each) for each in value]
            case "oneOf":  # a quantity, or an integer or string
                found["type"] = [each["type"] for each in value]
            case "items" | "additionalProperties":
                found[name] = _plain(value)
            case _ if not name.startswith("x-kubernetes-"):
                found[name] = value
    if found.get("type") == ["string", "number"]:
        found["pattern"] = _QUANTITY
    return found


def _format(name: str) -> Tree:
    """Return the keywords of JSON Schema for a format."""
    match name:
        case "date-time":
            return {"format": name}
        case "int32" | "int64":
            bound = 2 ** (int(name.removeprefix("int")) - 1)
            return {"minimum": -bound, "maximum": bound - 1}
    return {}
