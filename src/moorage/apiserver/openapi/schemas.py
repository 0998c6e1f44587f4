"""The schemas of all types that the kinds of a version are made of.

Fields, types, markers and descriptions derive from the schema (`moorage.api.schema`). A type is
described by the docstring of our struct, if we have one; so is a field without its own description.

# component: a type in a document, by the name that Kubernetes gives it
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, get_args, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from moorage.api.custom_resource import is_custom
from moorage.api.kinds import Kind
from moorage.api.schema import META, ApiType, Field, api_type, find_kind, shared_words
from moorage.apiserver.resources import verbs_of
from moorage.validation.custom_resources.definition import definition_of

Tree = dict[str, Any]

_MACHINERY = "io.k8s.apimachinery.pkg"
_META = f"{_MACHINERY}.apis.meta.v1"
_QUANTITY = f"{_MACHINERY}.api.resource.Quantity"
_INT_OR_STRING = f"{_MACHINERY}.util.intstr.IntOrString"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis"
_JSON_SCHEMA = f"{_EXTENSIONS}.apiextensions.v1.JSONSchemaProps"
RAW = f"{_MACHINERY}.runtime.RawExtension"
DELETE_OPTIONS = f"{_META}.DeleteOptions"
PATCH = f"{_META}.Patch"
STATUS = f"{_META}.Status"

# The components that every document has.
_COMMON = (
    "meta/v1.DeleteOptions",
    "meta/v1.ListMeta",
    "meta/v1.Preconditions",
    "meta/v1.Status",
    "meta/v1.StatusCause",
    "meta/v1.StatusDetails",
)
# Fields of these that Moorage does not know.
_UNSUPPORTED = frozenset(("ignoreStoreReadErrorWithClusterBreakingPotential", "shardInfo"))

API_VERSION = {
    "description": "API group and version of the object.",
    "type": "string",
}
KIND = {"description": "Kind of the object, in CamelCase.", "type": "string"}

# Scalars with a form of their own; a document has those that it refers to.
SCALARS: dict[str, Tree] = {
    _QUANTITY: {
        "description": (
            "A number with a suffix for its magnitude: decimal (n, u, m, k, M, G, T, P, E), "
            "binary (Ki, Mi, Gi, Ti, Pi, Ei), or an exponent such as e3."
        ),
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    f"{_META}.Time": {
        "description": "A time in RFC 3339 format with seconds.",
        "type": "string",
        "format": "date-time",
    },
    f"{_META}.MicroTime": {
        "description": "A time in RFC 3339 format with microseconds.",
        "type": "string",
        "format": "date-time",
    },
    _INT_OR_STRING: {
        "description": "An integer, or a string such as a name or a percentage.",
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    f"{_META}.FieldsV1": {
        "description": "A set of fields, as a tree of field names.",
        "type": "object",
    },
    RAW: {"description": "Arbitrary JSON.", "type": "object"},
    _JSON_SCHEMA: {
        "description": "A structural schema: a part of OpenAPI v3, with extensions.",
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    },
}


def reference(component: str) -> dict[str, str]:
    """Return a reference to a component."""
    return {"$ref": f"#/components/schemas/{component}"}


_VALUES: dict[str, Tree] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "quantity": reference(_QUANTITY),
    "time": reference(f"{_META}.Time"),
    "microtime": reference(f"{_META}.MicroTime"),
    "int-or-string": reference(_INT_OR_STRING),
    "json": reference(RAW),
    "json-schema": reference(_JSON_SCHEMA),
    "strings": {"type": "array", "items": {"type": "string"}},
}


_OBJECT_META_TYPE = f"{META}.ObjectMeta"
_OBJECT_META = reference(f"{_META}.ObjectMeta")


def package_of(group: str, version: str) -> str:
    """Return where Kubernetes keeps the types of a version of a group."""
    if group.partition(".")[0] == "apiextensions":
        return f"{_EXTENSIONS}.apiextensions.{version}"
    return f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}"


def component_of(kind: Kind) -> str:
    """Return the component of a kind."""
    if is_custom(kind.struct):
        return _custom_name(kind)
    return component_of_type(type_of(kind))


def schemas_of(kinds: Iterable[Kind]) -> dict[str, Tree]:
    """Return the components of a version of a group, which has these kinds, by name."""
    all_kinds = tuple(kinds)
    customs = [kind for kind in all_kinds if is_custom(kind.struct)]
    kinds = [kind for kind in all_kinds if not is_custom(kind.struct)]
    docstrings: dict[str, str] = {}
    for kind in kinds:
        docstrings.update(_docstrings(type_of(kind), kind.struct, docstrings))
    names = dict.fromkeys(_COMMON)
    for name in (*map(type_of, kinds), *([_OBJECT_META_TYPE] if customs else [])):
        names.update(types_below(name, names))
    components: dict[str, Tree] = {
        **SCALARS,
        PATCH: {"description": "A change to an object.", "type": "object"},
    }
    components.update(
        (component_of_type(name), _struct(api_type(name), docstrings)) for name in names
    )
    for kind in customs:
        metadata = {"description": "Metadata of the object.", "allOf": [_OBJECT_META]}
        components[component_of(kind)] = _custom_schema(
            kind, metadata, _shared("apiVersion"), _shared("kind")
        )
    for kind in all_kinds:
        components.update(_marked(kind, components))
    text = msgspec.json.encode(components)
    return {
        name: tree
        for name, tree in sorted(components.items())
        if name not in SCALARS or f'schemas/{name}"'.encode() in text
    }


def type_of(kind: Kind) -> str:
    """Return the full name of the type of a kind."""
    name = find_kind(kind.api_version, kind.name)
    assert name is not None, f"no schema of {kind.api_version} {kind.name}"
    return name


def component_of_type(type_name: str) -> str:
    """Return the component of a type by its full name."""
    version, _, name = type_name.rpartition(".")
    return f"{_META if version == 'meta/v1' else package_of(*version.split('/'))}.{name}"


# --- types ----------------------------------------------------------------------------------------


def types_below(name: str, seen: dict[str, None]) -> dict[str, None]:
    """Return a type and all that it is made of, but for those that were seen before."""
    found: dict[str, None] = {}
    left = [name]
    while left:
        name = left.pop()
        if name not in seen and name not in found:
            found[name] = None
            left += [field.type for field in api_type(name).json_fields() if field.is_struct]
    return found


def _docstrings(name: str, struct: type[Struct], seen: dict[str, str]) -> dict[str, str]:
    """Return the docstrings of structs as descriptions of types not seen before."""
    found: dict[str, str] = {}
    left = [(name, struct)]
    while left:
        name, struct = left.pop(0)
        if name in seen or name in found:
            continue
        paragraph = inspect.cleandoc(struct.__doc__ or "").partition("\n\n")[0]
        found[name] = " ".join(paragraph.split())
        types = {field.name: field.type for field in api_type(name).json_fields()}
        hints = get_type_hints(struct)
        for info in fields(struct):
            below = types.get(info.encode_name, "")
            if "." in below:
                left += [(below, inner) for inner in _structs_in(hints[info.name])]
    return found


def _structs_in(hint: Any) -> Iterator[type[Struct]]:
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    for argument in get_args(hint):
        yield from _structs_in(argument)


def _struct(declared: ApiType, docstrings: dict[str, str]) -> Tree:
    declared_fields = [f for f in declared.json_fields() if f.name not in _UNSUPPORTED]
    properties = {field.name: _property(field, docstrings) for field in declared_fields}
    if declared.is_kind:
        is_common = declared.name in _COMMON
        properties["apiVersion"] = API_VERSION if is_common else _shared("apiVersion")
        properties["kind"] = KIND if is_common else _shared("kind")
    tree = _described(docstrings.get(declared.name) or declared.words, {"type": "object"})
    if required := [field.name for field in declared_fields if field.markers.required]:
        tree["required"] = required
    if properties:
        tree["properties"] = dict(sorted(properties.items()))
    if declared.is_atomic:
        tree["x-kubernetes-map-type"] = "atomic"
    return tree


def _marked(kind: Kind, components: dict[str, Tree]) -> dict[str, Tree]:
    """Return the component of a kind with its group, version and kind, and its list if any."""
    component = component_of(kind)
    about = {"group": kind.group, "kind": kind.name, "version": kind.version}
    marked = {component: {**components[component], _GVK: [about]}}
    if is_custom(kind.struct) or "list" in verbs_of(kind.plural):
        items = {
            "description": "List of objects.",
            "type": "array",
            "items": reference(component),
        }
        metadata = {
            "description": "Metadata of the list.",
            "allOf": [reference(f"{_META}.ListMeta")],
        }
        marked[f"{component}List"] = {
            "description": f"A list of {kind.name} objects.",
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": API_VERSION,
                "items": items,
                "kind": KIND,
                "metadata": metadata,
            },
            _GVK: [{**about, "kind": kind.list_kind}],
        }
    return marked


_GVK = "x-kubernetes-group-version-kind"


# --- fields ---------------------------------------------------------------------------------------


def _property(field: Field, docstrings: dict[str, str]) -> Tree:
    markers = field.markers
    value = _value(field)
    if markers.enum:
        value = {**value, "enum": list(markers.enum)}
    if field.is_list:
        value = {"type": "array", "items": value}
    elif field.is_map:
        value = {"type": "object", "additionalProperties": value}
    elif "$ref" in value:
        value = {"allOf": [value]}
    words = markers.words or _shared_words().get(field.name) or docstrings.get(field.type, "")
    return {**_described(words, value), **_extensions(field)}


def _value(field: Field) -> Tree:
    if field.is_struct:
        return reference(component_of_type(field.type))
    if field.name == "fieldsV1":
        return reference(f"{_META}.FieldsV1")
    return _VALUES[field.type]


def _extensions(field: Field) -> Tree:
    """Return the merge semantics of a field's list or map."""
    markers = field.markers
    tree: Tree = {}
    if field.is_list:
        if markers.list_map_keys:
            tree["x-kubernetes-list-map-keys"] = list(markers.list_map_keys)
        tree["x-kubernetes-list-type"] = markers.list_type
    elif markers.map_type:
        tree["x-kubernetes-map-type"] = markers.map_type
    if markers.patch_merge_key:
        tree["x-kubernetes-patch-merge-key"] = markers.patch_merge_key
    if markers.patch_strategy:
        tree["x-kubernetes-patch-strategy"] = ",".join(markers.patch_strategy)
    return tree


