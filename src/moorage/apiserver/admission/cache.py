"""The objects that admission plugins read without asking the store; an informer feeds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from moorage.api.core import LimitRange, Namespace, ResourceQuota, Service, ServiceAccount
from moorage.api.core.service import HEADLESS
from moorage.api.resource.v1 import GROUP as RESOURCE
from moorage.api.resource.v1 import DeviceClass
from moorage.api.runtime_class import GROUP as NODE
from moorage.api.runtime_class import RuntimeClass
from moorage.api.scheduling import GROUP as SCHEDULING
from moorage.api.scheduling import PriorityClass
from moorage.api.storage import GROUP as STORAGE
from moorage.api.storage import StorageClass
from moorage.claims.extended_resources import DeviceClassIndex
from moorage.claims.quotas.usage import is_extended

WATCHED_RESOURCES: Final = (
    ("", "limitranges"),
    ("", "namespaces"),
    ("", "resourcequotas"),
    ("", "serviceaccounts"),
    ("", "services"),
    (NODE, "runtimeclasses"),
    (RESOURCE, "deviceclasses"),
    (SCHEDULING, "priorityclasses"),
    (STORAGE, "storageclasses"),
)


class QuotaCache:
    """Quotas by namespace, never older than what this server wrote."""

    def __init__(self) -> None:
        self._quotas: dict[str, dict[str, ResourceQuota]] = {}

    def __contains__(self, namespace: str) -> bool:
        return namespace in self._quotas

    def namespaces(self) -> list[str]:
        """Return the namespaces that have quotas."""
        return sorted(self._quotas)

    def of(self, namespace: str) -> list[ResourceQuota]:
        """Return the quotas of a namespace, by name."""
        found = self._quotas.get(namespace, {})
        return [found[name] for name in sorted(found)]

    def put(self, quota: ResourceQuota) -> bool:
        """Cache a quota, and return whether it is new or has other bounds."""
        metadata = quota.metadata
        quotas = self._quotas.setdefault(metadata.namespace, {})
        known = quotas.get(metadata.name)
        if known is not None and _revision(known) > _revision(quota):
            return False
        quotas[metadata.name] = quota
        is_same = known is not None and known.metadata.uid == metadata.uid
        return not is_same or quota.spec.hard != quota.status.hard

    def remove(self, quota: ResourceQuota) -> None:
        """Remove a quota, if it is cached."""
        metadata = quota.metadata
        quotas = self._quotas.get(metadata.namespace, {})
        known = quotas.get(metadata.name)
        if known is not None and known.metadata.uid == metadata.uid:
            del quotas[metadata.name]
        if not quotas:
            self._quotas.pop(metadata.namespace, None)


def _revision(quota: ResourceQuota) -> int:
    return int(quota.metadata.resource_version or 0)


class ServiceCache:
    """The addresses and node ports of stored services."""

    def __init__(self) -> None:
        self.addresses: set[str] = set()
        self.node_ports: set[int] = set()
        self._services: dict[tuple[str, str], tuple[set[str], set[int]]] = {}

    def put(self, service: Service) -> None:
        """Cache the addresses and ports of a service."""
        self.remove(service)
        spec = service.spec
        addresses = set(spec.cluster_ips) - {HEADLESS, ""}
        ports = {port.node_port for port in spec.ports} | {spec.health_check_node_port}
        self._services[service.metadata.namespace, service.metadata.name] = addresses, ports - {0}
        self.addresses |= addresses
        self.node_ports |= ports - {0}

    def remove(self, service: Service) -> None:
        """Forget the addresses and ports of a service."""
        key = service.metadata.namespace, service.metadata.name
        addresses, ports = self._services.pop(key, (set(), set()))
        self.addresses -= addresses
        self.node_ports -= ports


class AdmissionCache:
    """All caches; reports namespaces whose quotas must be recounted, and new namespaces."""

    def __init__(self) -> None:
        self.quotas = QuotaCache()
        self.classes = DeviceClassIndex()
        self.priorities: dict[str, PriorityClass] = {}
        self.runtimes: dict[str, RuntimeClass] = {}
        self.accounts: dict[tuple[str, str], ServiceAccount] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.limit_ranges: dict[str, dict[str, LimitRange]] = {}  # by namespace and name
        self.storage_classes: dict[str, StorageClass] = {}
        self.services = ServiceCache()
        self.on_quota: Callable[[str], None] = lambda _: None
        self.on_namespace: Callable[[], None] = lambda: None

    def on_update(self, value: Any) -> None:
        """Cache an object, new or changed."""
        match value:
            case ResourceQuota():
                if self.quotas.put(value):
                    self.on_quota(value.metadata.namespace)
            case ServiceAccount():
                self.accounts[value.metadata.namespace, value.metadata.name] = value
            case PriorityClass():
                self.priorities[value.metadata.name] = value
            case RuntimeClass():
                self.runtimes[value.metadata.name] = value
            case DeviceClass():
                self._put_class(value)
            case LimitRange():
                ranges = self.limit_ranges.setdefault(value.metadata.namespace, {})
                ranges[value.metadata.name] = value
            case StorageClass():
                self.storage_classes[value.metadata.name] = value
            case Service():
                self.services.put(value)
            case Namespace():
                self.namespaces[value.metadata.name] = value
                self.on_namespace()

    def on_delete(self, value: Any) -> None:
        """Remove an object."""
        name = value.metadata.name
        match value:
            case ResourceQuota():
                self.quotas.remove(value)
            case ServiceAccount():
                self.accounts.pop((value.metadata.namespace, name), None)
                self.on_namespace()
            case PriorityClass():
                self.priorities.pop(name, None)
            case RuntimeClass():
                self.runtimes.pop(name, None)
            case DeviceClass():
                self.classes.remove_class(name)
                self._recount_extended()
            case LimitRange():
                ranges = self.limit_ranges.get(value.metadata.namespace, {})
                ranges.pop(name, None)
                if not ranges:
                    self.limit_ranges.pop(value.metadata.namespace, None)
            case StorageClass():
                self.storage_classes.pop(name, None)
            case Service():
                self.services.remove(value)
            case Namespace():
                self.namespaces.pop(name, None)

    def _put_class(self, value: DeviceClass) -> None:
        name = value.metadata.name
        is_known = self.classes.has_class(name)
        before = self.classes.explicit_name(name)
        self.classes.put_class(value)
        if not is_known or before != value.spec.extended_resource_name:
            self._recount_extended()

    def _recount_extended(self) -> None:
        """Report quotas of extended resources: devices may count as another one now."""
        for namespace in self.quotas.namespaces():
            hard = (name for quota in self.quotas.of(namespace) for name in quota.spec.hard)
            if any(map(is_extended, hard)):
                self.on_quota(namespace)
