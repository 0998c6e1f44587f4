"""All checks of the schema of a version: structure, rules, defaults and expressions, in order."""

from __future__ import annotations

from typing import Final

from moorage.api.field_path import Path
from moorage.api.field_path import Place as FieldPlace
from moorage.api.json_schema import Schema
from moorage.validation.custom_resources.embedded_metadata import validate_embedded
from moorage.validation.custom_resources.pruning import pruned
from moorage.validation.custom_resources.rule_costs import validate_expressions
from moorage.validation.custom_resources.rule_validator import rule_validator
from moorage.validation.custom_resources.schema_rules import Place, validate_schema
from moorage.validation.custom_resources.schema_validator import SchemaValidator
from moorage.validation.custom_resources.structural import (
    META_FIELDS,
    MISSING,
    Structural,
    structural,
)
from moorage.validation.custom_resources.structural_rules import (
    unsupported_field,
    validate_structural,
)
from moorage.validation.errors import ErrorList, forbidden, invalid, invalid_whole

# The fields, as Go names them, that the root of a schema may have with the subresource /status.
_AT_ROOT: Final = (
    *("Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum"),
    *("ExclusiveMinimum", "MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems"),
    *("UniqueItems", "MultipleOf", "Required", "Items", "Properties", "ExternalDocs", "Example"),
    *("XPreserveUnknownFields", "XValidations"),
)
_GO_NAMES: Final = {
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}


def validate_version_schema(
    tree: Schema, path: Path, *, has_status: bool, is_unchanged: bool
) -> ErrorList:
    """Validate the schema of a version; expression costs are ignored if it is unchanged."""
    found = _validate_root(tree, path) if has_status else []
    if tree.get("nullable"):
        where = _above(path).child("openAPIV3Schema.nullable")
        found.append(forbidden(where, "nullable cannot be true at the root"))
    unsupported = unsupported_field(tree)
    is_sound = False
    if unsupported is None:
        problems = validate_structural(tree, path)
        if not problems:
            problems = validate_defaults(structural(tree), path)
        found += problems
        is_sound = not problems
    found += validate_schema(tree, Place(path, is_root=True))
    if not found and unsupported is not None:
        found.append(invalid(path, "", unsupported))
    if is_sound and not found:
        found += validate_expressions(tree, path, is_unchanged=is_unchanged)
    return found


def _validate_root(tree: Schema, path: Path) -> ErrorList:
    for name in tree:
        go_name = _GO_NAMES.get(name, name[0].upper() + name[1:])
        if name == "type" and tree[name] != "object":
            words = (
                'only "object" is allowed as the type at the root of the schema if the status '
                "subresource is enabled"
            )
            return [invalid(_above(path).child("openAPIV3Schema.type"), tree[name], words)]
        if go_name not in _AT_ROOT:
            words = (
                f"only [{' '.join(_AT_ROOT)}] fields are allowed at the root of the schema if the "
                "status subresource is enabled"
            )
            return [invalid_whole(path, words)]
    return []


def _above(path: Path) -> Path:
    assert path.parent is not None
    return path.parent


# --- defaults ---------------------------------------------------------------------------------


def validate_defaults(
    schema: Structural, path: Path, *, is_resource: bool = True, is_inside_metadata: bool = False
) -> ErrorList:
    """Validate all defaults of a schema."""
    found: ErrorList = []
    if schema.default is not MISSING:
        found += _validate_default(schema, path.child("default"), is_inside=is_inside_metadata)
    if schema.items is not None:
        items = schema.items
        found += validate_defaults(
            items,
            path.child("items"),
            is_resource=items.is_embedded,
            is_inside_metadata=is_inside_metadata and not items.is_embedded,
        )
    for name, each in schema.properties.items():
        is_meta = is_resource and name in META_FIELDS
        found += validate_defaults(
            each,
            path.child("properties").key(name),
            is_resource=each.is_embedded,
            is_inside_metadata=(is_inside_metadata or is_meta) and not each.is_embedded,
        )
    return found


def _validate_default(schema: Structural, path: Path, *, is_inside: bool) -> ErrorList:
    value = schema.default
    if not is_inside:
        unknown: list[FieldPlace] = []
        pruned(value, schema, unknown, is_root=schema.is_embedded)
        if unknown:
            return [invalid(path, value, "must not have unknown fields")]
        if found := validate_embedded(value, schema, path):
            return found
    if found := SchemaValidator(schema.tree).errors(value, path):
        return found
    rules = rule_validator(schema, is_resource=schema.is_embedded)
    return [] if rules is None else rules.validate(value, None, path)
