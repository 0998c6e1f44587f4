"""Usage of services and volume claims, which are counted by more than their number.

services          services, services.nodeports (ports on nodes), services.loadbalancers
volume claims     persistentvolumeclaims, requests.storage, and both for each storage class:
                  CLASS.storageclass.storage.k8s.io/persistentvolumeclaims or …/requests.storage
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from moorage.api.core import ScopedResourceSelectorRequirement
from moorage.api.core.persistent_volume import PersistentVolumeClaim, storage_class_of
from moorage.api.core.resources import ResourceList
from moorage.api.core.service import LOAD_BALANCER, NODE_PORT, Service
from moorage.api.quantity import Quantity
from moorage.claims.quotas.usage import ONE, count_name

VOLUME_CLAIMS: Final = "persistentvolumeclaims"
STORAGE: Final = "requests.storage"
OF_CLASS: Final = ".storageclass.storage.k8s.io/"

_SERVICES = frozenset(
    {count_name("", "services"), "services", "services.nodeports", "services.loadbalancers"}
)
_CLAIMS = frozenset({count_name("", VOLUME_CLAIMS), VOLUME_CLAIMS, STORAGE})


class _Unscoped:
    """What kinds share that are in no scope."""

    def has(self, scope: ScopedResourceSelectorRequirement, value: Any) -> bool:  # noqa: ARG002
        """Return False: only pods are in scopes."""
        return False

    def missing(self, names: Iterable[str], value: Any) -> str:  # noqa: ARG002
        """Return nothing: no amount must be given."""
        return ""

    def counts_change(self, old: Any, new: Any) -> bool:
        """Return whether a change can use more."""
        return bool(old.spec != new.spec)


class ServiceEvaluator(_Unscoped):
    """Services use a place, ports on nodes and load balancers."""

    def names(self, hard: Iterable[str]) -> set[str]:
        """Return which of the names services can use."""
        return set(hard) & _SERVICES

    def usage(self, value: Service) -> ResourceList:
        """Return the usage of a service."""
        spec = value.spec
        found = {"services": ONE, count_name("", "services"): ONE}
        ports = 0
        if spec.type == NODE_PORT:
            ports = len(spec.ports)
        elif spec.type == LOAD_BALANCER:
            found["services.loadbalancers"] = ONE
            if spec.allocate_load_balancer_node_ports is not False:
                ports = len(spec.ports)
            else:
                ports = sum(port.node_port != 0 for port in spec.ports)
        if ports:
            found["services.nodeports"] = Quantity.from_int(ports)
        return found


class VolumeClaimEvaluator(_Unscoped):
    """Volume claims use a place and storage, in all and of their class."""

    def names(self, hard: Iterable[str]) -> set[str]:
        """Return which of the names claims can use."""
        return {name for name in hard if name in _CLAIMS or OF_CLASS in name}

    def usage(self, value: PersistentVolumeClaim) -> ResourceList:
        """Return the usage of a claim."""
        found = {VOLUME_CLAIMS: ONE, count_name("", VOLUME_CLAIMS): ONE}
        name = storage_class_of(value)
        if name:
            found[f"{name}{OF_CLASS}{VOLUME_CLAIMS}"] = ONE
        wanted = value.spec.resources.requests.get("storage")
        if wanted is not None:
            allocated = value.status.allocated_resources.get("storage", wanted)
            wanted = max(wanted, allocated)
            found[STORAGE] = wanted
            if name:
                found[f"{name}{OF_CLASS}{STORAGE}"] = wanted
        return found
