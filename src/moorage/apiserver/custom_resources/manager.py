"""Follows definitions: serves their resources, updates their status, and cleans up.

    definition written ─► informer ─► names accepted? ─► status written ─► informer ─► served
    definition deleted ─► finalizer, condition ─► objects deleted ─► finalizer removed ─► gone

A definition is compiled once per generation. Its resource is served while its names are accepted.
The resource of a deleted definition is served until its last object is gone, but accepts no new
objects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from moorage.api.apiextensions import (
    CLEANUP_FINALIZER,
    ESTABLISHED,
    GROUP,
    NAMES_ACCEPTED,
    TERMINATING,
    CustomResourceDefinition,
)
from moorage.apiserver.custom_resources.conditions import FALSE, TRUE, accepted, with_condition
from moorage.apiserver.http.status import StatusError
from moorage.apiserver.resources import Resource
from moorage.apiserver.server_context import ServerContext
from moorage.apiserver.storage.informer import StoreInformer
from moorage.apiserver.verbs.delete import DeleteOptions, delete_object
from moorage.apiserver.verbs.list import ListOptions, list_entries
from moorage.apiserver.verbs.managed_fields import all_entries, with_owners
from moorage.apiserver.verbs.selectors import Selection
from moorage.kit.bulkhead import FAULTS, keep_running
from moorage.store.errors import StoreError
from moorage.validation.custom_resources.definition import CompiledDefinition

LOG = logging.getLogger(__name__)

DEFINITIONS = (GROUP, "customresourcedefinitions")
MANAGER = "kube-apiserver"  # of the status
PLACE = "custom resources"
RETRY_AFTER_S = 1.0
BACKGROUND = DeleteOptions(propagation_policy="Background")

_Key = tuple[Any, ...]


class CustomResourceManager:
    """Serves the resources of all definitions in the store."""

    def __init__(self, server: ServerContext) -> None:
        self._server = server
        self._resource = server.resources.of(*DEFINITIONS)
        self._informer = StoreInformer(server.registry, [self._resource], self)
        self._definitions: dict[str, CustomResourceDefinition] = {}
        self._served: dict[str, tuple[_Key, Resource]] = {}
        self._changed = asyncio.Event()
        self._cleaning: dict[str, asyncio.Task[None]] = {}

    async def load(self) -> None:
        """Read all definitions before the server accepts requests."""
        await self._informer.load()

    async def run(self) -> None:
        """Follow definitions until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._informer.run())
                tasks.create_task(keep_running(PLACE, self._write_statuses))
        finally:
            for task in self._cleaning.values():
                task.cancel()
            await asyncio.gather(*self._cleaning.values(), return_exceptions=True)

    # --- what is served ---------------------------------------------------------------------------

    def on_update(self, value: CustomResourceDefinition) -> None:
        """Serve the current form of a definition."""
        name = value.metadata.name
        self._definitions[name] = value
        key = _key(value)
        known = self._served.get(name)
        if known is None or known[0] != key:
            if value.is_true(ESTABLISHED):
                self._served[name] = (key, custom_resource(CompiledDefinition(value)))
            else:
                self._served.pop(name, None)
            self._publish()
        self._changed.set()

    def on_delete(self, value: CustomResourceDefinition) -> None:
        """Stop serving a definition; others may take its names."""
        self._definitions.pop(value.metadata.name, None)
        if self._served.pop(value.metadata.name, None) is not None:
            self._publish()
        self._changed.set()

    def _publish(self) -> None:
        self._server.resources.set_custom(resource for _, resource in self._served.values())

    # --- status -----------------------------------------------------------------------------------

    async def _write_statuses(self) -> None:
        self._changed.set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            is_late = False
            for name in sorted(self._definitions):
                try:
                    await self._write_status(name)
                except (StatusError, StoreError) as error:
                    LOG.warning("custom resource definition %s: %s", name, error)
                    is_late = True
            if is_late:
                await asyncio.sleep(RETRY_AFTER_S)
                self._changed.set()

    async def _write_status(self, name: str) -> None:
        known = self._definitions.get(name)
        if known is None:
            return
        if known.metadata.deletion_timestamp is not None:
            self._clean_up(known)
            return
        is_settled = known.spec.names == known.status.accepted_names and known.is_true(ESTABLISHED)
        if is_settled and known.is_true(NAMES_ACCEPTED):
            return
        others = [each for other, each in self._definitions.items() if other != name]
        now = self._server.now()
        await self._change(name, lambda old: accepted(old, others, now))

    async def _change(
        self, name: str, change: Callable[[CustomResourceDefinition], CustomResourceDefinition]
    ) -> None:
        """Update a definition, unless it is gone."""

        async def changed(old: Any) -> Any:
            new, now = change(old), self._server.now()
            kind = self._resource.any_kind
            return with_owners(new, all_entries(old, new, kind, "status", MANAGER, now))

        try:
            new = await self._server.registry.change(self._resource, "", name, changed)
        except StatusError as error:
            if error.status.reason != "NotFound":
                raise
            return
        if name in self._definitions and new.metadata.finalizers:
            self._definitions[name] = new  # The next definition must know the names that are taken.
        elif name in self._definitions and new.metadata.deletion_timestamp is None:
            self._definitions[name] = new

    # --- cleaning up ------------------------------------------------------------------------------

    def _clean_up(self, definition: CustomResourceDefinition) -> None:
        name = definition.metadata.name
        if CLEANUP_FINALIZER not in definition.metadata.finalizers or name in self._cleaning:
            return
        task = asyncio.create_task(self._delete_objects(name, definition))
        self._cleaning[name] = task
        task.add_done_callback(partial(self._cleaned, name))

    def _cleaned(self, name: str, _: asyncio.Task[None]) -> None:
        self._cleaning.pop(name, None)

    async def _delete_objects(self, name: str, definition: CustomResourceDefinition) -> None:
        """Delete all objects of a definition until none is left, then remove its finalizer."""
        words = "CustomResource deletion is in progress"
        await self._set(name, TRUE, "InstanceDeletionInProgress", words)
        resource = custom_resource(CompiledDefinition(definition))
        while True:
            try:
                if not definition.is_true(ESTABLISHED) or not await self._left(resource):
                    await self._change(name, self._released)
                    return
            except (StatusError, StoreError) as error:
                LOG.warning("deleting the objects of %s: %s", name, error)
            except Exception as error:
                FAULTS.note(PLACE, name, error, "is tried again")
            await asyncio.sleep(RETRY_AFTER_S)

    async def _left(self, resource: Resource) -> int:
        """Delete all objects of a resource, and return the number of remaining ones."""
        registry = self._server.registry
        page = await list_entries(registry, resource, "", Selection(), ListOptions())
        values, _ = registry.readable(resource, page.entries)
        left = 0
        for value in values:
            metadata = value.metadata
            try:
                deleted = await delete_object(
                    self._server, resource, metadata.namespace, metadata.name, BACKGROUND
                )
                left += not deleted.is_gone
            except StatusError as error:
                left += error.status.reason != "NotFound"
        return left

    async def _set(self, name: str, status: str, reason: str, message: str) -> None:
        now = self._server.now()
        await self._change(
            name, lambda old: with_condition(old, now, TERMINATING, status, reason, message)
        )

    def _released(self, old: CustomResourceDefinition) -> CustomResourceDefinition:
        words = "removed all instances"
        now = self._server.now()
        new = with_condition(old, now, TERMINATING, FALSE, "InstanceDeletionCompleted", words)
        held = tuple(each for each in old.metadata.finalizers if each != CLEANUP_FINALIZER)
        return replace(new, metadata=replace(new.metadata, finalizers=held))


def _key(definition: CustomResourceDefinition) -> _Key:
    """Return the key of a compiled definition: everything that it depends on."""
    metadata, status = definition.metadata, definition.status
    return (
        metadata.uid,
        metadata.generation,
        status.accepted_names,
        definition.is_true(ESTABLISHED),
        definition.is_true(TERMINATING),
    )


def custom_resource(definition: CompiledDefinition) -> Resource:
    """Return the resource of a definition."""
    kinds = {kind.version: kind for kind in definition.kinds}
    parts = (version.subresources for version in definition.versions.values())
    spec = definition.given.spec
    served = frozenset().union(*parts)
    return Resource(spec.group, spec.names.plural, kinds, served, definition=definition)
