"""The store of a server: opening it, compacting it, and checking the objects in it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from moorage.api.codec import decode_json
from moorage.api.errors import ApiError
from moorage.api.meta import namespaced_name
from moorage.apiserver.resources import Resource, Resources
from moorage.apiserver.settings import KEPT_S, Etcd
from moorage.store.contract import Entry, Store
from moorage.store.errors import StoreError

LOG = logging.getLogger(__name__)

ERROR_LENGTH_MAX = 300


@asynccontextmanager
async def open_store(folder: Path, etcd: Etcd | None) -> AsyncIterator[Store]:
    """Open the store in etcd, or else in a folder; close it at the end.

    A file beside the folder keeps which store belongs there, so that none is made in its place.
    """
    if etcd is None:
        from moorage.store.sqlite import open_sqlite
        from moorage.store.sqlite.database import RECORD_FILE

        async with open_sqlite(folder, record=folder.with_name(RECORD_FILE)) as sqlite:
            yield sqlite
    else:
        from moorage.store.etcd import TlsFiles, open_etcd

        trust = TlsFiles(etcd.authority, etcd.certificate, etcd.key)
        async with open_etcd(etcd.servers, root=etcd.root, trust=trust) as remote:
            yield remote


async def compact_regularly(store: Store, kept_s: float = KEPT_S) -> None:
    """Compact the store again and again, keeping the changes of the last `kept_s` seconds."""
    while True:
        try:
            revision = await store.revision()
            await asyncio.sleep(kept_s)
            await store.compact(revision)
        except StoreError as error:
            LOG.warning("compaction: %s", error)
            await asyncio.sleep(kept_s)


# --- checks ---------------------------------------------------------------------------------------


def object_faults(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield the problems of stored objects, each with the key of its entry."""
    by_prefix = {resource.prefix: resource for resource in Resources().all()}
    owners: dict[str, str] = {}  # keys by uid
    for entry in entries:
        prefix = "/".join(entry.key.split("/", 4)[:4]) + "/"  # /registry/GROUP/RESOURCE/
        resource = by_prefix.get(prefix)
        if resource is None:
            yield f"{entry.key}: no resource has such a key"
            continue
        yield from _entry_faults(entry, resource, owners)


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
        yield f"{entry.key}: holds {namespaced_name(metadata)!r}, which belongs elsewhere"
    if metadata.resource_version:
        yield f"{entry.key}: holds a resourceVersion, which is the entry's to have"
    if not metadata.uid:
        yield f"{entry.key}: has no uid"
    elif owners.setdefault(metadata.uid, entry.key) != entry.key:
        yield f"{entry.key}: has the uid of {owners[metadata.uid]}"
