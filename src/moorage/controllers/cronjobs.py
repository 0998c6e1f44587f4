"""Cron jobs: creates a job at each scheduled time, and keeps the last few.

One plan for a cron job:

1. Finished jobs leave the list of active jobs; jobs beyond the history limits are deleted.
2. The latest scheduled time that has passed without a job is due. Earlier ones are missed.
3. If its deadline has passed, or an earlier job still runs and the policy forbids concurrency,
   nothing happens; with Replace, the old job is deleted first.
4. The key is requeued for the next scheduled time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, tzinfo
from typing import ClassVar, Final, NamedTuple

from msgspec.structs import replace

from moorage.api.batch import API_VERSION, CronJob, CronJobStatus, Job
from moorage.api.core.namespace import ObjectReference
from moorage.api.meta import ObjectMeta
from moorage.api.timestamp import NO_TIME, Timestamp
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Create, Delete, RecordEvent, RequeueAfter, Target, Update
from moorage.controllers.controller import Answers, Controller, ObjectChange, Step
from moorage.controllers.controller_ref_manager import (
    controlled,
    controller_keys,
    index_by_controller,
    reference_to,
)
from moorage.controllers.pod_control import with_status
from moorage.kit.cron_schedule import CronError, CronSchedule, find_zone, parse_schedule

SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
DEADLINE_S_MAX: Final = 100 * 365 * 24 * 3600  # counts as no deadline
MISSED_MAX: Final = 100  # missed times that are counted one by one
DELTA_S: Final = 0.1  # after the scheduled time


class CronJobController(Controller):
    """Creates the jobs of cron jobs."""

    name: ClassVar[str] = "cronjob-controller"
    kinds = (CronJob, Job)

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""
        index_by_controller(objects, Job)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the cron job of a change."""
        if isinstance(change.value, CronJob):
            return (object_key(change.value),)
        return controller_keys(change, "CronJob")

    def reconcile(
        self,
        objects: Indexer,
        key: ObjectKey,
        now: Timestamp,
        answers: Answers,
    ) -> Iterable[Step]:
        """Yield what is due now, and when to reconcile again."""
        owner = objects.get(CronJob, *key)
        if owner is None:
            return
        jobs = controlled(objects, Job, owner)
        yield from _cleaned(owner, jobs)
        status, told = _counted(owner, jobs)
        yield from told
        if owner.metadata.deletion_timestamp is None and not owner.spec.suspend:
            plan = _due(owner, status, jobs, now)
            status = plan.status
            yield from plan.steps
            if plan.next_in_s is not None:
                yield RequeueAfter(key, plan.next_in_s)
        if (changed := with_status(owner, status)) is not None:
            yield Update(changed, "status")


# --- jobs that exist ---------------------------------------------------------------------------


def _finished(job: Job) -> str:
    """Return the condition with which a job finished, or an empty text."""
    return next(
        (
            c.type
            for c in job.status.conditions
            if c.type in ("Complete", "Failed") and c.status == "True"
        ),
        "",
    )


def _counted(owner: CronJob, jobs: list[Job]) -> tuple[CronJobStatus, list[Step]]:
    """Return the status with the running jobs, and events about jobs that no longer run."""
    steps: list[Step] = []
    by_uid = {job.metadata.uid: job for job in jobs}
    known = {each.uid for each in owner.status.active}
    active = []
    last = owner.status.last_successful_time
    for each in owner.status.active:
        job = by_uid.get(each.uid)
        if job is None:
            words = f"Active job went missing: {each.name}"
            steps.append(RecordEvent(owner, "MissingJob", words))
        elif condition := _finished(job):
            words = f"Saw completed job: {each.name}, condition: {condition}"
            steps.append(RecordEvent(owner, "SawCompletedJob", words))
        else:
            active.append(each)
    for job in jobs:
        ended = job.status.completion_time
        if _finished(job) == "Complete" and ended is not None and (last is None or last < ended):
            last = ended
        if not _finished(job) and job.metadata.uid not in known:
            active.append(_reference(job))
    return replace(owner.status, active=tuple(active), last_successful_time=last), steps


def _reference(job: Job) -> ObjectReference:
    return ObjectReference(
        kind="Job",
        api_version=API_VERSION,
        namespace=job.metadata.namespace,
        name=job.metadata.name,
        uid=job.metadata.uid,
        resource_version=job.metadata.resource_version,
    )


def _cleaned(owner: CronJob, jobs: list[Job]) -> Iterator[Step]:
    """Yield deletions of the oldest finished jobs beyond the limits."""
    spec = owner.spec
    for condition, limit in (
        ("Complete", spec.successful_jobs_history_limit),
        ("Failed", spec.failed_jobs_history_limit),
    ):
        ended = [job for job in jobs if _finished(job) == condition]
        if limit is None:
            continue
        ended.sort(key=lambda job: ((job.status.start_time or NO_TIME).instant, job.metadata.name))
        for job in ended[: max(0, len(ended) - limit)]:
            yield from _deleted(owner, job)


def _deleted(owner: CronJob, job: Job) -> Iterator[Step]:
    if job.metadata.deletion_timestamp is None:
        yield Delete(Target.of(job), propagation="Background")
        words = f"Deleted job {job.metadata.name}"
        yield RecordEvent(owner, "SuccessfulDelete", words)


