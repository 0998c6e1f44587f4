"""Which extended resources of a pod a node must serve with devices.

A node that has a resource of its own, from a device plugin, serves it with that; one that has none
serves it with devices of the class behind the resource, if there is such a class.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.core.pod import Pod
from mooring.api.core.resources import ResourceList
from mooring.claims.classindex import ClassIndex, is_device_resource
from mooring.claims.podresources import pod_requests
from mooring.claims.refusals import Refused

# resource -> how many a pod needs of it
Needs = Mapping[str, int]


def extended_needs(pod: Pod, index: ClassIndex) -> Needs:
    """Return all extended resources of the pod if devices of a class may have to serve one."""
    if not any(index.class_for(name) for name in _names(pod)):
        return {}
    needs = {
        name: quantity.value
        for name, quantity in pod_requests(pod).items()
        if is_device_resource(name) and not quantity.is_zero
    }
    return needs if any(index.class_for(name) for name in needs) else {}


def _names(pod: Pod) -> set[str]:
    """Return the resources that the pod may ask for."""
    names = set(pod.spec.overhead)
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        names.update(container.resources.requests)
    return names


def is_served_by_devices(resource: str, allocatable: ResourceList, index: ClassIndex) -> bool:
    """Tell whether a node with these resources of its own needs devices for this one."""
    own = allocatable.get(resource)
    has_none = own is None or own.value == 0
    return has_none and index.class_for(resource) is not None


def needs_on_node(needs: Needs, allocatable: ResourceList, index: ClassIndex) -> Needs | Refused:
    """Return the needs that this node must serve with devices."""
    served = {}
    for name, count in needs.items():
        if is_served_by_devices(name, allocatable, index):
            served[name] = count
        elif name not in allocatable:
            return Refused("cannot fit resource")
    return served
