"""Validates apiVersion, kind and metadata of embedded resources."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from moorage.api import names
from moorage.api.codec import decode_tree
from moorage.api.errors import ApiError
from moorage.api.field_path import MapKey, Path, path_of
from moorage.api.meta import ObjectMeta
from moorage.validation.custom_resources.structural import Structural
from moorage.validation.errors import ErrorList, invalid, required
from moorage.validation.metadata import validate_metadata


def validate_embedded(value: Any, schema: Structural | None, path: Path | None = None) -> ErrorList:
    """Validate all embedded resources below a value, and the value itself if it is one."""
    if schema is None:
        return []
    found: ErrorList = []
    if isinstance(value, list):
        for index, item in enumerate(value):
            found += validate_embedded(item, schema.items, Path(index, path))
    elif isinstance(value, dict):
        if schema.is_embedded:
            found += _validate_resource(value, path)
        for name, member in value.items():
            if name in schema.properties:
                found += validate_embedded(member, schema.properties[name], Path(name, path))
            elif schema.additional_schema is not None:
                place = Path(MapKey(name), path)
                found += validate_embedded(member, schema.additional_schema, place)
    return found


def _validate_resource(value: dict[str, Any], path: Path | None) -> ErrorList:
    found: ErrorList = []
    for name in ("apiVersion", "kind"):
        place = Path(name, path)
        if name not in value:
            found.append(required(place))
        elif not isinstance(value[name], str):
            found.append(invalid(place, value[name], "must be a string"))
        elif not value[name]:
            found.append(invalid(place, "", "must not be empty"))
        else:
            found += _validate_word(name, value[name], place)
    if "metadata" in value:
        found += _validate_metadata(value["metadata"], Path("metadata", path))
    return found


def _validate_word(name: str, text: str, place: Path) -> ErrorList:
    if name == "apiVersion":
        if text.count("/") > 1:
            return [invalid(place, text, f"unexpected GroupVersion string: {text}")]
        return []
    if faults := names.dns1035_label(text.lower()):
        words = f"may have mixed case, but should otherwise match: {','.join(faults)}"
        return [invalid(place, text, words)]
    return []


def _validate_metadata(tree: Any, path: Path) -> ErrorList:
    try:
        metadata = decode_tree(tree, ObjectMeta).value
    except ApiError as error:
        return [invalid(path, tree, str(error))]
    if not metadata.name:
        metadata = replace(metadata, name="fakename")
    found = validate_metadata(
        metadata,
        namespaced=bool(metadata.namespace),
        validate_name=names.path_segment,
        qualified_finalizers=False,
    )
    above = path.segments
    return [replace(error, path=path_of((*above, *error.path.segments[1:]))) for error in found]
