"""What Kubernetes sets in a pod that leaves it open.

Pods get everything below; templates of pods only what `default_pod_spec` sets. Defaults inside
volumes, probes and pod-level resources are left to the node agent, which reads none of them.
"""

from __future__ import annotations

import re
from typing import TypeVar

from msgspec.structs import replace

from mooring.api.core.container import Container, ContainerPort
from mooring.api.core.pod import DEFAULT_SCHEDULER, Pod, PodSpec
from mooring.api.core.podstatus import PodIP, PodStatus
from mooring.api.core.resources import ResourceList, ResourceRequirements
from mooring.api.quantity import Quantity

GRACE_PERIOD_SECONDS = 30
TERMINATION_MESSAGE_PATH = "/dev/termination-log"

_MILLI_EXACT_MAX = Quantity.from_int((2**63 - 1) // 1000)

_COMPONENT = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_match_image = re.compile(
    r"(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::[0-9]+)?/)?"
    rf"{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::([a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}))?(?:@([a-zA-Z0-9+._-]+:[0-9a-fA-F]{32,}))?"
).fullmatch

C = TypeVar("C", bound=Container)


def default_pod(pod: Pod) -> Pod:
    """Return the pod with everything set that Kubernetes sets."""
    spec = default_pod_spec(pod.spec)
    grace_period = spec.termination_grace_period_seconds
    if grace_period is not None and grace_period < 0:
        spec = replace(spec, termination_grace_period_seconds=1)
    if spec.enable_service_links is None:
        spec = replace(spec, enable_service_links=True)
    spec = replace(
        spec,
        containers=tuple(_for_pod(c, spec) for c in spec.containers),
        init_containers=tuple(_for_pod(c, spec) for c in spec.init_containers),
    )
    return replace(pod, spec=spec, status=_default_status(pod.status))


def default_pod_spec(spec: PodSpec) -> PodSpec:
    """Return the spec of a pod, or of a template, with what both get."""
    account = spec.service_account_name or spec.service_account
    grace_period = spec.termination_grace_period_seconds
    return replace(
        spec,
        service_account_name=account,
        service_account=account,
        dns_policy=spec.dns_policy or "ClusterFirst",
        restart_policy=spec.restart_policy or "Always",
        security_context={} if spec.security_context is None else spec.security_context,
        termination_grace_period_seconds=(
            GRACE_PERIOD_SECONDS if grace_period is None else grace_period
        ),
        scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
        overhead=_rounded(spec.overhead),
        resources=spec.resources and _default_resources(spec.resources),
        containers=tuple(map(_default_container, spec.containers)),
        init_containers=tuple(map(_default_container, spec.init_containers)),
        ephemeral_containers=tuple(map(_default_container, spec.ephemeral_containers)),
    )


def _default_container(container: C) -> C:
    policy = container.image_pull_policy or _pull_policy(container.image)
    return replace(
        container,
        image_pull_policy=policy,
        termination_message_path=container.termination_message_path or TERMINATION_MESSAGE_PATH,
        termination_message_policy=container.termination_message_policy or "File",
        ports=tuple(replace(p, protocol=p.protocol or "TCP") for p in container.ports),
        resources=_default_resources(container.resources),
    )


def _pull_policy(image: str) -> str:
    """Return Always for the tag latest, which an image without tag and digest has as well."""
    reference = _match_image(image)
    if reference is None:
        return "IfNotPresent"
    tag, digest = reference.groups()
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def _for_pod(container: Container, spec: PodSpec) -> Container:
    """Return the container with requests from its limits and, on the host's network, host ports."""
    resources = container.resources
    if resources.limits.keys() - resources.requests.keys():
        resources = replace(resources, requests={**resources.limits, **resources.requests})
    ports = container.ports
    if spec.host_network:
        ports = tuple(map(_on_host, ports))
    return replace(container, resources=resources, ports=ports)


def _on_host(port: ContainerPort) -> ContainerPort:
    return replace(port, host_port=port.host_port or port.container_port)


def _default_resources(resources: ResourceRequirements) -> ResourceRequirements:
    limits, requests = _rounded(resources.limits), _rounded(resources.requests)
    return replace(resources, limits=limits, requests=requests)


def _rounded(amounts: ResourceList) -> ResourceList:
    """Return the amounts rounded up to thousandths, finer than which nothing is counted."""
    return {name: _rounded_up(amount) for name, amount in amounts.items()}


def _rounded_up(amount: Quantity) -> Quantity:
    if amount > _MILLI_EXACT_MAX:
        return amount
    rounded = Quantity.from_milli(amount.milli_value, amount.format)
    return amount if rounded == amount else rounded


def _default_status(status: PodStatus) -> PodStatus:
    """Return the status with the one address and the list of addresses in step."""
    first = status.pod_ips[0].ip if status.pod_ips else ""
    if status.pod_ip == first:
        return status
    if not status.pod_ip:
        return replace(status, pod_ip=first)
    return replace(status, pod_ips=(PodIP(ip=status.pod_ip),))