# --- jobs to make ------------------------------------------------------------------------------


class Due(NamedTuple):
    """What to do now, the status afterwards, and when to reconcile again."""

    steps: list[Step]
    status: CronJobStatus
    next_in_s: float | None


def _due(owner: CronJob, status: CronJobStatus, jobs: list[Job], now: Timestamp) -> Due:
    spec = owner.spec
    try:
        schedule = parse_schedule(spec.schedule)
        zone = find_zone(spec.time_zone or "UTC")
    except CronError as error:
        words = f"unparseable schedule: {spec.schedule!r} : {error}".replace("'", '"')
        event = RecordEvent(owner, "UnparseableSchedule", words, is_warning=True)
        return Due([event], status, None)
    missed = _latest(owner, schedule, zone, now)
    steps: list[Step] = []
    if missed.number > MISSED_MAX:
        words = (
            f"too many missed start times: {missed.number}. Set or decrease "
            ".spec.startingDeadlineSeconds or check clock skew"
        )
        steps.append(RecordEvent(owner, "TooManyMissedTimes", words, is_warning=True))
    upcoming = schedule.next(now.instant, zone)
    wait = None
    if upcoming is not None:
        wait = (upcoming - now.instant).total_seconds() + DELTA_S
    if missed.latest is None:
        return Due(steps, status, wait)
    return _at(owner, status, jobs, now, Due(steps, status, wait), missed.latest, zone)


def _at(
    owner: CronJob,
    status: CronJobStatus,
    jobs: list[Job],
    now: Timestamp,
    due: Due,
    when: datetime,
    zone: tzinfo,
) -> Due:
    """Return what to do about a scheduled time that has passed."""
    steps = list(due.steps)
    deadline = owner.spec.starting_deadline_seconds
    if deadline is not None and Timestamp(when).after(deadline) < now:
        shown = when.strftime("%a, %d %b %Y %H:%M:%S +0000")
        words = f"Missed scheduled time to start a job: {shown}"
        steps.append(RecordEvent(owner, "MissSchedule", words, is_warning=True))
        return due._replace(steps=steps)
    name = f"{owner.metadata.name}-{int(when.timestamp()) // 60}"
    if any(job.metadata.name == name for job in jobs):
        scheduled = replace(status, last_schedule_time=Timestamp(when))
        last = status.last_schedule_time
        is_newer = last is None or last.instant < when
        return due._replace(status=scheduled if is_newer else status)
    policy = owner.spec.concurrency_policy
    if policy == "Forbid" and status.active:
        words = (
            "Not starting job because prior execution is running and concurrency policy is Forbid"
        )
        steps.append(RecordEvent(owner, "JobAlreadyActive", words))
        return due._replace(steps=steps)
    if policy == "Replace":
        running = {each.uid for each in status.active}
        for job in jobs:
            if job.metadata.uid in running:
                steps += _deleted(owner, job)
        status = replace(status, active=())
    steps.append(Create(job_of(owner, name, when, zone)))
    steps.append(RecordEvent(owner, "SuccessfulCreate", f"Created job {name}"))
    status = replace(status, last_schedule_time=Timestamp(when))
    return Due(steps, status, due.next_in_s)


class Missed(NamedTuple):
    """The latest scheduled time without a job, and the number of such times."""

    latest: datetime | None
    number: int


def _latest(owner: CronJob, schedule: CronSchedule, zone: tzinfo, now: Timestamp) -> Missed:
    """Return the latest scheduled time since the last job, if its deadline has not passed."""
    since = owner.status.last_schedule_time or owner.metadata.creation_timestamp or now
    earliest = since.instant
    deadline = owner.spec.starting_deadline_seconds
    if deadline is not None:
        earliest = max(earliest, now.after(-min(deadline, DEADLINE_S_MAX)).instant)
    latest: datetime | None = None
    count = 0
    moment = schedule.next(earliest, zone)
    while moment is not None and moment <= now.instant:
        latest, count = moment, count + 1
        if count > MISSED_MAX:
            return Missed(_last_before(schedule, zone, now.instant, moment), count)
        moment = schedule.next(moment, zone)
    return Missed(latest, count)


def _last_before(schedule: CronSchedule, zone: tzinfo, now: datetime, known: datetime) -> datetime:
    """Return the latest time of a schedule, searched for in ever longer spans."""
    span = timedelta(minutes=1)
    while now - span > known:
        moment = schedule.next(now - span, zone)
        found = None
        while moment is not None and moment <= now:
            found, moment = moment, schedule.next(moment, zone)
        if found is not None:
            return found
        span *= 2
    return known


def job_of(owner: CronJob, name: str, when: datetime, zone: tzinfo) -> Job:
    """Return the job of a scheduled time."""
    template = owner.spec.job_template
    local = when.astimezone(zone).isoformat(timespec="seconds").replace("+00:00", "Z")
    metadata = ObjectMeta(
        name=name,
        namespace=owner.metadata.namespace,
        labels=dict(template.metadata.labels),
        annotations={**template.metadata.annotations, SCHEDULED_AT: local},
        owner_references=(reference_to(owner),),
    )
    return Job(metadata=metadata, spec=template.spec)
