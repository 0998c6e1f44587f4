"""What Kubernetes sets in controllers of pods that leave it open.

Their templates get what templates get. A job is told apart from all others by its uid: its pods
are labelled with it, and it selects them by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mooring.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet, UpdateStrategy
from mooring.api.batch import Job
from mooring.api.core import PodTemplateSpec
from mooring.api.meta import LabelSelector, ObjectMeta
from mooring.validation.pod.defaults import default_pod_spec
from mooring.validation.pod.part_defaults import filled_each

HISTORY = 10  # old revisions that are kept
PROGRESS_S = 600  # after which a rollout counts as stuck
BACKOFF = 6  # pods of a job that may fail
BACKOFF_BY_INDEX = 2**31 - 1  # counted for each index instead

ROLLING = "RollingUpdate"
_QUARTER: Mapping[str, Any] = {"maxUnavailable": "25%", "maxSurge": "25%"}
_ONE_BY_ONE: Mapping[str, Any] = {"maxUnavailable": 1, "maxSurge": 0}
_FROM_THE_TOP: Mapping[str, Any] = {"partition": 0, "maxUnavailable": 1}
_RETAIN: Mapping[str, Any] = {"whenDeleted": "Retain", "whenScaled": "Retain"}

_PREFIX = "batch.kubernetes.io/"


def with_selector(job: Job, *, shares_labels: bool = False) -> Job:
    """Return a new job that selects its own pods; nobody owns that.

    A job whose author labels only its pods has the labels of its pods.
    """
    if job.spec.manual_selector:
        return job
    template, metadata = job.spec.template, job.metadata
    labels = {**own_labels(metadata), **template.metadata.labels}
    if shares_labels:
        job = replace(job, metadata=replace(metadata, labels=labels))
    selector = job.spec.selector or LabelSelector()
    match = {f"{_PREFIX}controller-uid": metadata.uid, **selector.match_labels}
    spec = replace(
        job.spec,
        selector=replace(selector, match_labels=match),
        template=replace(template, metadata=replace(template.metadata, labels=labels)),
    )
    return replace(job, spec=spec)


def own_labels(metadata: ObjectMeta) -> dict[str, str]:
    """Return the labels that a job gives its pods."""
    own = {"controller-uid": metadata.uid, "job-name": metadata.name}
    return own | {f"{_PREFIX}{key}": value for key, value in own.items()}


def default_deployment(value: Deployment) -> Deployment:
    """Return a deployment with everything set that Kubernetes sets."""
    spec = value.spec
    changed = replace(
        spec,
        replicas=_or(spec.replicas, 1),
        template=_template(spec.template),
        strategy=_strategy(spec.strategy, _QUARTER),
        revision_history_limit=_or(spec.revision_history_limit, HISTORY),
        progress_deadline_seconds=_or(spec.progress_deadline_seconds, PROGRESS_S),
    )
    return replace(value, spec=changed)


def default_replica_set(value: ReplicaSet) -> ReplicaSet:
    """Return a replica set with everything set that Kubernetes sets."""
    template = _template(value.spec.template)
    spec = replace(value.spec, replicas=_or(value.spec.replicas, 1), template=template)
    return replace(value, spec=spec)


def default_daemon_set(value: DaemonSet) -> DaemonSet:
    """Return a daemon set with everything set that Kubernetes sets."""
    spec = value.spec
    changed = replace(
        spec,
        template=_template(spec.template),
        update_strategy=_strategy(spec.update_strategy, _ONE_BY_ONE),
        revision_history_limit=_or(spec.revision_history_limit, HISTORY),
    )
    return replace(value, spec=changed)


def default_stateful_set(value: StatefulSet) -> StatefulSet:
    """Return a stateful set with everything set that Kubernetes sets."""
    spec = value.spec
    strategy = spec.update_strategy
    if not strategy.type or strategy.rolling_update is not None:
        strategy = _strategy(strategy, _FROM_THE_TOP)
    changed = replace(
        spec,
        replicas=_or(spec.replicas, 1),
        template=_template(spec.template),
        volume_claim_templates=filled_each(
            spec.volume_claim_templates, "core/v1.PersistentVolumeClaim"
        ),
        update_strategy=strategy,
        pod_management_policy=spec.pod_management_policy or "OrderedReady",
        revision_history_limit=_or(spec.revision_history_limit, HISTORY),
        persistent_volume_claim_retention_policy=_filled(
            spec.persistent_volume_claim_retention_policy, _RETAIN
        ),
    )
    return replace(value, spec=changed)


def default_job(value: Job) -> Job:
    """Return a job with everything set that Kubernetes sets; the selector comes with its uid."""
    spec = value.spec
    runs_once = spec.completions is None and spec.parallelism is None
    backoff = BACKOFF if spec.backoff_limit_per_index is None else BACKOFF_BY_INDEX
    replaced = "TerminatingOrFailed" if spec.pod_failure_policy is None else "Failed"
    changed = replace(
        spec,
        completions=1 if runs_once else spec.completions,
        parallelism=_or(spec.parallelism, 1),
        backoff_limit=_or(spec.backoff_limit, backoff),
        completion_mode=_or(spec.completion_mode, "NonIndexed"),
        suspend=_or(spec.suspend, False),
        pod_replacement_policy=_or(spec.pod_replacement_policy, replaced),
        manual_selector=_or(spec.manual_selector, False),
        pod_failure_policy=_failure_policy(spec.pod_failure_policy),
        template=_template(spec.template),
    )
    metadata = value.metadata
    labels = metadata.labels or spec.template.metadata.labels
    return replace(value, metadata=replace(metadata, labels=labels), spec=changed)


def _failure_policy(policy: Any) -> Any:
    """Return a policy in which conditions of pods that say nothing else must hold."""
    match policy:
        case {"rules": list(rules)}:
            return {**policy, "rules": [_failure_rule(rule) for rule in rules]}
    return policy


def _failure_rule(rule: Any) -> Any:
    match rule:
        case {"onPodConditions": list(patterns)}:
            return {**rule, "onPodConditions": [_held(pattern) for pattern in patterns]}
    return rule


def _held(pattern: Any) -> Any:
    if not isinstance(pattern, dict) or pattern.get("status"):
        return pattern
    return {**pattern, "status": "True"}


def _template(template: PodTemplateSpec) -> PodTemplateSpec:
    return replace(template, spec=default_pod_spec(template.spec))


def _strategy(given: UpdateStrategy, rolling: Mapping[str, Any]) -> UpdateStrategy:
    kind = given.type or ROLLING
    if kind != ROLLING:
        return given
    return replace(given, type=kind, rolling_update=_filled(given.rolling_update, rolling))


def _filled(given: Any, defaults: Mapping[str, Any]) -> Any:
    if given is not None and not isinstance(given, dict):
        return given  # It is refused, or kept, as it is.
    return {**defaults, **(given or {})}


def _or(given: Any, default: Any) -> Any:
    return default if given is None else given
