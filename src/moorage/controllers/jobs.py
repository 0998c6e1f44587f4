"""Jobs: pods that run until enough of them have succeeded, or too many have failed.

1. Count what has ended (`job_tracking`), and decide whether the job is to end.
2. A job that ends, or rests, lets go of its pods; else it gets the pods that are missing, later
   the more of them have failed.
3. Write the status first; then remove finalizers of counted pods; then create and delete pods.

A job says why it will end (`FailureTarget`, `SuccessCriteriaMet`) before its pods are gone, and
that it has ended (`Failed`, `Complete`) after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from moorage.api.batch import Job, JobCondition, JobStatus
from moorage.api.core import Container, Pod
from moorage.api.scheduling import PodGroup, Workload
from moorage.api.timestamp import Timestamp
from moorage.claims.pod_claims import controller_of
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Create, Delete, RecordEvent, RequeueAfter, Target, Update, Write
from moorage.controllers.controller import (
    Answers,
    Controller,
    Lookup,
    ObjectChange,
    Step,
    WriteRefused,
)
from moorage.controllers.controller_ref_manager import (
    controlled,
    controller_keys,
    index_by_controller,
    without_finalizer,
)
from moorage.controllers.job_tracking import (
    FAILURE_COUNT,
    JobCounts,
    JobOutcome,
    completions_of,
    count_pods,
    deadline_s,
    failures_of_index,
    has_failed,
    index_of,
    is_finished,
    is_indexed,
    outcome_of,
    replaces_only_failed,
    waits_s,
)
from moorage.controllers.pod_control import (
    BURST_MAX,
    COMPLETION_INDEX,
    JOB_NAME,
    JOB_TRACKING,
    PodToCreate,
    condition_of,
    creation_refused,
    first_to_go,
    is_active,
    is_over,
    is_ready,
    is_terminating,
    is_true,
    pod_of,
    unused_names,
    with_condition,
)
from moorage.controllers.pod_groups import JobPodGroup, in_group, job_pod_group

MANAGER = "kubernetes.io/job-controller"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
TRACKED = "tracked-by-job"  # the index of pods with our finalizer by the name of their job

_FINAL = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}


class JobController(Controller):
    """Runs jobs."""

    name: ClassVar[str] = "job-controller"
    kinds = (Job, Pod, Workload, PodGroup)

    def __init__(self, *, makes_groups: bool = False) -> None:
        """Create the controller; with the feature on, each job gets a pod group."""
        self._makes_groups = makes_groups

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""
        index_by_controller(objects, Pod, Workload, PodGroup)
        objects.index(Pod, TRACKED, _tracked_keys)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the job that a change affects."""
        if isinstance(change.value, Job):
            return (object_key(change.value),)
        found = controller_keys(change, "Job")
        if isinstance(change.new, Pod) and controller_of(change.new.metadata) is None:
            found.extend(_key(name) for name in _tracked_keys(change.new))
        return found

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the steps that bring a job nearer to its end."""
        job = objects.get(Job, *key)
        yield from _release_orphans(objects, key, job, answers)
        if job is None or job.spec.managed_by not in (None, MANAGER):
            return
        pods = controlled(objects, Pod, job)
        if is_finished(job):
            for pod in pods:
                if JOB_TRACKING in pod.metadata.finalizers:
                    yield without_finalizer(pod, JOB_TRACKING)
            return
        group = job_pod_group(objects, job, pods) if self._makes_groups else JobPodGroup()
        yield from group.steps
        if not group.is_ready:
            return
        counts = count_pods(job, pods)
        ending = outcome_of(job, pods, counts, now)
        moves = _moves(objects, job, pods, counts, ending, now)
        status = _status(job, pods, counts, ending, moves, now)
        if status != job.status:
            yield Update(replace(job, status=status), "status")
            yield from _condition_events(job, status)
        for pod in counts.done:
            yield without_finalizer(pod, JOB_TRACKING)
        yield from _writes(job, moves, group.group)
        if moves.again_s is not None:
            yield RequeueAfter(key, moves.again_s)

    def refused(
        self, objects: Indexer, key: ObjectKey, write: Write, refused: WriteRefused
    ) -> Iterable[Step]:
        """Record an event when a pod could not be created."""
        owner = objects.get(Job, *key)
        if isinstance(write, Create) and owner is not None and not refused.is_conflict:
            yield creation_refused(owner, refused.message)


def _key(text: str) -> ObjectKey:
    namespace, _, name = text.partition("/")
    return namespace, name


def _tracked_keys(pod: Pod) -> tuple[str, ...]:
    if JOB_TRACKING not in pod.metadata.finalizers:
        return ()
    name = _job_name(pod)
    return () if name is None else (f"{pod.metadata.namespace}/{name}",)


def _job_name(pod: Pod) -> str | None:
    """Return the job of a pod, also of one that was taken from it: its label still names it."""
    owner = controller_of(pod.metadata)
    if owner is not None:
        return owner.name if owner.kind == "Job" else None
    return pod.metadata.labels.get(JOB_NAME)


def _release_orphans(
    objects: Indexer, key: ObjectKey, job: Job | None, answers: Answers
) -> Iterator[Step]:
    """Take our finalizer off pods that have no job any more, after a fresh look."""
    for pod in sorted(objects.by_index(Pod, TRACKED, "/".join(key)), key=object_key):
        owner = controller_of(pod.metadata)
        if owner is None:
            yield without_finalizer(pod, JOB_TRACKING)
            continue
        if job is not None and owner.uid == job.metadata.uid:
            continue
        ask = Lookup(Job, *key)
        if ask not in answers:
            yield ask
            return
        if answers[ask] is None or answers[ask].metadata.uid != owner.uid:
            yield without_finalizer(pod, JOB_TRACKING)


# --- which pods come and go -------------------------------------------------------------------


class PodChanges(NamedTuple):
    """Pods to make and to delete."""

    wants: list[PodToCreate] = []  # noqa: RUF012 - never changed
    deleted: list[Pod] = []  # noqa: RUF012
    are_counted: bool = True  # deleted pods count as failed
    again_s: float | None = None


def _moves(
    objects: Indexer,
    job: Job,
    pods: list[Pod],
    counts: JobCounts,
    ending: JobOutcome | None,
    now: Timestamp,
) -> PodChanges:
    active = [pod for pod in pods if is_active(pod)]
    if ending is not None:
        return PodChanges(deleted=active)
    if job.metadata.deletion_timestamp is not None:
        return PodChanges()
    if job.spec.suspend:
        return PodChanges(deleted=active, are_counted=False)
    again_s = deadline_s(job, now)
    missing = pods_wanted(job, counts.succeeded, len(active)) - len(active)
    if missing < 0:
        return PodChanges(
            deleted=first_to_go(active, active, now)[: min(-missing, BURST_MAX)],
            are_counted=False,
            again_s=again_s,
        )
    if replaces_only_failed(job):
        missing -= sum(map(is_terminating, pods))
    wait_s = waits_s(pods, now)
    if missing > 0 and wait_s > 0:
        return PodChanges(again_s=wait_s if again_s is None else min(wait_s, again_s))
    wants = list(_wants(objects, job, pods, counts, min(missing, BURST_MAX)))
    return PodChanges(wants=wants, again_s=again_s)


def pods_wanted(job: Job, succeeded: int, active: int) -> int:
    """Return how many pods a job runs at once: as many as may, and as are still to succeed."""
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    wanted = completions_of(job)
    if wanted is None:
        return min(active, parallelism) if succeeded else parallelism
    return min(parallelism, max(0, wanted - succeeded))


def free_indexes(job: Job, completed: set[int], taken: Iterable[int | None]) -> Iterator[int]:
    """Yield the indexes that nobody works on and that are not done, from the lowest."""
    busy = {*completed, *taken}
    return (index for index in range(completions_of(job) or 0) if index not in busy)


def _wants(
    objects: Indexer, job: Job, pods: list[Pod], counts: JobCounts, count: int
) -> Iterator[PodToCreate]:
    name = job.metadata.name
    if not is_indexed(job):
        names = unused_names(objects, job, f"{name}-", pods)
        for drawn, _ in zip(names, range(count), strict=False):
            yield PodToCreate(drawn, generate_name=f"{name}-", finalizers=(JOB_TRACKING,))
        return
    busy = (index_of(pod) for pod in pods if not is_over(pod) and not has_failed(job, pod))
    free = free_indexes(job, counts.completed | counts.lost, busy)
    for index, _ in zip(free, range(count), strict=False):
        prefix = f"{name}-{index}-"
        marks = {COMPLETION_INDEX: str(index)}
        failures = _failures(pods, index)
        annotations = marks if failures is None else {**marks, FAILURE_COUNT: str(failures)}
        drawn = next(unused_names(objects, job, prefix, pods))
        yield PodToCreate(
            drawn, marks, annotations, generate_name=prefix, finalizers=(JOB_TRACKING,)
        )


def _failures(pods: list[Pod], index: int) -> int | None:
    """Return how often an index has failed, as far as its pods are there."""
    failed = [failures_of_index(pod) + 1 for pod in pods if index_of(pod) == index]
    return max(failed, default=None)


def _writes(job: Job, moves: PodChanges, group: PodGroup | None) -> Iterator[Step]:
    for pod in moves.deleted:
        if not moves.are_counted and JOB_TRACKING in pod.metadata.finalizers:
            yield without_finalizer(pod, JOB_TRACKING)
        yield Delete(Target.of(pod))
        yield RecordEvent(job, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}", "Delete")
    for want in moves.wants:
        yield Create(in_group(_numbered(pod_of(job, want), want), group))
        yield RecordEvent(job, "SuccessfulCreate", f"Created pod: {want.name}", "Create")


def _numbered(pod: Pod, want: PodToCreate) -> Pod:
    """Return a pod that knows its index by its name and by a variable."""
    index = want.labels.get(COMPLETION_INDEX)
    if index is None:
        return pod
    field = {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}
    variable = {"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": field}}

    def with_index(container: Container) -> Container:
        known = any(isinstance(v, dict) and v.get("name") == INDEX_VARIABLE for v in container.env)
        return container if known else replace(container, env=(*container.env, variable))

    spec = replace(
        pod.spec,
        containers=tuple(map(with_index, pod.spec.containers)),
        init_containers=tuple(map(with_index, pod.spec.init_containers)),
        hostname=pod.spec.hostname or want.generate_name.rstrip("-")[:63],
    )
    return replace(pod, spec=spec)


# --- status -----------------------------------------------------------------------------------


def _status(
    job: Job,
    pods: list[Pod],
    counts: JobCounts,
    ending: JobOutcome | None,
    moves: PodChanges,
    now: Timestamp,
) -> JobStatus:
    gone = {pod.metadata.uid for pod in moves.deleted}
    active = [pod for pod in pods if is_active(pod) and pod.metadata.uid not in gone]
    start = job.status.start_time
    if start is None and not job.spec.suspend:
        start = now.truncated()
    status = replace(
        counts.status,
        active=len(active) + len(moves.wants),
        ready=sum(map(is_ready, active)),
        terminating=sum(map(is_terminating, pods)) + len(moves.deleted),
        start_time=start,
    )
    if ending is None:
        return _rested(job, status, now)
    status = replace(status, conditions=_noted(status, ending.kind, ending, now))
    is_still = all(is_over(pod) for pod in pods) and not moves.deleted
    if is_still and not counts.done and not status.uncounted_terminated_pods:
        kind = _FINAL[ending.kind]
        status = replace(status, conditions=_noted(status, kind, ending, now))
        if kind == "Complete":
            status = replace(status, completion_time=now.truncated())
    return status


def _noted(
    status: JobStatus, kind: str, ending: JobOutcome, now: Timestamp
) -> tuple[JobCondition, ...]:
    return with_condition(status.conditions, _condition(kind, ending.reason, ending.message, now))


def _condition(
    kind: str, reason: str, message: str, now: Timestamp, status: str = "True"
) -> JobCondition:
    at = now.truncated()
    return JobCondition(
        type=kind,
        status=status,
        last_probe_time=at,
        last_transition_time=at,
        reason=reason,
        message=message,
    )


def _rested(job: Job, status: JobStatus, now: Timestamp) -> JobStatus:
    """Return the status with whether the job rests; its time starts again after that."""
    was_resting = is_true(status.conditions, "Suspended")
    if job.spec.suspend and not was_resting:
        resting = _condition("Suspended", "JobSuspended", "Job suspended", now)
        conditions = with_condition(status.conditions, resting)
        return replace(status, conditions=conditions, start_time=None)
    if was_resting and not job.spec.suspend:
        resumed = _condition("Suspended", "JobResumed", "Job resumed", now, "False")
        conditions = with_condition(status.conditions, resumed)
        return replace(status, conditions=conditions, start_time=now.truncated())
    return status


def _condition_events(job: Job, status: JobStatus) -> Iterator[Step]:
    """Yield the events of conditions that are new."""
    for condition in status.conditions:
        if condition_of(job.status.conditions, condition.type) == condition:
            continue
        match condition.type:
            case "Complete":
                yield RecordEvent(job, "Completed", "Job completed", "Complete")
            case "Failed":
                yield RecordEvent(job, condition.reason, condition.message, "Fail", is_warning=True)
            case "Suspended":
                word = "Suspended" if condition.status == "True" else "Resumed"
                yield RecordEvent(job, word, condition.message, word)
