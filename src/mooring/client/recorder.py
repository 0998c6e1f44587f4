"""Events told to users: written behind, put together, never failing whoever tells them.

Kubernetes' programs tell events in two styles, and `kubectl` shows both:

    SERIES  events.k8s.io/v1, the scheduler: with an action; the second of a kind starts a series,
            the others are counted and the count is written when the series is over
    COUNTS  core/v1, the controllers: with a count that grows; more than ten that differ in nothing
            but their message within ten minutes become one

What waits to be written is bounded, and so is what is remembered; what is too much is dropped and
counted. About one object come at most 25 events in COUNTS, then one every five minutes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from enum import Enum, auto
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import uuid4

from msgspec.structs import replace

from mooring.api import events
from mooring.api.core import Event as CoreEvent
from mooring.api.core.event import NORMAL, WARNING, EventSource
from mooring.api.core.references import ObjectReference
from mooring.api.meta import ObjectMeta
from mooring.api.names import dns1123_subdomain
from mooring.api.timestamp import MicroTimestamp, Timestamp
from mooring.client.contract import Client
from mooring.client.errors import (
    AccessError,
    AlreadyExistsError,
    ClientError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)
from mooring.client.writes import Create, Patch, Target, Tell
from mooring.kit.backoff import Backoff
from mooring.kit.clock import REAL, Clock

LOG = logging.getLogger(__name__)

WAITING_MAX = 1000
REMEMBERED_MAX = 4096
TRIES_MAX = 12
MESSAGE_LENGTH_MAX = 1024
SERIES_OVER_S = 360.0
REFRESH_S = 1800.0  # servers keep events for an hour
SIMILAR_MAX = 10
SIMILAR_S = 600.0
BURST = 25
REFILL_S = 300.0
COMBINED = "(combined from similar events): "
BACKOFF = Backoff(first_s=0.5, longest_s=10.0, jitter=0.25)

V = TypeVar("V")


class Style(Enum):
    """How events are put together."""

    SERIES = auto()
    COUNTS = auto()


class _Recent(Generic[V]):
    """The values of the keys that were used last, so many at most."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Hashable, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._size_max:
            self._values.popitem(last=False)

    def drop(self, key: Hashable) -> None:
        self._values.pop(key, None)

    def items(self) -> list[tuple[Hashable, V]]:
        return list(self._values.items())


class _Series(NamedTuple):
    """An event of events.k8s.io, and how often it came."""

    event: events.Event
    times: int
    last_s: float  # by the clock that never goes back
    written: int = 1  # the count that the server knows
    written_s: float = 0.0


class _Allowance(NamedTuple):
    """How many more events about an object may come."""

    left: float
    at_s: float


