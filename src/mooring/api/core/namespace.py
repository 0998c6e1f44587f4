"""Namespaces and what bounds and fills them (core/v1)."""

from __future__ import annotations

from msgspec import field

from mooring.api.core.references import LocalObjectReference, ObjectReference
from mooring.api.core.resources import ResourceList
from mooring.api.meta import Condition, ObjectMeta
from mooring.api.structs import Open, always

API_VERSION = "v1"

ACTIVE = "Active"
TERMINATING = "Terminating"


class NamespaceSpec(Open, frozen=True, gc=False):
    """What must happen before a namespace is gone."""

    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Open, frozen=True, gc=False):
    """Whether a namespace is in use or on its way out."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class Namespace(Open, frozen=True, gc=False):
    """A room for names."""

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
    """How much there may be of each thing."""

    hard: ResourceList = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Open, frozen=True, gc=False):
    """How much there is of each thing."""

    hard: ResourceList = field(default_factory=dict)
    used: ResourceList = field(default_factory=dict)


class ResourceQuota(Open, frozen=True, gc=False):
    """Bounds on what a namespace may hold."""

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
    binary_data: dict[str, str] = field(default_factory=dict)


class Secret(Open, frozen=True, gc=False):
    """Bytes in base64, by name."""

    api_version: str = always(API_VERSION)
    kind: str = always("Secret")
    metadata: ObjectMeta = always(ObjectMeta())
    immutable: bool | None = None
    data: dict[str, str] = field(default_factory=dict)
    string_data: dict[str, str] = field(default_factory=dict)
    type: str = ""


class Binding(Open, frozen=True, gc=False):
    """The order to run a pod on a node."""

    api_version: str = always(API_VERSION)
    kind: str = always("Binding")
    metadata: ObjectMeta = always(ObjectMeta())
    target: ObjectReference = always(ObjectReference())
