"""Evaluators: which names of a quota the objects of a resource use, how much, and in which scopes.

Only pods are in scopes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from moorage.api.core import ResourceQuota, ScopedResourceSelectorRequirement
from moorage.api.core.placement import Affinity, PodAffinity, PodAffinityTerm, PodAntiAffinity
from moorage.api.core.pod import Pod
from moorage.api.core.resources import CPU, MEMORY, ResourceList, ResourceRequirements
from moorage.api.resource.v1 import ResourceClaim
from moorage.claims.pod_claims import owning_pod
from moorage.claims.pod_resources import is_pod_level_resource
from moorage.claims.quotas.storage import ServiceEvaluator, VolumeClaimEvaluator
from moorage.claims.quotas.usage import (
    CLAIM_COUNT,
    CLASS_DEVICES,
    ONE,
    REQUESTS,
    UsageContext,
    claim_usage,
    is_extended,
    is_of_pods,
    is_special,
    missing_amounts,
    object_names,
    pod_usage,
)


class GroupResource(NamedTuple):
    """A resource, by API group and plural."""

    group: str
    plural: str


PODS = GroupResource("", "pods")
CLAIMS = GroupResource("resource.k8s.io", "resourceclaims")
SERVICES = GroupResource("", "services")
VOLUME_CLAIMS = GroupResource("", "persistentvolumeclaims")

EXISTS = "Exists"
BEST_EFFORT = "BestEffort"

_UNCOUNTED = frozenset({GroupResource("", "bindings"), GroupResource("", "events")}) | {
    GroupResource("events.k8s.io", "events")
}


class Evaluator(Protocol):
    """Evaluates the usage of the objects of a resource."""

    def names(self, hard: Iterable[str]) -> set[str]:
        """Return which of the names the objects can use."""

    def usage(self, value: Any) -> ResourceList:
        """Return the usage of an object."""

    def has(self, scope: ScopedResourceSelectorRequirement, value: Any) -> bool:
        """Return whether an object is in a scope."""

    def missing(self, names: Iterable[str], value: Any) -> str:
        """Return which values required by the names an object lacks; "" if none."""

    def counts_change(self, old: Any, new: Any) -> bool:
        """Return whether an update, not of the status, can increase usage."""


def evaluator_for(resource: GroupResource, context: UsageContext) -> Evaluator | None:
    """Return the evaluator of a resource; None for those that are not counted."""
    if resource in _UNCOUNTED:
        return None
    if resource == PODS:
        return _PodEvaluator(context)
    if resource == CLAIMS:
        return _ClaimEvaluator(context)
    if resource == SERVICES:
        return ServiceEvaluator()
    if resource == VOLUME_CLAIMS:
        return VolumeClaimEvaluator()
    return _ObjectCountEvaluator(object_names(*resource))


class _PodEvaluator:
    """Pods use their requests and limits, and are in scopes."""

    def __init__(self, context: UsageContext) -> None:
        self._context = context

    def names(self, hard: Iterable[str]) -> set[str]:
        return set(filter(is_of_pods, hard))

    def usage(self, value: Pod) -> ResourceList:
        return pod_usage(value, self._context.now)

    def has(self, scope: ScopedResourceSelectorRequirement, value: Pod) -> bool:
        return is_in_scope(value, scope)

    def missing(self, names: Iterable[str], value: Pod) -> str:
        return missing_amounts(value, set(names))

    def counts_change(self, old: Pod, new: Pod) -> bool:
        """Return whether a pod moves to another scope, or is resized."""
        return is_terminating(old) != is_terminating(new) or _resources(old) != _resources(new)


class _ClaimEvaluator:
    """Claims use devices of classes, which also count as extended resources."""

    def __init__(self, context: UsageContext) -> None:
        self._context = context

    def names(self, hard: Iterable[str]) -> set[str]:
        return set(filter(self._is_used, hard))

    def _is_used(self, name: str) -> bool:
        if name == CLAIM_COUNT or name.endswith(CLASS_DEVICES):
            return True
        if not (self._context.has_extended and is_extended(name)):
            return False
        return self._context.classes.class_for(name.removeprefix(REQUESTS)) is not None

    def usage(self, value: ResourceClaim) -> ResourceList:
        return claim_usage(value, self._context)

    def has(self, scope: ScopedResourceSelectorRequirement, value: ResourceClaim) -> bool:  # noqa: ARG002
        return False

    def missing(self, names: Iterable[str], value: ResourceClaim) -> str:  # noqa: ARG002
        return ""

    def counts_change(self, old: ResourceClaim, new: ResourceClaim) -> bool:
        """Return whether a claim requests something else, or becomes another pod's special one."""
        if is_special(old) != is_special(new) or old.spec != new.spec:
            return True
        return is_special(new) and owning_pod(old) != owning_pod(new)


