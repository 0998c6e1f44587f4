"""Owners of fields after a usual create or update, without trees of whole objects.

Objects are compared member by member (metadata, spec, status) as JSON text: a member whose text is
the same has no changes, and entries of managers who lose nothing stay as they are. A write is usual
if all managers own fields in the version of the request, and the client left managedFields alone.
All others return None: then `FieldManager` goes the long way, with the same result.

# members: the top-level fields of an object as JSON text
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

from msgspec import Raw, Struct
from msgspec.json import Decoder, decode, encode
from msgspec.structs import fields, replace

from moorage.api.codec import encode_stored_json, to_tree
from moorage.api.custom_resource import CustomResource
from moorage.api.kinds import Kind
from moorage.api.meta import ManagedFieldsEntry
from moorage.api.structs import unchecked
from moorage.api.timestamp import Timestamp
from moorage.apiserver.patching.field_manager import SERVERS_OWN, reset_fields
from moorage.apiserver.patching.field_set import ElementError, to_json
from moorage.apiserver.patching.managed_fields import (
    UPDATE,
    UPDATERS_MAX,
    Unusual,
    created_fields,
    fields_of_text,
    whole_fields,
)
from moorage.apiserver.patching.shapes import shape_of_kind
from moorage.apiserver.patching.structured_compare import Comparison, compare
from moorage.apiserver.patching.structured_merge import ItemError
from moorage.apiserver.patching.updater import with_atomic_parents
from moorage.kit.lru import LRU

Entries = tuple[ManagedFieldsEntry, ...]
Members = dict[str, Raw]

SPEC = "spec"
UNOWNED = frozenset(("apiVersion", "kind", "metadata"))  # or only in parts
WRITTEN_HERE_MAX, WRITTEN_HERE_BYTES_MAX = 4096, 2**20
REMEMBERED_BYTES_MAX = 2048

_members = Decoder(dict[str, Raw]).decode
_new_entry = unchecked(ManagedFieldsEntry)


def members_of(value: Any) -> Members:
    """Return the members of an object, without its managedFields."""
    return _members_but(value, {})


def members_of_both(old: Any, new: Any) -> tuple[Members, Members]:
    """Return the members of two versions of an object; those that are one value have no text."""
    same = {}
    if type(old) is type(new):
        same = {
            name: value
            for name, value in _empty_members(cast("Any", type(new))).items()
            if getattr(old, name) is getattr(new, name)
        }
    return _members_but(old, same), _members_but(new, same)


def _members_but(value: Any, replaced: dict[str, Any]) -> Members:
    metadata = replace(value.metadata, managed_fields=())
    return _members(encode_stored_json(replace(value, metadata=metadata, **replaced)))


@lru_cache(maxsize=256)
def _empty_members(struct: Any) -> dict[str, Any]:
    """Return the members of an object of which nothing is set, but for its metadata."""
    if issubclass(struct, CustomResource):
        return {}
    empty, names = struct(), [info.name for info in fields(struct) if info.name != "metadata"]
    return {
        name: getattr(empty, name) for name in names if isinstance(getattr(empty, name), Struct)
    }


class UsualWrites:
    """Owners of the fields of one kind, in one version, through the resource or a subresource."""

    def __init__(self, kind: Kind, subresource: str) -> None:
        shape = shape_of_kind(kind)
        assert shape is not None, f"no table for {kind.api_version} {kind.name}"
        self._shape = shape
        self._api_version = kind.api_version
        self._subresource = subresource
        self._reset = reset_fields(kind, subresource)
        self._nothing = to_tree(kind.struct(api_version=kind.api_version, kind=kind.name))
        self._left_alone = frozenset(step[2:] for step in self._reset.members)

    def created(self, new: Members, manager: str, now: Timestamp) -> Entries | None:
        """Return the entries of a new object that had none."""
        if self._reset.children:
            return None
        spec = None if SPEC in self._left_alone else new.pop(SPEC, None)
        try:
            tree = {name: decode(text) for name, text in new.items()}
            fields = created_fields(self._shape, self._nothing, tree, left_alone=self._left_alone)
            below = None if spec is None else self._below_spec(bytes(spec))
            if below is not None:
                fields = dict(sorted({**fields, "f:spec": below}.items()))
        except (Unusual, ItemError, RecursionError):
            return None
        return (self._entry(manager, now, encode(fields)),) if fields else ()

    def updated(
        self, entries: Entries, old: Members, new: Members, manager: str, now: Timestamp
    ) -> Entries | None:
        """Return the entries of a changed object."""
        if any(entry.api_version != self._api_version for entry in entries):
            return None
        changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        if not changed or not entries:
            return None
        before = {name: decode(old[name]) for name in changed if name in old}
        after = {name: decode(new[name]) for name in changed if name in new}
        try:
            found = self._with_added(entries, before, after, manager, now)
            if found is not None:
                return found
            change = compare(self._shape, before, after).without(self._reset)
        except (ItemError, RecursionError):
            return None
        steps = _texts_of(change)
        mine = (change.modified | change.added) - SERVERS_OWN
        others: list[ManagedFieldsEntry] = []
        for entry in entries:
            try:
                left = entry if _is_apart(entry, steps) else self._left(entry, change)
            except ElementError:
                return None
            if self._is_mine(entry, manager) and not mine.is_empty:
                mine = mine | fields_of_text(bytes(left.fields_v1)) if left else mine
            elif left is not None:
                others.append(left)
        if not mine.is_empty:
            others.append(self._entry(manager, now, encode(to_json(mine))))
        if sum(entry.operation == UPDATE for entry in others) > UPDATERS_MAX:
            return None
        return tuple(sorted(others, key=entry_order))

    def _with_added(
        self,
        entries: Entries,
        before: dict[str, Any],
        after: dict[str, Any],
        manager: str,
        now: Timestamp,
    ) -> Entries | None:
        """Return the entries of an object of which members were empty, and nobody owns them yet."""
        if any(before.values()) or before.keys() - after.keys():
            return None
        owned: dict[str, Any] = {}
        for name in sorted(after):
            below = self._whole_member(name, after[name], was_there=name in before)
            if below is None:
                return None
            owned[f"f:{name}"] = below
        steps = tuple([encode(step) for step in owned])
        for entry in entries:
            if self._is_mine(entry, manager) or not _is_apart(entry, steps):
                return None
        if sum(entry.operation == UPDATE for entry in entries) >= UPDATERS_MAX:
            return None
        more = self._entry(manager, now, encode(owned))
        return tuple(sorted((*entries, more), key=entry_order))

    def _whole_member(self, name: str, value: Any, *, was_there: bool) -> dict[str, Any] | None:
        """Return all fields of a member; None if the long way must find them."""
        assert self._shape.map is not None
        declared, step = self._shape.map.fields.get(name), f"f:{name}"
        if declared is None or name in UNOWNED or self._reset.has(step):
            return None
        form = declared.shape.map
        if form is None or form.is_atomic or not isinstance(value, dict) or not value:
            return None
        below = whole_fields(declared.shape, value)
        if not was_there:
            return below
        return {step: each for step, each in below.items() if step != "."} or None

    def _left(self, entry: ManagedFieldsEntry, change: Comparison) -> ManagedFieldsEntry | None:
        """Return what an owner still owns after a change by somebody; None if nothing."""
        known = fields_of_text(bytes(entry.fields_v1))
        fields = with_atomic_parents(known, self._shape)
        for part in change:
            if not (taken := fields & part).is_empty:
                fields = fields - taken
        if fields is known:
            return entry
        if fields.is_empty:
            return None
        return replace(entry, fields_v1=Raw(encode(to_json(fields))))

    def _is_mine(self, entry: ManagedFieldsEntry, manager: str) -> bool:
        return (
            entry.manager == (manager or "unknown")
            and entry.operation == UPDATE
            and entry.subresource == self._subresource
        )

    def _entry(self, manager: str, now: Timestamp, text: bytes) -> ManagedFieldsEntry:
        _WRITTEN_HERE.put(text, text)
        entry: ManagedFieldsEntry = _new_entry(
            manager=manager or "unknown",
            operation=UPDATE,
            api_version=self._api_version,
            time=now,
            fields_type="FieldsV1",
            fields_v1=Raw(text),
            subresource=self._subresource,
        )
        return entry

    def _below_spec(self, text: bytes) -> Raw | None:
        if len(text) > REMEMBERED_BYTES_MAX:
            return self.spec_fields(text)
        return _remembered(self, text)

    def spec_fields(self, text: bytes) -> Raw | None:
        """Return the fields that a creator owns below the spec; None: not even the spec."""
        tree = {SPEC: decode(text)}
        fields = created_fields(self._shape, self._nothing, tree, left_alone=frozenset())
        below = fields.get("f:spec")
        return None if below is None else Raw(encode(below))


# Objects that are made from a template have the same spec.
@lru_cache(maxsize=512)
def _remembered(writes: UsualWrites, spec: bytes) -> Raw | None:
    return writes.spec_fields(spec)


# fieldsV1 that were written by this process: for its shapes, that is, and in one spelling.
_WRITTEN_HERE: LRU[bytes, bytes] = LRU(WRITTEN_HERE_MAX, WRITTEN_HERE_BYTES_MAX)


def _texts_of(change: Comparison) -> tuple[bytes, ...]:
    """Return texts of which one is in the fieldsV1 of each owner of something that changed.

    They are the steps at most two levels deep.
    """
    found: set[str] = set()
    for part in change:
        found |= part.members - part.children.keys()
        for step, below in part.children.items():
            found |= {step} if step in part.members else below.members | below.children.keys()
    return tuple([encode(step) for step in found])


def _is_apart(entry: ManagedFieldsEntry, steps: tuple[bytes, ...]) -> bool:
    """Return whether an owner surely has none of the steps, and its fields need no change."""
    text = bytes(entry.fields_v1)
    for step in steps:
        if step in text:
            return False
    return _WRITTEN_HERE.get(text) is not None


def entry_order(entry: ManagedFieldsEntry) -> tuple[Any, ...]:
    """Return Kubernetes' sort key of an entry."""
    time = 0 if entry.time is None else int(entry.time.instant.timestamp())
    return (entry.operation, time, entry.manager, entry.api_version, entry.subresource)
