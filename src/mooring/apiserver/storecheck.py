"""Stored values as objects: does each entry hold what its key says?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mooring.api.codec import decode_json
from mooring.api.errors import ApiError
from mooring.apiserver.resources import Resource, Resources
from mooring.store.contract import Entry

ERROR_LENGTH_MAX = 300


def object_faults(entries: Iterable[Entry]) -> Iterator[str]:
    """Give what is wrong with stored objects, each with the key of its entry."""
    by_prefix = {resource.prefix: resource for resource in Resources().all()}
    owners: dict[str, str] = {}  # of uids
    for entry in entries:
        resource = by_prefix.get(_prefix_of(entry.key))
        if resource is None:
            yield f"{entry.key}: no resource has such a key"
            continue
        yield from _entry_faults(entry, resource, owners)


def _prefix_of(key: str) -> str:
    """Return `/registry/GROUP/RESOURCE/` of a key."""
    return "/".join(key.split("/", 4)[:4]) + "/"


def _entry_faults(entry: Entry, resource: Resource, owners: dict[str, str]) -> Iterator[str]:
    struct: type[Any] = resource.hub_struct
    kind = resource.any_kind.name
    try:
        value = decode_json(entry.value, struct).value
    except (ApiError, RecursionError, TypeError) as error:
        yield f"{entry.key}: does not decode as {kind}: {str(error)[:ERROR_LENGTH_MAX]}"
        return
    metadata = value.metadata
    if value.kind != kind or value.api_version != resource.hub_version:
        yield f"{entry.key}: holds a {value.api_version} {value.kind}, not a {kind}"
    if resource.key(metadata.namespace, metadata.name) != entry.key:
        name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
        yield f"{entry.key}: holds {name!r}, which belongs elsewhere"
    if metadata.resource_version:
        yield f"{entry.key}: holds a resourceVersion, which is the entry's to have"
    if not metadata.uid:
        yield f"{entry.key}: has no uid"
    elif owners.setdefault(metadata.uid, entry.key) != entry.key:
        yield f"{entry.key}: has the uid of {owners[metadata.uid]}"
