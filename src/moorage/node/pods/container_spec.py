"""The spec of a container as runtimes take it: command, environment, mounts, devices, limits."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.cdi import ContainerEdits
from moorage.api.core import Container, Pod
from moorage.api.core.resources import CPU, MEMORY
from moorage.api.quantity import Quantity
from moorage.claims.pod_resources import container_claim_resources
from moorage.node.contract import DeviceRunOptions
from moorage.node.pods.container_environment import (
    NO_VARIABLES,
    NOTHING,
    Contents,
    NodeContext,
    environment,
    expand_all,
)
from moorage.node.pods.machine_fields import check_machine_fields, host_name
from moorage.node.pods.volumes import Volume, mounts_of
from moorage.node.runtime.contract import ContainerId, ContainerSpec, ResourceLimits
from moorage.node.runtime.security_context import security_context_of
from moorage.node.runtime.sim import annotations_for


def spec_of(
    pod: Pod,
    container: Container,
    attempt: int,
    *,
    run_options: DeviceRunOptions,
    volumes: Mapping[str, Volume],
    node_context: NodeContext,
    contents: Contents = NOTHING,
    services: Mapping[str, str] = NO_VARIABLES,
) -> ContainerSpec:
    """Return the spec of a container with its devices and volumes, or raise ConfigError."""
    check_machine_fields(container)
    values = environment(pod, container, node_context, contents, services)
    mounts = ContainerEdits(mounts=mounts_of(container, volumes, values))
    return ContainerSpec(
        id=ContainerId(pod.metadata.uid, container.name, attempt),
        namespace=pod.metadata.namespace,
        pod_name=pod.metadata.name,
        host_name=host_name(pod),
        image=container.image,
        command=expand_all(container.command, values),
        args=expand_all(container.args, values),
        working_dir=container.working_dir,
        env=values,
        edits=mounts + run_options.edits,
        cdi_ids=run_options.cdi_ids,
        annotations={**annotations_for(pod, container.name), **run_options.annotations},
        pull_policy=container.image_pull_policy,
        limits=limits_of(pod, container),
        security=security_context_of(pod, container),
        tty=container.tty,
        stdin=container.stdin,
        stdin_once=container.stdin_once,
    )


def limits_of(pod: Pod, container: Container) -> ResourceLimits:
    """Return the limits of a container, raised by the resources of its claims."""
    statuses = pod.status.node_allocatable_resource_claim_statuses or ()
    more = container_claim_resources(statuses, container.name)

    def limit(name: str) -> Quantity | None:
        own = container.resources.limits.get(name)
        return None if own is None else own + more.get(name, Quantity.ZERO)

    cpu, memory = limit(CPU), limit(MEMORY)
    return ResourceLimits(
        cpu_millis=None if cpu is None else cpu.milli_value,
        memory_bytes=None if memory is None else memory.value,
    )
