"""What pods ask for and may take, as kube-scheduler tells it at /metrics/resources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mooring.api.core import Pod
from mooring.api.core.resources import ResourceList
from mooring.claims.podresources import container_limits, is_huge_page, pod_requests
from mooring.controllers.podstates import is_over

REQUESTS = "kube_pod_resource_request"
LIMITS = "kube_pod_resource_limit"
_UNITS = {"cpu": "cores", "memory": "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}


def pod_resources_text(pods: Iterable[Pod]) -> str:
    """Return the resources of all pods that are not over, as Prometheus reads them."""
    counted = [pod for pod in pods if not (pod.spec.node_name and is_over(pod))]
    lines = (
        *_lines(REQUESTS, "Resources that pods ask for.", counted, pod_requests),
        *_lines(LIMITS, "Resources that pods may take.", counted, _limits),
    )
    return "".join(f"{line}\n" for line in lines)


def _lines(
    name: str, text: str, pods: Iterable[Pod], of: Callable[[Pod], ResourceList]
) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"
    for pod in pods:
        labels = _labels(pod)
        for resource, amount in sorted(of(pod).items()):
            if not amount.is_zero:
                own = f'resource="{resource}",unit="{_unit(resource)}"'
                yield f"{name}{{{labels},{own}}} {amount.approximate_float!r}"


def _labels(pod: Pod) -> str:
    spec, metadata = pod.spec, pod.metadata
    priority = "" if spec.priority is None else str(spec.priority)
    pairs = {
        "namespace": metadata.namespace,
        "pod": metadata.name,
        "node": spec.node_name,
        "scheduler": spec.scheduler_name,
        "priority": priority,
    }
    return ",".join(f'{name}="{value}"' for name, value in pairs.items())


def _unit(resource: str) -> str:
    if is_huge_page(resource):
        return "bytes"
    return _UNITS.get(resource, "integer" if resource.startswith("attachable-volumes-") else "")


def _limits(pod: Pod) -> ResourceList:
    """Return what a pod may take: its overhead counts where there is a limit at all."""
    limits = dict(container_limits(pod))
    if pod.spec.resources is not None:
        limits |= pod.spec.resources.limits
    overhead = pod.spec.overhead
    return {
        name: amount + overhead[name] if name in overhead else amount
        for name, amount in limits.items()
    }
