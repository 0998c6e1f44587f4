"""Informers: caches that follow the store of this server.

A cache may be a moment old, as in Kubernetes. When a watch breaks, the informer lists everything
again and removes objects that are gone.

An object that cannot be read, or that its handler fails with, is named once. Where objects grant
something, its last version goes, so that it grants nothing; where they restrict, it stays.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from moorage.apiserver.resources import Resource
from moorage.apiserver.storage.registry import Registry
from moorage.kit.bulkhead import FAULTS, keep_running
from moorage.kit.process_memory import garbage_collection_paused
from moorage.store.contract import Deletion, Entry, Put
from moorage.store.errors import StoreError

LOG = logging.getLogger(__name__)

RETRY_AFTER_S = 0.5


class EventHandler(Protocol):
    """Handles added, updated and removed objects."""

    def on_update(self, value: Any) -> None:
        """Handle an object, new or changed."""

    def on_delete(self, value: Any) -> None:
        """Handle the removal of an object."""


class StoreInformer:
    """Lists and watches resources, and passes objects to a handler."""

    def __init__(
        self,
        registry: Registry,
        resources: Sequence[Resource],
        handler: EventHandler,
        *,
        remembered: Callable[[Any], Any] = lambda value: value,
        keeps_last: bool = False,
    ) -> None:
        self._registry = registry
        self._resources = resources
        self._handler = handler
        self._remembered = remembered  # what `remove` needs of an object
        self._keeps_last = keeps_last  # the last good version of a faulty object
        self._known: dict[str, dict[str, Any]] = {}  # by resource, by key
        self._loaded: dict[str, int] = {}  # list revisions by resource

    async def load(self) -> None:
        """List everything once, before the server answers requests."""
        with garbage_collection_paused():
            for resource in self._resources:
                self._loaded[resource.prefix] = await self._read(resource)

    async def run(self) -> None:
        """Watch everything until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for resource in self._resources:
                work = partial(self._follow, resource)
                tasks.create_task(keep_running(f"following {resource.plural}", work))

    async def _follow(self, resource: Resource) -> None:
        while True:
            try:
                revision = self._loaded.pop(resource.prefix, None)
                await self._watch(resource, revision or await self._read(resource))
            except StoreError as error:
                LOG.warning("following %s: %s", resource.plural, error)
            await asyncio.sleep(RETRY_AFTER_S)

    async def _read(self, resource: Resource) -> int:
        """List a resource, remove objects that are gone, and return the revision."""
        page = await self._registry.store.list(resource.prefix)
        known = self._known.setdefault(resource.prefix, {})
        for key in known.keys() - {entry.key for entry in page.entries}:
            self._remove(resource, key)
        for entry in page.entries:
            self._put(resource, entry, self._registry.read)
        return page.revision

    async def _watch(self, resource: Resource, revision: int) -> None:
        registry = self._registry
        watch = await registry.store.watch(resource.prefix, after=revision)
        try:
            async for event in watch:
                match event:
                    case Put(entry):
                        self._put(resource, entry, registry.read_shared)
                    case Deletion(previous):
                        self._remove(resource, previous.key)
        finally:
            watch.close()

    def _put(
        self, resource: Resource, entry: Entry, read: Callable[[Resource, Entry], Any]
    ) -> None:
        try:
            value = read(resource, entry)
            self._handler.on_update(value)
            self._known[resource.prefix][entry.key] = self._remembered(value)
        except Exception as error:
            FAULTS.note(f"following {resource.plural}", entry.key, error)
            if not self._keeps_last:
                self._remove(resource, entry.key)

    def _remove(self, resource: Resource, key: str) -> None:
        gone = self._known[resource.prefix].pop(key, None)
        if gone is not None:
            with FAULTS.guard(f"following {resource.plural}", key):
                self._handler.on_delete(gone)