class _ObjectCountEvaluator:
    """Other objects are only counted."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def names(self, hard: Iterable[str]) -> set[str]:
        return set(self._names.intersection(hard))

    def usage(self, value: Any) -> ResourceList:  # noqa: ARG002
        return dict.fromkeys(self._names, ONE)

    def has(self, scope: ScopedResourceSelectorRequirement, value: Any) -> bool:  # noqa: ARG002
        return False

    def missing(self, names: Iterable[str], value: Any) -> str:  # noqa: ARG002
        return ""

    def counts_change(self, old: Any, new: Any) -> bool:  # noqa: ARG002
        return False


# --- scopes ---------------------------------------------------------------------------------------


def scopes_of(quota: ResourceQuota) -> tuple[ScopedResourceSelectorRequirement, ...]:
    """Return the scopes in which the quota counts an object."""
    plain = tuple(
        ScopedResourceSelectorRequirement(scope_name=name, operator=EXISTS)
        for name in quota.spec.scopes
    )
    selector = quota.spec.scope_selector
    return plain if selector is None else (*plain, *selector.match_expressions)


def is_in_scope(pod: Pod, scope: ScopedResourceSelectorRequirement) -> bool:
    """Return whether a pod is in a scope; no pod is in an unknown one."""
    match scope.scope_name:
        case "Terminating":
            return is_terminating(pod)
        case "NotTerminating":
            return not is_terminating(pod)
        case "BestEffort":
            return is_best_effort(pod)
        case "NotBestEffort":
            return not is_best_effort(pod)
        case "PriorityClass":
            return _has_priority_class(pod.spec.priority_class_name, scope)
        case "CrossNamespacePodAffinity":
            return _has_cross_namespace_terms(pod.spec.affinity)
    return False


def is_terminating(pod: Pod) -> bool:
    """Return whether a pod has a deadline."""
    deadline_s = pod.spec.active_deadline_seconds
    return deadline_s is not None and deadline_s >= 0


def _resources(pod: Pod) -> list[ResourceRequirements | None]:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return [pod.spec.resources, *(each.resources for each in containers)]


def is_best_effort(pod: Pod) -> bool:
    """Return whether a pod has neither requests nor limits."""
    if pod.status.qos_class:
        return pod.status.qos_class == BEST_EFFORT
    whole = pod.spec.resources
    if whole is not None and any(map(is_pod_level_resource, (*whole.requests, *whole.limits))):
        return not _has_amounts(whole)
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return not any(_has_amounts(container.resources) for container in containers)


def _has_amounts(resources: ResourceRequirements) -> bool:
    return any(
        name in amounts and not amounts[name].is_zero
        for amounts in (resources.requests, resources.limits)
        for name in (CPU, MEMORY)
    )


def _has_priority_class(name: str, scope: ScopedResourceSelectorRequirement) -> bool:
    match scope.operator:
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return bool(name) and name in scope.values
        case "NotIn":
            return not name or name not in scope.values
    return False


def _has_cross_namespace_terms(affinity: Affinity | None) -> bool:
    if affinity is None:
        return False
    rules = (affinity.pod_affinity, affinity.pod_anti_affinity)
    terms = (term for rule in rules if rule is not None for term in _terms(rule))
    return any(term.namespaces or term.namespace_selector is not None for term in terms)


def _terms(rule: PodAffinity | PodAntiAffinity) -> Iterable[PodAffinityTerm]:
    yield from rule.required_during_scheduling_ignored_during_execution
    for weighted in rule.preferred_during_scheduling_ignored_during_execution:
        yield weighted.pod_affinity_term
