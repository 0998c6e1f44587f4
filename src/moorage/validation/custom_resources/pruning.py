"""Pruning: removes the fields of a tree that its schema does not have.

Trees are never changed in place: a pruned tree is new, and shares unchanged parts with the old one.
"""

from __future__ import annotations

from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.errors import ApiError
from moorage.api.field_path import Place
from moorage.api.meta import ObjectMeta
from moorage.validation.custom_resources.structural import META_FIELDS, Structural


def pruned(
    value: Any, schema: Structural | None, unknown: list[Place], *, is_root: bool = True
) -> Any:
    """Return a value without unknown fields, whose paths are added to `unknown`.

    At the root of a resource, apiVersion, kind and metadata are left alone. The metadata of an
    embedded resource has the fields of all metadata.
    """
    if is_root:
        schema = (schema or Structural({}))._replace(is_embedded=True)
    return _pruned(value, schema, unknown, ())


def _pruned(value: Any, schema: Structural | None, unknown: list[Place], place: Place) -> Any:
    if schema is not None and schema.preserves_unknown:
        return _kept(value, schema, unknown, place)
    if isinstance(value, dict):
        return _pruned_map(value, schema, unknown, place)
    if isinstance(value, list):
        items = None if schema is None else schema.items
        after = [_pruned(item, items, unknown, (*place, i)) for i, item in enumerate(value)]
        return after if _differs(after, value) else value
    return value


def _pruned_map(
    value: dict[str, Any], schema: Structural | None, unknown: list[Place], place: Place
) -> dict[str, Any]:
    after: dict[str, Any] = {}
    is_changed = False
    for name, member in value.items():
        if schema is not None and schema.is_embedded and name in META_FIELDS:
            after[name] = _meta_field(name, member, unknown, place)
            is_changed = is_changed or after[name] is not member
            continue
        if schema is not None and (name in schema.properties or _has_more(schema)):
            below = schema.below(name)
            after[name] = _pruned(member, below, unknown, (*place, name))
            is_changed = is_changed or after[name] is not member
            continue
        unknown.append((*place, name))
        is_changed = True
    return after if is_changed else value


def _has_more(schema: Structural) -> bool:
    """Return whether undeclared properties are preserved."""
    return schema.additional is not None


def _kept(value: Any, schema: Structural, unknown: list[Place], place: Place) -> Any:
    """Return a value with its unknown fields; declared fields are pruned below."""
    if isinstance(value, list):
        if schema.items is None:
            return value
        after = [_kept(item, schema.items, unknown, (*place, i)) for i, item in enumerate(value)]
        return after if _differs(after, value) else value
    if not isinstance(value, dict):
        return value
    changed: dict[str, Any] = {}
    for name, member in value.items():
        if schema.is_embedded and name in META_FIELDS:
            below = _meta_field(name, member, unknown, place)
        elif name in schema.properties or _has_more(schema):
            below = _pruned(member, schema.below(name), unknown, (*place, name))
        else:
            continue
        if below is not member:
            changed[name] = below
    return {**value, **changed} if changed else value


def _meta_field(name: str, value: Any, unknown: list[Place], place: Place) -> Any:
    """Return apiVersion, kind or metadata of a resource without unknown fields of metadata."""
    if name != "metadata" or not isinstance(value, dict):
        return value
    try:
        places = decode_tree(value, ObjectMeta).unknown
    except ApiError:
        return value  # Validation reports it.
    unknown += [(*place, name, *each) for each in places]
    for each in places:
        value = _without(value, each)
    return value


def _without(value: Any, place: Place) -> Any:
    """Return a value without the field at a place."""
    first, *rest = place
    if isinstance(value, list):
        return [_without(item, tuple(rest)) if i == first else item for i, item in enumerate(value)]
    if rest:
        return {**value, first: _without(value[first], tuple(rest))}
    return {name: member for name, member in value.items() if name != first}


def _differs(after: list[Any], before: list[Any]) -> bool:
    return any(a is not b for a, b in zip(after, before, strict=True))
