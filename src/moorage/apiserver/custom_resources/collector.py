"""Garbage collection where custom resources are owners or dependents.

The garbage collector among the controllers knows built-in kinds only, and ignores dependents of
custom resources. The server collects these itself, as it empties namespaces: it reads the store, so
it knows whether an owner exists. Without custom resources it does nothing.

Background   dependents are deleted when all their owners are gone
Foreground   a custom owner with `foregroundDeletion` waits for its blocking dependents
Orphan       a custom owner with `orphan` waits until no object refers to it any more

An event costs what it changes, however many objects there are: dependents are judged when an owner
goes or begins to wait, an owner when its last blocking dependent goes.

# traced: an object as far as owners and dependents matter
# dependents, blocking: objects that refer to an owner, and those that it waits for
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moorage.apiserver.http.status import StatusError
from moorage.apiserver.resources import Resource
from moorage.apiserver.server_context import ServerContext
from moorage.apiserver.verbs.delete import (
    FOREGROUND,
    ORPHAN,
    DeleteOptions,
    Preconditions,
    delete_object,
)
from moorage.kit.bulkhead import FAULTS
from moorage.store.contract import Deletion, Entry, Put
from moorage.store.errors import StoreError

LOG = logging.getLogger(__name__)

ROOT = "/registry/"
PLACE = "collecting custom resources"
RETRY_AFTER_S = 1.0
PAGE = 500


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
        self.judged = 0  # how often an object was compared with its owners
        self._server = server
        self._traced: dict[str, tuple[str, _Metadata]] = {}  # key and metadata by uid
        self._dependents: dict[str, set[str]] = {}  # uids by the uid of an owner
        self._blocking: dict[str, set[str]] = {}  # those of them with blockOwnerDeletion
        self._waiting: dict[str, None] = {}  # uids to look at, in order
        self._freed: dict[str, None] = {}  # uids of owners that lost a dependent
        self._names = _Names(server)

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
        for known in (self._traced, self._dependents, self._blocking, self._freed):
            known.clear()
        watch = await store.watch(ROOT, after=await self._read())
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

    async def _read(self) -> int:
        """Look at everything as of one revision, and return it; others work between the pages."""
        store = self._server.registry.store
        page = await store.list(ROOT, limit=PAGE)
        revision = page.revision
        while True:
            for entry in page.entries:
                self._put(entry)
            await asyncio.sleep(0)
            if not page.remaining:
                await self._work()
                return revision
            after = page.entries[-1].key
            page = await store.list(ROOT, limit=PAGE, after=after, at=revision)

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
            if reference.block_owner_deletion:
                self._blocking.setdefault(reference.uid, set()).add(metadata.uid)
        if metadata.owner_references or {ORPHAN, FOREGROUND} & set(metadata.finalizers):
            self._waiting[metadata.uid] = None

    def _remove(self, entry: Entry) -> None:
        metadata = _metadata_of(entry)
        if metadata is None:
            return
        known = self._traced.pop(metadata.uid, None)
        if known is not None:
            self._forget_owners(known[1])
        if metadata.uid in self._dependents:
            self._waiting[metadata.uid] = None

    def _forget_owners(self, metadata: _Metadata) -> None:
        for reference in metadata.owner_references:
            for held in (self._dependents, self._blocking):
                found = held.get(reference.uid)
                if found is not None:
                    found.discard(metadata.uid)
                    if not found:
                        del held[reference.uid]
            self._freed[reference.uid] = None

    # --- what follows -----------------------------------------------------------------------------

    async def _work(self) -> None:
        while self._waiting or self._freed:
            step, uids = self._look_at, self._waiting
            if not uids:
                step, uids = self._release_if_free, self._freed
            uid = next(iter(uids))
            del uids[uid]
            try:
                await step(uid)
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
        resource = self._names.resource_of(key)
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
            await self._release_if_free(uid)

    async def _release_if_free(self, uid: str) -> None:
        """Let a custom owner go that waited for dependents, of which none blocks it any more."""
        known = self._traced.get(uid)
        if known is None or uid in self._blocking or not _waits(known[1]):
            return
        resource = self._names.resource_of(known[0])
        if resource is not None and resource.definition is not None:
            await self._release(resource, known[1], FOREGROUND)

    async def _judge(self, uid: str) -> None:
        """Delete an object if all owners are gone or wait for it, or drop its stale references."""
        known = self._traced.get(uid)
        if known is None or known[1].deletion_timestamp is not None:
            return
        key, metadata = known
        resource = self._names.resource_of(key)
        if resource is None:
            return
        owners = [(each, self._names.of_owner(each)) for each in metadata.owner_references]
        concerned = (resource, *(owner for _, owner in owners if owner is not None))
        if all(each.definition is None for each in concerned):
            return  # The garbage collector of the controllers knows them all.
        self.judged += 1
        lost = {
            reference.uid
            for reference, owner in owners
            if not await self._is_solid(reference, owner, metadata.namespace)
        }
        if not lost:
            return
        if len(lost) < len({reference.uid for reference, _ in owners}):
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
        known = self._traced.get(reference.uid)
        if known is not None and known[0] == owner.key(where, reference.name):
            return not _waits(known[1])
        found = await self._server.registry.find(owner, where, reference.name)
        if found is None or found.metadata.uid != reference.uid:
            return False
        return not _waits(found.metadata)

    async def _free(self, uid: str, owners: set[str]) -> None:
        """Remove references to owners from an object."""
        known = self._traced.get(uid)
        resource = None if known is None else self._names.resource_of(known[0])
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


class _Names:
    """The resources by the parts of keys, and by the kinds in references to owners."""

    def __init__(self, server: ServerContext) -> None:
        self._resources = server.resources
        self._generation = -1
        self._plurals: dict[tuple[str, str], Resource] = {}
        self._kinds: dict[tuple[str, str], Resource] = {}

    def resource_of(self, key: str) -> Resource | None:
        """Return the resource of a key."""
        self._refresh()
        group, plural = key.removeprefix(ROOT).split("/")[:2]
        return self._plurals.get(("" if group == "core" else group, plural))

    def of_owner(self, reference: _Reference) -> Resource | None:
        """Return the resource that a reference means."""
        self._refresh()
        group = reference.api_version.rpartition("/")[0]
        return self._kinds.get((group, reference.kind))

    def _refresh(self) -> None:
        if self._generation == self._resources.generation:
            return
        self._generation = self._resources.generation
        known = [resource for resource in self._resources.all() if resource.kinds]
        self._plurals = {(each.group, each.plural): each for each in known}
        self._kinds = {(each.group, each.any_kind.name): each for each in reversed(known)}


def _waits(metadata: Any) -> bool:
    """Return whether an owner is deleted and waits for its dependents."""
    return metadata.deletion_timestamp is not None and FOREGROUND in metadata.finalizers


def _metadata_of(entry: Entry) -> _Metadata | None:
    try:
        return _decode(entry.value).metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
