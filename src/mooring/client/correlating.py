"""What is to be written of the events that are told: those that repeat are put together (pure).

    SERIES  events.k8s.io/v1, the scheduler: with an action; the second of a kind starts a series,
            the others are counted and the count is written when the series is over
    COUNTS  core/v1, the controllers: with a count that grows; more than ten that differ in nothing
            but their message within ten minutes become one

What is remembered is bounded. About one object come at most 25 events in COUNTS, then one every
five minutes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import uuid4

from msgspec.structs import replace

from mooring.api import events
from mooring.api.core import Event as CoreEvent
from mooring.api.core.event import NORMAL, WARNING, EventSource
from mooring.api.core.references import ObjectReference
from mooring.api.meta import ObjectMeta
from mooring.api.names import dns1123_subdomain
from mooring.api.timestamp import MicroTimestamp, Timestamp
from mooring.client.writes import Create, Patch, Target, Tell

REMEMBERED_MAX = 4096
SERIES_OVER_S = 360.0
REFRESH_S = 1800.0  # servers keep events for an hour
SIMILAR_MAX = 10
SIMILAR_S = 600.0
BURST = 25
REFILL_S = 300.0
COMBINED = "(combined from similar events): "

V = TypeVar("V")


class Again(NamedTuple):
    """An event that was written before: to be changed, or made if it is there no more."""

    patch: Patch
    create: Create


Step = Create | Again


class Told(NamedTuple):
    """Something told, about what and when."""

    tell: Tell
    about: ObjectReference
    at: Timestamp  # the date and time
    at_s: float  # by the clock that never goes back

    @property
    def type(self) -> str:
        """The type of the event."""
        return WARNING if self.tell.is_warning else NORMAL


class Source(NamedTuple):
    """Who tells."""

    component: str
    instance: str = ""


class Correlator(Protocol):
    """Decides what is to be written."""

    dropped: int

    def note(self, told: Told) -> Step | None:
        """Return what to write of something told, if anything."""

    def finish(self, now_s: float) -> Iterator[Step]:
        """Yield what to write of what is over."""


class Recent(Generic[V]):
    """The values of the keys that were used last, so many at most."""

    def __init__(self, size_max: int = REMEMBERED_MAX) -> None:
        self._size_max = size_max
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """Return the value of a key, if it is remembered."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Hashable, value: V) -> None:
        """Remember a value; the one that was not used for longest may go."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._size_max:
            self._values.popitem(last=False)

    def drop(self, key: Hashable) -> None:
        """Forget a key."""
        self._values.pop(key, None)

    def items(self) -> list[tuple[Hashable, V]]:
        """Return all that is remembered."""
        return list(self._values.items())


class Names:
    """Names of events, never the same twice."""

    def __init__(self) -> None:
        self._last = 0

    def metadata(self, told: Told) -> ObjectMeta:
        """Return the metadata of a new event."""
        about = told.about
        self._last = max(int(told.at.instant.timestamp() * 1e6) * 1000, self._last + 1)
        name = f"{about.name}.{self._last:x}"
        if dns1123_subdomain(name):
            name = str(uuid4())
        return ObjectMeta(name=name, namespace=about.namespace or "default")


# --- series ---------------------------------------------------------------------------------------


class _Series(NamedTuple):
    event: events.Event
    times: int
    last_s: float
    written: int  # the count that the server knows
    written_s: float


class SeriesCorrelator:
    """Puts events together as the scheduler's recorder does."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._names = Names()
        self._series: Recent[_Series] = Recent()
        self.dropped = 0

    def note(self, told: Told) -> Step | None:
        """Return what to write of something told, if anything."""
        tell, now_s = told.tell, told.at_s
        key = (told.type, tell.action, tell.reason, key_of(told.about), told.about.resource_version)
        known = self._series.get(key)
        if known is None:
            event = self._event(told)
            self._series.put(key, _Series(event, 1, now_s, 1, now_s))
            return Create(event)
        times = known.times + 1
        latest = events.EventSeries(count=times, last_observed_time=MicroTimestamp(told.at.instant))
        event = replace(known.event, series=latest)
        if times > 2 and now_s - known.written_s <= REFRESH_S:
            self._series.put(key, known._replace(event=event, times=times, last_s=now_s))
            return None
        self._series.put(key, _Series(event, times, now_s, times, now_s))
        return _series_again(event)

    def finish(self, now_s: float) -> Iterator[Step]:
        """Yield the last counts of series that are over, and forget them."""
        for key, series in self._series.items():
            if series.last_s <= now_s - SERIES_OVER_S:
                self._series.drop(key)
                if series.times > series.written:
                    yield _series_again(series.event)

    def _event(self, told: Told) -> events.Event:
        tell, source = told.tell, self._source
        return events.Event(
            metadata=self._names.metadata(told),
            event_time=MicroTimestamp(told.at.instant),
            reporting_controller=source.component,
            reporting_instance=source.instance or f"{source.component}-mooring",
            action=tell.action or tell.reason,
            reason=tell.reason,
            regarding=told.about,
            note=tell.message,
            type=told.type,
        )


def _series_again(event: events.Event) -> Again:
    series = event.series
    assert series is not None
    body = {"series": {"count": series.count, "lastObservedTime": str(series.last_observed_time)}}
    return Again(Patch(Target.of(event), body), Create(event))


# --- counts ---------------------------------------------------------------------------------------


class _Allowance(NamedTuple):
    left: float  # how many more events about an object may come
    at_s: float


class CountCorrelator:
    """Puts events together as the controllers' recorder does."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._names = Names()
        self._counted: Recent[CoreEvent] = Recent()
        self._similar: Recent[dict[str, float]] = Recent()
        self._allowed: Recent[_Allowance] = Recent()
        self.dropped = 0

    def note(self, told: Told) -> Step | None:
        """Return what to write of something told, if anything."""
        about, now_s = key_of(told.about), told.at_s
        message, key = self._combined(
            told.tell.message, (about, told.type, told.tell.reason), now_s
        )
        if not self._may_tell((about, told.type), now_s):
            self.dropped += 1
            return None
        known = self._counted.get(key)
        if known is None:
            event = self._event(told, message)
            self._counted.put(key, event)
            return Create(event)
        event = replace(
            known,
            count=known.count + 1,
            last_timestamp=Timestamp(told.at.instant),
            message=message,
        )
        self._counted.put(key, event)
        return _count_again(event)

    def finish(self, now_s: float) -> Iterator[Step]:  # noqa: ARG002
        """Yield nothing: counts are written at once."""
        yield from ()

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

    def _event(self, told: Told, message: str) -> CoreEvent:
        tell, source, at = told.tell, self._source, Timestamp(told.at.instant)
        return CoreEvent(
            metadata=self._names.metadata(told),
            involved_object=told.about,
            reason=tell.reason,
            message=message,
            source=EventSource(component=source.component, host=source.instance),
            first_timestamp=at,
            last_timestamp=at,
            count=1,
            type=told.type,
            action=tell.action,
            reporting_controller=source.component,
            reporting_instance=source.instance,
        )


def _count_again(event: CoreEvent) -> Again:
    body: dict[str, Any] = {
        "count": event.count,
        "lastTimestamp": str(event.last_timestamp),
        "message": event.message,
    }
    return Again(Patch(Target.of(event), body), Create(event))


def key_of(about: ObjectReference) -> Hashable:
    """Return what tells an object from others."""
    return about.kind, about.namespace, about.name, about.uid, about.api_version, about.field_path
