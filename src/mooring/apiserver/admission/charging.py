"""Charging quotas for what is written, many writes at once.

Requests in one namespace stand in a line. Whoever comes to its front takes all who wait, counts
them in one after the other, and writes each quota once, if it is still as it was read. So bounds
hold under any number of writers, of other servers too, and a write of a quota serves many.

# charge: one request to write an object, which quotas must have room for
# in flight: charged, and not known to be stored yet
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from mooring.api.core import ResourceQuota
from mooring.apiserver.admission.memory import QuotaBook
from mooring.apiserver.registry import RETRIES_MAX, Registry
from mooring.apiserver.resources import Resource
from mooring.apiserver.status import MODIFIED, StatusError, conflict
from mooring.claims.quotas import Counted, Measure, charged
from mooring.claims.refusals import Refused

LINGER_S = 5.0  # longer than a write takes that was begun


class Charge:
    """One request, and what becomes of it."""

    def __init__(
        self,
        resource: Counted,
        measure: Measure,
        new: Any,
        old: Any | None = None,
        *,
        is_trial: bool = False,
    ) -> None:
        self.resource = resource
        self.measure = measure
        self.new = new
        self.old = old
        self.is_trial = is_trial  # nothing is written for it
        self.outcome: Refused | StatusError | None = None
        self.is_settled = False

    def settle(self, outcome: Refused | StatusError | None) -> None:
        """Say what has become of it."""
        self.outcome, self.is_settled = outcome, True


class Line:
    """The requests of one namespace."""

    def __init__(self) -> None:
        self.users = 0
        self.front = asyncio.Lock()
        self.waiting: list[Charge] = []
        self.in_flight: set[Charge] = set()


class Charging:
    """Charges the quotas of all namespaces."""

    def __init__(
        self,
        registry: Registry,
        resource: Resource,
        book: QuotaBook,
        on_doubt: Callable[[str], None],
    ) -> None:
        self._registry = registry
        self._resource = resource
        self._book = book
        self._on_doubt = on_doubt  # is told of namespaces whose quotas may count too much
        self._lines: dict[str, Line] = {}

    @asynccontextmanager
    async def held(self, namespace: str, charge: Charge) -> AsyncIterator[Refused | None]:
        """Charge for an object that is stored within; give why there is no room."""
        with self._line(namespace) as line:
            is_uncertain = False
            try:
                await self._settle(namespace, line, charge)
                if isinstance(charge.outcome, StatusError):
                    raise charge.outcome
                yield charge.outcome
            except BaseException as error:
                if charge in line.in_flight:
                    self._on_doubt(namespace)
                # A write that was given up, or got no answer, may yet happen.
                is_uncertain = charge.is_settled and not isinstance(error, StatusError)
                raise
            finally:
                if is_uncertain:
                    self._linger(namespace, line, charge)
                else:
                    line.in_flight.discard(charge)
                if charge in line.waiting:
                    line.waiting.remove(charge)

    def _linger(self, namespace: str, line: Line, charge: Charge) -> None:
        """Count something in for a while of which nobody knows whether it is stored."""
        line.users += 1
        loop = asyncio.get_running_loop()
        loop.call_later(LINGER_S, self._leave, namespace, line, charge)

    def _leave(self, namespace: str, line: Line, charge: Charge) -> None:
        line.in_flight.discard(charge)
        self._left(namespace, line)
        self._on_doubt(namespace)

    @asynccontextmanager
    async def paused(self, namespace: str) -> AsyncIterator[Iterable[Charge]]:
        """Let nobody charge within, and give what is in flight."""
        with self._line(namespace) as line:
            async with line.front:
                yield tuple(line.in_flight)

    async def write(self, quota: ResourceQuota) -> bool:
        """Store a quota that is as it was read, and return whether that was so."""
        try:
            self._book.put(await self._registry.replace(self._resource, quota))
        except StatusError as error:
            if error.status.reason == "Conflict":
                return False
            self._book.remove(quota)
        return True

    async def read(self, namespace: str, names: Iterable[str]) -> list[ResourceQuota]:
        """Return quotas as they are stored; those that are gone are forgotten."""
        wanted = set(names)
        found = []
        for known in self._book.of(namespace):
            if known.metadata.name not in wanted:
                continue
            quota = await self._registry.find(self._resource, namespace, known.metadata.name)
            if quota is None:
                self._book.remove(known)
            else:
                self._book.put(quota)
                found.append(quota)
        return found

    @contextmanager
    def _line(self, namespace: str) -> Iterator[Line]:
        """Give the line of a namespace, which is there while somebody stands in it."""
        line = self._lines.setdefault(namespace, Line())
        line.users += 1
        try:
            yield line
        finally:
            self._left(namespace, line)

    def _left(self, namespace: str, line: Line) -> None:
        line.users -= 1
        if not line.users:
            del self._lines[namespace]

    async def _settle(self, namespace: str, line: Line, charge: Charge) -> None:
        line.waiting.append(charge)
        async with line.front:
            if charge.is_settled:
                return
            batch, line.waiting = line.waiting, []
            try:
                await self._count_in(namespace, line, batch)
            finally:
                # If this request was cancelled, the others go on without it.
                rest = [c for c in batch if not c.is_settled and c is not charge]
                line.waiting[:0] = rest
                line.in_flight.difference_update(rest)

    async def _count_in(self, namespace: str, line: Line, batch: Sequence[Charge]) -> None:
        """Settle all charges: count them in, write the quotas, and again those that had changed."""
        quotas = self._book.of(namespace)
        for attempt in range(RETRIES_MAX):
            counted, passed = _counted(quotas, batch)
            if attempt and len(passed) < len(batch):
                self._on_doubt(namespace)  # Other quotas count what was refused just now.
            batch = passed
            line.in_flight.update(batch)
            changed = [new for new, old in zip(counted, quotas, strict=True) if new is not old]
            stale = [quota for quota in changed if not await self.write(quota)]
            if not stale:
                return _settle_all(batch, None)
            quotas = await self.read(namespace, (quota.metadata.name for quota in stale))
        self._on_doubt(namespace)
        about, name = self._resource.about, quotas[0].metadata.name if quotas else ""
        return _settle_all(batch, conflict(about, name, MODIFIED))


def _settle_all(batch: Iterable[Charge], outcome: StatusError | None) -> None:
    for charge in batch:
        charge.settle(outcome)


def _counted(
    quotas: Sequence[ResourceQuota], batch: Sequence[Charge]
) -> tuple[Sequence[ResourceQuota], list[Charge]]:
    """Return the quotas with charges counted in, and those; others are settled."""
    passed = []
    for charge in batch:
        outcome = charged(quotas, charge.measure, charge.new, charge.old)
        if isinstance(outcome, Refused):
            charge.settle(outcome)
        elif charge.is_trial:
            charge.settle(None)
        else:
            quotas = outcome
            passed.append(charge)
    return quotas, passed
