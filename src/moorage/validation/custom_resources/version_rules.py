"""Rules for parts of versions: subresources, printer columns, selectable fields."""

from __future__ import annotations

from moorage.api.apiextensions import (
    CustomResourceColumnDefinition,
    CustomResourceSubresources,
    SelectableField,
)
from moorage.api.field_path import Path
from moorage.validation.custom_resources.field_paths import FieldPathError, find_field
from moorage.validation.custom_resources.structural import Structural
from moorage.validation.errors import ErrorList, duplicate, invalid, required, too_many

SELECTABLE_FIELDS_MAX = 8
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = (*("byte", "date", "date-time", "double", "float", "int32", "int64", "password"),)


def validate_subresources(given: CustomResourceSubresources | None, path: Path) -> ErrorList:
    """Validate where /scale has its fields."""
    if given is None or given.scale is None:
        return []
    scale = given.scale
    return (
        _validate_replicas(scale.spec_replicas_path, ".spec", path.child("scale.specReplicasPath"))
        + _validate_replicas(
            scale.status_replicas_path, ".status", path.child("scale.statusReplicasPath")
        )
        + _validate_selector(scale.label_selector_path or "", path.child("scale.labelSelectorPath"))
    )


def _validate_replicas(text: str, above: str, path: Path) -> ErrorList:
    if not text:
        return [required(path)]
    if faults := _validate_json_path(text, path):
        return faults
    if not text.startswith(f"{above}."):
        return [invalid(path, text, f"should be a json path under {above}")]
    return []


def _validate_selector(text: str, path: Path) -> ErrorList:
    if not text:
        return []
    if faults := _validate_json_path(text, path):
        return faults
    if not text.startswith((".spec.", ".status.")):
        return [invalid(path, text, "should be a json path under either .spec or .status")]
    return []


def _validate_json_path(text: str, path: Path) -> ErrorList:
    if text.startswith("."):
        return []
    return [invalid(path, text, "must be a simple json path starting with .")]


def validate_column(column: CustomResourceColumnDefinition, path: Path) -> ErrorList:
    """Validate a printer column."""
    found: ErrorList = []
    if not column.name:
        found.append(required(path.child("name")))
    words = f"must be one of {','.join(COLUMN_TYPES)}"
    if not column.type:
        found.append(required(path.child("type"), words))
    elif column.type not in COLUMN_TYPES:
        found.append(invalid(path.child("type"), column.type, words))
    if column.format and column.format not in COLUMN_FORMATS:
        words = f"must be one of {','.join(COLUMN_FORMATS)}"
        found.append(invalid(path.child("format"), column.format, words))
    if not column.json_path:
        found.append(required(path.child("JSONPath")))
    else:
        found += _validate_json_path(column.json_path, path.child("JSONPath"))
    return found


def validate_selectable(
    fields: tuple[SelectableField, ...], schema: Structural, path: Path
) -> ErrorList:
    """Validate the fields that field selectors may use."""
    found: ErrorList = []
    seen: set[str] = set()
    for index, each in enumerate(fields):
        place, text = path.index(index).child("jsonPath"), each.json_path
        if not text:
            found.append(required(place))
            continue
        try:
            where, field = find_field(text, schema, allows_brackets=False)
        except FieldPathError as error:
            found.append(invalid(place, text, f"is an invalid path: {error}"))
            continue
        if where.segments[0] == "metadata":
            found.append(invalid(place, text, "must not point to fields in metadata"))
        if field is None or field.type not in ("string", "boolean", "integer"):
            words = (
                "must point to a field of type string, boolean or integer. Enum string fields and "
                "strings with formats are allowed."
            )
            found.append(invalid(place, text, words))
        if str(where) in seen:
            found.append(duplicate(place, text))
        seen.add(str(where))
    if len(seen) > SELECTABLE_FIELDS_MAX:
        found.append(too_many(path, len(seen), SELECTABLE_FIELDS_MAX))
    return found
