"""Charging quotas for writes, many at once.

Writes in one namespace wait in a queue. The first takes all that wait, counts them one after the
other, and writes each quota once, if it is still as it was read. So quotas hold under any number of
writers, those of other servers too, and one write of a quota serves many requests.

# charge: one request to write an object, which quotas must have capacity for
# in flight: charged, and not known to be stored yet
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from moorage.api.core import ResourceQuota
from moorage.apiserver.admission.cache import QuotaCache
from moorage.apiserver.http.status import MODIFIED, StatusError, conflict
from moorage.apiserver.resources import Resource
from moorage.apiserver.storage.registry import RETRIES_MAX, Registry
from moorage.claims.pod_claims import ClaimRejection
from moorage.claims.quotas import Evaluator, GroupResource, charged

LINGER_S = 5.0  # longer than a write takes that was begun


class QuotaCharge:
    """One request, and its outcome."""

    def __init__(
        self,
        resource: GroupResource,
        measure: Evaluator,
        new: Any,
        old: Any | None = None,
        *,
        is_trial: bool = False,
    ) -> None:
        self.resource = resource
        self.measure = measure
        self.new = new
        self.old = old
        self.is_trial = is_trial  # a dry run
        self.outcome: ClaimRejection | StatusError | None = None
        self.is_settled = False

    def settle(self, outcome: ClaimRejection | StatusError | None) -> None:
        """Set the outcome."""
        self.outcome, self.is_settled = outcome, True


class ChargeQueue:
    """The charges of one namespace."""

    def __init__(self) -> None:
        self.users = 0
        self.front = asyncio.Lock()
        self.waiting: list[QuotaCharge] = []
        self.in_flight: set[QuotaCharge] = set()


class QuotaCharger:
    """Charges the quotas of all namespaces."""

    def __init__(
        self,
        registry: Registry,
        resource: Resource,
        cache: QuotaCache,
        on_doubt: Callable[[str], None],
    ) -> None:
        self._registry = registry
        self._resource = resource
        self._cache = cache
        self._on_doubt = on_doubt  # called for namespaces whose quotas may count too much
        self._queues: dict[str, ChargeQueue] = {}

    @asynccontextmanager
    async def held(
        self, namespace: str, charge: QuotaCharge
    ) -> AsyncIterator[ClaimRejection | None]:
        """Charge for an object that is stored within; yield why a quota is exceeded."""
        with self._queue(namespace) as queue:
            is_uncertain = False
            try:
                await self._settle(namespace, queue, charge)
                if isinstance(charge.outcome, StatusError):
                    raise charge.outcome
                yield charge.outcome
            except BaseException as error:
                if charge in queue.in_flight:
                    self._on_doubt(namespace)
                # A write that was cancelled, or got no answer, may still happen.
                is_uncertain = charge.is_settled and not isinstance(error, StatusError)
                raise
            finally:
                if is_uncertain:
                    self._linger(namespace, queue, charge)
                else:
                    queue.in_flight.discard(charge)
                if charge in queue.waiting:
                    queue.waiting.remove(charge)

    def _linger(self, namespace: str, queue: ChargeQueue, charge: QuotaCharge) -> None:
        """Keep a charge for a while, because nobody knows whether its object is stored."""
        queue.users += 1
        loop = asyncio.get_running_loop()
        loop.call_later(LINGER_S, self._leave, namespace, queue, charge)

    def _leave(self, namespace: str, queue: ChargeQueue, charge: QuotaCharge) -> None:
        queue.in_flight.discard(charge)
        self._left(namespace, queue)
        self._on_doubt(namespace)

    @asynccontextmanager
    async def paused(self, namespace: str) -> AsyncIterator[Iterable[QuotaCharge]]:
        """Block charges within; yield those in flight."""
        with self._queue(namespace) as queue:
            async with queue.front:
                yield tuple(queue.in_flight)

    async def write(self, quota: ResourceQuota) -> bool:
        """Store a quota unless it has changed; return whether it was stored."""
        try:
            self._cache.put(await self._registry.replace(self._resource, quota))
        except StatusError as error:
            if error.status.reason == "Conflict":
                return False
            self._cache.remove(quota)
        return True

    async def read(self, namespace: str, names: Iterable[str]) -> list[ResourceQuota]:
        """Return the stored quotas; drop deleted ones from the cache."""
        wanted = set(names)
        found = []
        for known in self._cache.of(namespace):
            if known.metadata.name not in wanted:
                continue
            quota = await self._registry.find(self._resource, namespace, known.metadata.name)
            if quota is None:
                self._cache.remove(known)
            else:
                self._cache.put(quota)
                found.append(quota)
        return found

    @contextmanager
    def _queue(self, namespace: str) -> Iterator[ChargeQueue]:
        """Yield the queue of a namespace, which exists while somebody uses it."""
        queue = self._queues.setdefault(namespace, ChargeQueue())
        queue.users += 1
        try:
            yield queue
        finally:
            self._left(namespace, queue)

    def _left(self, namespace: str, queue: ChargeQueue) -> None:
        queue.users -= 1
        if not queue.users:
            del self._queues[namespace]

    async def _settle(self, namespace: str, queue: ChargeQueue, charge: QuotaCharge) -> None:
        queue.waiting.append(charge)
        async with queue.front:
            if charge.is_settled:
                return
            batch, queue.waiting = queue.waiting, []
            try:
                await self._count(namespace, queue, batch)
            finally:
                # If this request was cancelled, the others go on without it.
                rest = [c for c in batch if not c.is_settled and c is not charge]
                queue.waiting[:0] = rest
                queue.in_flight.difference_update(rest)

    async def _count(
        self, namespace: str, queue: ChargeQueue, batch: Sequence[QuotaCharge]
    ) -> None:
        """Settle all charges: count them, write the quotas, and retry those that had changed."""
        quotas = self._cache.of(namespace)
        for attempt in range(RETRIES_MAX):
            counted, passed = _counted(quotas, batch)
            if attempt and len(passed) < len(batch):
                self._on_doubt(namespace)  # Other quotas count what is refused now.
            batch = passed
            queue.in_flight.update(batch)
            changed = [new for new, old in zip(counted, quotas, strict=True) if new is not old]
            stale = [quota for quota in changed if not await self.write(quota)]
            if not stale:
                return _settle_all(batch, None)
            quotas = await self.read(namespace, (quota.metadata.name for quota in stale))
        self._on_doubt(namespace)
        about, name = self._resource.about, quotas[0].metadata.name if quotas else ""
        return _settle_all(batch, conflict(about, name, MODIFIED))


def _settle_all(batch: Iterable[QuotaCharge], outcome: StatusError | None) -> None:
    for charge in batch:
        charge.settle(outcome)


def _counted(
    quotas: Sequence[ResourceQuota], batch: Sequence[QuotaCharge]
) -> tuple[Sequence[ResourceQuota], list[QuotaCharge]]:
    """Return the quotas with charges counted, and those charges; settle the others."""
    passed = []
    for charge in batch:
        outcome = charged(quotas, charge.measure, charge.new, charge.old)
        if isinstance(outcome, ClaimRejection):
            charge.settle(outcome)
        elif charge.is_trial:
            charge.settle(None)
        else:
            quotas = outcome
            passed.append(charge)
    return quotas, passed
