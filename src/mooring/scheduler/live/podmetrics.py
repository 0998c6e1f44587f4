"""What pods ask for and may take, one series a resource, as Prometheus reads it.

Kubernetes' scheduler has these apart from its other metrics (`/metrics/resources`), since there are
as many as there are pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mooring.api.core.pod import Pod
from mooring.api.core.resource_sums import add
from mooring.api.core.resources import CPU, MEMORY, ResourceList
from mooring.claims.podresources import container_limits, is_huge_page, pod_requests
from mooring.scheduler.live.metrics import shown

REQUEST = "kube_pod_resource_request"
LIMIT = "kube_pod_resource_limit"
ENDED = ("Succeeded", "Failed")
_UNITS = {CPU: "cores", MEMORY: "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}


def resources_text(pods: Iterable[Pod]) -> str:
    """Return the requests and limits of all pods that have not ended."""
    counted = [pod for pod in pods if not (pod.spec.node_name and pod.status.phase in ENDED)]
    lines = [
        *_family(REQUEST, "Resources that pods ask for, in all.", counted, pod_requests),
        *_family(LIMIT, "Resources that pods may take, in all.", counted, pod_limits),
    ]
    return "\n".join(lines) + "\n"


def pod_limits(pod: Pod) -> ResourceList:
    """Return what a pod may take: of its containers or as a whole, with the overhead of running it.

    What has no limit has none with the overhead, either.
    """
    total = container_limits(pod)
    if pod.spec.resources is not None:
        total |= pod.spec.resources.limits
    add(total, {name: amount for name, amount in pod.spec.overhead.items() if name in total})
    return total


def _family(
    name: str, text: str, pods: list[Pod], look: Callable[[Pod], ResourceList]
) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"
    for pod in pods:
        for resource, amount in sorted(look(pod).items()):
            if amount.approximate_float:
                yield f"{name}{shown(_labels(pod, resource))} {amount.approximate_float:.15g}"


def _labels(pod: Pod, resource: str) -> tuple[tuple[str, str], ...]:
    spec = pod.spec
    return (
        ("namespace", pod.metadata.namespace),
        ("pod", pod.metadata.name),
        ("node", spec.node_name),
        ("scheduler", spec.scheduler_name),
        ("priority", "" if spec.priority is None else str(spec.priority)),
        ("resource", resource),
        ("unit", _unit(resource)),
    )


def _unit(resource: str) -> str:
    if is_huge_page(resource):
        return "bytes"
    if resource.startswith("attachable-volumes-"):
        return "integer"
    return _UNITS.get(resource, "")
