"""Correlates events: decides which to write, and aggregates those that repeat (pure).

    SERIES  events.k8s.io/v1, the scheduler: with an action; the second event of a kind starts a
            series, later ones are counted, and the count is written when the series is over;
            another message starts another series
    COUNTS  core/v1, the controllers: with a growing count; more than ten events within ten minutes
            that differ only in their message become one

The memory is bounded. COUNTS writes at most 25 events about one object, then one every 5 minutes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from msgspec.structs import replace

from moorage.api import events
from moorage.api.core import Event as CoreEvent
from moorage.api.core.namespace import NORMAL, WARNING, EventSource, ObjectReference
from moorage.api.meta import ObjectMeta
from moorage.api.names import dns1123_subdomain
from moorage.api.timestamp import MicroTimestamp, Timestamp
from moorage.client.writes import Create, Patch, RecordEvent, Target
from moorage.kit.lru import LRU

REMEMBERED_MAX = 4096
SERIES_OVER_S = 360.0
REFRESH_S = 1800.0  # servers keep events for an hour
SIMILAR_MAX = 10
SIMILAR_S = 600.0
BURST = 25
REFILL_S = 300.0
COMBINED = "(combined from similar events): "


class RepeatedEvent(NamedTuple):
    """An event that was written before: patch it, or create it if it no longer exists."""

    patch: Patch
    create: Create


EventWrite = Create | RepeatedEvent


class Occurrence(NamedTuple):
    """An event to record, its object and its time."""

    record: RecordEvent
    about: ObjectReference
    at: Timestamp  # the date and time
    at_s: float  # on the monotonic clock

    @property
    def type(self) -> str:
        """The type of the event."""
        return WARNING if self.record.is_warning else NORMAL


class EventReporter(NamedTuple):
    """The component that reports events."""

    component: str
    instance: str = ""


class Correlator(Protocol):
    """Decides which events to write."""

    dropped: int

    def correlate(self, occurred: Occurrence) -> EventWrite | None:
        """Return what to write for an occurrence, if anything."""

    def finish(self, now_s: float) -> Iterator[EventWrite]:
        """Yield the last writes for series that are over."""


class EventNames:
    """Unique names of events."""

    def __init__(self) -> None:
        self._last = 0

    def metadata(self, occurred: Occurrence) -> ObjectMeta:
        """Return the metadata of a new event."""
        about = occurred.about
        self._last = max(int(occurred.at.instant.timestamp() * 1e6) * 1000, self._last + 1)
        name = f"{about.name}.{self._last:x}"
        if dns1123_subdomain(name):
            name = str(uuid4())
        return ObjectMeta(name=name, namespace=about.namespace or "default")


# --- series ---------------------------------------------------------------------------------------


class _Series(NamedTuple):
    event: events.Event
    times: int
    last_s: float
    written: int  # the count that the server has
    written_s: float


class SeriesCorrelator:
    """Correlates events as the scheduler's recorder does."""

    def __init__(self, source: EventReporter) -> None:
        self._source = source
        self._names = EventNames()
        self._series: LRU[Hashable, _Series] = LRU(REMEMBERED_MAX)
        self.dropped = 0

    def correlate(self, occurred: Occurrence) -> EventWrite | None:
        """Return what to write for an occurrence, if anything."""
        record, now_s = occurred.record, occurred.at_s
        key = (
            occurred.type,
            record.action,
            record.reason,
            reference_key(occurred.about),
            occurred.about.resource_version,
            record.message,  # Kubernetes would go on to show the first one.
        )
        known = self._series.get(key)
        if known is None:
            event = self._event(occurred)
            self._series.put(key, _Series(event, 1, now_s, 1, now_s))
            return Create(event)
        times = known.times + 1
        latest = events.EventSeries(
            count=times, last_observed_time=MicroTimestamp(occurred.at.instant)
        )
        event = replace(known.event, series=latest)
        if times > 2 and now_s - known.written_s <= REFRESH_S:
            self._series.put(key, known._replace(event=event, times=times, last_s=now_s))
            return None
        self._series.put(key, _Series(event, times, now_s, times, now_s))
        return _series_again(event)

    def finish(self, now_s: float) -> Iterator[EventWrite]:
        """Yield the last counts of series that are over, and drop them."""
        for key, series in self._series.items():
            if series.last_s <= now_s - SERIES_OVER_S:
                self._series.discard(key)
                if series.times > series.written:
                    yield _series_again(series.event)

    def _event(self, occurred: Occurrence) -> events.Event:
        record, source = occurred.record, self._source
        return events.Event(
            metadata=self._names.metadata(occurred),
            event_time=MicroTimestamp(occurred.at.instant),
            reporting_controller=source.component,
            reporting_instance=source.instance or f"{source.component}-moorage",
            action=record.action or record.reason,
            reason=record.reason,
            regarding=occurred.about,
            note=record.message,
            type=occurred.type,
        )


