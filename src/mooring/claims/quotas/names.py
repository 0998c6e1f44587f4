"""The names that quotas use, and amounts by name.

count/PLURAL[.GROUP]                                objects of a resource
pods, configmaps, …                                 the same by older names; pods that are not done
[requests.]cpu, limits.memory …                     requests and limits of pods
requests.NAME                                       an extended resource, of pods and of claims
CLASS.deviceclass.resource.k8s.io/devices           devices of a class that claims request
requests.deviceclass.resource.kubernetes.io/CLASS   the same as an extended resource
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mooring.api.core.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    PODS,
    ResourceList,
)
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import DEVICE_CLASS_RESOURCE_PREFIX

REQUESTS = "requests."
LIMITS = "limits."
CLASS_DEVICES = ".deviceclass.resource.k8s.io/devices"
IMPLICIT = REQUESTS + DEVICE_CLASS_RESOURCE_PREFIX

ZERO = Quantity.ZERO
ONE = Quantity.from_int(1)

COMPUTE = (CPU, MEMORY, EPHEMERAL_STORAGE)

_OLDER = {
    ("", "configmaps"): "configmaps",
    ("", "replicationcontrollers"): "replicationcontrollers",
    ("", "resourcequotas"): "resourcequotas",
    ("", "secrets"): "secrets",
}

# The server has no objects of these kinds.
_UNSERVED = frozenset(
    {
        "persistentvolumeclaims",
        "replicationcontrollers",
        "requests.storage",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    }
)
_STORAGE_CLASS = ".storageclass.storage.k8s.io/"


def count_name(group: str, plural: str) -> str:
    """Return the name under which the objects of a resource are counted."""
    return f"count/{plural}.{group}" if group else f"count/{plural}"


def object_names(group: str, plural: str) -> frozenset[str]:
    """Return all names under which the objects of a resource are counted."""
    older = _OLDER.get((group, plural))
    return frozenset({count_name(group, plural)} | ({older} if older else set()))


POD_NAMES = frozenset(
    {count_name("", PODS), PODS}
    | set(COMPUTE)
    | {f"{prefix}{name}" for prefix in (REQUESTS, LIMITS) for name in COMPUTE}
)
CLAIM_COUNT = count_name("resource.k8s.io", "resourceclaims")
POD_COUNT = count_name("", PODS)


def is_of_pods(name: str) -> bool:
    """Return whether pods use a name."""
    is_huge_pages = name.startswith((HUGE_PAGES_PREFIX, f"{REQUESTS}{HUGE_PAGES_PREFIX}"))
    return name in POD_NAMES or is_huge_pages or is_extended(name)


def is_extended(name: str) -> bool:
    """Return whether a name means an extended resource."""
    if not name.startswith(REQUESTS):
        return False
    return name.startswith(IMPLICIT) or ("/" in name and "kubernetes.io/" not in name)


def is_unserved(name: str) -> bool:
    """Return whether a name counts objects that this server does not have."""
    return name in _UNSERVED or _STORAGE_CLASS in name


# --- amounts --------------------------------------------------------------------------------------


def added(first: ResourceList, second: ResourceList) -> ResourceList:
    """Return the sum, name by name."""
    total = dict(first)
    for name, amount in second.items():
        before = total.get(name)
        total[name] = amount if before is None else before + amount
    return total


def grown(before: ResourceList, after: ResourceList) -> ResourceList:
    """Return the increase of the amounts that have grown."""
    growth = {name: amount - before.get(name, ZERO) for name, amount in after.items()}
    return {name: amount for name, amount in growth.items() if amount.sign > 0}


def restricted_to(amounts: ResourceList, names: Collection[str]) -> ResourceList:
    """Return the amounts of these names only."""
    return {name: amount for name, amount in amounts.items() if name in names}


def without_zeros(amounts: ResourceList) -> ResourceList:
    """Return the amounts that are not zero."""
    return {name: amount for name, amount in amounts.items() if not amount.is_zero}


def names_beyond(amounts: ResourceList, bounds: ResourceList) -> list[str]:
    """Return the names whose amounts exceed their bounds."""
    return [name for name, amount in amounts.items() if name in bounds and bounds[name] < amount]


def format_amounts(amounts: ResourceList) -> str:
    """Format amounts for messages, by name: `cpu=2,memory=1Gi`."""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))


def format_names(names: Iterable[str]) -> str:
    """Format names for messages."""
    return ",".join(sorted(names))
