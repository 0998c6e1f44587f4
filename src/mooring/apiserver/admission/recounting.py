"""Keeping the status of quotas right.

Charging counts what comes. What goes, ends, or failed after it was charged is seen here: the quotas
of its namespace are then counted anew from all that is stored. Nobody is charged meanwhile, and
what is in flight is counted in, so that nothing slips through between the two.

The counting itself is `mooring.claims.quotas`, for controllers to share.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from mooring.api.core import Pod, ResourceQuota
from mooring.api.timestamp import Timestamp
from mooring.apiserver.admission.charging import Charging
from mooring.apiserver.admission.memory import Memory
from mooring.apiserver.registry import Registry
from mooring.apiserver.resources import Resource, Resources
from mooring.apiserver.served import verbs_of
from mooring.apiserver.status import StatusError
from mooring.claims.quotas import (
    PODS,
    Counted,
    Objects,
    Surroundings,
    counted_in,
    is_living,
    recounted,
    surroundings,
)
from mooring.store.contract import Deletion, Event, Put
from mooring.store.errors import StoreError

LOG = logging.getLogger(__name__)

REGISTRY = "/registry/"
GATHERING_S = 0.02  # many things that go together are counted once
REST_RATIO = 4  # how long to rest after a count, for the time that it took
PAGE_SIZE = 500
AGAIN_AFTER_S = 1.0
ALL_EVERY_S = 300.0


class Recounting:
    """Counts quotas anew where something has changed that charging does not see."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        memory: Memory,
        *,
        now: Callable[[], Timestamp],
        has_extended: bool,
    ) -> None:
        self._registry = registry
        self._memory = memory
        self._now = now
        self._has_extended = has_extended
        self._counted = {
            Counted(resource.group, resource.plural): resource
            for resource in resources
            if resource.namespaced and "list" in verbs_of(resource.plural)
        }
        self._pods = resources.of(*PODS)
        quotas = resources.of("", "resourcequotas")
        self.charging = Charging(registry, quotas, memory.quotas, self.mark)
        self._marked: set[str] = set()
        self._wake = asyncio.Event()
        self._has_quotas = asyncio.Event()
        memory.on_quota = self.mark

    def mark(self, namespace: str) -> None:
        """Have the quotas of a namespace counted soon."""
        self._marked.add(namespace)
        self._wake.set()
        self._has_quotas.set()

    async def run(self) -> None:
        """Count what is marked, and mark what has changed, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._work())
            tasks.create_task(self._follow())
            tasks.create_task(self._mark_all_regularly())

    async def recount(self, namespace: str) -> None:
        """Bring the status of all quotas of a namespace up to date."""
        async with self.charging.paused(namespace) as in_flight:
            names = [quota.metadata.name for quota in self._memory.quotas.of(namespace)]
            quotas = await self.charging.read(namespace, names)
            objects = await self._objects(namespace, quotas)
            for charge in in_flight:
                known = objects.get(charge.resource)
                uid = charge.new.metadata.uid
                if known is not None and all(value.metadata.uid != uid for value in known):
                    known.append(charge.new)
            around = self._around(objects)
            for quota in quotas:
                new = recounted(quota, objects, around)
                if new is not quota and not await self.charging.write(new):
                    self.mark(namespace)

    async def _objects(
        self, namespace: str, quotas: list[ResourceQuota]
    ) -> dict[Counted, list[Any]]:
        """Return all objects of a namespace that its quotas are about."""
        wanted = counted_in(quotas, self._counted, self._around({}))
        return {each: await self._list(self._counted[each], namespace) for each in wanted}

    async def _list(self, resource: Resource, namespace: str) -> list[Any]:
        """Return all objects as of one moment, page by page: others go on meanwhile."""
        below, store = resource.below(namespace), self._registry.store
        page = await store.list(below, limit=PAGE_SIZE)
        found = [self._registry.read(resource, entry) for entry in page.entries]
        while page.remaining:
            after = page.entries[-1].key
            page = await store.list(below, limit=PAGE_SIZE, after=after, at=page.revision)
            found += [self._registry.read(resource, entry) for entry in page.entries]
        return found

    def _around(self, objects: Objects) -> Surroundings:
        classes = self._memory.classes
        return surroundings(
            objects, now=self._now(), classes=classes, has_extended=self._has_extended
        )

    # --- what goes on -------------------------------------------------------------------------

    async def _work(self) -> None:
        clock, rest_s = asyncio.get_running_loop().time, 0.0
        while True:
            await self._wake.wait()
            await asyncio.sleep(max(GATHERING_S, rest_s))
            self._wake.clear()
            began = clock()
            marked, self._marked, failed = self._marked, set(), set[str]()
            for namespace in sorted(marked):
                try:
                    await self.recount(namespace)
                except (StoreError, StatusError) as error:
                    LOG.warning("quotas of %s: %s", namespace, error)
                    failed.add(namespace)
            rest_s = REST_RATIO * (clock() - began)
            if failed:
                rest_s = max(rest_s, AGAIN_AFTER_S)
                self._marked |= failed
                self._wake.set()

    async def _mark_all_regularly(self) -> None:
        while True:
            await asyncio.sleep(ALL_EVERY_S)
            self._mark_all()

    def _mark_all(self) -> None:
        for namespace in self._memory.quotas.namespaces():
            self.mark(namespace)

    async def _follow(self) -> None:
        """See all changes while there are quotas; where there are none, this costs nothing."""
        while True:
            await self._has_quotas.wait()
            try:
                await self._watch()
            except StoreError as error:
                LOG.warning("following for quotas: %s", error)
                await asyncio.sleep(AGAIN_AFTER_S)

    async def _watch(self) -> None:
        store = self._registry.store
        watch = await store.watch(REGISTRY, after=await store.revision())
        self._mark_all()
        try:
            async for event in watch:
                namespace = self._freed(event)
                if namespace:
                    self.mark(namespace)
                if not self._memory.quotas.namespaces():
                    self._has_quotas.clear()
                    return
        finally:
            watch.close()

    def _freed(self, event: Event) -> str:
        """Return the namespace in which a change may have made room; else nothing."""
        match event:
            case Deletion(previous):
                namespace = _namespace_of(previous.key)
                return namespace if namespace in self._memory.quotas else ""
            case Put(entry, previous) if previous and entry.key.startswith(self._pods.prefix):
                namespace = _namespace_of(entry.key)
                if namespace not in self._memory.quotas:
                    return ""
                old, new = (self._registry.read(self._pods, each) for each in (previous, entry))
                return namespace if _has_freed(old, new, self._now()) else ""
        return ""


def _namespace_of(key: str) -> str:
    """Return the namespace in /registry/GROUP/PLURAL/NAMESPACE/NAME; nothing if it has none."""
    parts = key.split("/")
    return parts[4] if len(parts) == 6 else ""


def _has_freed(old: Pod, new: Pod, now: Timestamp) -> bool:
    """Return whether a pod has come to its end, or counts otherwise than before."""
    if is_living(old, now) != is_living(new, now):
        return True
    return old.spec != new.spec or _sizes(old) != _sizes(new)


def _sizes(pod: Pod) -> list[Any]:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return [(status.allocated_resources, status.resources) for status in statuses]
