"""batch/v1: pods that run to an end."""

from __future__ import annotations

from moorage.api.core.namespace import ObjectReference
from moorage.api.core.pod import PodTemplateSpec
from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import Json, LabelSelector, ObjectMeta
from moorage.api.structs import Int32, Int64, Open, always
from moorage.api.timestamp import Timestamp

API_VERSION = "batch/v1"


class JobCondition(Open, frozen=True, gc=False):
    """One observed aspect of a job's state."""

    type: str = always("")
    status: str = always("")
    last_probe_time: Timestamp | None = always(None)
    last_transition_time: Timestamp | None = always(None)
    reason: str = ""
    message: str = ""


class JobSpec(Open, frozen=True, gc=False):
    """How often a template must succeed, and how many pods try at once."""

    parallelism: Int32 | None = None
    completions: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    pod_failure_policy: Json = None
    success_policy: Json = None
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    selector: LabelSelector | None = None
    manual_selector: bool | None = None
    template: PodTemplateSpec = always(PodTemplateSpec())
    ttl_seconds_after_finished: Int32 | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    pod_replacement_policy: str | None = None
    managed_by: str | None = None
    scheduling: Json = None


class JobStatus(Open, frozen=True, gc=False):
    """How many pods run, succeeded and failed."""

    conditions: tuple[JobCondition, ...] = ()
    start_time: Timestamp | None = None
    completion_time: Timestamp | None = None
    active: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    terminating: Int32 | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: Json = None
    ready: Int32 | None = None


class Job(Open, frozen=True, gc=False):
    """Pods that run until enough of them have succeeded."""

    api_version: str = always(API_VERSION)
    kind: str = always("Job")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: JobSpec = always(JobSpec())
    status: JobStatus = always(JobStatus())


class JobTemplateSpec(Open, frozen=True, gc=False):
    """A template for the jobs of a cron job."""

    metadata: ObjectMeta = always(ObjectMeta())
    spec: JobSpec = always(JobSpec())


class CronJobSpec(Open, frozen=True, gc=False):
    """The schedule and the template of jobs."""

    schedule: str = always("")
    time_zone: str | None = None
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: str = ""
    suspend: bool | None = None
    job_template: JobTemplateSpec = always(JobTemplateSpec())
    successful_jobs_history_limit: Int32 | None = None
    failed_jobs_history_limit: Int32 | None = None


class CronJobStatus(Open, frozen=True, gc=False):
    """The running jobs, and when the last one was scheduled."""

    active: tuple[ObjectReference, ...] = ()
    last_schedule_time: Timestamp | None = None
    last_successful_time: Timestamp | None = None


class CronJob(Open, frozen=True, gc=False):
    """Creates jobs at scheduled times."""

    api_version: str = always(API_VERSION)
    kind: str = always("CronJob")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: CronJobSpec = always(CronJobSpec())
    status: CronJobStatus = always(CronJobStatus())


KINDS: tuple[Kind, ...] = (
    declare_kind(CronJob, "cronjobs", "cj", has_status=True),
    declare_kind(Job, "jobs", has_status=True),
)
