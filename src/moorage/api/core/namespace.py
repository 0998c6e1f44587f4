"""Namespaces, the small objects in them and references to objects (core/v1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import field
from msgspec.structs import replace

from moorage.api.core.resources import ResourceList
from moorage.api.meta import ObjectMeta
from moorage.api.structs import Base64, Closed, Int32, Open, always
from moorage.api.timestamp import MicroTimestamp, Timestamp

API_VERSION = "v1"

ACTIVE = "Active"  # phases of a namespace
TERMINATING = "Terminating"

# The label of every namespace with its name.
NAME_LABEL = "kubernetes.io/metadata.name"

NORMAL = "Normal"  # types of events
WARNING = "Warning"


class ObjectReference(Open, frozen=True, gc=False):
    """A reference to an object, or to a field of it."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class LocalObjectReference(Open, frozen=True, gc=False):
    """A reference to an object in the same namespace."""

    name: str = ""


class TypedLocalObjectReference(Closed, frozen=True, gc=False):
    """A reference to an object of any kind in the same namespace."""

    api_group: str | None = always(None)
    kind: str = always("")
    name: str = always("")


class NamespaceSpec(Open, frozen=True, gc=False):
    """The finalizers of a namespace."""

    finalizers: tuple[str, ...] = ()


class NamespaceCondition(Open, frozen=True, gc=False):
    """One observed aspect of a namespace's deletion."""

    type: str = always("")
    status: str = always("")
    last_transition_time: Timestamp | None = always(None)
    reason: str = ""
    message: str = ""


class NamespaceStatus(Open, frozen=True, gc=False):
    """Whether a namespace is active or terminating."""

    phase: str = ""
    conditions: tuple[NamespaceCondition, ...] = ()


class Namespace(Open, frozen=True, gc=False):
    """A scope for names."""

    api_version: str = always(API_VERSION)
    kind: str = always("Namespace")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: NamespaceSpec = always(NamespaceSpec())
    status: NamespaceStatus = always(NamespaceStatus())


class ScopedResourceSelectorRequirement(Open, frozen=True, gc=False):
    """One expression over the scopes of a quota."""

    scope_name: str = always("")
    operator: str = always("")
    values: tuple[str, ...] = ()


class ScopeSelector(Open, frozen=True, gc=False):
    """The objects that a quota counts."""

    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(Open, frozen=True, gc=False):
    """The limits of a quota."""

    hard: ResourceList = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Open, frozen=True, gc=False):
    """The limits and current usage of a quota."""

    hard: ResourceList = field(default_factory=dict)
    used: ResourceList = field(default_factory=dict)


class ResourceQuota(Open, frozen=True, gc=False):
    """Limits on the resources of a namespace."""

    api_version: str = always(API_VERSION)
    kind: str = always("ResourceQuota")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ResourceQuotaSpec = always(ResourceQuotaSpec())
    status: ResourceQuotaStatus = always(ResourceQuotaStatus())


class ServiceAccount(Open, frozen=True, gc=False):
    """An identity for programs."""

    api_version: str = always(API_VERSION)
    kind: str = always("ServiceAccount")
    metadata: ObjectMeta = always(ObjectMeta())
    secrets: tuple[ObjectReference, ...] = ()
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    automount_service_account_token: bool | None = None


class ConfigMap(Open, frozen=True, gc=False):
    """Texts, and bytes in base64, by name."""

    api_version: str = always(API_VERSION)
    kind: str = always("ConfigMap")
    metadata: ObjectMeta = always(ObjectMeta())
    immutable: bool | None = None
    data: dict[str, str] = field(default_factory=dict)
    binary_data: dict[str, Base64] = field(default_factory=dict)


class Secret(Open, frozen=True, gc=False):
    """Bytes in base64, by name."""

    api_version: str = always(API_VERSION)
    kind: str = always("Secret")
    metadata: ObjectMeta = always(ObjectMeta())
    immutable: bool | None = None
    data: dict[str, Base64] = field(default_factory=dict)
    string_data: dict[str, str] = field(default_factory=dict)
    type: str = ""