class Recorder:
    """Tells events about objects, as a component of a cluster."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        style: Style = Style.COUNTS,
        instance: str = "",
        clock: Clock = REAL,
        random: Callable[[], float] | None = None,
    ) -> None:
        self._client = client
        self._component = component
        self._style = style
        self._instance = instance
        self._clock = clock
        self._random = random
        self._waiting: deque[tuple[Tell, Timestamp]] = deque()
        self._has_waiting = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._series: _Recent[_Series] = _Recent(REMEMBERED_MAX)
        self._counted: _Recent[CoreEvent] = _Recent(REMEMBERED_MAX)
        self._similar: _Recent[dict[str, float]] = _Recent(REMEMBERED_MAX)
        self._allowed: _Recent[_Allowance] = _Recent(REMEMBERED_MAX)
        self._last_name = 0
        self.dropped = 0

    # --- telling ----------------------------------------------------------------------------------

    def tell(self, tell: Tell) -> None:
        """Have an event recorded soon; returns at once and never raises."""
        if len(self._waiting) >= WAITING_MAX:
            if not self.dropped:
                LOG.warning("events are dropped: %d wait to be written", WAITING_MAX)
            self.dropped += 1
            return
        self._waiting.append((tell, MicroTimestamp(self._clock.now())))
        self._is_idle.clear()
        self._has_waiting.set()

    async def drained(self) -> None:
        """Wait until all that was told is written, or given up."""
        await self._is_idle.wait()

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            while self._waiting:
                tell, at = self._waiting.popleft()
                try:
                    await self._record(tell, at)
                except ClientError as error:
                    LOG.warning("event %s was not written: %s", tell.reason, error)
                except Exception:
                    LOG.exception("event %s was not written", tell.reason)
            await self._finish_series()
            self._is_idle.set()
            self._has_waiting.clear()
            timer = self._clock.call_later(SERIES_OVER_S / 2, self._has_waiting.set)
            try:
                await self._has_waiting.wait()
            finally:
                timer.cancel()

    @asynccontextmanager
    async def running(self, stop_s: float = 2.0) -> AsyncIterator[Recorder]:
        """Write events for as long as a block lasts; what was told in it is written at its end."""
        task = asyncio.create_task(self.run())
        try:
            yield self
            try:
                async with asyncio.timeout(stop_s):
                    await self.drained()
            except TimeoutError:
                LOG.warning("%d events were not written", len(self._waiting))
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _record(self, tell: Tell, at: Timestamp) -> None:
        about = reference_to(tell.about)
        tell = replace(tell, message=_bounded(tell.message))
        match self._style:
            case Style.SERIES:
                await self._record_series(tell, about, at)
            case Style.COUNTS:
                await self._record_count(tell, about, at)

    # --- series -----------------------------------------------------------------------------------

    async def _record_series(self, tell: Tell, about: ObjectReference, at: Timestamp) -> None:
        key = (tell.is_warning, tell.action, tell.reason, _key(about), about.resource_version)
        known = self._series.get(key)
        now_s = self._clock.monotonic()
        if known is None:
            event = self._new_event(tell, about, at)
            self._series.put(key, _Series(event, 1, now_s, written_s=now_s))
            await self._write(Create(event))
            return
        count = known.times + 1
        latest = events.EventSeries(count=count, last_observed_time=MicroTimestamp(at.instant))
        event = replace(known.event, series=latest)
        known = known._replace(event=event, times=count, last_s=now_s)
        self._series.put(key, known)
        if count == 2 or now_s - known.written_s > REFRESH_S:
            await self._write_series(key, known)

    async def _write_series(self, key: Hashable, series: _Series) -> None:
        event = series.event
        assert event.series is not None
        at = event.series.last_observed_time
        body = {"series": {"count": series.times, "lastObservedTime": str(at)}}
        now_s = self._clock.monotonic()
        self._series.put(key, series._replace(written=series.times, written_s=now_s))
        try:
            await self._write(Patch(Target.of(event), body))
        except NotFoundError:
            await self._write(Create(event))

    async def _finish_series(self) -> None:
        """Write the last counts of series that are over, and forget them."""
        over_s = self._clock.monotonic() - SERIES_OVER_S
        for key, series in self._series.items():
            if series.last_s > over_s:
                continue
            self._series.drop(key)
            if series.times > series.written:
                try:
                    await self._write_series(key, series)
                except ClientError as error:
                    LOG.warning("event %s was not written: %s", series.event.reason, error)
                self._series.drop(key)

    def _new_event(self, tell: Tell, about: ObjectReference, at: Timestamp) -> events.Event:
        return events.Event(
            metadata=self._metadata(about, at),
            event_time=MicroTimestamp(at.instant),
            reporting_controller=self._component,
            reporting_instance=self._instance or f"{self._component}-mooring",
            action=tell.action or tell.reason,
            reason=tell.reason,
            regarding=about,
            note=tell.message,
            type=WARNING if tell.is_warning else NORMAL,
        )

    # --- counts -----------------------------------------------------------------------------------

    async def _record_count(self, tell: Tell, about: ObjectReference, at: Timestamp) -> None:
        now_s = self._clock.monotonic()
        group = (_key(about), tell.is_warning, tell.reason)
        message, key = self._combined(tell.message, group, now_s)
        if not self._may_tell((_key(about), tell.is_warning), now_s):
            self.dropped += 1
            return
        known = self._counted.get(key)
        if known is not None:
            latest = replace(known, count=known.count + 1, last_timestamp=Timestamp(at.instant))
            latest = replace(latest, message=message)
            await self._write_count(key, latest)
            return
        event = self._new_core_event(tell, about, at, message)
        self._counted.put(key, event)
        await self._write(Create(event))

    async def _write_count(self, key: Hashable, event: CoreEvent) -> None:
        self._counted.put(key, event)
        body = {
            "count": event.count,
            "lastTimestamp": str(event.last_timestamp),
            "message": event.message,
        }
        try:
            await self._write(Patch(Target.of(event), body))
        except NotFoundError:  # events do not stay for ever
            await self._write(Create(event))

    def _combined(self, message: str, group: Hashable, now_s: float) -> tuple[str, Hashable]:
        """Return the message and key of an event; that of many similar ones, if it is of such."""
        seen = self._similar.get(group) or {}
        seen = {text: at_s for text, at_s in seen.items() if at_s > now_s - SIMILAR_S}
        seen[message] = now_s
        while len(seen) > SIMILAR_MAX:
            seen.pop(next(iter(seen)))
        self._similar.put(group, seen)
        if len(seen) < SIMILAR_MAX:
            return message, (group, message)
        return COMBINED + message, (group,)

    def _may_tell(self, key: Hashable, now_s: float) -> bool:
        known = self._allowed.get(key) or _Allowance(BURST, now_s)
        left = min(known.left + (now_s - known.at_s) / REFILL_S, BURST)
        may = left >= 1
        self._allowed.put(key, _Allowance(left - 1 if may else left, now_s))
        return may

    def _new_core_event(
        self, tell: Tell, about: ObjectReference, at: Timestamp, message: str
    ) -> CoreEvent:
        seconds = Timestamp(at.instant)
        return CoreEvent(
            metadata=self._metadata(about, at),
            involved_object=about,
            reason=tell.reason,
            message=message,
            source=EventSource(component=self._component, host=self._instance),
            first_timestamp=seconds,
            last_timestamp=seconds,
            count=1,
            type=WARNING if tell.is_warning else NORMAL,
            action=tell.action,
            reporting_controller=self._component,
            reporting_instance=self._instance,
        )

    # --- writing ----------------------------------------------------------------------------------

    def _metadata(self, about: ObjectReference, at: Timestamp) -> ObjectMeta:
        # Never the same twice, or the second would not be written.
        nanoseconds = max(int(at.instant.timestamp() * 1e6) * 1000, self._last_name + 1)
        self._last_name = nanoseconds
        name = f"{about.name}.{nanoseconds:x}"
        if dns1123_subdomain(name):
            name = str(uuid4())
        return ObjectMeta(name=name, namespace=about.namespace or "default")

    async def _write(self, write: Create | Patch) -> None:
        """Write, again for a while if the server cannot be reached."""
        for tries in range(1, TRIES_MAX + 1):
            try:
                await self._client.write(write)
                return
            except AlreadyExistsError:
                return  # It was written, and the answer was lost.
            except AccessError:
                raise
            except (UnavailableError, TooManyRequestsError):
                if tries == TRIES_MAX:
                    raise
                await self._clock.sleep(BACKOFF.delay_s(tries, self._random))


def reference_to(value: Any) -> ObjectReference:
    """Return the reference to an object; one that is a reference stays as it is."""
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


def _key(about: ObjectReference) -> Hashable:
    return about.kind, about.namespace, about.name, about.uid, about.api_version, about.field_path


def _bounded(message: str) -> str:
    if len(message.encode()) <= MESSAGE_LENGTH_MAX:
        return message
    return message.encode()[: MESSAGE_LENGTH_MAX - 4].decode("utf-8", "ignore") + " ..."