def _described(words: str, tree: Tree) -> Tree:
    return {"description": words, **tree} if words else tree


def _shared(name: str) -> Tree:
    return {"description": _shared_words()[name], "type": "string"}


@cache
def _shared_words() -> dict[str, str]:
    return shared_words()


# --- custom resources -----------------------------------------------------------------------------


def _custom_name(kind: Kind) -> str:
    """Return the component of a custom kind: its group from the back, its version, its name."""
    parts = ".".join(reversed(kind.group.split(".")))
    return f"{parts}.{kind.version}.{kind.name}"


def _custom_schema(kind: Kind, metadata: Tree, api_version: Tree, kind_tree: Tree) -> Tree:
    """Return the schema of a custom kind."""
    version = definition_of(kind).version(kind.api_version)
    tree = _published(version.tree)
    tree.setdefault("type", "object")
    if version.given.schema is not None or "properties" in tree:
        properties = {
            **tree.get("properties", {}),
            "apiVersion": api_version,
            "kind": kind_tree,
            "metadata": metadata,
        }
        tree["properties"] = dict(sorted(properties.items()))
    about = {"group": kind.group, "kind": kind.name, "version": kind.version}
    return {**tree, _GVK: [about]}


def _published(tree: Tree) -> Tree:
    """Return a schema as OpenAPI v3 has it: int-or-string without a type, nothing else changed."""
    found: Tree = {}
    for name, value in tree.items():
        if name in ("properties", "patternProperties", "definitions"):
            found[name] = {key: _published(each) for key, each in value.items()}
        elif name in ("items", "additionalProperties", "not") and isinstance(value, dict):
            found[name] = _published(value)
        elif name in ("allOf", "anyOf", "oneOf"):
            found[name] = [_published(each) for each in value]
        else:
            found[name] = value
    return found
