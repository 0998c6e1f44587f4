"""Objects as trees with the owners of their fields, and back.

What an owner has stays the text that it is stored as, until somebody must look into it: most
writes leave most owners alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Raw
from msgspec.json import decode, encode
from msgspec.structs import replace

from mooring.api.catalogue import from_hub
from mooring.api.codec import to_tree
from mooring.api.meta import ManagedFieldsEntry
from mooring.api.timestamp import Timestamp

Entries = tuple[ManagedFieldsEntry, ...]


def bare_tree(value: Any, api_version: str) -> Any:
    """Return an object of the hub version as a tree of another, without owners."""
    return to_tree(from_hub(with_owners(value, ()), api_version))


def owned_tree(value: Any, api_version: str, *, ours: Entries) -> Any:
    """Return an object of the hub version as a tree of another, with owners.

    `ours` are entries that this server wrote; only what they have can stay text.
    """
    tree = bare_tree(value, api_version)
    if value.metadata.managed_fields:
        texts = {bytes(entry.fields_v1) for entry in ours}
        entries = [_entry_tree(entry, texts) for entry in value.metadata.managed_fields]
        tree.setdefault("metadata", {})["managedFields"] = entries
    return tree


def with_owners(value: Any, entries: Entries) -> Any:
    """Return an object with other owners."""
    return replace(value, metadata=replace(value.metadata, managed_fields=entries))


def read_entries(trees: Iterable[dict[str, Any]] | None) -> Entries:
    """Return entries of managedFields that are written as they should be."""
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
