"""Namespaces: creating those of the system, and emptying those that are deleted.

A deleted namespace takes no new objects. Its content is deleted, pods first; when nothing remains,
the namespace goes too. Its conditions say what remains.

The server does this itself, because only a reader of the store can be sure that nothing remains. A
controller with a cache could release a namespace whose last objects it has not seen yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

from moorage.api.core import Namespace
from moorage.api.core.namespace import RemainingContent, deletion_conditions
from moorage.api.meta import ObjectMeta, object_text
from moorage.apiserver.admission import server_defaults
from moorage.apiserver.http.status import StatusError
from moorage.apiserver.server_context import NAMESPACES, ServerContext
from moorage.apiserver.verbs.delete import DeleteOptions, delete_object
from moorage.apiserver.verbs.list import ListOptions, list_entries
from moorage.apiserver.verbs.selectors import Selection
from moorage.apiserver.verbs.watch import WatchEvent, WatchOptions, open_watch
from moorage.kit.bulkhead import FAULTS
from moorage.store.errors import StoreError

LOG = logging.getLogger(__name__)

ALWAYS_THERE = ("default", "kube-node-lease", "kube-public", "kube-system")
RETRY_AFTER_S = 1.0
PODS = "pods"

BACKGROUND = DeleteOptions(propagation_policy="Background")


async def create_system_namespaces(server: ServerContext) -> None:
    """Create the system namespaces that are missing."""
    resource = server.resources.of(*NAMESPACES)
    for name in ALWAYS_THERE:
        if await server.namespace(name) is None:
            metadata = ObjectMeta(name=name, uid=server.new_uid(), creation_timestamp=server.now())
            wanted = Namespace(metadata=metadata)
            new = server_defaults.with_server_defaults(
                server_defaults.with_namespace_label(wanted), wanted
            )
            await server.registry.create(resource, new)


class NamespaceController:
    """Empties and removes deleted namespaces."""

    def __init__(self, server: ServerContext) -> None:
        self._server = server
        self._resource = server.resources.of(*NAMESPACES)
        self._ending: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Watch all namespaces; restart when a watch ends."""
        try:
            while True:
                with suppress(StoreError, StatusError):
                    await self._follow()
                await asyncio.sleep(RETRY_AFTER_S)
        finally:
            for task in self._ending.values():
                task.cancel()
            await asyncio.gather(*self._ending.values(), return_exceptions=True)

    async def _follow(self) -> None:
        batches = await open_watch(
            self._server.registry, self._resource, "", Selection(), WatchOptions()
        )
        async for batch in batches:
            for notice in batch:
                self._begin(notice)

    def _begin(self, notice: WatchEvent) -> None:
        value = notice.value
        if value is None or value.metadata.deletion_timestamp is None:
            return
        name = value.metadata.name
        if name not in self._ending and notice.type != "DELETED":
            task = asyncio.create_task(self._end(name))
            self._ending[name] = task
            task.add_done_callback(partial(self._ended, name))

    def _ended(self, name: str, _: asyncio.Task[None]) -> None:
        self._ending.pop(name, None)

    async def _end(self, name: str) -> None:
        """Delete the content of a namespace until it is empty, then remove its finalizer."""
        while True:
            try:
                remains = await self._empty(name)
                if remains.is_empty:
                    await self._remove_finalizer(name)
                    return
                await self._write_conditions(name, remains)
            except StatusError as error:
                if error.status.reason == "NotFound":
                    return
                LOG.warning("namespace %s: %s", name, error)
            except StoreError as error:
                LOG.warning("namespace %s: %s", name, error)
            except Exception as error:
                FAULTS.note("emptying namespaces", name, error, "is tried again")
            await asyncio.sleep(RETRY_AFTER_S)

    async def _empty(self, name: str) -> RemainingContent:
        """Delete all objects of a namespace, and return what remains."""
        resources: dict[str, int] = {}
        finalizers: Counter[str] = Counter()
        failures: list[str] = []
        for resource in sorted(self._server.resources.all(), key=lambda each: each.plural != PODS):
            if not resource.namespaced or "list" not in resource.verbs:
                continue
            left = await self._delete_all(resource, name, failures)
            for value in left:
                finalizers.update(value.metadata.finalizers)
            if left:
                resources[f"{resource.plural}.{resource.group}"] = len(left)
            if left and resource.plural == PODS:
                break  # Keep what pods use while they may still run.
        return RemainingContent(resources, dict(finalizers), tuple(failures))

    async def _delete_all(self, resource: Any, name: str, failures: list[str]) -> list[Any]:
        """Delete all objects of a resource, and return those that remain."""
        registry = self._server.registry
        page = await list_entries(registry, resource, name, Selection(), ListOptions())
        values, unreadable = registry.readable(resource, page.entries)
        failures.extend(unreadable)
        left = []
        for value in values:
            try:
                deleted = await delete_object(
                    self._server, resource, name, value.metadata.name, BACKGROUND
                )
            except StatusError as error:
                if error.status.reason != "NotFound":
                    failures.append(str(error))
                    left.append(value)
                continue
            except Exception as error:
                FAULTS.note("emptying namespaces", object_text(value), error)
                failures.append(f"{resource.plural} {value.metadata.name}: internal error")
                left.append(value)
                continue
            if not deleted.is_gone:
                left.append(deleted.value)
        return left

    async def _write_conditions(self, name: str, remains: RemainingContent) -> None:
        """Write what remains into the conditions; unchanged conditions are not written."""

        async def with_conditions(old: Namespace) -> Namespace:
            conditions = deletion_conditions(remains, old.status.conditions, self._server.now())
            return replace(old, status=replace(old.status, conditions=conditions))

        await self._server.registry.change(self._resource, "", name, with_conditions)

    async def _remove_finalizer(self, name: str) -> None:
        async def released(old: Namespace) -> Namespace:
            held = tuple(f for f in old.spec.finalizers if f != server_defaults.NAMESPACE_FINALIZER)
            return replace(old, spec=replace(old.spec, finalizers=held))

        await self._server.registry.change(self._resource, "", name, released)
