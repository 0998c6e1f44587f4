"""Pod groups: a job gets a Workload and its PodGroup, and groups in use are protected.

A job gets a Workload with one template, and a PodGroup of it, before its first pod; its pods name
the group. Its policy is that of `spec.scheduling`, or else Basic. A job whose template names a
group (`schedulingGroup`), or that has another controller above, gets none. A job that has started
without a group goes on without.

The server gives every group a finalizer. It is removed from a deleted group once no pod names the
group any more, finished pods aside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

from msgspec.structs import replace

from moorage.api.batch import Job
from moorage.api.codec import decode_tree
from moorage.api.core import Pod, PodSchedulingGroup
from moorage.api.errors import ApiError
from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.api.scheduling import (
    PROTECTION_FINALIZER,
    BasicSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PodGroupTemplate,
    TypedLocalObjectReference,
    Workload,
    WorkloadReference,
    WorkloadSpec,
)
from moorage.api.timestamp import Timestamp
from moorage.claims.pod_claims import controller_of, group_name
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Create, RecordEvent, Update
from moorage.controllers.controller import Answers, Controller, ObjectChange, Step
from moorage.controllers.controller_ref_manager import controlled, reference_to
from moorage.controllers.pod_control import NAME_MAX, fnv32a, hashed_name, is_over, safe_text

GROUP = "active-group"  # the index of pods that are not over by their group


class JobPodGroup(NamedTuple):
    """The group of a job, and what must be written before its pods can be made."""

    group: PodGroup | None = None
    steps: tuple[Step, ...] = ()
    is_ready: bool = True  # pods may be made


def wants_group(job: Job) -> bool:
    """Return whether a job gets a group made for it."""
    has_own = job.spec.template.spec.scheduling_group is not None
    return not (has_own or controller_of(job.metadata))


def job_pod_group(objects: Indexer, job: Job, pods: list[Pod]) -> JobPodGroup:
    """Return the group of a job, or the next step towards it."""
    if not wants_group(job):
        return JobPodGroup()
    try:
        template = _template(job)
    except ApiError as error:
        message = f"Failed to compile Workload for Job {job.metadata.name}: {error}"
        event = RecordEvent(job, "FailedWorkloadCompilation", message, "Create", is_warning=True)
        return JobPodGroup(steps=(event,), is_ready=False)
    is_new = not pods and _is_new(job)
    workloads = controlled(objects, Workload, job)
    groups = controlled(objects, PodGroup, job)
    if len(workloads) > 1 or len(groups) > 1 or not (is_new or (workloads and groups)):
        return JobPodGroup()
    if not workloads:
        made = _made("Workload", job, _workload(job, template))
        return JobPodGroup(steps=tuple(made), is_ready=False)
    if not groups:
        made = _made("PodGroup", job, _group(job, workloads[0]))
        return JobPodGroup(steps=tuple(made), is_ready=False)
    return JobPodGroup(groups[0], tuple(_resized(workloads[0], groups[0], template)))


def _is_new(job: Job) -> bool:
    """Return whether nothing has been created for a job yet."""
    status = job.status
    has_begun = status.start_time is not None or status.succeeded or status.failed
    return not has_begun and all(each.type != "Suspended" for each in status.conditions)


def _made(kind: str, job: Job, value: Any) -> Iterator[Step]:
    yield Create(value)
    message = f"Created {kind} {value.metadata.name} for Job {job.metadata.name}"
    yield RecordEvent(job, f"{kind}Created", message, "Create")


def _template(job: Job) -> PodGroupTemplate:
    """Return the template that a job asks for, or raise why it cannot be read."""
    said = dict(job.spec.scheduling or {})
    policy = said.get("schedulingPolicy")
    if isinstance(policy, dict) and isinstance(gang := policy.get("gang"), dict):
        # Without a number, all pods that run at once count.
        count = gang.get("minCount") or max(1, job.spec.parallelism or 1)
        said["schedulingPolicy"] = {**policy, "gang": {**gang, "minCount": count}}
    found = decode_tree({**said, "name": f"{job.metadata.name}-pgt-0"}, PodGroupTemplate).value
    if found.scheduling_policy == PodGroupSchedulingPolicy():
        basic = PodGroupSchedulingPolicy(basic=BasicSchedulingPolicy())
        found = replace(found, scheduling_policy=basic)
    if not found.priority_class_name:
        found = replace(found, priority_class_name=job.spec.template.spec.priority_class_name)
    return found


def _workload(job: Job, template: PodGroupTemplate) -> Workload:
    metadata = job.metadata
    suffix = safe_text(str(fnv32a(f"(types.UID){metadata.uid}".encode())))
    return Workload(
        metadata=ObjectMeta(
            name=hashed_name(metadata.name, suffix),
            namespace=metadata.namespace,
            owner_references=(reference_to(job),),
        ),
        spec=WorkloadSpec(
            controller_ref=TypedLocalObjectReference(
                api_group="batch", kind="Job", name=metadata.name
            ),
            pod_group_templates=(template,),
        ),
    )


def _group(job: Job, workload: Workload) -> PodGroup:
    """Return the group of a workload's template."""
    template = (workload.spec.pod_group_templates or (PodGroupTemplate(),))[0]
    owner = OwnerReference(
        api_version=workload.api_version,
        kind="Workload",
        name=workload.metadata.name,
        uid=workload.metadata.uid,
    )
    return PodGroup(
        metadata=ObjectMeta(
            name=group_name_of(workload.metadata.name, template.name),
            namespace=job.metadata.namespace,
            owner_references=(reference_to(job), owner),
        ),
        spec=PodGroupSpec(
            workload_ref=WorkloadReference(
                workload_name=workload.metadata.name, template_name=template.name
            ),
            scheduling_policy=template.scheduling_policy,
            scheduling_constraints=template.scheduling_constraints,
            resource_claims=template.resource_claims,
            disruption_mode=template.disruption_mode,
            priority_class_name=template.priority_class_name,
        ),
    )


