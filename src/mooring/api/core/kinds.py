"""The kinds of core/v1, and two that Mooring's server lacks: Service and ReplicationController.

The scheduler of a real cluster reads those: pods that one of them selects are spread over nodes and
zones.
"""

from __future__ import annotations

from msgspec import field

from mooring.api.core.namespace import (
    Binding,
    ConfigMap,
    Event,
    Namespace,
    ResourceQuota,
    Secret,
    ServiceAccount,
)
from mooring.api.core.node import Node
from mooring.api.core.pod import API_VERSION, Pod
from mooring.api.kinds import Kind, declare_kind
from mooring.api.meta import ObjectMeta
from mooring.api.structs import Open, always


class ServiceSpec(Open, frozen=True, gc=False):
    """Which pods answer for a service."""

    selector: dict[str, str] = field(default_factory=dict)


class Service(Open, frozen=True, gc=False):
    """A name and an address for pods."""

    api_version: str = always(API_VERSION)
    kind: str = always("Service")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ServiceSpec = always(ServiceSpec())


class ReplicationControllerSpec(Open, frozen=True, gc=False):
    """Which pods are counted."""

    selector: dict[str, str] = field(default_factory=dict)


class ReplicationController(Open, frozen=True, gc=False):
    """What there was before replica sets."""

    api_version: str = always(API_VERSION)
    kind: str = always("ReplicationController")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ReplicationControllerSpec = always(ReplicationControllerSpec())


KINDS: tuple[Kind, ...] = (
    declare_kind(Binding, "bindings"),
    declare_kind(ConfigMap, "configmaps", "cm"),
    declare_kind(Event, "events", "ev"),
    declare_kind(Namespace, "namespaces", "ns", namespaced=False, has_status=True),
    declare_kind(Node, "nodes", "no", namespaced=False, has_status=True),
    declare_kind(Pod, "pods", "po", has_status=True),
    declare_kind(ResourceQuota, "resourcequotas", "quota", has_status=True),
    declare_kind(Secret, "secrets"),
    declare_kind(ServiceAccount, "serviceaccounts", "sa"),
)

FOREIGN_KINDS: tuple[Kind, ...] = (
    declare_kind(ReplicationController, "replicationcontrollers", "rc", has_status=True),
    declare_kind(Service, "services", "svc", has_status=True),
)
