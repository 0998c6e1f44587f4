"""Strategies of Leases, RuntimeClasses, PriorityClasses and Events.

The fields of the newer form of Events are required in the core group only if eventTime is set, and
always in events.k8s.io.
"""

from __future__ import annotations

from msgspec.structs import replace

from moorage.api import names
from moorage.api.codec import to_tree
from moorage.api.coordination import Lease
from moorage.api.core.namespace import NORMAL, WARNING, Event
from moorage.api.core.placement import Toleration
from moorage.api.core.resources import ResourceRequirements
from moorage.api.field_path import Path, root
from moorage.api.names import byte_length
from moorage.api.runtime_class import Overhead, RuntimeClass
from moorage.api.scheduling.v1beta1 import HIGHEST_USER_PRIORITY, PriorityClass
from moorage.api.timestamp import Timestamp
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    forbidden,
    invalid,
    required,
)
from moorage.validation.field_rules import (
    label,
    label_name,
    not_negative,
    unchanged,
    validate_labels,
)
from moorage.validation.go_layout import internal_form
from moorage.validation.metadata import METADATA, validate_metadata_update
from moorage.validation.pod.field_rules import required_one_of
from moorage.validation.pod.resources import validate_container_resources
from moorage.validation.pod.tolerations import validate_tolerations
from moorage.validation.strategy import Context, ObjectStrategy

# --- Leases -------------------------------------------------------------------------------

LEASE_SPEC = root("spec")


class LeaseStrategy(ObjectStrategy[Lease]):
    """The strategy of Leases."""

    allow_unconditional_update = False
    qualified_finalizers = False

    def drop_disabled_fields(self, new: Lease, old: Lease | None, context: Context) -> Lease:  # noqa: ARG002
        """Drop what coordinated leader election needs, which nothing here does."""
        return replace(new, spec=replace(new.spec, strategy=None, preferred_holder=None))

    def validate_fields(self, new: Lease) -> ErrorList:
        """Validate the spec."""
        spec = new.spec
        found: ErrorList = []
        duration = spec.lease_duration_seconds
        if duration is not None and duration <= 0:
            path = LEASE_SPEC.child("leaseDurationSeconds")
            found.append(invalid(path, duration, "must be greater than 0"))
        found += not_negative(spec.lease_transitions, LEASE_SPEC.child("leaseTransitions"))
        return found


# --- RuntimeClasses -----------------------------------------------------------------------

HANDLER = root("handler")


class RuntimeClassStrategy(ObjectStrategy[RuntimeClass]):
    """The strategy of RuntimeClasses."""

    namespaced = False
    allow_unconditional_update = False
    qualified_finalizers = False

    def validate_fields(self, new: RuntimeClass) -> ErrorList:
        """Validate the handler, the overhead and the nodes."""
        found = label(new.handler, HANDLER) if new.handler else [required(HANDLER)]
        if new.overhead is not None:
            found += _validate_overhead(new.overhead, root("overhead"))
        if new.scheduling is not None:
            path = root("scheduling")
            found += validate_labels(new.scheduling.node_selector, path.child("nodeSelector"))
            found += _validate_tolerations(new.scheduling.tolerations, path.child("tolerations"))
        return found

    def validate_update(
        self,
        new: RuntimeClass,
        old: RuntimeClass,
        context: Context,
    ) -> ErrorList:
        """Validate everything, and that the handler is unchanged."""
        found = self.validate(new, context) + self.validate_metadata_update(new, old)
        return found + unchanged(new.handler, old.handler, HANDLER)


def _validate_overhead(overhead: Overhead, path: Path) -> ErrorList:
    limits = ResourceRequirements(limits=overhead.pod_fixed)
    return validate_container_resources(limits, path, ())


def _validate_tolerations(tolerations: tuple[Toleration, ...], path: Path) -> ErrorList:
    found = validate_tolerations(tolerations, path)
    seen: set[tuple[str, ...]] = set()
    for position, toleration in enumerate(tolerations):
        key = (toleration.key, toleration.operator, toleration.value, toleration.effect)
        if key in seen:
            shown = internal_form(to_tree(toleration), "Toleration")
            found.append(duplicate(path.index(position), shown))
        seen.add(key)
    return found


# --- PriorityClasses ----------------------------------------------------------------------

SYSTEM_PREFIX = "system-"
SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
PREEMPT = "PreemptLowerPriority"


