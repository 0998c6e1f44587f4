"""The owners of an object's fields, as managedFields has them.

An owner is a manager with what it does: those that apply are one owner for all versions, those
that update one for each version. All that is owned by one is a set of fields in one version.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from mooring.api.errors import ApiError
from mooring.api.timestamp import Timestamp
from mooring.apiserver.patching import field_set
from mooring.apiserver.patching.field_set import ElementError, FieldSet, from_json, to_json
from mooring.apiserver.patching.json_values import Tree, quoted, same
from mooring.apiserver.patching.shapes import ListForm, MapForm, Relation, Shape
from mooring.apiserver.patching.structured_merge import step_to

APPLY, UPDATE = "Apply", "Update"


class ManagedFieldsError(ValueError):
    """managedFields that cannot be read."""


class FieldOwner(NamedTuple):
    """Who owns fields."""

    manager: str
    operation: str
    api_version: str = ""  # of those that update
    subresource: str = ""

    @property
    def identifier(self) -> str:
        """What Kubernetes knows the owner by, and sorts by."""
        parts = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return json.dumps({name: part for name, part in parts.items() if part})

    def __str__(self) -> str:
        """Return the owner as conflicts name it."""
        text = quoted(self.manager)
        if self.subresource:
            text += f" with subresource {quoted(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class VersionedSet(NamedTuple):
    """The fields that an owner has, and the version in which they are told."""

    fields: FieldSet
    api_version: str
    text: Raw | None = None  # of fieldsV1 that `fields` were read from, if that was text


class ManagedFields:
    """Shares by owner, and when each owner last changed something."""

    def __init__(self) -> None:
        self.shares: dict[FieldOwner, VersionedSet] = {}
        self.times: dict[FieldOwner, str] = {}

    def copy(self) -> ManagedFields:
        """Return a ledger that can be changed without changing this one."""
        copied = ManagedFields()
        copied.shares.update(self.shares)
        copied.times.update(self.times)
        return copied

    def to_json(self) -> list[dict[str, Any]]:
        """Return the entries of managedFields, in Kubernetes' order."""
        entries = []
        for owner, share in self.shares.items():
            entry: dict[str, Any] = {
                "manager": owner.manager,
                "operation": owner.operation,
                "apiVersion": share.api_version,
                "time": self.times.get(owner),
                "fieldsType": "FieldsV1",
                "fieldsV1": _written(share),
                "subresource": owner.subresource,
            }
            written = {key: value for key, value in entry.items() if value not in ("", None)}
            entries.append(written)
        return sorted(entries, key=_entry_order)


def read_managed_fields(entries: Tree) -> ManagedFields:
    """Return the ledger that managedFields describes, or raise LedgerError."""
    ledger = ManagedFields()
    if entries and not isinstance(entries, list):
        raise ManagedFieldsError("managedFields must be a list")
    for index, entry in enumerate(entries or ()):
        if not isinstance(entry, dict):
            raise ManagedFieldsError("an entry must be a map")
        owner, share = _read_entry(index, entry)
        ledger.shares[owner] = share
        if time := entry.get("time"):
            ledger.times[owner] = str(time)
    return ledger


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
                f"invalid fieldsType {quoted(str(other))} in managed fields entry {index}"
            )
    told = entry.get("fieldsV1") or {}
    text = told if isinstance(told, Raw) else None
    try:
        fields = from_json(told) if text is None else _from_text(bytes(text))
    except ElementError as error:
        raise ManagedFieldsError(f"error decoding set: {error}") from None
    owner = FieldOwner(
        str(entry.get("manager") or ""),
        operation,
        "" if operation == APPLY else str(api_version),
        str(entry.get("subresource") or ""),
    )
    return owner, VersionedSet(fields, str(api_version), text)


# Objects of a kind are mostly alike in their fields. Sets are values, so they can be shared.
@lru_cache(maxsize=4096)
def _from_text(text: bytes) -> FieldSet:
    return from_json(msgspec.json.decode(text))


def _written(share: VersionedSet) -> Any:
    """Return fieldsV1 of a share: the text that it was read from, if it is still that."""
    if share.text is not None and share.fields is _from_text(bytes(share.text)):
        return share.text
    return to_json(share.fields)


def seconds(time: str | None) -> int:
    """Return a time of managedFields as seconds; none is the beginning."""
    if not time:
        return 0
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


# ---- from mooring.apiserver.patching.owning.capping: A bound on the owners that update: the oldest become one.

UPDATERS_MAX = 10

_ANCIENT = "ancient-changes"


def cap_updaters(ledger: ManagedFields) -> None:
    """Merge the oldest owners that update, by version, until there are few enough."""
    updaters = [owner for owner in ledger.shares if owner.operation == UPDATE]
    count = len(updaters)
    if count <= UPDATERS_MAX:
        return
    updaters.sort(key=lambda owner: (seconds(ledger.times.get(owner)), owner.identifier))
    first_of: dict[str, FieldOwner] = {}  # by version
    for owner in updaters:
        if count <= UPDATERS_MAX:
            return
        share = ledger.shares[owner]
        first = first_of.setdefault(share.api_version, owner)
        if first is owner:
            continue
        bucket = FieldOwner(_ANCIENT, UPDATE, share.api_version)
        if bucket not in ledger.shares:
            ledger.shares[bucket] = ledger.shares.pop(first)
        merged = share.fields | ledger.shares[bucket].fields
        ledger.shares.pop(owner)
        ledger.shares[bucket] = VersionedSet(merged, share.api_version)
        count -= 1
        _take_time(ledger, bucket, owner)


def _take_time(ledger: ManagedFields, bucket: FieldOwner, owner: FieldOwner) -> None:
    """Let the bucket have the time of the owner, which is the later one."""
    if owner in ledger.times:
        ledger.times[bucket] = ledger.times[owner]
    else:
        ledger.times.pop(bucket, None)


# ---- from mooring.apiserver.patching.owning.creating: What the creator of an object owns: all that it has and that an empty object has not.

Fields = dict[str, Any]  # fieldsV1: each step with what is below it

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
    """A value whose form differs from that of the empty object's."""


def created_fields(shape: Shape, empty: Tree, new: Tree, *, left_alone: frozenset[str]) -> Fields:
    """Return what the creator of an object owns, but for some fields of the first level."""
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
        below.pop(".", None)  # that there is metadata is nobody's
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
            below = _whole(shape, new[name])
        if below is not None:
            result[f"f:{name}"] = below
    return result


def _changed(shape: Shape, empty: Tree, new: Tree) -> Fields | None:
    """Return what is owned below a field that the empty object has too; None is not even it."""
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


def _whole(shape: Shape, value: Tree) -> Fields:
    """Return what is owned below a field that only the new object has."""
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
                result[f"f:{name}"] = _whole(below, value[name])
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
        step: _whole(form.element, by_step[step][0]) if len(by_step[step]) == 1 else _LEAF
        for step in sorted(by_step, key=field_set.order)
    }