class Binding(Open, frozen=True, gc=False):
    """Binds a pod to a node."""

    api_version: str = always(API_VERSION)
    kind: str = always("Binding")
    metadata: ObjectMeta = always(ObjectMeta())
    target: ObjectReference = always(ObjectReference())


class EventSource(Open, frozen=True, gc=False):
    """The component that reported an event; deprecated."""

    component: str = ""
    host: str = ""


class EventSeries(Open, frozen=True, gc=False):
    """How often an event occurred."""

    count: Int32 = 0
    last_observed_time: MicroTimestamp | None = always(None)


class Event(Open, frozen=True, gc=False):
    """A report of something that happened to an object."""

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


# --- conditions of a namespace that is deleted -------------------------------------------------

DISCOVERY_FAILURE = "NamespaceDeletionDiscoveryFailure"
PARSING_FAILURE = "NamespaceDeletionGroupVersionParsingFailure"
DELETION_FAILURE = "NamespaceDeletionContentFailure"
CONTENT_REMAINING = "NamespaceContentRemaining"
FINALIZERS_REMAINING = "NamespaceFinalizersRemaining"

# type: reason and message while all is well
_WELL = {
    DISCOVERY_FAILURE: ("ResourcesDiscovered", "All resources successfully discovered"),
    PARSING_FAILURE: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    DELETION_FAILURE: (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    CONTENT_REMAINING: ("ContentRemoved", "All content successfully removed"),
    FINALIZERS_REMAINING: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


class RemainingContent(NamedTuple):
    """The content that remains in a namespace being deleted."""

    resources: dict[str, int] = {}  # noqa: RUF012 - how many, by `plural.group`; never changed
    finalizers: dict[str, int] = {}  # noqa: RUF012 - on how many objects, by name
    failures: tuple[str, ...] = ()  # why deletion of some content failed
    undiscovered: tuple[str, ...] = ()  # `group/version: why` of failed discovery

    @property
    def is_empty(self) -> bool:
        """Whether the namespace can be removed."""
        return not (self.resources or self.failures or self.undiscovered)


def deletion_conditions(
    remains: RemainingContent, old: tuple[NamespaceCondition, ...], now: Timestamp
) -> tuple[NamespaceCondition, ...]:
    """Return the conditions of a namespace with this content; unchanged ones keep their time."""
    before = {condition.type: condition for condition in old}
    wrong = dict(_wrong(remains))
    others = tuple(condition for condition in old if condition.type not in _WELL)
    found = []
    for kind, well in _WELL.items():
        status = "True" if kind in wrong else "False"
        reason, message = wrong.get(kind, well)
        last = before.get(kind)
        new = NamespaceCondition(
            type=kind,
            status=status,
            last_transition_time=now.truncated(),
            reason=reason,
            message=message,
        )
        if last is not None and last.status == status:
            new = replace(new, last_transition_time=last.last_transition_time)
        found.append(new)
    return (*others, *found)


def _wrong(remains: RemainingContent) -> Iterable[tuple[str, tuple[str, str]]]:
    if remains.undiscovered:
        listed = ", ".join(sorted(remains.undiscovered))
        message = (
            f"Discovery failed for some groups, {len(remains.undiscovered)} failing: "
            f"unable to retrieve the complete list of server APIs: {listed}"
        )
        yield DISCOVERY_FAILURE, ("DiscoveryFailed", message)
    if remains.failures:
        listed = ", ".join(sorted(remains.failures))
        count = len(remains.failures)
        message = f"Failed to delete all resource types, {count} remaining: {listed}"
        yield DELETION_FAILURE, ("ContentDeletionFailed", message)
    if remains.resources:
        listed = ", ".join(
            f"{name} has {count} resource instances"
            for name, count in sorted(remains.resources.items())
        )
        yield CONTENT_REMAINING, ("SomeResourcesRemain", f"Some resources are remaining: {listed}")
    if remains.finalizers:
        listed = ", ".join(
            f"{name} in {count} resource instances"
            for name, count in sorted(remains.finalizers.items())
        )
        message = f"Some content in the namespace has finalizers remaining: {listed}"
        yield FINALIZERS_REMAINING, ("SomeFinalizersRemain", message)
