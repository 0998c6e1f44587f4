"""In-place resize (pure): which resources the node grants a pod, and how its containers get them.

    spec       what the pod wants
    allocated  what the node has granted: its share of the node, and what containers start with
    resources  what a running container has

A pod that wants more than the node can grant now waits with the condition PodResizePending, until
other pods leave; the server rejects more than the whole node has. Granted resources that
a container does not have yet are the condition PodResizeInProgress: the runtime changes them, or
the container is restarted, as its `resizePolicy` says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.codec import to_tree
from moorage.api.core import Container, Node, Pod
from moorage.api.core.resources import CPU, MEMORY, ResourceList, ResourceRequirements
from moorage.node.pods.admission import AdmissionRejection, Amounts, shortage
from moorage.node.pods.pod_record import PodRecord, container_of, is_running
from moorage.node.runtime.contract import ContainerId

DEFERRED: Final = "Deferred"
RESTART: Final = "RestartContainer"


def wanted_resources(pod: Pod) -> dict[str, ResourceRequirements]:
    """Return what the containers of a pod want, by name."""
    listed = (*pod.spec.init_containers, *pod.spec.containers)
    return {each.name: each.resources for each in listed}


def allocated_pod(record: PodRecord) -> Pod:
    """Return a pod with the resources that the node has granted."""
    spec = record.pod.spec
    return replace(
        record.pod,
        spec=replace(
            spec,
            containers=tuple(with_allocated(record, each) for each in spec.containers),
            init_containers=tuple(with_allocated(record, each) for each in spec.init_containers),
        ),
    )


def with_allocated(record: PodRecord, container: Container) -> Container:
    """Return a container with the resources that the node has granted."""
    granted = record.allocated.get(container.name)
    if granted is None or granted == container.resources:
        return container
    return replace(container, resources=granted)


def has_other_wish(record: PodRecord) -> bool:
    """Return whether a pod wants other resources than those that the node has granted."""
    wanted = wanted_resources(record.pod)
    return any(
        name in record.allocated and _amounts(each) != _amounts(record.allocated[name])
        for name, each in wanted.items()
    )


def refusal_of(pod: Pod, node: Node | None, used: Amounts) -> AdmissionRejection | None:
    """Return why a node cannot grant what a pod wants, given what others use; None if it can."""
    if node is None:
        return AdmissionRejection(DEFERRED, "Kubelet cannot get node info.")
    lack = shortage(pod, node, used)
    return None if lack is None else AdmissionRejection(DEFERRED, lack.message)


def event_text(pod: Pod, prefix: str, error: str = "") -> str:
    """Return the message of an event about a resize, as a kubelet writes it."""
    spec = pod.spec
    tree: dict[str, Any] = {}
    for name, listed in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        if listed:
            tree[name] = [
                {"name": each.name, "resources": to_tree(each.resources)} for each in listed
            ]
    tree["generation"] = int(pod.metadata.generation or 0)
    if error:
        tree["error"] = error
    return f"{prefix}: {json.dumps(tree, separators=(',', ':'))}"


def unresized(record: PodRecord) -> Iterator[tuple[ContainerId, ResourceRequirements]]:
    """Yield running containers that do not have yet what the node has granted."""
    for name, state in sorted(record.latest.items()):
        has, granted = record.resources.get(state.id), record.allocated.get(name)
        if not is_running(state) or has is None or granted is None:
            continue
        if _amounts(has) != _amounts(granted):
            yield state.id, granted


def needs_restart(record: PodRecord, id_: ContainerId) -> bool:
    """Return whether a container gets its resources by a restart, as its policy says."""
    container = container_of(record.pod, id_.name)
    has, granted = record.resources[id_], record.allocated[id_.name]
    return any(
        _policy(container, name) == RESTART
        for name in (CPU, MEMORY)
        if _amount(has, name) != _amount(granted, name)
    )


def _policy(container: Container, resource: str) -> str:
    for each in container.resize_policy:
        fields: Mapping[str, Any] = each if isinstance(each, Mapping) else {}
        if fields.get("resourceName") == resource:
            return str(fields.get("restartPolicy") or "")
    return ""


def _amount(resources: ResourceRequirements, name: str) -> tuple[Any, Any]:
    return resources.requests.get(name), resources.limits.get(name)


def _amounts(resources: ResourceRequirements) -> tuple[ResourceList, ResourceList]:
    return resources.requests, resources.limits
