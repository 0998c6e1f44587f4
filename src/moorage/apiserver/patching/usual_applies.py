"""Owners of fields after a usual apply, without trees of whole objects.

An apply is usual if its manager applies for the first time, and only adds: every field that it
names is absent from the object, and nobody owns it. Then nothing of others changes, and there is no
conflict. All other applies return None: `FieldManager` goes the long way, with the same result.

# member: a top-level field of an object, such as the status
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Raw
from msgspec.json import encode

from moorage.api.kinds import Kind
from moorage.api.meta import ManagedFieldsEntry
from moorage.api.timestamp import Timestamp
from moorage.apiserver.patching.field_manager import SERVERS_OWN, reset_fields
from moorage.apiserver.patching.field_set import ElementError, FieldSet, to_json
from moorage.apiserver.patching.managed_fields import APPLY, fields_of_text
from moorage.apiserver.patching.shapes import DEDUCED, JSON, Shape, find_shape
from moorage.apiserver.patching.structured_compare import ShapeError, check, fields_of
from moorage.apiserver.patching.structured_merge import ItemError
from moorage.apiserver.patching.updater import KUBECTL, with_atomic_parents
from moorage.apiserver.patching.usual_writes import entry_order

Entries = tuple[ManagedFieldsEntry, ...]

HEAD = ("apiVersion", "kind")
IDENTITY = ("name", "namespace", "uid")  # of an object's metadata


class AppliedMembers(NamedTuple):
    """The members that an apply changes, as trees, and all managers after it."""

    members: dict[str, Any]
    entries: Entries


class UsualApplies:
    """Applies to the objects of one kind, in one version, through the resource or a subresource."""

    def __init__(self, kind: Kind, subresource: str) -> None:
        shape = find_shape(kind.api_version, kind.name)
        assert shape is not None, f"no table for {kind.api_version} {kind.name}"
        self._shape = shape
        self._kind = kind
        self._subresource = subresource
        self._reset = reset_fields(kind, subresource)

    def applied(
        self,
        entries: Entries,
        identity: dict[str, str],
        live: Callable[[str], Any],
        tree: Any,
        manager: str,
        now: Timestamp,
    ) -> AppliedMembers | None:
        """Return what an apply makes of an object; `live` gives its members as trees."""
        if not self._is_for(tree, identity) or manager == KUBECTL or not entries:
            return None
        try:
            check(self._shape, tree)
            fields = fields_of(self._shape, tree).without(self._reset) - SERVERS_OWN
            if fields.is_empty or not self._is_free(fields, entries, manager):
                return None
        except (ShapeError, ItemError, ElementError, RecursionError):
            return None
        members = {}
        for name, added in tree.items():
            if name in HEAD or name == "metadata":
                continue
            declared = self._shape.map.fields.get(name) if self._shape.map is not None else None
            if declared is None or (merged := _added(declared.shape, live(name), added)) is None:
                return None
            members[name] = merged
        if not members:
            return None
        entry = ManagedFieldsEntry(
            manager=manager,
            operation=APPLY,
            api_version=self._kind.api_version,
            time=now,
            fields_type="FieldsV1",
            fields_v1=Raw(encode(to_json(fields))),
            subresource=self._subresource,
        )
        return AppliedMembers(members, tuple(sorted((*entries, entry), key=entry_order)))

    def _is_for(self, tree: Any, identity: dict[str, str]) -> bool:
        """Return whether an applied object names this one, and no other metadata."""
        if not isinstance(tree, dict) or (tree.get("apiVersion"), tree.get("kind")) != (
            self._kind.api_version,
            self._kind.name,
        ):
            return False
        metadata = tree.get("metadata", {})
        return isinstance(metadata, dict) and all(
            name in IDENTITY and identity[name] == value for name, value in metadata.items()
        )

    def _is_free(self, fields: FieldSet, entries: Entries, manager: str) -> bool:
        """Return whether nobody owns one of the fields, and the manager has applied nothing."""
        for entry in entries:
            if entry.api_version != self._kind.api_version:
                return False
            if (entry.manager, entry.operation, entry.subresource) == (
                manager,
                APPLY,
                self._subresource,
            ):
                return False
            known = fields_of_text(bytes(entry.fields_v1))
            if with_atomic_parents(known, self._shape) is not known:
                return False
            if not (known & fields).is_empty:
                return False
        return True


def _added(shape: Shape, live: Any, added: Any) -> Any | None:
    """Return a live map with fields added; None if it has one of them already."""
    if shape in (JSON, DEDUCED) or shape.map is None or shape.map.is_atomic:
        return None
    if not isinstance(live, dict) or not isinstance(added, dict) or not added:
        return None
    merged = dict(live)
    for name, value in added.items():
        declared = shape.map.fields.get(name)
        below = shape.map.element if declared is None else declared.shape
        if name not in live:
            if not _is_full(value):
                return None
            merged[name] = value
        elif below is None or (part := _added(below, live[name], value)) is None:
            return None
        else:
            merged[name] = part
    return merged


def _is_full(value: Any) -> bool:
    """Return whether nothing in a value is null or empty, which an apply would leave out."""
    if isinstance(value, dict):
        return bool(value) and all(map(_is_full, value.values()))
    if isinstance(value, list):
        return bool(value) and all(map(_is_full, value))
    return value is not None
