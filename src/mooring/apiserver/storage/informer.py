"""Informers: caches that follow the store of this server.

A cache may be a moment old, as in Kubernetes. When a watch breaks, the informer lists everything
again and removes objects that are gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mooring.apiserver.resources import Resource
from mooring.apiserver.storage.registry import Registry
from mooring.kit.process_memory import garbage_collection_paused
from mooring.store.contract import Deletion, Put
from mooring.store.errors import StoreError

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
    ) -> None:
        self._registry = registry
        self._resources = resources
        self._handler = handler
        self._remembered = remembered  # what `remove` needs of an object
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
                tasks.create_task(self._follow(resource))

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
            self._handler.on_delete(known.pop(key))
        for entry in page.entries:
            value = self._registry.read(resource, entry)
            self._handler.on_update(value)
            known[entry.key] = self._remembered(value)
        return page.revision

    async def _watch(self, resource: Resource, revision: int) -> None:
        registry, known = self._registry, self._known[resource.prefix]
        watch = await registry.store.watch(resource.prefix, after=revision)
        try:
            async for event in watch:
                match event:
                    case Put(entry):
                        value = registry.read_shared(resource, entry)
                        self._handler.on_update(value)
                        known[entry.key] = self._remembered(value)
                    case Deletion(previous):
                        gone = known.pop(previous.key, None)
                        if gone is not None:
                            self._handler.on_delete(gone)
        finally:
            watch.close()
