"""The kinds of core/v1."""

from __future__ import annotations

from msgspec import Struct

from mooring.api.core.event import Event
from mooring.api.core.namespace import (
    Binding,
    ConfigMap,
    Namespace,
    ResourceQuota,
    Secret,
    ServiceAccount,
)
from mooring.api.core.node import Node
from mooring.api.core.pod import API_VERSION, Pod
from mooring.api.kinds import Kind


def _kind(
    struct: type[Struct],
    plural: str,
    *short_names: str,
    namespaced: bool = True,
    has_status: bool = False,
) -> Kind:
    return Kind(
        api_version=API_VERSION,
        name=struct.__name__,
        plural=plural,
        namespaced=namespaced,
        struct=struct,
        hub_version=API_VERSION,
        has_status=has_status,
        short_names=short_names,
    )


KINDS: tuple[Kind, ...] = (
    _kind(Binding, "bindings"),
    _kind(ConfigMap, "configmaps", "cm"),
    _kind(Event, "events", "ev"),
    _kind(Namespace, "namespaces", "ns", namespaced=False, has_status=True),
    _kind(Node, "nodes", "no", namespaced=False, has_status=True),
    _kind(Pod, "pods", "po", has_status=True),
    _kind(ResourceQuota, "resourcequotas", "quota", has_status=True),
    _kind(Secret, "secrets"),
    _kind(ServiceAccount, "serviceaccounts", "sa"),
)
