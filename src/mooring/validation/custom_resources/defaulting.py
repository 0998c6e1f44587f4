"""Defaulting: adds the defaults of a schema to a tree, and drops nulls that it does not allow.

Trees are never changed in place, so objects can share default values.
"""

from __future__ import annotations

from typing import Any

from mooring.validation.custom_resources.structural import MISSING, Structural


def defaulted(value: Any, schema: Structural | None) -> Any:
    """Return a value with the defaults of its schema.

    Where the schema does not allow null, a null is replaced with the default, or dropped without
    one.
    """
    return _with_defaults(_without_nulls(value, schema), schema)


def _without_nulls(value: Any, schema: Structural | None) -> Any:
    if isinstance(value, list):
        items = None if schema is None else schema.items
        after = [_without_nulls(item, items) for item in value]
        return after if any(a is not b for a, b in zip(after, value, strict=True)) else value
    if not isinstance(value, dict) or schema is None:
        return value
    kept: dict[str, Any] = {}
    is_changed = False
    for name, member in value.items():
        below = schema.below(name)
        is_allowed = below is None or below.nullable or below.default is not MISSING
        if member is None and not is_allowed:
            is_changed = True
            continue
        kept[name] = _without_nulls(member, below)
        is_changed = is_changed or kept[name] is not member
    return kept if is_changed else value


def _with_defaults(value: Any, schema: Structural | None) -> Any:
    if schema is None:
        return value
    if isinstance(value, list):
        after = [_with_defaults(_given(item, schema.items), schema.items) for item in value]
        return after if any(a is not b for a, b in zip(after, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    changed: dict[str, Any] = {}
    for name, below in schema.properties.items():
        if below.default is not MISSING and name not in value:
            changed[name] = _with_defaults(below.default, below)
    for name, member in value.items():
        below_or_none = schema.below(name)
        after_member = _with_defaults(_given(member, below_or_none), below_or_none)
        if after_member is not member:
            changed[name] = after_member
    return {**value, **changed} if changed else value


def _given(value: Any, schema: Structural | None) -> Any:
    """Return a value, or its default if it is a null that the schema does not allow."""
    if value is not None or schema is None or schema.nullable:
        return value
    return None if schema.default is MISSING else schema.default
