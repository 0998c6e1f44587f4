"""How Events are admitted.

Those of the core group are checked for what their newer form needs only if they have its time;
those of events.k8s.io for everything.
"""

from __future__ import annotations

from mooring.api import names
from mooring.api.core.event import NORMAL, WARNING, Event
from mooring.api.fieldpath import Path, root
from mooring.api.names import byte_length
from mooring.validation.checks import label_name, unchanged
from mooring.validation.context import Context
from mooring.validation.errors import Errors, invalid, required
from mooring.validation.metadata import check_metadata_update
from mooring.validation.ordinary import OrdinaryStrategy

WORD_MAX = 128
NOTE_MAX = 1024

_OTHER_NAMESPACE = "does not match event.namespace"
_DEFAULT = "default"
_SYSTEM = "kube-system"


class EventStrategy(OrdinaryStrategy[Event]):
    """Admission of Events of the core group."""

    check_name = staticmethod(names.path_segment)
    reporter = root("reportingComponent")

    def rules(self, new: Event) -> Errors:
        """Check that an event is in the namespace of its object, and says who reports what."""
        if not _has_time(new):
            return _check_namespace(new, (_DEFAULT, ""))
        found: Errors = []
        if not new.involved_object.namespace:
            found += _check_namespace(new, (_DEFAULT, _SYSTEM))
        if not new.reporting_controller:
            found.append(required(self.reporter))
        found += label_name(new.reporting_controller, self.reporter)
        for name, word in (
            ("reportingInstance", new.reporting_instance),
            ("action", new.action),
            ("reason", new.reason),
        ):
            if not word:
                found.append(required(root(name)))
            found += _check_length(word, WORD_MAX, root(name))
        return found + _check_length(new.message, NOTE_MAX, root("message"))


class NewEventStrategy(EventStrategy):
    """Admission of Events of events.k8s.io."""

    check_name = staticmethod(names.dns1123_subdomain)
    reporter = root("reportingController")

    def check_create(self, new: Event, context: Context) -> Errors:  # noqa: ARG002
        """Check everything, and that nothing of the older form is set."""
        found = self.rules(new) + self.check_metadata(new) + _check_series(new)
        if not _has_time(new):
            found.append(required(root("eventTime")))
        if new.type not in (NORMAL, WARNING):
            found.append(invalid(root("type"), "", f"has invalid value: {new.type}"))
        for name, is_set in (
            ("firstTimestamp", new.first_timestamp is not None),
            ("lastTimestamp", new.last_timestamp is not None),
            ("count", new.count != 0),
            ("source", bool(new.source.component or new.source.host)),
        ):
            if is_set:
                found.append(invalid(root(name), "", "needs to be unset"))
        return found

    def check_update(self, new: Event, old: Event, context: Context) -> Errors:  # noqa: ARG002
        """Check that nothing changes but the series."""
        found = self.rules(new) + check_metadata_update(new.metadata, old.metadata)
        if new.series != old.series:
            found += _check_series(new)
        for name, value, before in (
            ("involvedObject", new.involved_object, old.involved_object),
            ("reason", new.reason, old.reason),
            ("message", new.message, old.message),
            ("source", new.source, old.source),
            ("firstTimestamp", new.first_timestamp, old.first_timestamp),
            ("lastTimestamp", new.last_timestamp, old.last_timestamp),
            ("count", new.count, old.count),
            ("type", new.type, old.type),
            ("eventTime", new.event_time, old.event_time),
            ("action", new.action, old.action),
            ("related", new.related, old.related),
            ("reportingController", new.reporting_controller, old.reporting_controller),
            ("reportingInstance", new.reporting_instance, old.reporting_instance),
        ):
            found += unchanged(value, before, root(name))
        return found


def _has_time(event: Event) -> bool:
    return event.event_time is not None and not event.event_time.is_zero


def _check_namespace(event: Event, homes: tuple[str, ...]) -> Errors:
    """Check the namespace; events of objects that are in none have homes."""
    namespace = event.involved_object.namespace
    if event.metadata.namespace == namespace:
        return []
    if not namespace and event.metadata.namespace in homes:
        return []
    return [invalid(root("involvedObject").child("namespace"), namespace, _OTHER_NAMESPACE)]


def _check_length(text: str, length_max: int, path: Path) -> Errors:
    if byte_length(text) <= length_max:
        return []
    return [invalid(path, "", f"can have at most {length_max} characters")]


def _check_series(event: Event) -> Errors:
    if event.series is None:
        return []
    found: Errors = []
    if event.series.count < 2:
        found.append(invalid(root("series.count"), "", "should be at least 2"))
    last = event.series.last_observed_time
    if last is None or last.is_zero:
        found.append(required(root("series.lastObservedTime")))
    return found
