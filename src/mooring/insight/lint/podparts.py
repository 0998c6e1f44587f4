"""Pods, and the pods that controllers make: the part of an object that describes a pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mooring.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from mooring.api.batch import Job
from mooring.api.codec import Place
from mooring.api.core import Pod
from mooring.api.core.container import Container
from mooring.api.core.pod import PodSpec
from mooring.api.core.podstatus import PodStatus
from mooring.api.meta import ObjectMeta

POD_KINDS: Final = frozenset(("Pod", "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job"))

DEFAULT_NAMESPACE: Final = "default"

_TEMPLATE: Final[Place] = ("spec", "template", "spec")


class PodPart(NamedTuple):
    """The pod in an object: where it is, what it says, and how many there are of it."""

    place: Place
    metadata: ObjectMeta  # of the whole object
    spec: PodSpec
    status: PodStatus | None  # None: no pod yet, but a template of pods
    pods: int | None  # None: one for every node

    @property
    def namespace(self) -> str:
        """The namespace of the pods."""
        return self.metadata.namespace or DEFAULT_NAMESPACE

    @property
    def is_over(self) -> bool:
        """Whether the pod has run to its end and needs nothing more."""
        return self.status is not None and self.status.phase in ("Succeeded", "Failed")

    @property
    def group_name(self) -> str | None:
        """The group that the pods are scheduled with."""
        group = self.spec.scheduling_group
        return None if group is None else group.pod_group_name

    def containers(self) -> Iterator[tuple[Place, Container]]:
        """Give all containers with their places."""
        for field, containers in (
            ("initContainers", self.spec.init_containers),
            ("containers", self.spec.containers),
        ):
            for i, container in enumerate(containers):
                yield (*self.place, field, i), container


def pod_part_of(value: Any) -> PodPart | None:
    """Return the pod in an object, None if there is none."""
    match value:
        case Pod(metadata=metadata, spec=spec, status=status):
            return PodPart(("spec",), metadata, spec, status, 1)
        case Deployment() | ReplicaSet() | StatefulSet():
            count = _or_one(value.spec.replicas)
            return PodPart(_TEMPLATE, value.metadata, value.spec.template.spec, None, count)
        case DaemonSet():
            return PodPart(_TEMPLATE, value.metadata, value.spec.template.spec, None, None)
        case Job(spec=job):
            count = _or_one(job.parallelism)
            if job.completions is not None:
                count = min(count, job.completions)
            return PodPart(_TEMPLATE, value.metadata, job.template.spec, None, count)
        case _:
            return None


def _or_one(number: int | None) -> int:
    return 1 if number is None else number
