"""ManagedFields: the managers of an object's fields, as the entries of managedFields have them.

A field owner is a manager with its operation: one that applies is one owner for all versions, one
that updates is one for each version. It owns a set of fields in one version.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from moorage.api.errors import ApiError
from moorage.api.timestamp import Timestamp
from moorage.apiserver.patching import field_set
from moorage.apiserver.patching.field_set import ElementError, FieldSet, from_json, to_json
from moorage.apiserver.patching.json_values import Tree, same
from moorage.apiserver.patching.shapes import ListForm, MapForm, Relation, Shape
from moorage.apiserver.patching.structured_merge import step_to
from moorage.kit.go_quote import go_quote
from moorage.kit.remembered import remembered

APPLY, UPDATE = "Apply", "Update"
TIME_LENGTH_MAX = 64
SETS_MAX, SET_BYTES_MAX = 2048, 2048  # of fieldsV1 that are remembered


class ManagedFieldsError(ValueError):
    """managedFields that cannot be parsed."""


class FieldOwner(NamedTuple):
    """A manager and its operation."""

    manager: str
    operation: str
    api_version: str = ""  # empty for Apply
    subresource: str = ""

    @property
    def identifier(self) -> str:
        """Kubernetes' identifier and sort key of the owner."""
        parts = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return json.dumps({name: part for name, part in parts.items() if part})

    def __str__(self) -> str:
        """Return the owner as conflict messages print it."""
        text = go_quote(self.manager)
        if self.subresource:
            text += f" with subresource {go_quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class VersionedSet(NamedTuple):
    """The fields of an owner, in one version."""

    fields: FieldSet
    api_version: str
    text: Raw | None = None  # the fieldsV1 that `fields` were parsed from


class ManagedFields:
    """Field sets by owner, and when each owner last changed something."""

    def __init__(self) -> None:
        self.sets: dict[FieldOwner, VersionedSet] = {}
        self.times: dict[FieldOwner, str] = {}

    def copy(self) -> ManagedFields:
        """Return a copy that can be changed."""
        copied = ManagedFields()
        copied.sets.update(self.sets)
        copied.times.update(self.times)
        return copied

    def to_json(self) -> list[dict[str, Any]]:
        """Return the entries of managedFields, in Kubernetes' order."""
        entries = []
        for owner, owned in self.sets.items():
            entry: dict[str, Any] = {
                "manager": owner.manager,
                "operation": owner.operation,
                "apiVersion": owned.api_version,
                "time": self.times.get(owner),
                "fieldsType": "FieldsV1",
                "fieldsV1": _written(owned),
                "subresource": owner.subresource,
            }
            written = {key: value for key, value in entry.items() if value not in ("", None)}
            entries.append(written)
        return sorted(entries, key=_entry_order)


def read_managed_fields(entries: Tree) -> ManagedFields:
    """Return parsed managedFields, or raise ManagedFieldsError."""
    managed = ManagedFields()
    if entries and not isinstance(entries, list):
        raise ManagedFieldsError("managedFields must be a list")
    for index, entry in enumerate(entries or ()):
        if not isinstance(entry, dict):
            raise ManagedFieldsError("an entry must be a map")
        owner, owned = _read_entry(index, entry)
        managed.sets[owner] = owned
        if time := entry.get("time"):
            managed.times[owner] = str(time)
    return managed


def _read_entry(index: int, entry: dict[str, Tree]) -> tuple[FieldOwner, VersionedSet]:
    operation = entry.get("operation")
    if operation not in (APPLY, UPDATE):
        raise ManagedFieldsError("operation must be `Apply` or `Update`")
    if not (api_version := entry.get("apiVersion")):
        raise ManagedFieldsError("apiVersion must not be empty")
    match entry.get("fieldsType"):
        case "FieldsV1":
            pass
        case None | "":
            raise ManagedFieldsError(f"missing fieldsType in managed fields entry {index}")
        case other:
            raise ManagedFieldsError(
                f"invalid fieldsType {go_quote(str(other))} in managed fields entry {index}"
            )
    fields_v1 = entry.get("fieldsV1") or {}
    text = fields_v1 if isinstance(fields_v1, Raw) else None
    try:
        fields = from_json(fields_v1) if text is None else fields_of_text(bytes(text))
    except ElementError as error:
        raise ManagedFieldsError(f"error decoding set: {error}") from None
    owner = FieldOwner(
        str(entry.get("manager") or ""),
        operation,
        "" if operation == APPLY else str(api_version),
        str(entry.get("subresource") or ""),
    )
    return owner, VersionedSet(fields, str(api_version), text)


# Objects of a kind mostly have the same fields. Sets are values, so objects can share them.
@remembered(SETS_MAX, SET_BYTES_MAX)
def fields_of_text(text: bytes) -> FieldSet:
    """Return the set of fieldsV1 as text; it is shared."""
    return from_json(msgspec.json.decode(text))


def _written(owned: VersionedSet) -> Any:
    """Return fieldsV1: the text that the set was parsed from, if it has not changed."""
    if owned.text is not None and owned.fields is fields_of_text(bytes(owned.text)):
        return owned.text
    return to_json(owned.fields)


def seconds(time: str | None) -> int:
    """Return a time of managedFields in seconds; 0 if there is none."""
    if not time:
        return 0
    return _seconds(time)


