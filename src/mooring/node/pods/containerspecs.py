"""A container of a pod as it is to be started: everything worked out (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.cdi import ContainerEdits
from mooring.api.core import Container, Pod
from mooring.api.core.resources import CPU, MEMORY
from mooring.api.quantity import Quantity
from mooring.claims.podresources import container_claim_resources
from mooring.node.contract import Given
from mooring.node.pods.environment import NOTHING, Surroundings, environment, expand_all
from mooring.node.pods.sources import Contents
from mooring.node.pods.volumes import Volume, mounts_of
from mooring.node.runtime.contract import ContainerId, ContainerSpec, Limits
from mooring.node.runtime.durations import annotations_for


def container_of(pod: Pod, name: str) -> Container:
    """Return a container of a pod by its name; of one that there is not, only that."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if container.name == name:
            return container
    return Container(name=name)


def spec_of(
    pod: Pod,
    container: Container,
    attempt: int,
    *,
    given: Given,
    volumes: Mapping[str, Volume],
    around: Surroundings,
    contents: Contents = NOTHING,
) -> ContainerSpec:
    """Return how a container is started with its devices and volumes, or raise ConfigError."""
    values = environment(pod, container, around, contents)
    mounts = ContainerEdits(mounts=mounts_of(container, volumes, values))
    return ContainerSpec(
        id=ContainerId(pod.metadata.uid, container.name, attempt),
        namespace=pod.metadata.namespace,
        pod_name=pod.metadata.name,
        image=container.image,
        command=expand_all(container.command, values),
        args=expand_all(container.args, values),
        working_dir=container.working_dir,
        env=values,
        edits=mounts + given.edits,
        cdi_ids=given.cdi_ids,
        annotations={**annotations_for(pod, container.name), **given.annotations},
        pull_policy=container.image_pull_policy,
        limits=limits_of(pod, container),
        tty=container.tty,
        stdin=container.stdin,
        stdin_once=container.stdin_once,
    )


def limits_of(pod: Pod, container: Container) -> Limits:
    """Return what a container may use: its limits, raised by what comes with its claims."""
    statuses = pod.status.node_allocatable_resource_claim_statuses or ()
    more = container_claim_resources(statuses, container.name)

    def limit(name: str) -> Quantity | None:
        own = container.resources.limits.get(name)
        return None if own is None else own + more.get(name, Quantity.ZERO)

    cpu, memory = limit(CPU), limit(MEMORY)
    return Limits(
        cpu_millis=None if cpu is None else cpu.milli_value,
        memory_bytes=None if memory is None else memory.value,
    )
