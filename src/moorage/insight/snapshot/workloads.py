"""The pods that controllers would create and that a snapshot does not have yet.

Names are those of Kubernetes with a number instead of random letters, and with the node's name for
daemons, so the same objects always give the same pods.

    # want: a pod that a controller misses; existing: the pods that it has

A Workload creates nothing by itself: whoever created it also creates its pod groups.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from moorage.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from moorage.api.batch import CronJob, Job
from moorage.api.catalogue import CATALOGUE
from moorage.api.core import Pod
from moorage.api.core.pod import FAILED, SUCCEEDED, PodSpec
from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.claims.pod_claims import controller_of
from moorage.controllers.daemonsets import node_of_daemon, nodes_for
from moorage.controllers.job_tracking import index_of, is_finished, is_indexed
from moorage.controllers.jobs import free_indexes, pods_wanted
from moorage.controllers.pod_control import (
    COMPLETION_INDEX,
    TEMPLATE_HASH,
    PodToCreate,
    is_active,
    metadata_of,
    pinned,
)
from moorage.insight.errors import TooManyPodsError
from moorage.insight.messages import Concern, full_name, titled
from moorage.insight.snapshot.snapshot import Controller, Snapshot, identified
from moorage.validation.job import JobStrategy, with_selector
from moorage.validation.registry import before_create
from moorage.validation.strategy import Context

PODS_MAX: Final = 100_000
_POD_KIND = CATALOGUE.find("v1", "Pod")


class Expanded(NamedTuple):
    """A snapshot with the pods of its controllers, and the new ones among them."""

    snapshot: Snapshot
    made: tuple[Pod, ...]
    concerns: list[Concern]


def with_controlled_pods(
    snapshot: Snapshot, context: Context, *, pods_max: int = PODS_MAX
) -> Expanded:
    """Return the snapshot with all pods that its controllers want, or raise TooManyPodsError."""
    existing = ExistingPods(snapshot)
    made: list[Pod] = []
    concerns: list[Concern] = []
    for controller in snapshot.controllers:
        if existing.is_left_to_owner(controller):
            continue
        wants = _wants(controller, existing, snapshot, pods_max - len(made))
        if wants is None:
            raise TooManyPodsError(
                f"{titled(controller)} asks for more than the {pods_max:,} pods that are made"
            )
        pods = _make(controller, wants, existing, context) if wants else []
        if isinstance(pods, Concern):
            concerns.append(pods)
        else:
            made += pods
    return Expanded(snapshot.with_objects(made) if made else snapshot, tuple(made), concerns)


def model_pod(controller: Controller, context: Context) -> Pod | Concern:
    """Return a pod as the controller creates it, or why a cluster would reject it."""
    want = PodToCreate(f"{controller.metadata.name}-0")
    made = _make(controller, [want], ExistingPods(Snapshot()), context)
    return made if isinstance(made, Concern) else made[0]


def next_job(cron_job: CronJob) -> Job:
    """Return the next job of a cron job, with its defaults; no clock gives it its number."""
    template, metadata = cron_job.spec.job_template, cron_job.metadata
    job = Job(
        metadata=ObjectMeta(
            name=f"{metadata.name}-1",
            namespace=metadata.namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
        ),
        spec=template.spec,
    )
    return with_selector(identified(JobStrategy.set_defaults(job)))


# --- which pods are missing -------------------------------------------------------------


def _wants(
    controller: Controller, existing: ExistingPods, snapshot: Snapshot, room: int
) -> list[PodToCreate] | None:
    """Return the missing pods, or None if they are too many."""
    pods = existing.of(controller)
    # The name of another pod is taken; that of a terminated own pod is free again.
    own = {full_name(pod) for pod in pods}
    found: list[PodToCreate] = []
    for want in _missing(controller, pods, existing, snapshot):
        if len(found) >= room:
            return None
        name = f"{controller.metadata.namespace}/{want.name}"
        if name in own or name not in existing.names:
            found.append(want)
    return found


def _missing(
    controller: Controller, pods: list[Pod], existing: ExistingPods, snapshot: Snapshot
) -> Iterator[PodToCreate]:
    match controller:
        case Deployment() | ReplicaSet():
            active = sum(map(is_active, pods))
            yield from _numbered(controller, _replicas(controller) - active, existing)
        case StatefulSet():
            yield from _ordinals(controller, pods)
        case Job():
            yield from _of_job(controller, pods, existing)
        case DaemonSet():
            has_pod = {node_of_daemon(pod) for pod in pods if is_active(pod)}
            # In the controller's order, which is not that of the files.
            nodes = sorted(snapshot.nodes, key=full_name)
            for node in nodes_for(controller.spec.template, nodes):
                if node not in has_pod:
                    yield PodToCreate(f"{controller.metadata.name}-{node}", node=node)


def _replicas(controller: Deployment | ReplicaSet | StatefulSet) -> int:
    return 1 if controller.spec.replicas is None else controller.spec.replicas


def _numbered(controller: Controller, count: int, existing: ExistingPods) -> Iterator[PodToCreate]:
    """Give `count` pods with the first unused numbers."""
    metadata = controller.metadata
    number = 0
    while count > 0:
        name = f"{metadata.name}-{number}"
        if f"{metadata.namespace}/{name}" not in existing.names:
            yield PodToCreate(name)
            count -= 1
        number += 1


def _ordinals(controller: StatefulSet, pods: list[Pod]) -> Iterator[PodToCreate]:
    match controller.spec.ordinals:
        case {"start": int(start)} if start > 0:
            first = start
        case _:
            first = 0
    has = {pod.metadata.name for pod in pods if is_active(pod)}
    for number in range(first, first + _replicas(controller)):
        name = f"{controller.metadata.name}-{number}"
        if name not in has:
            labels = {
                "statefulset.kubernetes.io/pod-name": name,
                "apps.kubernetes.io/pod-index": str(number),
            }
            yield PodToCreate(name, labels)


def _of_job(job: Job, pods: list[Pod], existing: ExistingPods) -> Iterator[PodToCreate]:
    """Yield the pods that the job would still start: bounded by parallelism and completions."""
    if is_finished(job) or job.spec.suspend:
        return
    active = sum(map(is_active, pods))
    succeeded = max(job.status.succeeded, sum(pod.status.phase == SUCCEEDED for pod in pods))
    missing = pods_wanted(job, succeeded, active) - active
    if not is_indexed(job):
        yield from _numbered(job, missing, existing)
        return
    taken = {index_of(pod) for pod in pods if pod.status.phase != FAILED}
    for index, _ in zip(free_indexes(job, set(), taken), range(missing), strict=False):
        marks = {COMPLETION_INDEX: str(index)}
        yield PodToCreate(f"{job.metadata.name}-{index}", marks, marks)


# --- creating them ----------------------------------------------------------------------


def _make(
    controller: Controller, wants: list[PodToCreate], existing: ExistingPods, context: Context
) -> list[Pod] | Concern:
    """Return the pods, which share one spec, or why a cluster would reject them."""
    first = Pod(
        metadata=ObjectMeta(name=wants[0].name, namespace=controller.metadata.namespace),
        spec=_spec(controller),
    )
    admission = before_create(first, _POD_KIND, context, namespace=controller.metadata.namespace)
    if admission.stored is None:
        why = admission.refused or "; ".join(map(str, admission.errors))
        return Concern("refused-pods", f"{titled(controller)} gets no pods: {why}")
    model: Pod = admission.stored
    labels = _labels(controller)
    pods = []
    for want in wants:
        made = metadata_of(controller, want)
        metadata = replace(
            model.metadata,
            name=made.name,
            labels={**made.labels, **labels},
            annotations=made.annotations,
            finalizers=made.finalizers,
            owner_references=made.owner_references,
        )
        spec = pinned(model.spec, want.node) if want.node else model.spec
        if isinstance(controller, StatefulSet):
            spec = _with_kept_claims(spec, controller, want.name, existing)
        pods.append(identified(replace(model, metadata=metadata, spec=spec)))
        existing.names.add(full_name(pods[-1]))
    return pods


def _spec(controller: Controller) -> Any:
    spec = controller.spec.template.spec
    if not isinstance(controller, StatefulSet):
        return spec
    # Every pod has volume claims of its own. Those that are made with it restrict no nodes.
    names = [_volume_name(claim) for claim in controller.spec.volume_claim_templates]
    volumes = tuple({"name": n, "emptyDir": {}} for n in names)
    return replace(spec, volumes=(*spec.volumes, *volumes)) if volumes else spec


def _with_kept_claims(
    spec: PodSpec, controller: StatefulSet, pod_name: str, existing: ExistingPods
) -> PodSpec:
    """Return the spec with the claims that are there: their volumes may be on some nodes."""
    namespace, kept = controller.metadata.namespace, {}
    for claim in controller.spec.volume_claim_templates:
        name = f"{_volume_name(claim)}-{pod_name}"
        if f"{namespace}/{name}" in existing.volume_claims:
            kept[_volume_name(claim)] = {"persistentVolumeClaim": {"claimName": name}}
    if not kept:
        return spec
    volumes = (
        {"name": each["name"], **kept[each["name"]]} if each.get("name") in kept else each
        for each in spec.volumes
    )
    return replace(spec, volumes=tuple(volumes))


def _volume_name(claim: Any) -> str:
    match claim:
        case {"metadata": {"name": str(name)}}:
            return name
    return ""


def _labels(controller: Controller) -> dict[str, str]:
    """Return the template hash label, as the deployment's ReplicaSet would set it."""
    if not isinstance(controller, Deployment):
        return {}
    # From the Deployment, not from its template: redaction must not change it.
    digest = hashlib.sha256(controller.metadata.uid.encode()).hexdigest()
    return {TEMPLATE_HASH: digest[:10]}


