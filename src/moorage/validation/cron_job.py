"""The strategy of CronJobs."""

from __future__ import annotations

import re

from msgspec.structs import replace

from moorage.api.batch import CronJob, CronJobSpec, Job
from moorage.api.field_path import Path, root
from moorage.kit.cron_schedule import CronError, find_zone, parse_schedule
from moorage.validation.errors import ErrorList, invalid, not_supported, required
from moorage.validation.field_rules import not_negative, value_or
from moorage.validation.job import JobStrategy, default_failure_policy
from moorage.validation.job_scheduling import validate_scheduling_changes
from moorage.validation.job_spec import validate_job_spec
from moorage.validation.metadata import METADATA
from moorage.validation.pod.warnings import template_warnings
from moorage.validation.strategy import Context, ObjectStrategy
from moorage.validation.template_defaults import default_template

SPEC = root("spec")
NAME_MAX = 52  # the names of jobs end with a time

_POLICIES = ("Allow", "Forbid", "Replace")
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")
_JOBS = JobStrategy()


class CronJobStrategy(ObjectStrategy[CronJob]):
    """The strategy of CronJobs."""

    tracks_generation = True
    keeps_metadata_with_status = False

    def default(self, value: CronJob, api_version: str, context: Context) -> CronJob:  # noqa: ARG002
        """Set every default; jobs get theirs when they are made."""
        spec = value.spec
        job = spec.job_template.spec
        job = replace(
            job,
            template=default_template(job.template),
            pod_failure_policy=default_failure_policy(job.pod_failure_policy),
        )
        spec = replace(
            spec,
            concurrency_policy=spec.concurrency_policy or "Allow",
            suspend=value_or(spec.suspend, False),
            successful_jobs_history_limit=value_or(spec.successful_jobs_history_limit, 3),
            failed_jobs_history_limit=value_or(spec.failed_jobs_history_limit, 1),
            job_template=replace(spec.job_template, spec=job),
        )
        return replace(value, spec=spec)

    def drop_disabled_fields(self, new: CronJob, old: CronJob | None, context: Context) -> CronJob:
        """Drop disabled fields of the jobs."""
        template = new.spec.job_template
        before = None if old is None else Job(spec=old.spec.job_template.spec)
        job = _JOBS.drop_disabled_fields(Job(spec=template.spec), before, context)
        if job.spec is template.spec:
            return new
        spec = replace(new.spec, job_template=replace(template, spec=job.spec))
        return replace(new, spec=spec)

    def validate(self, new: CronJob, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything."""
        found = self.validate_metadata(new) + _validate_spec(new.spec, None)
        if len(new.metadata.name) > NAME_MAX:
            detail = f"must be no more than {NAME_MAX} characters"
            found.append(invalid(METADATA.child("name"), new.metadata.name, detail))
        return found

    def validate_update(self, new: CronJob, old: CronJob, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything; a name that is too long stays."""
        found = self.validate_metadata_update(new, old) + _validate_spec(new.spec, old.spec)
        now, was = (each.spec.job_template.spec.scheduling for each in (new, old))
        path = SPEC.child("jobTemplate", "spec", "scheduling")
        return found + validate_scheduling_changes(now, was, path)

    def warnings_on_create(self, new: CronJob) -> list[str]:
        """Return warnings about the template of the pods."""
        place = "spec.jobTemplate.spec.template"
        return template_warnings(new.spec.job_template.spec.template, place)

    def warnings_on_update(self, new: CronJob, old: CronJob) -> list[str]:
        """Return warnings about the template of a changed spec."""
        return [] if new.spec == old.spec else self.warnings_on_create(new)


def _validate_spec(spec: CronJobSpec, old: CronJobSpec | None) -> ErrorList:
    path = SPEC.child("schedule")
    found: ErrorList = [] if spec.schedule else [required(path)]
    if spec.schedule:
        found += _validate_schedule(spec, old, path)
    found += not_negative(spec.starting_deadline_seconds, SPEC.child("startingDeadlineSeconds"))
    if old is None or old.time_zone != spec.time_zone:
        found += _validate_zone(spec.time_zone, SPEC.child("timeZone"))
    if spec.concurrency_policy not in _POLICIES:
        place = SPEC.child("concurrencyPolicy")
        found.append(not_supported(place, spec.concurrency_policy, _POLICIES))
    found += _validate_job(spec, SPEC.child("jobTemplate", "spec"))
    for name, limit in (
        ("successfulJobsHistoryLimit", spec.successful_jobs_history_limit),
        ("failedJobsHistoryLimit", spec.failed_jobs_history_limit),
    ):
        found += not_negative(limit, SPEC.child(name))
    return found


def _validate_schedule(spec: CronJobSpec, old: CronJobSpec | None, path: Path) -> ErrorList:
    found: ErrorList = []
    try:
        parse_schedule(spec.schedule)
    except CronError as error:
        found.append(invalid(path, spec.schedule, str(error)))
    had_zone = old is not None and "TZ" in old.schedule
    if "TZ" in spec.schedule and not had_zone:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        found.append(invalid(path, spec.schedule, detail))
    elif "TZ" in spec.schedule and spec.time_zone is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        found.append(invalid(path, spec.schedule, detail))
    return found


def _validate_zone(zone: str | None, path: Path) -> ErrorList:
    if zone is None:
        return []
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    for part in zone.split("/"):
        is_odd = part in (".", "..") or part.startswith("-")
        if is_odd or not _ZONE_PART.fullmatch(part):
            return [invalid(path, zone, f"unknown time zone {zone}")]
    found: ErrorList = []
    if zone.lower() == "local":
        detail = (
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
        return [invalid(path, zone, detail)]
    try:
        find_zone(zone)
    except CronError as error:
        found.append(invalid(path, zone, str(error)))
    return found


def _validate_job(spec: CronJobSpec, path: Path) -> ErrorList:
    """Validate the jobs; the server makes their selectors."""
    job = spec.job_template.spec
    found = validate_job_spec(job, path, is_template=True)
    if job.selector is not None:
        detail = "`selector` will be auto-generated"
        found.append(invalid(path.child("selector"), job.selector, detail))
    if job.manual_selector:
        found.append(not_supported(path.child("manualSelector"), True, ("nil", "false")))
    return found
