"""What quotas call the things that they count.

count/PLURAL[.GROUP]                                objects of a resource
pods, configmaps, …                                 the same by older names; pods that live
[requests.]cpu, limits.memory …                     what pods ask for and may take
requests.NAME                                       an extended resource, of pods and of claims
CLASS.deviceclass.resource.k8s.io/devices           devices of a class that claims ask for
requests.deviceclass.resource.kubernetes.io/CLASS   the same as an extended resource
"""

from __future__ import annotations

from mooring.api.core.resources import CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY, PODS
from mooring.api.resource.v1 import DEVICE_CLASS_RESOURCE_PREFIX

REQUESTS = "requests."
LIMITS = "limits."
CLASS_DEVICES = ".deviceclass.resource.k8s.io/devices"
IMPLICIT = REQUESTS + DEVICE_CLASS_RESOURCE_PREFIX

COMPUTE = (CPU, MEMORY, EPHEMERAL_STORAGE)

_OLDER = {
    ("", "configmaps"): "configmaps",
    ("", "replicationcontrollers"): "replicationcontrollers",
    ("", "resourcequotas"): "resourcequotas",
    ("", "secrets"): "secrets",
}

# Of kinds that are not served here there is nothing.
_OF_OTHERS = frozenset(
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
    """Return whether a name counts something of pods."""
    is_huge_pages = name.startswith((HUGE_PAGES_PREFIX, f"{REQUESTS}{HUGE_PAGES_PREFIX}"))
    return name in POD_NAMES or is_huge_pages or is_extended(name)


def is_extended(name: str) -> bool:
    """Return whether a name counts an extended resource."""
    if not name.startswith(REQUESTS):
        return False
    return name.startswith(IMPLICIT) or ("/" in name and "kubernetes.io/" not in name)


def is_of_nothing(name: str) -> bool:
    """Return whether a name counts something that there cannot be here."""
    return name in _OF_OTHERS or _STORAGE_CLASS in name
