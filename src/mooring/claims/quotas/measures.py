"""How objects of each resource are measured.

# measure: knows which names of a quota its objects use, how much, and in which scopes they are
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from mooring.api.core import ScopedResourceSelectorRequirement
from mooring.api.core.pod import Pod
from mooring.api.core.resources import ResourceList
from mooring.api.resource.v1 import ResourceClaim
from mooring.claims.owners import owning_pod
from mooring.claims.quotas.amounts import ONE
from mooring.claims.quotas.claimusage import Surroundings, claim_usage, is_special
from mooring.claims.quotas.names import (
    CLAIM_COUNT,
    CLASS_DEVICES,
    REQUESTS,
    is_extended,
    is_of_pods,
    object_names,
)
from mooring.claims.quotas.podusage import missing, pod_usage
from mooring.claims.quotas.scopes import is_in_scope, is_terminating


class Counted(NamedTuple):
    """A resource whose objects are counted."""

    group: str
    plural: str


PODS = Counted("", "pods")
CLAIMS = Counted("resource.k8s.io", "resourceclaims")

_UNCOUNTED = frozenset({Counted("", "bindings"), Counted("", "events")}) | {
    Counted("events.k8s.io", "events")
}


class Measure(Protocol):
    """How objects of a resource are measured."""

    def names(self, hard: Iterable[str]) -> set[str]:
        """Return which of the names the objects may use."""

    def usage(self, value: Any) -> ResourceList:
        """Return what an object uses."""

    def has(self, scope: ScopedResourceSelectorRequirement, value: Any) -> bool:
        """Return whether an object is in a scope."""

    def missing(self, names: Iterable[str], value: Any) -> str:
        """Return what an object must say for the names to be counted; nothing if it does."""

    def counts_change(self, old: Any, new: Any) -> bool:
        """Return whether a change, not of a status, may need more."""


def measure_of(resource: Counted, around: Surroundings) -> Measure | None:
    """Return how objects of a resource are measured; None for those that are not."""
    if resource in _UNCOUNTED:
        return None
    if resource == PODS:
        return PodMeasure(around)
    if resource == CLAIMS:
        return ClaimMeasure(around)
    return CountMeasure(object_names(*resource))


class PodMeasure:
    """Pods use what they ask for, and are in scopes."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def names(self, hard: Iterable[str]) -> set[str]:
        """Return the names of what pods ask for."""
        return set(filter(is_of_pods, hard))

    def usage(self, value: Pod) -> ResourceList:
        """Return what a pod uses."""
        return pod_usage(value, self._around.now)

    def has(self, scope: ScopedResourceSelectorRequirement, value: Pod) -> bool:
        """Return whether a pod is in a scope."""
        return is_in_scope(value, scope)

    def missing(self, names: Iterable[str], value: Pod) -> str:
        """Return what the containers of a pod must say."""
        return missing(value, set(names))

    def counts_change(self, old: Pod, new: Pod) -> bool:
        """Return whether a pod goes to another scope."""
        return is_terminating(old) != is_terminating(new)


class ClaimMeasure:
    """Claims use devices of classes, which count as extended resources, too."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def names(self, hard: Iterable[str]) -> set[str]:
        """Return the names of claims, and of classes that there are."""
        return set(filter(self._is_known, hard))

    def _is_known(self, name: str) -> bool:
        if name == CLAIM_COUNT or name.endswith(CLASS_DEVICES):
            return True
        if not (self._around.has_extended and is_extended(name)):
            return False
        return self._around.classes.class_for(name.removeprefix(REQUESTS)) is not None

    def usage(self, value: ResourceClaim) -> ResourceList:
        """Return what a claim uses."""
        return claim_usage(value, self._around)

    def has(self, scope: ScopedResourceSelectorRequirement, value: ResourceClaim) -> bool:  # noqa: ARG002
        """Return that claims are in no scope."""
        return False

    def missing(self, names: Iterable[str], value: ResourceClaim) -> str:  # noqa: ARG002
        """Return nothing: claims say what they ask for."""
        return ""

    def counts_change(self, old: ResourceClaim, new: ResourceClaim) -> bool:
        """Return whether a claim asks for something else, or is another pod's special one."""
        if is_special(old) != is_special(new) or old.spec != new.spec:
            return True
        return is_special(new) and owning_pod(old) != owning_pod(new)


class CountMeasure:
    """All other objects only count as objects."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def names(self, hard: Iterable[str]) -> set[str]:
        """Return the names under which the objects are counted."""
        return set(self._names.intersection(hard))

    def usage(self, value: Any) -> ResourceList:  # noqa: ARG002
        """Return one of each name."""
        return dict.fromkeys(self._names, ONE)

    def has(self, scope: ScopedResourceSelectorRequirement, value: Any) -> bool:  # noqa: ARG002
        """Return that such objects are in no scope."""
        return False

    def missing(self, names: Iterable[str], value: Any) -> str:  # noqa: ARG002
        """Return nothing."""
        return ""

    def counts_change(self, old: Any, new: Any) -> bool:  # noqa: ARG002
        """Return that no change makes two objects of one."""
        return False