class PriorityClassStrategy(ObjectStrategy[PriorityClass]):
    """The strategy of PriorityClasses."""

    namespaced = False

    def default(self, value: PriorityClass, api_version: str, context: Context) -> PriorityClass:  # noqa: ARG002
        """Set the preemption policy."""
        if value.preemption_policy is not None:
            return value
        return replace(value, preemption_policy=PREEMPT)

    def prepare_for_create(self, new: PriorityClass, context: Context) -> PriorityClass:  # noqa: ARG002
        """Start in generation 1, and stay in it: nothing that counts can change."""
        return replace(new, metadata=replace(new.metadata, generation=1))

    def validate_fields(self, new: PriorityClass) -> ErrorList:
        """Validate name, value and policy."""
        found: ErrorList = []
        if new.metadata.name.startswith(SYSTEM_PREFIX):
            found += _validate_system_class(new)
        elif new.value > HIGHEST_USER_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            found.append(forbidden(root("value"), detail))
        if new.preemption_policy is not None:
            path = root("preemptionPolicy")
            found += required_one_of(new.preemption_policy, (PREEMPT, "Never"), path)
        return found

    def validate_update(
        self,
        new: PriorityClass,
        old: PriorityClass,
        context: Context,  # noqa: ARG002
    ) -> ErrorList:
        """Validate the metadata, and that value and policy stay."""
        found = validate_metadata_update(new.metadata, old.metadata)
        if new.value != old.value:
            found.append(forbidden(root("value"), "may not be changed in an update."))
        path = root("preemptionPolicy")
        return found + unchanged(new.preemption_policy, old.preemption_policy, path)


def _validate_system_class(new: PriorityClass) -> ErrorList:
    """Validate that a class with a reserved name is a system class."""
    name = new.metadata.name
    value = SYSTEM_PRIORITIES.get(name)
    if value is None:
        fault = f"{name} is not a known system priority class"
    elif new.value != value:
        fault = f"value of {name} PriorityClass must be {value}"
    elif new.global_default:
        fault = f"globalDefault of {name} PriorityClass must be false"
    else:
        return []
    detail = (
        f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. "
        f"error: {fault}"
    )
    return [forbidden(METADATA.child("name"), detail)]


# --- Events -------------------------------------------------------------------------------

WORD_MAX = 128
NOTE_MAX = 1024

_OTHER_NAMESPACE = "does not match event.namespace"
_DEFAULT_NAMESPACE = "default"
_SYSTEM_NAMESPACE = "kube-system"


class EventStrategy(ObjectStrategy[Event]):
    """The strategy of Events of the core group."""

    validate_name = staticmethod(names.path_segment)
    qualified_finalizers = False
    reporter = root("reportingComponent")

    def validate(self, new: Event, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate the fields, and the metadata of an event that is valid otherwise."""
        return self.validate_fields(new) or self.validate_metadata(new)

    def validate_fields(self, new: Event) -> ErrorList:
        """Validate namespace, reporter, action and reason."""
        if not _has_time(new):
            return _validate_event_namespace(new, (_DEFAULT_NAMESPACE, ""))
        found: ErrorList = []
        if not new.involved_object.namespace:
            found += _validate_event_namespace(new, (_DEFAULT_NAMESPACE, _SYSTEM_NAMESPACE))
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
            found += _validate_length(word, WORD_MAX, root(name))
        return found + _validate_length(new.message, NOTE_MAX, root("message"))


class NewEventStrategy(EventStrategy):
    """The strategy of Events of events.k8s.io."""

    validate_name = staticmethod(names.dns1123_subdomain)
    qualified_finalizers = True
    reporter = root("reportingController")

    def validate(self, new: Event, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything, and that no deprecated field is set."""
        found = self.validate_fields(new) + self.validate_metadata(new) + _validate_series(new)
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

    def validate_update(self, new: Event, old: Event, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate that only the series changed."""
        found = self.validate_fields(new) + validate_metadata_update(new.metadata, old.metadata)
        if new.series != old.series:
            found += _validate_series(new)
        for name, value, before in (
            ("involvedObject", new.involved_object, old.involved_object),
            ("reason", new.reason, old.reason),
            ("message", new.message, old.message),
            ("source", new.source, old.source),
            *(
                (name, _unless_zero(value), _unless_zero(before))
                for name, value, before in (
                    ("firstTimestamp", new.first_timestamp, old.first_timestamp),
                    ("lastTimestamp", new.last_timestamp, old.last_timestamp),
                )
            ),
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


def _unless_zero(time: Timestamp | None) -> Timestamp | None:
    return None if time is None or time.is_zero else time


def _has_time(event: Event) -> bool:
    return event.event_time is not None and not event.event_time.is_zero


def _validate_event_namespace(event: Event, homes: tuple[str, ...]) -> ErrorList:
    """Validate the namespace; events of cluster-scoped objects may be in `homes`."""
    namespace = event.involved_object.namespace
    if event.metadata.namespace == namespace:
        return []
    if not namespace and event.metadata.namespace in homes:
        return []
    return [invalid(root("involvedObject").child("namespace"), namespace, _OTHER_NAMESPACE)]


def _validate_length(text: str, length_max: int, path: Path) -> ErrorList:
    if byte_length(text) <= length_max:
        return []
    return [invalid(path, "", f"can have at most {length_max} characters")]


def _validate_series(event: Event) -> ErrorList:
    if event.series is None:
        return []
    found: ErrorList = []
    if event.series.count < 2:
        found.append(invalid(root("series.count"), "", "should be at least 2"))
    last = event.series.last_observed_time
    if last is None or last.is_zero:
        found.append(required(root("series.lastObservedTime")))
    return found
