"""events.k8s.io/v1: the newer face of events, which are stored as core/v1 has them."""

from __future__ import annotations

from msgspec.structs import asdict

from moorage.api import core
from moorage.api.core.namespace import EventSource, ObjectReference
from moorage.api.kinds import Kind
from moorage.api.meta import ObjectMeta
from moorage.api.structs import Int32, Open, always
from moorage.api.timestamp import MicroTimestamp, Timestamp

API_VERSION = "events.k8s.io/v1"


class EventSeries(Open, frozen=True, gc=False):
    """How often an event came again."""

    count: Int32 = always(0)
    last_observed_time: MicroTimestamp | None = always(None)


class Event(Open, frozen=True, gc=False):
    """Something that happened to an object."""

    api_version: str = always(API_VERSION)
    kind: str = always("Event")
    metadata: ObjectMeta = always(ObjectMeta())
    event_time: MicroTimestamp | None = always(None)
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = always(ObjectReference())
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
    deprecated_source: EventSource = always(EventSource())
    deprecated_first_timestamp: Timestamp | None = always(None)
    deprecated_last_timestamp: Timestamp | None = always(None)
    deprecated_count: Int32 = 0


def to_hub(event: Event) -> core.Event:
    """Return the event as core/v1 has it."""
    return core.Event(
        metadata=event.metadata,
        involved_object=event.regarding,
        reason=event.reason,
        message=event.note,
        source=event.deprecated_source,
        first_timestamp=event.deprecated_first_timestamp,
        last_timestamp=event.deprecated_last_timestamp,
        count=event.deprecated_count,
        type=event.type,
        event_time=event.event_time,
        series=_series_to_hub(event.series),
        action=event.action,
        related=event.related,
        reporting_controller=event.reporting_controller,
        reporting_instance=event.reporting_instance,
        extra=event.extra,
    )


def from_hub(event: core.Event) -> Event:
    """Return an event of core/v1 as events.k8s.io/v1 has it."""
    return Event(
        metadata=event.metadata,
        event_time=event.event_time,
        series=_series_from_hub(event.series),
        reporting_controller=event.reporting_controller,
        reporting_instance=event.reporting_instance,
        action=event.action,
        reason=event.reason,
        regarding=event.involved_object,
        related=event.related,
        note=event.message,
        type=event.type,
        deprecated_source=event.source,
        deprecated_first_timestamp=event.first_timestamp,
        deprecated_last_timestamp=event.last_timestamp,
        deprecated_count=event.count,
        extra=event.extra,
    )


def _series_to_hub(series: EventSeries | None) -> core.EventSeries | None:
    return None if series is None else core.EventSeries(**asdict(series))


def _series_from_hub(series: core.EventSeries | None) -> EventSeries | None:
    return None if series is None else EventSeries(**asdict(series))


KINDS: tuple[Kind, ...] = (
    Kind(
        api_version=API_VERSION,
        name="Event",
        plural="events",
        namespaced=True,
        struct=Event,
        hub_version=core.API_VERSION,
        short_names=("ev",),
    ),
)