# --- the pods that a controller has -----------------------------------------------------


class ExistingPods:
    """The pods of a snapshot by controller, and the names in use.

    A pod names its controller. Between a Deployment and its pods is a ReplicaSet, which a dump may
    lack; then its name identifies the Deployment.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.names = {full_name(pod) for pod in snapshot.pods}
        self.volume_claims = {full_name(claim) for claim in snapshot.volume_claims}
        self._deployments = {
            full_name(each) for each in snapshot.controllers if each.kind == "Deployment"
        }
        self._deployment_of_set = {
            full_name(each): owner.name
            for each in snapshot.controllers
            if each.kind == "ReplicaSet" and (owner := _deployment(each)) is not None
        }
        self._by_owner: dict[tuple[str, str, str], list[Pod]] = {}
        for pod in snapshot.pods:
            if (owner := controller_of(pod.metadata)) is not None:
                self._note(pod, owner)

    def _note(self, pod: Pod, owner: OwnerReference) -> None:
        namespace = pod.metadata.namespace
        self._by_owner.setdefault((namespace, owner.kind, owner.name), []).append(pod)
        if owner.kind == "ReplicaSet":
            # The dump may lack the ReplicaSet; then its name identifies the Deployment.
            base = owner.name.rpartition("-")[0]
            name = self._deployment_of_set.get(f"{namespace}/{owner.name}", base)
            self._by_owner.setdefault((namespace, "Deployment", name), []).append(pod)

    def is_left_to_owner(self, controller: Controller) -> bool:
        """Return whether a ReplicaSet belongs to a known Deployment, which then sets its pods."""
        owner = _deployment(controller) if controller.kind == "ReplicaSet" else None
        return (
            owner is not None
            and f"{controller.metadata.namespace}/{owner.name}" in self._deployments
        )

    def of(self, controller: Controller) -> list[Pod]:
        """Return the pods of a controller, including terminated ones."""
        key = (controller.metadata.namespace, controller.kind, controller.metadata.name)
        return [pod for pod in self._by_owner.get(key, ()) if _is_of(pod, controller)]


def _deployment(controller: Controller) -> OwnerReference | None:
    owner = controller_of(controller.metadata)
    return owner if owner is not None and owner.kind == "Deployment" else None


def _is_of(pod: Pod, controller: Controller) -> bool:
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind != controller.kind:
        return True
    # A new controller of the same name has other pods.
    return owner.uid in ("", controller.metadata.uid)
