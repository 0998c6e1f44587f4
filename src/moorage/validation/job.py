"""The strategy of Jobs.

A job selects its pods by its uid, which it gets when it is stored; a new job is validated with a
placeholder.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from moorage.api import names
from moorage.api.batch import Job, JobSpec
from moorage.api.codec import to_tree
from moorage.api.core.placement import Affinity
from moorage.api.core.pod import Container, PodSpec, PodTemplateSpec
from moorage.api.field_path import Path, root
from moorage.api.gates import Gate
from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, invalid, required
from moorage.validation.field_rules import unchanged, value_or
from moorage.validation.go_layout import internal_form, internal_policy
from moorage.validation.job_scheduling import validate_scheduling_changes
from moorage.validation.job_spec import INDEXED, validate_job_spec
from moorage.validation.job_status import validate_job_status
from moorage.validation.metadata import IMMUTABLE, METADATA
from moorage.validation.pod_template import TemplateStrategy
from moorage.validation.selectors import selector_of
from moorage.validation.strategy import Context
from moorage.validation.template_defaults import default_template

SPEC = root("spec")
STAND_IN_UID = "00000000-0000-0000-0000-000000000000"


class JobStrategy(TemplateStrategy[Job]):
    """The strategy of Jobs."""

    @staticmethod
    def set_defaults(value: Job) -> Job:
        """Set every default; the selector is set with the uid."""
        spec = value.spec
        runs_once = spec.completions is None and spec.parallelism is None
        backoff = BACKOFF if spec.backoff_limit_per_index is None else BACKOFF_BY_INDEX
        replaced = "TerminatingOrFailed" if spec.pod_failure_policy is None else "Failed"
        changed = replace(
            spec,
            completions=1 if runs_once else spec.completions,
            parallelism=value_or(spec.parallelism, 1),
            backoff_limit=value_or(spec.backoff_limit, backoff),
            completion_mode=value_or(spec.completion_mode, "NonIndexed"),
            suspend=value_or(spec.suspend, False),
            pod_replacement_policy=value_or(spec.pod_replacement_policy, replaced),
            manual_selector=value_or(spec.manual_selector, False),
            pod_failure_policy=default_failure_policy(spec.pod_failure_policy),
            template=default_template(spec.template),
        )
        metadata = value.metadata
        labels = metadata.labels or spec.template.metadata.labels
        return replace(value, metadata=replace(metadata, labels=labels), spec=changed)

    def drop_disabled_fields(self, new: Job, old: Job | None, context: Context) -> Job:
        """Drop the scheduling policy, and disabled fields of the template."""
        new = super().drop_disabled_fields(new, old, context)
        is_in_use = old is not None and old.spec.scheduling is not None
        if context.enabled(Gate.WORKLOAD_WITH_JOB) or is_in_use:
            return new
        return replace(new, spec=replace(new.spec, scheduling=None))

    def validate(self, new: Job, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything, with the selector that the job will get."""
        uid = new.metadata.uid or STAND_IN_UID
        job = with_selector(replace(new, metadata=replace(new.metadata, uid=uid)))
        found = self.validate_metadata(new) + _validate_generated(job)
        return found + validate_job_spec(job.spec, SPEC) + _validate_name(job)

    def validate_fields(self, new: Job) -> ErrorList:
        """Validate the spec."""
        return validate_job_spec(new.spec, SPEC)

    def validate_changes(self, new: Job, old: Job) -> ErrorList:
        """Validate that only fields that may change did."""
        spec, before = new.spec, old.spec
        found = _validate_completions(spec, before, SPEC.child("completions"))
        found += unchanged(spec.selector, before.selector, SPEC.child("selector"))
        found += _validate_template(spec.template, old, SPEC.child("template"))
        for name, value, old_value in (
            ("completionMode", spec.completion_mode, before.completion_mode),
            ("podFailurePolicy", spec.pod_failure_policy, before.pod_failure_policy),
            ("backoffLimitPerIndex", spec.backoff_limit_per_index, before.backoff_limit_per_index),
            ("managedBy", spec.managed_by, before.managed_by),
            ("successPolicy", spec.success_policy, before.success_policy),
        ):
            # A policy without rules is another policy than none.
            if (value is None) != (old_value is None) or not semantic_equal(value, old_value):
                found.append(
                    invalid(
                        SPEC.child(name),
                        internal_policy(value, f"{name[0].upper()}{name[1:]}"),
                        IMMUTABLE,
                    )
                )
        scheduling = (spec.scheduling, before.scheduling)
        found += validate_scheduling_changes(*scheduling, SPEC.child("scheduling"))
        return found + _validate_name(new)

    def validate_status(self, new: Job, old: Job) -> ErrorList:
        """Validate counts, conditions and times."""
        return validate_job_status(new, old)


# --- new jobs -----------------------------------------------------------------------------


def _validate_generated(job: Job) -> ErrorList:
    """Validate that selector and labels agree with those that the job generates."""
    if job.spec.manual_selector or job.spec.selector is None:
        return []
    found: ErrorList = []
    labels = job.spec.template.metadata.labels
    wanted = own_labels(job.metadata)
    path = SPEC.child("template", "metadata", "labels")
    for key, value in wanted.items():
        detail = f"must be '{value}'"
        if key not in labels:
            found.append(required(path.key(key), detail))
        elif labels[key] != value:
            found.append(invalid(path.key(key), dict(sorted(labels.items())), detail))
    selector = selector_of(job.spec.selector)
    if selector is not None and not selector.matches(wanted):
        place = SPEC.child("selector")
        found.append(invalid(place, job.spec.selector, "`selector` not auto-generated"))
    return found


