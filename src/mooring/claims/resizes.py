"""What a pod on its node was given and uses, while what it asks for may be changed in place."""

from __future__ import annotations

from mooring.api.core.container import Container
from mooring.api.core.pod import Pod
from mooring.api.core.podstatus import ContainerStatus
from mooring.api.core.resource_sums import Source
from mooring.api.core.resources import ResourceList

RESIZE_PENDING = "PodResizePending"
INFEASIBLE = "Infeasible"

_NO_STATUS = ContainerStatus()


def is_resize_infeasible(pod: Pod) -> bool:
    """Return whether the node cannot give what the pod asks for now: then that does not count."""
    for condition in pod.status.conditions:
        if condition.type == RESIZE_PENDING:
            return condition.reason == INFEASIBLE
    return False


def has_resource_status(pod: Pod) -> bool:
    """Return whether the status may say something else than the spec."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return bool(
        pod.status.allocated_resources
        or pod.status.conditions
        or any(status.allocated_resources or status.resources for status in statuses)
    )


def reported_as_a_whole(pod: Pod) -> tuple[ResourceList, ResourceList] | None:
    """Return what the pod was given and what it uses, if the status says so of all of it."""
    whole = pod.status.resources
    if pod.status.allocated_resources and whole is not None and whole.requests:
        return pod.status.allocated_resources, whole.requests
    return None


def reported_by_container(pod: Pod) -> tuple[Source, Source]:
    """Return what tells of a container what it was given and what it uses."""
    by_name = {
        status.name: status
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    }
    is_infeasible = is_resize_infeasible(pod)

    def given(container: Container) -> ResourceList:
        status = by_name.get(container.name, _NO_STATUS)
        return status.allocated_resources or ({} if is_infeasible else container.resources.requests)

    def used(container: Container) -> ResourceList:
        resources = by_name.get(container.name, _NO_STATUS).resources
        return (resources.requests if resources else {}) or given(container)

    return given, used
