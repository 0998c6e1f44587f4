"""Which pods a quota with scopes is about; other objects are in no scope."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.core import ResourceQuota, ScopedResourceSelectorRequirement
from mooring.api.core.placement import Affinity, PodAffinity, PodAffinityTerm, PodAntiAffinity
from mooring.api.core.pod import Pod
from mooring.api.core.resources import CPU, MEMORY, ResourceRequirements
from mooring.claims.podresources import is_pod_level_resource

EXISTS = "Exists"
BEST_EFFORT = "BestEffort"


def scopes_of(quota: ResourceQuota) -> tuple[ScopedResourceSelectorRequirement, ...]:
    """Return all that an object must be for the quota to count it."""
    plain = tuple(
        ScopedResourceSelectorRequirement(scope_name=name, operator=EXISTS)
        for name in quota.spec.scopes
    )
    selector = quota.spec.scope_selector
    return plain if selector is None else (*plain, *selector.match_expressions)


def is_in_scope(pod: Pod, scope: ScopedResourceSelectorRequirement) -> bool:
    """Return whether a pod is in a scope; in one that nobody knows there is none."""
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
            return _looks_elsewhere(pod.spec.affinity)
    return False


def is_terminating(pod: Pod) -> bool:
    """Return whether a pod ends by itself, at a deadline."""
    deadline_s = pod.spec.active_deadline_seconds
    return deadline_s is not None and deadline_s >= 0


def is_best_effort(pod: Pod) -> bool:
    """Return whether a pod asks for nothing and is bounded in nothing."""
    if pod.status.qos_class:
        return pod.status.qos_class == BEST_EFFORT
    whole = pod.spec.resources
    if whole is not None and any(map(is_pod_level_resource, (*whole.requests, *whole.limits))):
        return not _says_something(whole)
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return not any(_says_something(container.resources) for container in containers)


def _says_something(resources: ResourceRequirements) -> bool:
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


def _looks_elsewhere(affinity: Affinity | None) -> bool:
    """Return whether a pod wants to be near to, or away from, pods of other namespaces."""
    if affinity is None:
        return False
    rules = (affinity.pod_affinity, affinity.pod_anti_affinity)
    terms = (term for rule in rules if rule is not None for term in _terms(rule))
    return any(term.namespaces or term.namespace_selector is not None for term in terms)


def _terms(rule: PodAffinity | PodAntiAffinity) -> Iterable[PodAffinityTerm]:
    yield from rule.required_during_scheduling_ignored_during_execution
    for weighted in rule.preferred_during_scheduling_ignored_during_execution:
        yield weighted.pod_affinity_term
