"""Table printers of workloads and of the templates of their pods."""

from __future__ import annotations

from moorage.api.apps import DaemonSet, Deployment, ReplicaSet, Scale, StatefulSet
from moorage.api.batch import CronJob, Job
from moorage.api.core import PodTemplate, PodTemplateSpec, ReplicationController
from moorage.api.timestamp import Timestamp
from moorage.apiserver.tables.columns import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    NONE,
    SELECTOR,
    Cell,
    Column,
    Printer,
    age,
    labels_text,
    number,
    plain_selector_text,
    selector_text,
    span,
    text,
)

_WIDE = (CONTAINERS, IMAGES, SELECTOR)


def _containers(template: PodTemplateSpec | None) -> list[Cell]:
    """Return the names and the images of the containers."""
    containers = () if template is None else template.spec.containers
    return [
        ",".join(container.name for container in containers),
        ",".join(container.image for container in containers),
    ]


def _deployment(value: Deployment, now: Timestamp) -> list[Cell]:
    spec, status = value.spec, value.status
    selector = plain_selector_text(spec.selector)
    return [
        value.metadata.name,
        f"{status.ready_replicas}/{spec.replicas or 0}",
        status.updated_replicas,
        status.available_replicas,
        age(value.metadata.creation_timestamp, now),
        *_containers(spec.template),
        "<invalid>" if selector is None else selector,
    ]


DEPLOYMENT = Printer(
    (
        NAME,
        text("Ready", "Pods that are ready, of those wanted."),
        text("Up-to-date", "Pods of the newest template."),
        text("Available", "Pods that have been ready long enough."),
        AGE,
        *_WIDE,
    ),
    _deployment,
)


def _replica_set(value: ReplicaSet, now: Timestamp) -> list[Cell]:
    return _replicas(value, now, selector_text(value.spec.selector))


def _replication_controller(value: ReplicationController, now: Timestamp) -> list[Cell]:
    return _replicas(value, now, labels_text(value.spec.selector))


def _replicas(
    value: ReplicaSet | ReplicationController, now: Timestamp, selector: str
) -> list[Cell]:
    return [
        value.metadata.name,
        value.spec.replicas or 0,
        value.status.replicas,
        value.status.ready_replicas,
        age(value.metadata.creation_timestamp, now),
        *_containers(value.spec.template),
        selector,
    ]


_REPLICAS = (
    NAME,
    number("Desired", "Pods that are wanted."),
    number("Current", "Pods that there are."),
    number("Ready", "Pods that are ready."),
    AGE,
    *_WIDE,
)
REPLICA_SET = Printer(_REPLICAS, _replica_set)
REPLICATION_CONTROLLER = Printer(_REPLICAS, _replication_controller)


def _daemon_set(value: DaemonSet, now: Timestamp) -> list[Cell]:
    status = value.status
    return [
        value.metadata.name,
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_ready,
        status.updated_number_scheduled,
        status.number_available,
        labels_text(value.spec.template.spec.node_selector),
        age(value.metadata.creation_timestamp, now),
        *_containers(value.spec.template),
        selector_text(value.spec.selector),
    ]


DAEMON_SET = Printer(
    (
        NAME,
        number("Desired", "Nodes that should have a pod."),
        number("Current", "Nodes that should have a pod and have one."),
        number("Ready", "Nodes that have a pod that is ready."),
        number("Up-to-date", "Nodes that have a pod of the newest template."),
        number("Available", "Nodes that have a pod that has been ready long enough."),
        text("Node Selector", "Labels of the nodes that get a pod."),
        AGE,
        *_WIDE,
    ),
    _daemon_set,
)


def _stateful_set(value: StatefulSet, now: Timestamp) -> list[Cell]:
    return [
        value.metadata.name,
        f"{value.status.ready_replicas}/{value.spec.replicas or 0}",
        age(value.metadata.creation_timestamp, now),
        *_containers(value.spec.template),
    ]


STATEFUL_SET = Printer(
    (NAME, text("Ready", "Pods that are ready, of those wanted."), AGE, CONTAINERS, IMAGES),
    _stateful_set,
)


def _job(job: Job, now: Timestamp) -> list[Cell]:
    return [
        job.metadata.name,
        _job_status(job),
        _completions(job),
        _job_duration(job, now),
        age(job.metadata.creation_timestamp, now),
        *_containers(job.spec.template),
        selector_text(job.spec.selector),
    ]


def _job_status(job: Job) -> str:
    """Return the first status that holds."""
    holds: dict[str, bool] = {}
    for condition in job.status.conditions:
        holds.setdefault(condition.type, condition.status == "True")
    holds["Terminating"] = job.metadata.deletion_timestamp is not None
    order = (
        "Complete",
        "Failed",
        "Terminating",
        "Suspended",
        "FailureTarget",
        "SuccessCriteriaMet",
    )
    return next((status for status in order if holds.get(status)), "Running")


def _completions(job: Job) -> str:
    succeeded, parallelism = job.status.succeeded, job.spec.parallelism or 0
    if job.spec.completions is not None:
        return f"{succeeded}/{job.spec.completions}"
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Job, now: Timestamp) -> str:
    start = job.status.start_time
    return "" if start is None else span(start, job.status.completion_time or now)


JOB = Printer(
    (
        NAME,
        text("Status", "How far the job is."),
        text("Completions", "Pods that succeeded, of those that must."),
        text("Duration", "Time that the job has taken, or took."),
        AGE,
        *_WIDE,
    ),
    _job,
)


def _pod_template(value: PodTemplate, _: Timestamp) -> list[Cell]:
    labels = labels_text(value.template.metadata.labels)
    return [value.metadata.name, *_containers(value.template), labels]


POD_TEMPLATE = Printer(
    (
        NAME,
        text("Containers", "Names of the containers in the template."),
        text("Images", "Images of the containers in the template."),
        text("Pod Labels", "Labels of the template."),
    ),
    _pod_template,
)


def _cron_job(value: CronJob, now: Timestamp) -> list[Cell]:
    spec, last = value.spec, value.status.last_schedule_time
    job = spec.job_template.spec
    return [
        value.metadata.name,
        spec.schedule,
        spec.time_zone or NONE,
        str(bool(spec.suspend)),
        len(value.status.active),
        NONE if last is None else age(last, now),
        age(value.metadata.creation_timestamp, now),
        *_containers(job.template),
        selector_text(job.selector),
    ]


CRON_JOB = Printer(
    (
        NAME,
        text("Schedule", "When jobs are made."),
        text("Timezone", "Time zone of the schedule."),
        Column(name="Suspend", type="boolean", description="Whether no jobs are made for now."),
        number("Active", "Jobs that run."),
        text("Last Schedule", "Time since the last job was made."),
        AGE,
        *_WIDE,
    ),
    _cron_job,
)


def _scale(value: Scale, now: Timestamp) -> list[Cell]:
    return [
        value.metadata.name,
        value.spec.replicas,
        value.status.replicas,
        age(value.metadata.creation_timestamp, now),
    ]


SCALE = Printer(
    (
        text("Name", NAME.description),
        number("Desired", "Pods that are wanted."),
        number("Available", "Pods that there are."),
        AGE,
    ),
    _scale,
)
