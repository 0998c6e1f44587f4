"""managedFields of stored objects: as trees with field managers, and back.

The fieldsV1 of a manager stay the text that is stored, until somebody must read them: most writes
leave most managers alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from msgspec import Raw
from msgspec.json import decode, encode
from msgspec.structs import replace

from moorage.api.catalogue import from_hub
from moorage.api.codec import to_tree
from moorage.api.kinds import Kind
from moorage.api.meta import ManagedFieldsEntry
from moorage.api.timestamp import Timestamp
from moorage.apiserver.patching import FieldManager, with_times_kept
from moorage.apiserver.patching.shapes import shape_of_kind
from moorage.apiserver.patching.usual_writes import UsualWrites, members_of, members_of_both
from moorage.apiserver.verbs.resource_request import ResourceRequest

Entries = tuple[ManagedFieldsEntry, ...]


@lru_cache(maxsize=256)
def field_manager_of(kind: Kind, subresource: str) -> FieldManager:
    """Return the field manager of a kind, or of one of its subresources."""
    return FieldManager(kind, subresource)


@lru_cache(maxsize=256)
def usual_writes_of(kind: Kind, subresource: str) -> UsualWrites:
    """Return what knows the owners of fields after usual writes of a kind."""
    return UsualWrites(kind, subresource)


def with_updated_owners(old: Any | None, new: Any, request: ResourceRequest, now: Timestamp) -> Any:
    """Return an object whose changed fields the manager of a request owns."""
    kind, subresource = request.kind, request.target.subresource
    if shape_of_kind(kind) is None:
        return new
    entries = usual_entries(old, new, kind, subresource, request.manager, now)
    if entries is None:
        entries = all_entries(old, new, kind, subresource, request.manager, now)
    return with_owners(new, entries)


def usual_entries(
    old: Any | None, new: Any, kind: Kind, subresource: str, manager: str, now: Timestamp
) -> Entries | None:
    """Return the managedFields of an object after a usual write; None after an unusual one."""
    writes, sent = usual_writes_of(kind, subresource), new.metadata.managed_fields
    if old is None:
        if sent:
            return None
        return writes.created(members_of(from_hub(new, kind.api_version)), manager, now)
    entries = old.metadata.managed_fields
    # Subresources cannot set them, and who sends none leaves them alone.
    if not subresource and sent and sent != entries:
        return None
    version = kind.api_version
    before, after = members_of_both(from_hub(old, version), from_hub(new, version))
    return writes.updated(entries, before, after, manager, now)


def all_entries(
    old: Any | None, new: Any, kind: Kind, subresource: str, manager: str, now: Timestamp
) -> Entries:
    """Return the managedFields of an object after any write."""
    ours = () if old is None else old.metadata.managed_fields
    before = None if old is None else owned_tree(old, kind.api_version, ours=ours)
    after = owned_tree(new, kind.api_version, ours=ours)
    fields = field_manager_of(kind, subresource)
    owned = fields.update(before, after, manager=manager, now=str(now))
    if before is not None:
        owned = with_times_kept(before, owned)
    return read_entries(owned["metadata"].get("managedFields"))


def is_unchanged_apply(old: Any, applied: Any) -> bool:
    """Return whether an applied object, with its defaults, differs in times of managers only."""
    if with_owners(old, ()) != with_owners(applied, ()):
        return False
    before = to_tree(old)
    return with_times_kept(before, to_tree(applied)) is before


def bare_tree(value: Any, api_version: str) -> Any:
    """Return an object of the hub version as a tree of another, without managedFields."""
    return to_tree(from_hub(with_owners(value, ()), api_version))


def owned_tree(value: Any, api_version: str, *, ours: Entries) -> Any:
    """Return an object of the hub version as a tree of another, with managedFields.

    `ours` are entries that this server wrote; only their fieldsV1 can stay text.
    """
    tree = bare_tree(value, api_version)
    if value.metadata.managed_fields:
        texts = {bytes(entry.fields_v1) for entry in ours}
        entries = [_entry_tree(entry, texts) for entry in value.metadata.managed_fields]
        tree.setdefault("metadata", {})["managedFields"] = entries
    return tree


def with_owners(value: Any, entries: Entries) -> Any:
    """Return an object with other managedFields."""
    return replace(value, metadata=replace(value.metadata, managed_fields=entries))


def read_entries(trees: Iterable[dict[str, Any]] | None) -> Entries:
    """Return well-formed entries of managedFields."""
    return tuple(map(_entry, trees or ()))


def _entry(tree: dict[str, Any]) -> ManagedFieldsEntry:
    time, fields = tree.get("time"), tree["fieldsV1"]
    return ManagedFieldsEntry(
        manager=tree.get("manager", ""),
        operation=tree["operation"],
        api_version=tree["apiVersion"],
        time=None if time is None else Timestamp.parse(time),
        fields_type=tree["fieldsType"],
        fields_v1=fields if isinstance(fields, Raw) else Raw(encode(fields)),
        subresource=tree.get("subresource", ""),
    )


def _entry_tree(entry: ManagedFieldsEntry, texts: set[bytes]) -> dict[str, Any]:
    fields = entry.fields_v1
    tree = {
        "manager": entry.manager,
        "operation": entry.operation,
        "apiVersion": entry.api_version,
        "time": None if entry.time is None else str(entry.time),
        "fieldsType": entry.fields_type,
        "fieldsV1": fields if bytes(fields) in texts else decode(fields),
        "subresource": entry.subresource,
    }
    return {name: part for name, part in tree.items() if part not in ("", None)}
