"""What Kubernetes sets in a pod that leaves it open.

Pods get everything below; templates of pods only what `default_pod_spec` sets. Volumes, probes and
the like get the defaults of their types, which stand in one table (`part_defaults`).
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from mooring.api.core.container import Container, ContainerPort
from mooring.api.core.pod import DEFAULT_SCHEDULER, Pod, PodSpec
from mooring.api.core.podstatus import PodIP, PodStatus
from mooring.api.core.resources import ResourceList, ResourceRequirements
from mooring.api.quantity import Quantity
from mooring.validation.pod.part_defaults import filled, filled_each, pull_policy

GRACE_PERIOD_SECONDS = 30
TERMINATION_MESSAGE_PATH = "/dev/termination-log"

_MILLI_EXACT_MAX = Quantity.from_int((2**63 - 1) // 1000)

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
        volumes=filled_each(spec.volumes, "core/v1.Volume"),
        service_account_name=account,
        service_account=account,
        dns_policy=spec.dns_policy or "ClusterFirst",
        restart_policy=spec.restart_policy or "Always",
        security_context={} if spec.security_context is None else spec.security_context,
        termination_grace_period_seconds=(
            GRACE_PERIOD_SECONDS if grace_period is None else grace_period
        ),
        scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
        overhead=rounded(spec.overhead),
        resources=spec.resources and _default_resources(spec.resources),
        containers=tuple(map(_default_container, spec.containers)),
        init_containers=tuple(map(_default_container, spec.init_containers)),
        ephemeral_containers=tuple(map(_default_container, spec.ephemeral_containers)),
    )


def _default_container(container: C) -> C:
    return replace(
        container,
        image_pull_policy=container.image_pull_policy or pull_policy(container.image),
        termination_message_path=container.termination_message_path or TERMINATION_MESSAGE_PATH,
        termination_message_policy=container.termination_message_policy or "File",
        ports=tuple(replace(p, protocol=p.protocol or "TCP") for p in container.ports),
        env=filled_each(container.env, "core/v1.EnvVar"),
        liveness_probe=filled(container.liveness_probe, "core/v1.Probe"),
        readiness_probe=filled(container.readiness_probe, "core/v1.Probe"),
        startup_probe=filled(container.startup_probe, "core/v1.Probe"),
        lifecycle=filled(container.lifecycle, "core/v1.Lifecycle"),
        resources=_default_resources(container.resources),
    )


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
    limits, requests = rounded(resources.limits), rounded(resources.requests)
    return replace(resources, limits=limits, requests=requests)


def rounded(amounts: ResourceList) -> ResourceList:
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