@remembered(1024, TIME_LENGTH_MAX)  # Managers write several objects in a second.
def _seconds(time: str) -> int:
    try:
        return int(Timestamp.parse(time).instant.timestamp())
    except ApiError:
        return 0


def _entry_order(entry: dict[str, Any]) -> tuple[Any, ...]:
    return (
        entry["operation"],
        seconds(entry.get("time")),
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


# --- the bound on updaters ------------------------------------------------------------------------

UPDATERS_MAX = 10

_ANCIENT = "ancient-changes"


def cap_updaters(managed: ManagedFields) -> None:
    """Merge the oldest owners that update, by version, until the bound holds."""
    updaters = [owner for owner in managed.sets if owner.operation == UPDATE]
    count = len(updaters)
    if count <= UPDATERS_MAX:
        return
    updaters.sort(key=lambda owner: (seconds(managed.times.get(owner)), owner.identifier))
    first_of: dict[str, FieldOwner] = {}  # by version
    for owner in updaters:
        if count <= UPDATERS_MAX:
            return
        owned = managed.sets[owner]
        first = first_of.setdefault(owned.api_version, owner)
        if first is owner:
            continue
        bucket = FieldOwner(_ANCIENT, UPDATE, owned.api_version)
        if bucket not in managed.sets:
            managed.sets[bucket] = managed.sets.pop(first)
        merged = owned.fields | managed.sets[bucket].fields
        managed.sets.pop(owner)
        managed.sets[bucket] = VersionedSet(merged, owned.api_version)
        count -= 1
        _take_time(managed, bucket, owner)


def _take_time(managed: ManagedFields, bucket: FieldOwner, owner: FieldOwner) -> None:
    """Give the bucket the time of an owner, which is later."""
    if owner in managed.times:
        managed.times[bucket] = managed.times[owner]
    else:
        managed.times.pop(bucket, None)


# --- new objects ----------------------------------------------------------------------------------

Fields = dict[str, Any]  # fieldsV1: elements with their children

_LEAF: Fields = {}
_SERVERS_METADATA = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)


class Unusual(Exception):  # noqa: N818  # not an error: the long way is to be gone
    """A value whose type differs from the empty object's."""


def created_fields(shape: Shape, empty: Tree, new: Tree, *, left_alone: frozenset[str]) -> Fields:
    """Return the fields that the creator of an object owns, without some top-level fields."""
    if shape.map is None:
        raise Unusual
    kept = {
        name: value
        for name, value in new.items()
        if name not in left_alone and name not in ("apiVersion", "kind")
    }
    if isinstance(metadata := kept.get("metadata"), dict):
        mine = {name: metadata[name] for name in metadata if name not in _SERVERS_METADATA}
        kept["metadata"] = mine
        if not mine:
            del kept["metadata"]
    fields = _of_map(shape.map, empty, kept)
    below = fields.get("f:metadata")
    if below is not None:
        below.pop(".", None)  # nobody owns metadata itself
    return fields


def _of_map(form: MapForm, empty: dict[str, Tree], new: dict[str, Tree]) -> Fields:
    fields, element = form.fields, form.element
    result: Fields = {}
    for name in sorted(new):
        declared = fields.get(name)
        shape = declared.shape if declared is not None else element
        if shape is None:
            continue
        if name in empty:
            below = _changed(shape, empty[name], new[name])
        else:
            below = whole_fields(shape, new[name])
        if below is not None:
            result[f"f:{name}"] = below
    return result


def _changed(shape: Shape, empty: Tree, new: Tree) -> Fields | None:
    """Return the owned fields below a field that the empty object has; None: not even the field."""
    if empty is new or (empty == new and shape.is_plain):
        return None
    if isinstance(new, dict) and isinstance(empty, dict) and shape.map is not None:
        if not shape.map.is_atomic:
            return _of_map(shape.map, empty, new) or None
    elif isinstance(new, list) and not empty and shape.list is not None and shape.map is None:
        if new and shape.list.relation is not Relation.ATOMIC:
            return _of_list(shape.list, new)
    elif isinstance(new, list) or isinstance(empty, list | dict) or shape.map is not None:
        raise Unusual
    return None if same(empty, new) else _LEAF


def whole_fields(shape: Shape, value: Tree) -> Fields:
    """Return the owned fields below a field that only the new object has."""
    if not value:
        return _LEAF
    form = shape.map
    if isinstance(value, dict) and form is not None and not form.is_atomic:
        fields, element = form.fields, form.element
        result: Fields = {".": _LEAF}
        for name in sorted(value):
            declared = fields.get(name)
            below = declared.shape if declared is not None else element
            if below is not None:
                result[f"f:{name}"] = whole_fields(below, value[name])
        return result if len(result) > 1 else _LEAF
    items = shape.list
    if isinstance(value, list) and items is not None and items.relation is not Relation.ATOMIC:
        return {".": _LEAF, **_of_list(items, value)}
    return _LEAF


def _of_list(form: ListForm, value: list[Tree]) -> Fields:
    by_step: dict[str, list[Tree]] = {}
    for item in value:
        by_step.setdefault(step_to(form, item), []).append(item)
    return {
        step: whole_fields(form.element, by_step[step][0]) if len(by_step[step]) == 1 else _LEAF
        for step in sorted(by_step, key=field_set.order)
    }