def group_name_of(workload: str, template: str) -> str:
    """Return the name of the group of a template, both names cut fairly where they are long."""
    suffix = safe_text(str(fnv32a(f"{workload}{template}".encode())))
    room = NAME_MAX - len(suffix) - 2
    if len(workload) + len(template) > room:
        half = room // 2
        if len(workload) <= half:
            template = template[: room - len(workload)]
        elif len(template) <= half:
            workload = workload[: room - len(template)]
        else:
            workload, template = workload[: room - half], template[:half]
    return f"{workload}-{template}-{suffix}"


def _resized(workload: Workload, group: PodGroup, template: PodGroupTemplate) -> Iterator[Step]:
    """Yield the writes after a job's gang got another size; nothing else of it may change."""
    wanted = template.scheduling_policy
    if wanted.gang is None:
        return
    listed = workload.spec.pod_group_templates or ()
    if len(listed) == 1 and listed[0].scheduling_policy.gang not in (None, wanted.gang):
        changed = (replace(listed[0], scheduling_policy=wanted),)
        spec = replace(workload.spec, pod_group_templates=changed)
        yield Update(replace(workload, spec=spec))
    if group.spec.scheduling_policy.gang not in (None, wanted.gang):
        yield Update(replace(group, spec=replace(group.spec, scheduling_policy=wanted)))


def in_group(pod: Pod, group: PodGroup | None) -> Pod:
    """Return the pod as one of the group, which it does not keep from going."""
    if group is None:
        return pod
    owner = OwnerReference(
        api_version=group.api_version,
        kind="PodGroup",
        name=group.metadata.name,
        uid=group.metadata.uid,
    )
    metadata = replace(pod.metadata, owner_references=(*pod.metadata.owner_references, owner))
    member = PodSchedulingGroup(pod_group_name=group.metadata.name)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, scheduling_group=member))


class PodGroupProtection(Controller):
    """Lets groups go when their pods have gone."""

    name: ClassVar[str] = "podgroup-protection-controller"
    kinds = (PodGroup, Pod)

    def add_indexes(self, objects: Indexer) -> None:
        """Index pods by their group."""
        objects.index(Pod, GROUP, _group_keys)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the groups that may be removed: those being deleted, and those that lost a pod."""
        value = change.value
        if isinstance(value, PodGroup):
            is_leaving = change.new is not None and value.metadata.deletion_timestamp is not None
            return (object_key(value),) if is_leaving else ()
        ended = change.new if change.new is not None and is_over(change.new) else None
        return [
            (pod.metadata.namespace, name)
            for pod in (ended, change.gone)
            if pod is not None and (name := group_name(pod)) is not None
        ]

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Remove the finalizer of a group that is being deleted and has no pods."""
        group = objects.get(PodGroup, *key)
        if group is None or group.metadata.deletion_timestamp is None:
            return
        if PROTECTION_FINALIZER not in group.metadata.finalizers:
            return
        if not objects.by_index(Pod, GROUP, "/".join(key)):
            # The role of this controller has update, and not patch.
            others = tuple(f for f in group.metadata.finalizers if f != PROTECTION_FINALIZER)
            yield Update(replace(group, metadata=replace(group.metadata, finalizers=others)))


def _group_keys(pod: Pod) -> Iterator[str]:
    name = group_name(pod)
    if name is not None and not is_over(pod):
        yield f"{pod.metadata.namespace}/{name}"