def _validate_name(job: Job) -> ErrorList:
    """Validate that the names of indexed pods are DNS labels."""
    completions = job.spec.completions
    if job.spec.completion_mode != INDEXED or not completions or completions < 0:
        return []
    last = f"{job.metadata.name}-{completions - 1}"
    if not names.dns1123_label(last):
        return []
    detail = f"will not able to create pod with invalid DNS label: {last}"
    return [invalid(METADATA.child("name"), job.metadata.name, detail)]


# --- changed jobs -------------------------------------------------------------------------


def _validate_completions(spec: JobSpec, old: JobSpec, path: Path) -> ErrorList:
    if spec.completion_mode != INDEXED:
        return unchanged(spec.completions, old.completions, path)
    if spec.completions in (None, old.completions) or spec.completions == spec.parallelism:
        return []
    detail = "can only be modified in tandem with spec.parallelism"
    return [invalid(path, spec.completions, detail)]


def _validate_template(template: PodTemplateSpec, old: Job, path: Path) -> ErrorList:
    """Validate that the template is unchanged, except where the job is suspended."""
    before = old.spec.template
    if not _may_change(old):
        if semantic_equal(template, before):
            return []
        return [invalid(path, internal_form(to_tree(template), "PodTemplateSpec"), IMMUTABLE)]
    allowed = _with_old_values(template.spec, before.spec)
    if semantic_equal(allowed, before.spec):
        return []
    shown = internal_form(to_tree(template.spec), "PodSpec")
    return [invalid(path.child("spec"), shown, IMMUTABLE)]


def _may_change(job: Job) -> bool:
    """Return whether a job is suspended and runs no pods."""
    status = job.status
    is_suspended = any(c.type == "Suspended" and c.status == "True" for c in status.conditions)
    has_stopped = status.start_time is None or is_suspended
    return bool(job.spec.suspend) and has_stopped and status.active == 0


def _with_old_values(new: PodSpec, old: PodSpec) -> PodSpec:
    """Return a spec with the old placement and resources, which a suspended job may change."""
    return replace(
        new,
        affinity=_with_old_node_affinity(new.affinity, old.affinity),
        node_selector=old.node_selector,
        tolerations=old.tolerations,
        scheduling_gates=old.scheduling_gates,
        containers=_with_old_resources(new.containers, old.containers),
        init_containers=_with_old_resources(new.init_containers, old.init_containers),
    )


def _with_old_node_affinity(new: Affinity | None, old: Affinity | None) -> Affinity | None:
    changed = replace(new or Affinity(), node_affinity=None if old is None else old.node_affinity)
    return old if semantic_equal(changed, old or Affinity()) else changed


def _with_old_resources(
    new: tuple[Container, ...], old: tuple[Container, ...]
) -> tuple[Container, ...]:
    if len(new) != len(old):
        return new
    return tuple(
        _with_resources_of(before, container) for container, before in zip(new, old, strict=True)
    )


def _with_resources_of(old: Container, new: Container) -> Container:
    return replace(new, resources=old.resources) if new.name == old.name else new


LABEL_PREFIX = "batch.kubernetes.io/"


BACKOFF = 6  # pods of a job that may fail


BACKOFF_BY_INDEX = 2**31 - 1  # counted for each index instead


def with_selector(job: Job, *, shares_labels: bool = False) -> Job:
    """Return a new job that selects its own pods; the selector has no field manager.

    With `shares_labels` the job itself gets the labels of its pods.
    """
    if job.spec.manual_selector:
        return job
    template, metadata = job.spec.template, job.metadata
    labels = {**own_labels(metadata), **template.metadata.labels}
    if shares_labels:
        job = replace(job, metadata=replace(metadata, labels=labels))
    selector = job.spec.selector or LabelSelector()
    match = {f"{LABEL_PREFIX}controller-uid": metadata.uid, **selector.match_labels}
    spec = replace(
        job.spec,
        selector=replace(selector, match_labels=match),
        template=replace(template, metadata=replace(template.metadata, labels=labels)),
    )
    return replace(job, spec=spec)


def own_labels(metadata: ObjectMeta) -> dict[str, str]:
    """Return the labels that a job gives its pods."""
    own = {"controller-uid": metadata.uid, "job-name": metadata.name}
    return own | {f"{LABEL_PREFIX}{key}": value for key, value in own.items()}


def default_failure_policy(policy: Any) -> Any:
    """Return a policy in which pod conditions have a status; it is True by default."""
    match policy:
        case {"rules": list(rules)}:
            return {**policy, "rules": [_failure_rule(rule) for rule in rules]}
    return policy


def _failure_rule(rule: Any) -> Any:
    match rule:
        case {"onPodConditions": list(patterns)}:
            return {
                **rule,
                "onPodConditions": [_with_condition_status(pattern) for pattern in patterns],
            }
    return rule


def _with_condition_status(pattern: Any) -> Any:
    if not isinstance(pattern, dict) or pattern.get("status"):
        return pattern
    return {**pattern, "status": "True"}
