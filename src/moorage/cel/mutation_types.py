"""The types that mutating policies write: `Object{…}`, `Object.spec{…}` and `JSONPatch{…}`.

No schema says which fields an object has: `Object.spec` is a type because its name begins with
`Object.`, and each of its fields may hold anything. After the evaluation, `mismatched_types` finds
objects whose type does not name the place where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from moorage.cel.lang import types as t
from moorage.cel.lang.costs import traverses_first
from moorage.cel.lang.environment import (
    Environment,
    Identifier,
    Library,
    StructMaker,
    functions_of,
)
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.interpretable import go_type
from moorage.cel.lang.types import Type, struct, type_of
from moorage.cel.lang.values import BoolKey, Optional, TypeValue, UInt
from moorage.kit.go_quote import go_quote

OBJECT: Final = struct("Object")
JSON_PATCH: Final = struct("JSONPatch")
JSON_PATCHES: Final = t.list_of(JSON_PATCH)
NESTED_MAX: Final = 100

_PATCH_FIELDS: Final = {"op": t.STRING, "path": t.STRING, "from": t.STRING, "value": t.DYN}


class ObjectValue(dict[str, Any]):
    """A value of `Object` or of one of the types below it."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.type_name = type_name


class JsonPatchValue(dict[str, Any]):
    """A value of `JSONPatch`: one operation."""

    __slots__ = ()


class MutationEnvironment(Environment):
    """An environment in which the names of these types are known."""

    def type_identifier(self, name: str) -> Identifier | None:
        """Return the type of a name, if it is one."""
        if _is_type(name := name.removeprefix(".")):
            return Identifier(name, type_of(struct(name)), TypeValue(struct(name)))
        return super().type_identifier(name)

    def has_struct(self, name: str) -> bool:
        """Return whether a name may have fields."""
        return _is_type(name) or super().has_struct(name)

    def field_type(self, struct_name: str, field_name: str) -> Type | None:
        """Return the type of a field; those of objects are not known."""
        if struct_name == JSON_PATCH.name:
            return _PATCH_FIELDS.get(field_name)
        return t.DYN if _is_type(struct_name) else super().field_type(struct_name, field_name)

    def struct_maker(self, struct_name: str) -> StructMaker | None:
        """Return what makes values of a type."""
        if struct_name == JSON_PATCH.name:
            return _json_patch
        if _is_type(struct_name):
            return lambda fields: ObjectValue(struct_name, fields)
        return super().struct_maker(struct_name)


def library() -> Library:
    """Return the library `kubernetes.jsonpatch`."""
    return Library(
        "kubernetes.jsonpatch",
        functions=(
            functions_of(
                "jsonpatch.escapeKey",
                ("string_jsonpatch_escapeKey_string", (t.STRING,), t.STRING, _escaped_key),
                costs=traverses_first(keeps_size=True),
            ),
        ),
    )


def _is_type(name: str) -> bool:
    return name in (OBJECT.name, JSON_PATCH.name) or name.startswith("Object.")


def _escaped_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _json_patch(fields: dict[str, Any]) -> JsonPatchValue:
    for name in ("op", "path", "from"):
        if not isinstance(value := fields.get(name, ""), str):
            raise EvalError(
                f"unexpected type {_native_type(value)} for JSONPatchType '{name}' field"
            )
    return JsonPatchValue(fields)


def _native_type(value: Any) -> str:
    native = {bool: "bool", int: "int64", float: "float64", UInt: "uint64", type(None): "<nil>"}
    return native.get(type(value)) or go_type(value)


# --- values as JSON -------------------------------------------------------------------------------


def mismatched_types(value: Any, place: str | None = None) -> Iterator[str]:
    """Yield an error for each object whose type does not name its place."""
    pending = [(value, getattr(value, "type_name", "") if place is None else place)]
    while pending:
        found, expected = pending.pop()
        if isinstance(found, ObjectValue):
            if found.type_name != expected:
                yield (
                    f"unexpected type name {go_quote(found.type_name)}, expected "
                    f"{go_quote(expected)}, which matches field name path from root Object type"
                )
            pending += [(field, f"{expected}.{name}") for name, field in found.items()]
        elif isinstance(found, dict):
            pending += [(each, expected) for each in found.values()]
        elif isinstance(found, list | tuple):
            pending += [(each, expected) for each in found]


def as_json(value: Any, depth: int = 0) -> Any:
    """Return a value as a tree of JSON, or raise EvalError if it has none."""
    if depth > NESTED_MAX:
        raise EvalError("nested too deeply")
    match value:
        case None | bool() | str() | float():
            return value
        case int():
            return int(value)
        case list() | tuple():
            return [as_json(each, depth + 1) for each in value]
        case dict():
            return {_json_key(key): as_json(each, depth + 1) for key, each in value.items()}
        case Optional():
            return as_json(value.value, depth + 1) if value.has_value else None
    raise EvalError(f"type conversion error from '{go_type(value)}' to JSON")


def _json_key(key: Any) -> str:
    if isinstance(key, BoolKey) or not isinstance(key, str):
        raise EvalError(f"map key {go_quote(str(key))} is of type {go_type(key)}, not string")
    return key
