"""Records events: correlated, written in the background, and never failing the caller.

Kubernetes' programs record events in two styles, and `kubectl` shows both; see `event_correlator`.
Events about one object are written in order, those about different objects concurrently. The queue
is bounded: events beyond it are dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any

from msgspec.structs import replace

from moorage.api.core.namespace import ObjectReference
from moorage.api.meta import object_text
from moorage.api.timestamp import MicroTimestamp
from moorage.client.contract import Client
from moorage.client.errors import (
    AccessError,
    AlreadyExistsError,
    ClientError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)
from moorage.client.event_correlator import (
    SERIES_OVER_S,
    Correlator,
    CountCorrelator,
    EventReporter,
    EventWrite,
    Occurrence,
    RepeatedEvent,
    SeriesCorrelator,
    reference_key,
)
from moorage.client.writes import Create, Patch, RecordEvent
from moorage.kit.backoff import Backoff
from moorage.kit.bulkhead import FAULTS
from moorage.kit.clock import REAL, Clock

LOG = logging.getLogger(__name__)

# Concurrent writers. Few, so that under load events wait, not the work that they report.
LANES = 4
PLACE = "recording events"
WAITING_MAX = 5000
TRIES_MAX = 12
MESSAGE_BYTES_MAX = 1024
BACKOFF = Backoff(first_s=0.5, longest_s=10.0, jitter=0.25)


class EventStyle(Enum):
    """How events are correlated."""

    SERIES = SeriesCorrelator
    COUNTS = CountCorrelator


class EventRecorder:
    """Records events about objects, as a component of a cluster."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        style: EventStyle = EventStyle.COUNTS,
        instance: str = "",
        clock: Clock = REAL,
        random: Callable[[], float] | None = None,
    ) -> None:
        self._client = client
        self._correlator: Correlator = style.value(EventReporter(component, instance))
        self._clock = clock
        self._random = random
        self._lanes = [_Lane() for _ in range(LANES)]
        self._open = 0  # accepted, and not yet written or given up
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """How many events were dropped."""
        return self._dropped + self._correlator.dropped

    def record(self, record: RecordEvent) -> None:
        """Queue an event; return immediately and never raise."""
        if self._open >= WAITING_MAX:
            if not self._dropped:
                LOG.warning("events are dropped: %d wait to be written", WAITING_MAX)
            self._dropped += 1
            return
        with FAULTS.guard(PLACE, lambda: f"{record.reason} about {object_text(record.about)}"):
            occurrence = self._occurrence(record)
            write = self._correlator.correlate(occurrence)
            if write is not None:
                self._add(write, hash(reference_key(occurrence.about)))

    async def drained(self) -> None:
        """Wait until all queued events are written or given up."""
        await self._is_idle.wait()

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._finish())
            for lane in self._lanes:
                tasks.create_task(self._write_all(lane))

    @asynccontextmanager
    async def running(self, stop_s: float = 2.0) -> AsyncIterator[EventRecorder]:
        """Write events during a block; at its end, wait for the queued ones."""
        task = asyncio.create_task(self.run())
        try:
            yield self
            try:
                async with asyncio.timeout(stop_s):
                    await self.drained()
            except TimeoutError:
                LOG.warning("%d events were not written", self._open)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # --- internals --------------------------------------------------------------------------------

    def _occurrence(self, record: RecordEvent) -> Occurrence:
        record = replace(record, message=_bounded(record.message))
        at = MicroTimestamp(self._clock.now())
        return Occurrence(record, reference_to(record.about), at, self._clock.monotonic())

    def _add(self, write: EventWrite, number: int) -> None:
        self._open += 1
        self._is_idle.clear()
        self._lanes[number % LANES].add(write)

    async def _finish(self) -> None:
        """Queue the last counts of series that are over."""
        while True:
            await self._clock.sleep(SERIES_OVER_S / 2)
            with FAULTS.guard(PLACE, "repeated events"):
                for write in self._correlator.finish(self._clock.monotonic()):
                    self._add(write, id(write))

    async def _write_all(self, lane: _Lane) -> None:
        while True:
            write = await lane.take()
            try:
                await self._write(write)
            except ClientError as error:
                LOG.warning("an event was not written: %s", error)
            except Exception as error:
                FAULTS.note(PLACE, "an event", error)
            finally:
                self._open -= 1
                if not self._open:
                    self._is_idle.set()

    async def _write(self, write: EventWrite) -> None:
        match write:
            case Create():
                await self._try(write)
            case RepeatedEvent(patch=patch, create=create):
                try:
                    await self._try(patch)
                except NotFoundError:  # events expire
                    await self._try(create)

    async def _try(self, write: Create | Patch) -> None:
        """Write, and retry for a while if the server cannot be reached."""
        for tries in range(1, TRIES_MAX + 1):
            try:
                await self._client.write(write)
                return
            except AlreadyExistsError:
                return  # It was written, and the response was lost.
            except AccessError:
                raise
            except (UnavailableError, TooManyRequestsError):
                if tries == TRIES_MAX:
                    raise
                await self._clock.sleep(BACKOFF.delay_s(tries, self._random))


class _Lane:
    """A queue of writes in order."""

    def __init__(self) -> None:
        self._writes: deque[EventWrite] = deque()
        self._has_some = asyncio.Event()

    def add(self, write: EventWrite) -> None:
        self._writes.append(write)
        self._has_some.set()

    async def take(self) -> EventWrite:
        while not self._writes:
            self._has_some.clear()
            await self._has_some.wait()
        return self._writes.popleft()


def reference_to(value: Any) -> ObjectReference:
    """Return the reference to an object, or the reference itself."""
    if isinstance(value, ObjectReference):
        return value
    metadata = value.metadata
    return ObjectReference(
        kind=value.kind or type(value).__name__,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version=value.api_version,
        resource_version=metadata.resource_version,
    )


def _bounded(message: str) -> str:
    data = message.encode("utf-8", "replace")
    if len(data) <= MESSAGE_BYTES_MAX:
        return message
    return data[: MESSAGE_BYTES_MAX - 4].decode("utf-8", "ignore") + " ..."
