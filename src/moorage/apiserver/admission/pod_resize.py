"""The PodResizeValidator plugin: a node must be there, run Linux and be large enough for a resize.

Nobody acts on new resources of a pod whose node is gone. A pod that has no node yet is resized
freely, as the scheduler looks at its new requests.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.api.core import Node, Pod
from moorage.api.core.resources import CPU, MEMORY
from moorage.api.quantity import Quantity
from moorage.apiserver.http.status import StatusCause, StatusError, forbidden
from moorage.apiserver.resources import Resources
from moorage.apiserver.storage.registry import Registry
from moorage.apiserver.verbs.resource_request import ResourceRequest
from moorage.claims.pod_resources import pod_requests
from moorage.kit.go_quote import go_quote

RESIZE: Final = "resize"
OS_LABEL: Final = "kubernetes.io/os"
LINUX: Final = "linux"
NODE_CAPACITY: Final = StatusCause(reason="NodeCapacity")
UNSUPPORTED_PLATFORM: Final = StatusCause(reason="UnsupportedPlatform")


class PodResizeAdmission:
    """Looks at the nodes of pods that are resized."""

    def __init__(self, registry: Registry, resources: Resources) -> None:
        self._registry = registry
        self._nodes = resources.of("", "nodes")

    async def validate(self, request: ResourceRequest, new: Any, old: Any) -> None:
        """Raise 403 if the node of a pod cannot have it with its new resources."""
        if request.target.subresource != RESIZE or not isinstance(new, Pod):
            return
        name = new.spec.node_name
        if not name or new.metadata.generation == old.metadata.generation:
            return
        node = await self._registry.find(self._nodes, "", name)
        if node is None:
            raise _refusal(request, new, f"node {go_quote(name)} not found")
        system = node.metadata.labels.get(OS_LABEL, LINUX)
        if system != LINUX:
            fact = f"node {go_quote(name)} is {go_quote(system)}"
            why = f"pod resize is only supported on linux nodes, {fact}"
            raise _refusal(request, new, why, UNSUPPORTED_PLATFORM)
        if missing := _missing(new, node):
            why = f"node didn't have enough allocatable resources: {missing}"
            raise _refusal(request, new, why, NODE_CAPACITY)


def _refusal(request: ResourceRequest, pod: Pod, why: str, *causes: StatusCause) -> StatusError:
    return forbidden(request.resource.about, pod.metadata.name, why, causes)


def _missing(pod: Pod, node: Node) -> str:
    """Return what a pod requests beyond all that its node has, as Kubernetes says it."""
    requests, amounts = pod_requests(pod), node.status.allocatable
    found = []
    for name in (CPU, MEMORY):
        wanted, there = (each.get(name, Quantity.ZERO) for each in (requests, amounts))
        if wanted > there:
            shown = [each.milli_value if name == CPU else each.value for each in (wanted, there)]
            found.append(f"{name}, requested: {shown[0]}, allocatable: {shown[1]}")
    return "; ".join(found)
