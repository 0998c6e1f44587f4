"""Schemas of all structs that the kinds of a version are made of.

Two sources are laid over each other: the shapes of `patching`, which know every field that
Kubernetes has and what lists mean, and our structs, which know types and formats, and in their
docstrings what it is all for.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from mooring.api.kinds import Kind
from mooring.apiserver.openapi import common, names
from mooring.apiserver.openapi.choices import choices_of
from mooring.apiserver.openapi.descriptions import describe_field
from mooring.apiserver.openapi.hints import (
    declared_fields,
    element_hint,
    scalar_schema,
    struct_of,
)
from mooring.apiserver.openapi.required import required_fields
from mooring.apiserver.openapi.structs import StructsFound, is_free, struct_shape
from mooring.apiserver.patching.shapes import Field, Relation, Shape
from mooring.apiserver.patching.tables import find_shape
from mooring.apiserver.served import verbs_of

Tree = dict[str, Any]

_SCALARS: dict[str, Tree] = {
    "string": {"type": "string"},
    "numeric": {"type": "integer", "format": "int32"},
    "boolean": {"type": "boolean"},
}
_BYTES = {("Secret", "data"), ("ConfigMap", "binaryData")}
# Numbers of structs that only Kubernetes declares; the others have 32 bits.
_LARGE = frozenset(
    (
        "capacity",
        "defaultUser",
        "expirationSeconds",
        "fsGroup",
        "gid",
        "runAsGroup",
        "runAsUser",
        "seconds",
        "supplementalGroups",
        "terminationGracePeriodSeconds",
        "uid",
        "user",
    )
)
_NUMBER_OR_NAME = ("port", "targetPort", "maxSurge", "maxUnavailable")


def schemas_of(group: str, version: str, kinds: Iterable[Kind]) -> dict[str, Tree]:
    """Return the components of a version of a group, by name."""
    return _Builder(group, version, kinds).components()


class _Builder:
    """Makes each component once."""

    def __init__(self, group: str, version: str, kinds: Iterable[Kind]) -> None:
        self._group, self._version = group, version
        self._kinds = tuple(kinds)
        self._found = StructsFound()
        self._components: dict[str, Tree] = dict(common.COMPONENTS)

    def components(self) -> dict[str, Tree]:
        for kind in self._kinds:
            self._found.learn(find_shape(kind.api_version, kind.name), kind.struct)
        for struct_name, shape in self._found.shapes.items():
            self._components[self._name(struct_name)] = self._struct(struct_name, shape)
        for kind in self._kinds:
            self._mark(kind)
        return _used(self._components)

    def _name(self, struct_name: str) -> str:
        return names.component_name(self._group, self._version, struct_name)

    def _struct(self, struct_name: str, shape: Shape | None) -> Tree:
        struct = self._found.structs.get(struct_name)
        known = declared_fields(struct) if struct is not None else {}
        form = None if shape is None else shape.map
        listed = form.fields if form is not None else {}
        properties = {
            name: self._property(struct_name, name, listed.get(name), known.get(name, Any))
            for name in sorted({**listed, **known})
        }
        required = [f for f in required_fields(self._group, struct_name) if f in properties]
        description = _docstring(struct)
        tree: Tree = {"description": description} if description else {}
        tree["type"] = "object"
        if required:
            tree["required"] = required
        if properties:
            tree["properties"] = properties
        if form is not None and form.is_atomic:
            tree["x-kubernetes-map-type"] = "atomic"
        return tree

    def _property(self, struct_name: str, name: str, field: Field | None, hint: Any) -> Tree:
        shape = None if field is None else field.shape
        schema = self._value(shape, hint, name)
        if (struct_name, name) in _BYTES:
            schema["additionalProperties"] = {"type": "string", "format": "byte"}
        if choices := choices_of(struct_name, name):
            schema.get("items", schema)["enum"] = choices
        described = describe_field(self._group, struct_name, name)
        description = described or _described_by(shape, hint)
        tree: Tree = {"description": description} if description else {}
        tree.update({"allOf": [schema]} if "$ref" in schema else schema)
        return {**tree, **_extensions(field)}

    def _value(self, shape: Shape | None, hint: Any, name: str) -> Tree:
        """Return the schema of a value."""
        if (schema := scalar_schema(hint)) is not None:
            is_fields = name == "fieldsV1"
            return names.reference(names.FIELDS) if is_fields else dict(schema)
        if is_free(shape):
            return names.reference(names.RAW)
        if (struct := struct_of(hint)) is not None and struct_shape(shape) is None:
            return names.reference(self._name(struct.__name__))
        if shape is None:
            return self._hinted(hint, name)
        if shape.is_struct:
            return names.reference(self._name(shape.name))
        if shape.list is not None:
            items = self._value(shape.list.element, element_hint(hint), name)
            return {"type": "array", "items": items}
        if shape.map is not None:
            items = self._value(shape.map.element, element_hint(hint), name)
            return {"type": "object", "additionalProperties": items}
        if shape.scalar == "numeric" and name in _LARGE:
            return {"type": "integer", "format": "int64"}
        return dict(_SCALARS.get(shape.scalar) or _guessed(name))

    def _hinted(self, hint: Any, name: str) -> Tree:
        element = element_hint(hint)
        if element is Any:
            return names.reference(names.RAW)
        return {"type": "array", "items": self._value(None, element, name)}

    def _mark(self, kind: Kind) -> None:
        """Say of a kind what it is, and add its list."""
        component = self._name(kind.name)
        gvk = [{"group": kind.group, "kind": kind.name, "version": kind.version}]
        self._components[component]["x-kubernetes-group-version-kind"] = gvk
        if "list" in verbs_of(kind.plural):
            self._components[f"{component}List"] = common.list_of(kind, component)


def _described_by(shape: Shape | None, hint: Any) -> str:
    """Return the description of the struct that a field holds, or of its items."""
    while shape is not None and not shape.is_struct and (shape.list or shape.map):
        if is_free(shape):
            return ""
        below = shape.list.element if shape.list else shape.map.element if shape.map else None
        shape, hint = below, element_hint(hint)
    return _docstring(struct_of(hint))


def _used(components: dict[str, Tree]) -> dict[str, Tree]:
    """Return the components in order, without scalars that none of them has."""
    text = msgspec.json.encode(components)
    return {
        name: tree
        for name, tree in sorted(components.items())
        if name not in common.SCALARS or f'schemas/{name}"'.encode() in text
    }


def _guessed(name: str) -> Tree:
    """Return the schema of a scalar that may be a text or a number, by what it is called."""
    if name in _NUMBER_OR_NAME:
        return names.reference(names.INT_OR_STRING)
    if name.endswith(("Time", "At", "Timestamp")):
        return names.reference(names.TIME)
    return names.reference(names.QUANTITY)


def _extensions(field: Field | None) -> Tree:
    """Return what a field's list or map means when two objects are merged."""
    if field is None or is_free(field.shape):
        return {}
    tree: Tree = {}
    form = field.shape.list
    if form is not None:
        if form.relation is Relation.KEYED:
            tree["x-kubernetes-list-map-keys"] = list(form.keys)
        tree["x-kubernetes-list-type"] = {Relation.KEYED: "map"}.get(
            form.relation, form.relation.value
        )
    elif field.shape.map is not None and not field.shape.is_struct and field.shape.map.is_atomic:
        tree["x-kubernetes-map-type"] = "atomic"
    if field.merge_key:
        tree["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.strategy:
        tree["x-kubernetes-patch-strategy"] = ",".join(field.strategy)
    return tree


def _docstring(struct: type[Struct] | None) -> str:
    """Return the first paragraph of a struct's docstring in one line."""
    text = inspect.cleandoc(struct.__doc__ or "") if struct is not None else ""
    return " ".join(text.partition("\n\n")[0].split())
