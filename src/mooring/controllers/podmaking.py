"""The pods that controllers make of their templates: metadata, labels, owners.

Programs that only ask what a controller would make use the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from mooring.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from mooring.api.batch import Job
from mooring.api.core import Pod
from mooring.api.meta import ObjectMeta
from mooring.client.objects import Objects
from mooring.client.writes import Create, Delete, Target, Tell
from mooring.controllers.controller import Step
from mooring.controllers.daemons import pinned
from mooring.controllers.naming import fresh_names
from mooring.controllers.owning import reference_to

TEMPLATE_HASH: Final = "pod-template-hash"
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
JOB_TRACKING: Final = "batch.kubernetes.io/job-tracking"

BURST_MAX: Final = 500  # pods that one plan makes or deletes

PodController = Deployment | ReplicaSet | StatefulSet | DaemonSet | Job


class Want(NamedTuple):
    """One pod to make."""

    name: str
    labels: dict[str, str] = {}  # noqa: RUF012 - never changed
    annotations: dict[str, str] = {}  # noqa: RUF012
    node: str = ""  # of a daemon
    generate_name: str = ""
    finalizers: tuple[str, ...] = ()


def own_labels(controller: PodController) -> dict[str, str]:
    """Return what a controller adds to the labels of its template."""
    if not isinstance(controller, Job):
        return {}
    name, uid = controller.metadata.name, controller.metadata.uid
    return {
        "batch.kubernetes.io/controller-uid": uid,
        JOB_NAME: name,
        "controller-uid": uid,
        "job-name": name,
    }


def metadata_of(controller: PodController, want: Want) -> ObjectMeta:
    """Return the metadata of a pod that a controller makes."""
    template = controller.spec.template.metadata
    return ObjectMeta(
        name=want.name,
        generate_name=want.generate_name,
        namespace=controller.metadata.namespace,
        labels={**template.labels, **own_labels(controller), **want.labels},
        annotations={**template.annotations, **want.annotations},
        finalizers=(*template.finalizers, *want.finalizers),
        owner_references=(reference_to(controller),),
    )


def pod_of(controller: PodController, want: Want) -> Pod:
    """Return a pod of the controller's template."""
    spec = controller.spec.template.spec
    if want.node:
        spec = pinned(spec, want.node)
    return Pod(metadata=metadata_of(controller, want), spec=spec)


def names_for(
    objects: Objects, controller: PodController, prefix: str, pods: Iterable[Pod]
) -> Iterator[str]:
    """Yield names for new pods beside those that the controller has."""
    namespace = controller.metadata.namespace
    seed = (controller.metadata.uid, prefix, *sorted(pod.metadata.uid for pod in pods))
    return fresh_names(prefix, seed, lambda name: objects.find(Pod, namespace, name) is not None)


def creations(controller: PodController, wants: Iterable[Want]) -> Iterator[Step]:
    """Yield the writes that make pods, each with its event."""
    for want in wants:
        yield Create(pod_of(controller, want))
        yield Tell(controller, "SuccessfulCreate", f"Created pod: {want.name}", "Create")


def deletions(controller: Any, pods: Iterable[Pod]) -> Iterator[Step]:
    """Yield the writes that delete pods, each with its event."""
    for pod in pods:
        yield Delete(Target.of(pod))
        yield Tell(controller, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}", "Delete")


def creation_refused(controller: Any, why: str) -> Tell:
    """Return the event of a pod that could not be made."""
    return Tell(controller, "FailedCreate", f"Error creating: {why}", "Create", is_warning=True)


def with_status(value: Any, status: Any) -> Any | None:
    """Return the object with another status, or None if it has this one."""
    return None if status == value.status else replace(value, status=status)