def _series_again(event: events.Event) -> RepeatedEvent:
    series = event.series
    assert series is not None
    body = {"series": {"count": series.count, "lastObservedTime": str(series.last_observed_time)}}
    return RepeatedEvent(Patch(Target.of(event), body), Create(event))


# --- counts ---------------------------------------------------------------------------------------


class _Allowance(NamedTuple):
    left: float  # how many more events about an object are allowed
    at_s: float


class CountCorrelator:
    """Correlates events as the controllers' recorder does."""

    def __init__(self, source: EventReporter) -> None:
        self._source = source
        self._names = EventNames()
        self._counted: LRU[Hashable, CoreEvent] = LRU(REMEMBERED_MAX)
        self._similar: LRU[Hashable, dict[str, float]] = LRU(REMEMBERED_MAX)
        self._allowed: LRU[Hashable, _Allowance] = LRU(REMEMBERED_MAX)
        self.dropped = 0

    def correlate(self, occurred: Occurrence) -> EventWrite | None:
        """Return what to write for an occurrence, if anything."""
        about, now_s = reference_key(occurred.about), occurred.at_s
        message, key = self._combined(
            occurred.record.message, (about, occurred.type, occurred.record.reason), now_s
        )
        if not self._is_allowed((about, occurred.type), now_s):
            self.dropped += 1
            return None
        known = self._counted.get(key)
        if known is None:
            event = self._event(occurred, message)
            self._counted.put(key, event)
            return Create(event)
        event = replace(
            known,
            count=known.count + 1,
            last_timestamp=Timestamp(occurred.at.instant),
            message=message,
        )
        self._counted.put(key, event)
        return _count_again(event)

    def finish(self, now_s: float) -> Iterator[EventWrite]:  # noqa: ARG002
        """Yield nothing: counts are written immediately."""
        yield from ()

    def _combined(self, message: str, group: Hashable, now_s: float) -> tuple[str, Hashable]:
        """Return the message and key of an event, or those of the aggregate of similar ones."""
        seen = self._similar.get(group) or {}
        seen = {text: at_s for text, at_s in seen.items() if at_s > now_s - SIMILAR_S}
        seen[message] = now_s
        while len(seen) > SIMILAR_MAX:
            seen.pop(next(iter(seen)))
        self._similar.put(group, seen)
        if len(seen) < SIMILAR_MAX:
            return message, (group, message)
        return COMBINED + message, (group,)

    def _is_allowed(self, key: Hashable, now_s: float) -> bool:
        known = self._allowed.get(key) or _Allowance(BURST, now_s)
        left = min(known.left + (now_s - known.at_s) / REFILL_S, BURST)
        may = left >= 1
        self._allowed.put(key, _Allowance(left - 1 if may else left, now_s))
        return may

    def _event(self, occurred: Occurrence, message: str) -> CoreEvent:
        record, source, at = occurred.record, self._source, Timestamp(occurred.at.instant)
        return CoreEvent(
            metadata=self._names.metadata(occurred),
            involved_object=occurred.about,
            reason=record.reason,
            message=message,
            source=EventSource(component=source.component, host=source.instance),
            first_timestamp=at,
            last_timestamp=at,
            count=1,
            type=occurred.type,
            action=record.action,
            reporting_controller=source.component,
            reporting_instance=source.instance,
        )


def _count_again(event: CoreEvent) -> RepeatedEvent:
    body: dict[str, Any] = {
        "count": event.count,
        "lastTimestamp": str(event.last_timestamp),
        "message": event.message,
    }
    return RepeatedEvent(Patch(Target.of(event), body), Create(event))


def reference_key(about: ObjectReference) -> Hashable:
    """Return what identifies an object."""
    return about.kind, about.namespace, about.name, about.uid, about.api_version, about.field_path
