"""Defaulting: adds the defaults of a schema to a tree, and drops nulls that it does not allow.

Trees are never changed, so all objects share the values of a default. Written out, they may be far
larger than what they are added to: a list of empty maps has each default once for each map. So what
is added is bounded, far beyond what one stored object may have.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.api.errors import DecodeError
from moorage.validation.custom_resources.structural import MISSING, Structural

ADDED_BYTES_MAX: Final = 3 * 1024 * 1024  # of one object, as JSON


def defaulted(value: Any, schema: Structural | None) -> Any:
    """Return a value with the defaults of its schema, or raise DecodeError for too many of them.

    Where the schema does not allow null, a null is replaced with the default, or dropped without
    one.
    """
    return _Defaulting().with_defaults(_without_nulls(value, schema), schema)


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


class _Defaulting:
    """Adds defaults, and counts their bytes."""

    def __init__(self) -> None:
        self._bytes_left = ADDED_BYTES_MAX

    def with_defaults(self, value: Any, schema: Structural | None) -> Any:
        """Return a value with the defaults of its schema."""
        if schema is None:
            return value
        if isinstance(value, list):
            items = schema.items
            after = [self.with_defaults(self._given(item, items), items) for item in value]
            return after if any(a is not b for a, b in zip(after, value, strict=True)) else value
        if not isinstance(value, dict):
            return value
        changed: dict[str, Any] = {}
        for name, below in schema.properties.items():
            if below.default is not MISSING and name not in value:
                changed[name] = self.with_defaults(self._default(below), below)
        for name, member in value.items():
            below_or_none = schema.below(name)
            after_member = self.with_defaults(self._given(member, below_or_none), below_or_none)
            if after_member is not member:
                changed[name] = after_member
        return {**value, **changed} if changed else value

    def _given(self, value: Any, schema: Structural | None) -> Any:
        """Return a value, or its default if it is a null that the schema does not allow."""
        if value is not None or schema is None or schema.nullable:
            return value
        return None if schema.default is MISSING else self._default(schema)

    def _default(self, schema: Structural) -> Any:
        self._bytes_left -= schema.default_bytes
        if self._bytes_left < 0:
            raise DecodeError(f"the defaults of its schema are more than {ADDED_BYTES_MAX:,} bytes")
        return schema.default
