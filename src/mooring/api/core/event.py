"""Events as core/v1 has them, the form they are stored in."""

from __future__ import annotations

from mooring.api.core.references import ObjectReference
from mooring.api.meta import ObjectMeta
from mooring.api.structs import Int32, Open, always
from mooring.api.timestamp import MicroTimestamp, Timestamp

API_VERSION = "v1"

NORMAL = "Normal"
WARNING = "Warning"


class EventSource(Open, frozen=True, gc=False):
    """Who reported an event, in the older way."""

    component: str = ""
    host: str = ""


class EventSeries(Open, frozen=True, gc=False):
    """How often an event came again."""

    count: Int32 = 0
    last_observed_time: MicroTimestamp | None = always(None)


class Event(Open, frozen=True, gc=False):
    """Something that happened to an object."""

    api_version: str = always(API_VERSION)
    kind: str = always("Event")
    metadata: ObjectMeta = always(ObjectMeta())
    involved_object: ObjectReference = always(ObjectReference())
    reason: str = ""
    message: str = ""
    source: EventSource = always(EventSource())
    first_timestamp: Timestamp | None = always(None)
    last_timestamp: Timestamp | None = always(None)
    count: Int32 = 0
    type: str = ""
    event_time: MicroTimestamp | None = always(None)
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_controller: str = always("", name="reportingComponent")
    reporting_instance: str = always("")
