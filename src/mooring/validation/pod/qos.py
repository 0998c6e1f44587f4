"""The quality of service that a pod's requests and limits amount to."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.core.pod import PodSpec
from mooring.api.core.resources import CPU, HUGE_PAGES_PREFIX, MEMORY, ResourceRequirements
from mooring.api.quantity import Quantity

BEST_EFFORT = "BestEffort"
BURSTABLE = "Burstable"
GUARANTEED = "Guaranteed"

_ZERO = Quantity.from_int(0)


def qos_class(spec: PodSpec) -> str:
    """Return the class of a pod.

    Guaranteed where every container gets as much cpu and memory as it may take, BestEffort where
    none asks for any, Burstable otherwise.
    """
    if spec.resources is not None and _counts(spec.resources):
        return _class_of(spec.resources)
    return _common(_class_of(c.resources) for c in (*spec.init_containers, *spec.containers))


def _counts(resources: ResourceRequirements) -> bool:
    """Tell whether a pod asks as a whole for something that can be asked for like that."""
    names = (*resources.requests, *resources.limits)
    return any(n in (CPU, MEMORY) or n.startswith(HUGE_PAGES_PREFIX) for n in names)


def _class_of(resources: ResourceRequirements) -> str:
    return _common(_class_of_resource(resources, name) for name in (CPU, MEMORY))


def _class_of_resource(resources: ResourceRequirements, name: str) -> str:
    request, limit = resources.requests.get(name, _ZERO), resources.limits.get(name, _ZERO)
    if request != limit:
        return BURSTABLE
    return BEST_EFFORT if request.is_zero else GUARANTEED


def _common(classes: Iterable[str]) -> str:
    """Return the class that all have, or Burstable."""
    found = set(classes) or {BEST_EFFORT}
    return found.pop() if len(found) == 1 else BURSTABLE
