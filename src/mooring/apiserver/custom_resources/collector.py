"""Garbage collection where custom resources are owners or dependents.

The garbage collector among the controllers knows built-in kinds only, and ignores dependents of
custom resources. The server collects these itself, as it empties namespaces: it reads the store, so
it knows whether an owner exists. Without custom resources it does nothing.

Background   dependents are deleted when all their owners are gone
Foreground   a custom owner with `foregroundDeletion` waits for its blocking dependents
Orphan       a custom owner with `orphan` waits until no object refers to it any more

# traced: the part of an object that matters for garbage collection
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mooring.apiserver.http.status import StatusError
from mooring.apiserver.resources import Resource
from mooring.apiserver.server_context import ServerContext
from mooring.apiserver.verbs.delete import (
    FOREGROUND,
    ORPHAN,
    DeleteOptions,
    Preconditions,
    delete_object,
)
from mooring.kit.bulkhead import FAULTS
from mooring.store.contract import Deletion, Entry, Put
from mooring.store.errors import StoreError

LOG = logging.getLogger(__name__)

ROOT = "/registry/"
PLACE = "collecting custom resources"
RETRY_AFTER_S = 1.0


class _Reference(Struct, frozen=True, rename="camel"):
    uid: str = ""
    name: str = ""
    kind: str = ""
    api_version: str = ""
    block_owner_deletion: bool = False


class _Metadata(Struct, frozen=True, rename="camel"):
    uid: str = ""
    namespace: str = ""
    name: str = ""
    owner_references: tuple[_Reference, ...] = ()
    finalizers: tuple[str, ...] = ()
    deletion_timestamp: str | None = None


class _Traced(Struct, frozen=True):
    """The part of an object that matters for garbage collection."""

    metadata: _Metadata = _Metadata()


_decode = msgspec.json.Decoder(_Traced).decode


class CustomResourceCollector:
    """Deletes objects whose owners are all gone."""

    def __init__(self, server: ServerContext) -> None:
        self._server = server
        self._traced: dict[str, tuple[str, _Metadata]] = {}  # key and metadata by uid
        self._dependents: dict[str, set[str]] = {}  # uids of dependents by the uid of an owner
        self._waiting: dict[str, None] = {}  # uids to process, in order

    async def run(self) -> None:
        """Follow the store while custom resources are served."""
        resources = self._server.resources
        while True:
            if not tuple(resources.custom):
                await asyncio.sleep(RETRY_AFTER_S)
                continue
            try:
                await self._follow()
            except StoreError as error:
                LOG.warning("%s: %s", PLACE, error)
            await asyncio.sleep(RETRY_AFTER_S)

    async def _follow(self) -> None:
        store = self._server.registry.store
        self._traced.clear()
        self._dependents.clear()
        page = await store.list(ROOT)
        for entry in page.entries:
            self._put(entry)
        await self._work()
        watch = await store.watch(ROOT, after=page.revision)
        try:
            async for event in watch:
                match event:
                    case Put(entry):
                        self._put(entry)
                    case Deletion(previous):
                        self._remove(previous)
                await self._work()
                if not tuple(self._server.resources.custom):
                    return
        finally:
            watch.close()

    # --- what there is ----------------------------------------------------------------------------

    def _put(self, entry: Entry) -> None:
        metadata = _metadata_of(entry)
        if metadata is None:
            return
        before = self._traced.get(metadata.uid)
        if before is not None:
            self._forget_owners(before[1])
        self._traced[metadata.uid] = (entry.key, metadata)
        for reference in metadata.owner_references:
            self._dependents.setdefault(reference.uid, set()).add(metadata.uid)
        if metadata.owner_references or {ORPHAN, FOREGROUND} & set(metadata.finalizers):
            self._waiting[metadata.uid] = None

    def _remove(self, entry: Entry) -> None:
        metadata = _metadata_of(entry)
        if metadata is None:
            return
        known = self._traced.pop(metadata.uid, None)
        if known is not None:
            self._forget_owners(known[1])
            for reference in known[1].owner_references:
                self._waiting[reference.uid] = None  # An owner may wait for this object.
        if metadata.uid in self._dependents:
            self._waiting[metadata.uid] = None

    def _forget_owners(self, metadata: _Metadata) -> None:
        for reference in metadata.owner_references:
            found = self._dependents.get(reference.uid)
            if found is not None:
                found.discard(metadata.uid)
                if not found:
                    del self._dependents[reference.uid]

    # --- what follows -----------------------------------------------------------------------------

    async def _work(self) -> None:
        while self._waiting:
            uid = next(iter(self._waiting))
            del self._waiting[uid]
            try:
                await self._look_at(uid)
            except StatusError as error:
                if error.status.reason not in ("NotFound", "Conflict"):
                    LOG.warning("%s: %s", PLACE, error)
            except StoreError:
                raise
            except Exception as error:
                FAULTS.note(PLACE, uid, error)

    async def _look_at(self, uid: str) -> None:
        known = self._traced.get(uid)
        if known is None:
            for dependent in sorted(self._dependents.get(uid, ())):
                await self._judge(dependent)
            return
        key, metadata = known
        if metadata.deletion_timestamp is None:
            await self._judge(uid)
            return
        resource = self._resource_of(key)
        if resource is None or resource.definition is None:
            return
        dependents = sorted(self._dependents.get(uid, ()))
        if ORPHAN in metadata.finalizers:
            for dependent in dependents:
                await self._free(dependent, {uid})
            await self._release(resource, metadata, ORPHAN)
        elif FOREGROUND in metadata.finalizers:
            for dependent in dependents:
                await self._judge(dependent)
            if not any(self._blocks(dependent, uid) for dependent in dependents):
                await self._release(resource, metadata, FOREGROUND)

    def _blocks(self, dependent: str, owner: str) -> bool:
        known = self._traced.get(dependent)
        references = () if known is None else known[1].owner_references
        return any(each.uid == owner and each.block_owner_deletion for each in references)

    async def _judge(self, uid: str) -> None:
        """Delete an object if all owners are gone or wait for it, or drop its stale references."""
        known = self._traced.get(uid)
        if known is None or known[1].deletion_timestamp is not None:
            return
        key, metadata = known
        resource = self._resource_of(key)
        if resource is None:
            return
        is_mine = resource.definition is not None
        solid, lost = 0, set()
        for reference in metadata.owner_references:
            owner = self._owner_resource(reference)
            is_mine = is_mine or (owner is not None and owner.definition is not None)
            if await self._is_solid(reference, owner, metadata.namespace):
                solid += 1
            else:
                lost.add(reference.uid)
        if not is_mine or not lost:
            return
        if solid:
            await self._free(uid, lost)
            return
        options = DeleteOptions(
            propagation_policy="Background", preconditions=Preconditions(uid=metadata.uid)
        )
        await delete_object(self._server, resource, metadata.namespace, metadata.name, options)

    async def _is_solid(
        self, reference: _Reference, owner: Resource | None, namespace: str
    ) -> bool:
        """Return whether an owner exists and does not wait, or is of an unknown kind."""
        if owner is None or (owner.namespaced and not namespace):
            return True
        where = namespace if owner.namespaced else ""
        found = await self._server.registry.find(owner, where, reference.name)
        if found is None or found.metadata.uid != reference.uid:
            return False
        is_deleted = found.metadata.deletion_timestamp is not None
        return not (is_deleted and FOREGROUND in found.metadata.finalizers)

    async def _free(self, uid: str, owners: set[str]) -> None:
        """Remove references to owners from an object."""
        known = self._traced.get(uid)
        resource = None if known is None else self._resource_of(known[0])
        if known is None or resource is None:
            return

        async def freed(old: Any) -> Any:
            references = old.metadata.owner_references
            kept = tuple(each for each in references if each.uid not in owners)
            return replace(old, metadata=replace(old.metadata, owner_references=kept))

        metadata = known[1]
        await self._server.registry.change(resource, metadata.namespace, metadata.name, freed)

    async def _release(self, resource: Resource, metadata: _Metadata, finalizer: str) -> None:
        async def released(old: Any) -> Any:
            held = tuple(each for each in old.metadata.finalizers if each != finalizer)
            return replace(old, metadata=replace(old.metadata, finalizers=held))

        await self._server.registry.change(resource, metadata.namespace, metadata.name, released)

    # --- resources --------------------------------------------------------------------------------

    def _resource_of(self, key: str) -> Resource | None:
        """Return the resource of a key."""
        group, plural = key.removeprefix(ROOT).split("/")[:2]
        return self._by_name().get(("" if group == "core" else group, plural))

    def _owner_resource(self, reference: _Reference) -> Resource | None:
        group = reference.api_version.rpartition("/")[0]
        found = (r for r in self._all() if r.group == group and r.any_kind.name == reference.kind)
        return next(found, None)

    def _all(self) -> Iterator[Resource]:
        return (resource for resource in self._server.resources.all() if resource.kinds)

    def _by_name(self) -> dict[tuple[str, str], Resource]:
        return {(resource.group, resource.plural): resource for resource in self._all()}


def _metadata_of(entry: Entry) -> _Metadata | None:
    try:
        return _decode(entry.value).metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
