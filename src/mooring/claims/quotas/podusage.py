"""What a pod uses of quotas.

Every pod that is stored is one object (`count/pods`). What it asks for, and `pods`, count as long
as it lives: until it has ended, or should have ended while it is deleted.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from mooring.api.core.container import Container
from mooring.api.core.pod import Pod
from mooring.api.core.resource_sums import Source, at_once, raise_to
from mooring.api.core.resources import CPU, HUGE_PAGES_PREFIX, MEMORY, PODS, ResourceList
from mooring.api.timestamp import Timestamp
from mooring.claims.classindex import is_device_resource
from mooring.claims.podresources import Reading, is_pod_level_resource, requests_read
from mooring.claims.quotas.amounts import ONE, added
from mooring.claims.quotas.names import COMPUTE, LIMITS, POD_COUNT, REQUESTS
from mooring.claims.resizes import is_resize_infeasible

_WITH_STATUS = Reading(with_status=True)

# Where a quota bounds one of these, every container must say something of it.
_MUST_SAY = frozenset(
    f"{prefix}{name}" for prefix in ("", REQUESTS, LIMITS) for name in (CPU, MEMORY)
)


def pod_usage(pod: Pod, now: Timestamp) -> ResourceList:
    """Return what the pod uses of quotas."""
    counted: ResourceList = {POD_COUNT: ONE}
    if not is_living(pod, now):
        return counted
    return added(counted, _named(requests_read(pod, _WITH_STATUS), pod_limits(pod)))


def is_living(pod: Pod, now: Timestamp) -> bool:
    """Return whether what a pod asks for counts."""
    if pod.status.phase in ("Failed", "Succeeded"):
        return False
    metadata = pod.metadata
    grace_s = metadata.deletion_grace_period_seconds
    if metadata.deletion_timestamp is None or grace_s is None:
        return True
    # A pod on a node that is lost stays for ever; it must not keep others out.
    return now.instant <= metadata.deletion_timestamp.instant + timedelta(seconds=grace_s)


def pod_limits(pod: Pod) -> ResourceList:
    """Return what the pod may take: as it says, or as its node has it where that is more."""
    reported = at_once(pod, _reported_limits(pod))
    total = {} if is_resize_infeasible(pod) else at_once(pod, lambda c: c.resources.limits)
    raise_to(total, reported)
    if pod.spec.resources is not None:
        limits = pod.spec.resources.limits.items()
        total |= {name: amount for name, amount in limits if is_pod_level_resource(name)}
    for name, amount in pod.spec.overhead.items():
        if name in total and not total[name].is_zero:
            total[name] += amount
    return total


def missing(pod: Pod, names: Collection[str]) -> str:
    """Return what containers must say for these names to be counted; nothing if they do."""
    resources = pod.spec.resources
    whole = () if resources is None else (*resources.requests, *resources.limits)
    if any(map(is_pod_level_resource, whole)):
        return ""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    parts = []
    for name in sorted(_MUST_SAY.intersection(names)):
        silent = {container.name for container in containers if name not in _said(container)}
        if silent:
            parts.append(f"{name} for: {','.join(sorted(silent))}")
    return f"must specify {'; '.join(parts)}" if parts else ""


def _said(container: Container) -> ResourceList:
    return _named(container.resources.requests, container.resources.limits)


def _named(requests: ResourceList, limits: ResourceList) -> ResourceList:
    """Return requests and limits under the names that quotas have for them."""
    usage = {PODS: ONE}
    for name, amount in requests.items():
        if name in COMPUTE or name.startswith(HUGE_PAGES_PREFIX):
            usage[name] = usage[f"{REQUESTS}{name}"] = amount
        elif is_device_resource(name):
            usage[f"{REQUESTS}{name}"] = amount
    for name in COMPUTE:
        if name in limits:
            usage[f"{LIMITS}{name}"] = limits[name]
    return usage


def _reported_limits(pod: Pod) -> Source:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    by_name = {status.name: status.resources for status in statuses}

    def limits(container: Container) -> ResourceList:
        resources = by_name.get(container.name)
        return container.resources.limits if resources is None else resources.limits

    return limits
