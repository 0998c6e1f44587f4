"""What pods ask for and may take, one series a resource.

Kubernetes' scheduler has these apart from its other metrics (`/metrics/resources`), since there are
as many as there are pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from mooring.api.core.pod import Pod
from mooring.api.core.resource_sums import add
from mooring.api.core.resources import CPU, MEMORY, ResourceList
from mooring.claims.podresources import container_limits, is_huge_page, pod_requests
from mooring.kit.metrics import Family, Labels, Level

REQUEST = "kube_pod_resource_request"
LIMIT = "kube_pod_resource_limit"
ENDED = ("Succeeded", "Failed")
_UNITS = {CPU: "cores", MEMORY: "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}


_LABELS = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")


def resource_families(pods: Iterable[Pod]) -> Iterator[Family]:
    """Give the requests and limits of all pods that have not ended."""
    counted = [pod for pod in pods if not (pod.spec.node_name and pod.status.phase in ENDED)]
    text = "Resources that a pod asks for, all its containers together."
    yield Level(REQUEST, text, _LABELS, partial(_amounts, counted, pod_requests))
    text = "Resources that a pod may take, all its containers together."
    yield Level(LIMIT, text, _LABELS, partial(_amounts, counted, pod_limits))


def pod_limits(pod: Pod) -> ResourceList:
    """Return what a pod may take: of its containers or as a whole, with the overhead of running it.

    What has no limit has none with the overhead, either.
    """
    total = container_limits(pod)
    if pod.spec.resources is not None:
        total |= pod.spec.resources.limits
    add(total, {name: amount for name, amount in pod.spec.overhead.items() if name in total})
    return total


def _amounts(pods: list[Pod], look: Callable[[Pod], ResourceList]) -> dict[Labels, float]:
    return {
        _labels(pod, resource): amount.approximate_float
        for pod in pods
        for resource, amount in look(pod).items()
        if amount.approximate_float
    }


def _labels(pod: Pod, resource: str) -> Labels:
    spec = pod.spec
    return (
        pod.metadata.namespace,
        pod.metadata.name,
        spec.node_name,
        spec.scheduler_name,
        "" if spec.priority is None else str(spec.priority),
        resource,
        _unit(resource),
    )


def _unit(resource: str) -> str:
    if is_huge_page(resource):
        return "bytes"
    if resource.startswith("attachable-volumes-"):
        return "integer"
    return _UNITS.get(resource, "")
