"""The ResourceQuota plugin and controller: charge quotas for writes, and keep their status right.

Charging (`quota_charges`) counts what is written. When an object is deleted, ends, or fails after
it was charged, the controller recounts the quotas of its namespace from everything that is stored.
Nobody is charged meanwhile, and charges in flight are counted, so that nothing slips through.

`moorage.claims.quotas` does the counting, for controllers to share.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from moorage.api.core import Pod, ResourceQuota
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.apiserver.admission.cache import AdmissionCache
from moorage.apiserver.admission.pod_resize import RESIZE
from moorage.apiserver.admission.quota_charges import QuotaCharge, QuotaCharger
from moorage.apiserver.http.status import StatusError
from moorage.apiserver.resources import Resource, Resources
from moorage.apiserver.storage.registry import Registry
from moorage.apiserver.verbs.resource_request import ResourceRequest
from moorage.claims.pod_claims import owning_pod
from moorage.claims.quotas import (
    CLAIMS,
    PODS,
    Evaluator,
    GroupResource,
    NamespaceObjects,
    UsageContext,
    counted_resources,
    evaluator_for,
    is_living,
    is_special,
    recalculated,
    special_by_pod,
    usage_context,
)
from moorage.kit.bulkhead import FAULTS, keep_running
from moorage.store.contract import Deletion, Event, Put
from moorage.store.errors import StoreError

LOG = logging.getLogger(__name__)

_NO_CHARGE: AbstractAsyncContextManager[None] = nullcontext()

REGISTRY = "/registry/"
GATHERING_S = 0.02  # changes that come together are counted once
REST_RATIO = 4  # pause after a recount, as a multiple of its duration
PAGE_SIZE = 500
RETRY_AFTER_S = 1.0
RECOUNT_ALL_EVERY_S = 300.0


class QuotaController:
    """Charges writes to quotas, and recounts quotas after changes that charging does not see."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        cache: AdmissionCache,
        *,
        now: Callable[[], Timestamp],
        has_extended: bool,
    ) -> None:
        self._registry = registry
        self._cache = cache
        self._now = now
        self._has_extended = has_extended
        self._resources = resources
        self._pods = resources.of(*PODS)
        self._claims = resources.of(*CLAIMS)
        quotas = resources.of("", "resourcequotas")
        self.charging = QuotaCharger(registry, quotas, cache.quotas, self.mark)
        self._marked: set[str] = set()
        self._wake = asyncio.Event()
        self._has_quotas = asyncio.Event()
        cache.on_quota = self.mark

    @property
    def _counted(self) -> dict[GroupResource, Resource]:
        """The resources that quotas may count, including custom resources."""
        return {
            GroupResource(resource.group, resource.plural): resource
            for resource in self._resources
            if resource.namespaced and "list" in resource.verbs
        }

    def charged(
        self, request: ResourceRequest, new: Any, old: Any | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Return a context to store an object within; entering it raises 403 if a quota is full."""
        is_part = request.target.subresource not in ("", RESIZE)
        if is_part or request.target.namespace not in self._cache.quotas:
            return _NO_CHARGE
        resource = GroupResource(request.resource.group, request.resource.plural)
        around = UsageContext(self._now(), self._cache.classes, self._has_extended)
        measure = evaluator_for(resource, around)
        if measure is None or (old is not None and not measure.counts_change(old, new)):
            return _NO_CHARGE
        return self._held(request, resource, measure, (new, old))

    @asynccontextmanager
    async def _held(
        self,
        request: ResourceRequest,
        resource: GroupResource,
        measure: Evaluator,
        change: tuple[Any, Any | None],
    ) -> AsyncIterator[None]:
        new, old = change
        namespace = request.target.namespace
        if isinstance(new, ResourceClaim) and is_special(new):
            measure = await self._special_measure(namespace, new)
        charge = QuotaCharge(resource, measure, new, old, is_trial=request.is_dry_run)
        async with self.charging.held(namespace, charge) as refused:
            if refused is not None:
                raise request.forbidden(new, refused.reason)
            yield
        if old is not None and not request.is_dry_run:
            # It was counted as it was until now; a count that ran just then must be repeated.
            self.mark(namespace)

    async def _special_measure(self, namespace: str, claim: ResourceClaim) -> Evaluator:
        """Return the measure of a special claim, of which the pod is charged for the most."""
        owner = owning_pod(claim)
        pod = None
        if owner is not None:
            pod = await self._registry.find(self._pods, namespace, owner.name)
        page = await self._registry.store.list(self._claims.below(namespace))
        claims = self._registry.readable(self._claims, page.entries).values
        around = UsageContext(
            self._now(),
            self._cache.classes,
            self._has_extended,
            pods={} if pod is None else {pod.metadata.name: pod},
            special=special_by_pod(claims),
        )
        measure = evaluator_for(CLAIMS, around)
        assert measure is not None
        return measure

    # --- recounting ---------------------------------------------------------------------------

    def mark(self, namespace: str) -> None:
        """Recount the quotas of a namespace soon."""
        self._marked.add(namespace)
        self._wake.set()
        self._has_quotas.set()

    async def run(self) -> None:
        """Recount marked namespaces, and mark those that changed, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for work in (self._work, self._follow, self._mark_all_regularly):
                tasks.create_task(keep_running("quotas", work))

    async def recount(self, namespace: str) -> None:
        """Bring the status of all quotas of a namespace up to date."""
        async with self.charging.paused(namespace) as in_flight:
            names = [quota.metadata.name for quota in self._cache.quotas.of(namespace)]
            quotas = await self.charging.read(namespace, names)
            objects = await self._objects(namespace, quotas)
            for charge in in_flight:
                known = objects.get(charge.resource)
                uid = charge.new.metadata.uid
                if known is not None and all(value.metadata.uid != uid for value in known):
                    known.append(charge.new)
            around = self._around(objects)
            for quota in quotas:
                new = recalculated(quota, objects, around)
                if new is not quota and not await self.charging.write(new):
                    self.mark(namespace)

    async def _objects(
        self, namespace: str, quotas: list[ResourceQuota]
    ) -> dict[GroupResource, list[Any]]:
        """Return the objects of a namespace that its quotas count."""
        counted = self._counted
        wanted = counted_resources(quotas, counted, self._around({}))
        return {each: await self._list(counted[each], namespace) for each in wanted}

    async def _list(self, resource: Resource, namespace: str) -> list[Any]:
        """Return all objects at one revision, page by page, so that other requests go on."""
        below, store = resource.below(namespace), self._registry.store
        page = await store.list(below, limit=PAGE_SIZE)
        found = self._registry.readable(resource, page.entries).values
        while page.remaining:
            after = page.entries[-1].key
            page = await store.list(below, limit=PAGE_SIZE, after=after, at=page.revision)
            found += self._registry.readable(resource, page.entries).values
        return found

    def _around(self, objects: NamespaceObjects) -> UsageContext:
        classes = self._cache.classes
        return usage_context(
            objects, now=self._now(), classes=classes, has_extended=self._has_extended
        )

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
                except Exception as error:
                    FAULTS.note("quotas", f"namespace {namespace}", error, "keeps its counts")
            rest_s = REST_RATIO * (clock() - began)
            if failed:
                rest_s = max(rest_s, RETRY_AFTER_S)
                self._marked |= failed
                self._wake.set()

    async def _mark_all_regularly(self) -> None:
        while True:
            await asyncio.sleep(RECOUNT_ALL_EVERY_S)
            self._mark_all()

    def _mark_all(self) -> None:
        for namespace in self._cache.quotas.namespaces():
            self.mark(namespace)

    async def _follow(self) -> None:
        """Watch all changes while there are quotas; without quotas this costs nothing."""
        while True:
            await self._has_quotas.wait()
            try:
                await self._watch()
            except StoreError as error:
                LOG.warning("watching for quotas: %s", error)
                await asyncio.sleep(RETRY_AFTER_S)

    async def _watch(self) -> None:
        store = self._registry.store
        watch = await store.watch(REGISTRY, after=await store.revision())
        self._mark_all()
        try:
            async for event in watch:
                namespace = self._freed(event)
                if namespace:
                    self.mark(namespace)
                if not self._cache.quotas.namespaces():
                    self._has_quotas.clear()
                    return
        finally:
            watch.close()

    def _freed(self, event: Event) -> str:
        """Return the namespace whose quotas a change may have relieved; else ""."""
        match event:
            case Deletion(previous):
                namespace = _namespace_of(previous.key)
                return namespace if namespace in self._cache.quotas else ""
            case Put(entry, previous) if previous and entry.key.startswith(self._pods.prefix):
                namespace = _namespace_of(entry.key)
                if namespace not in self._cache.quotas:
                    return ""
                values = self._registry.readable(self._pods, (previous, entry)).values
                if len(values) < 2:
                    return namespace  # one cannot be read
                return namespace if _has_freed(values[0], values[1], self._now()) else ""
        return ""


def _namespace_of(key: str) -> str:
    """Return the namespace in /registry/GROUP/PLURAL/NAMESPACE/NAME; "" if it has none."""
    parts = key.split("/")
    return parts[4] if len(parts) == 6 else ""


def _has_freed(old: Pod, new: Pod, now: Timestamp) -> bool:
    """Return whether a pod has ended, or counts differently than before."""
    if is_living(old, now) != is_living(new, now):
        return True
    return old.spec != new.spec or _sizes(old) != _sizes(new)


def _sizes(pod: Pod) -> list[Any]:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return [(status.allocated_resources, status.resources) for status in statuses]
