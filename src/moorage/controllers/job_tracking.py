"""Job tracking: ended pods are counted exactly once, and decide how their job ends.

A pod has a finalizer until it is counted. It is counted in two steps, so that nothing is lost or
counted twice wherever a controller stops between them:

1. its uid is written into the status as uncounted, then its finalizer is removed;
2. once the pod has no finalizer its uid leaves the list, and the number grows.

Succeeded pods of indexed jobs need no list: their completion index (`0-3,5`) says that it is done.
A pod failure policy decides what a failed pod means for its job.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from moorage.api.batch import Job, JobStatus
from moorage.api.core import ContainerStatus, Pod
from moorage.api.core.pod import FAILED, SUCCEEDED
from moorage.api.go_integers import parse_int64
from moorage.api.timestamp import Timestamp
from moorage.controllers.pod_control import (
    COMPLETION_INDEX,
    JOB_TRACKING,
    condition_of,
    is_active,
    is_true,
)

UNCOUNTED_MAX = 500
ENDS = ("Complete", "Failed")  # conditions
INDEXES_MAX = 100_000
BACKOFF_S, BACKOFF_MAX_S = 10.0, 600.0
LIMIT = 6  # the default backoff limit


class JobCounts(NamedTuple):
    """How often a job has succeeded and failed, and what must be written to keep it."""

    succeeded: int
    failed: int
    status: JobStatus  # with the counts
    done: list[Pod]  # pods whose finalizer may go once the status is written
    completed: set[int]  # indexes
    lost: set[int]  # indexes that failed for good


def is_finished(job: Job) -> bool:
    """Return whether a job has come to its end."""
    return any(is_true(job.status.conditions, kind) for kind in ENDS)


def is_indexed(job: Job) -> bool:
    """Return whether every completion has a number."""
    return job.spec.completion_mode == "Indexed"


def completions_of(job: Job) -> int | None:
    """Return how often a job must succeed; None where its pods find out themselves.

    A job without either field runs one pod once.
    """
    if job.spec.completions is None and job.spec.parallelism is None:
        return 1
    return job.spec.completions


def replaces_only_failed(job: Job) -> bool:
    """Return whether a pod on its way out is only replaced when it has ended."""
    said = job.spec.pod_replacement_policy
    return said == "Failed" or (said is None and job.spec.pod_failure_policy is not None)


def has_failed(job: Job, pod: Pod) -> bool:
    """Return whether a pod counts as failed; a deleted one may never report it."""
    if pod.status.phase == FAILED:
        return True
    is_leaving = pod.metadata.deletion_timestamp is not None
    return is_leaving and pod.status.phase != SUCCEEDED and not replaces_only_failed(job)


def count_pods(job: Job, pods: Iterable[Pod]) -> JobCounts:
    """Return the counts of a job, and the status that keeps them."""
    listed = [pod for pod in pods if JOB_TRACKING in pod.metadata.finalizers]
    held = {pod.metadata.uid for pod in listed}
    said = job.status.uncounted_terminated_pods
    good, bad = _uids(said, "succeeded"), _uids(said, "failed")
    succeeded = job.status.succeeded + sum(uid not in held for uid in good)
    failed = job.status.failed + sum(uid not in held for uid in bad)
    good, bad = [u for u in good if u in held], [u for u in bad if u in held]
    count = completions_of(job) or 0
    completed = read_indexes(job.status.completed_indexes, count) if is_indexed(job) else set()
    lost = read_indexes(job.status.failed_indexes or "", count) if is_indexed(job) else set()
    done: list[Pod] = []
    for pod in listed:
        if pod.status.phase == SUCCEEDED and is_indexed(job):
            index = index_of(pod)
            if index is not None and index < count:
                completed.add(index)
            done.append(pod)
        elif pod.status.phase == SUCCEEDED:
            if _noted(pod, good, len(bad)):
                done.append(pod)
        elif has_failed(job, pod) and _failure_noted(job, pod, bad, lost, len(good)):
            done.append(pod)
    status = _counted(job, succeeded, failed, good, bad, completed, lost)
    if is_indexed(job):
        return JobCounts(len(completed), failed + len(bad), status, done, completed, lost)
    return JobCounts(succeeded + len(good), failed + len(bad), status, done, completed, lost)


def _noted(pod: Pod, uids: list[str], others: int) -> bool:
    """List a pod as uncounted, and return whether the list had a place for it."""
    uid = pod.metadata.uid
    if uid not in uids and others + len(uids) < UNCOUNTED_MAX:
        uids.append(uid)
    return uid in uids


def _failure_noted(job: Job, pod: Pod, bad: list[str], lost: set[int], others: int) -> bool:
    """Note a failed pod; one that a policy ignores needs no note."""
    verdict = failure_policy_action(job, pod)
    if verdict.action == "Ignore":
        return True
    if not _noted(pod, bad, others):
        return False
    limit, index = job.spec.backoff_limit_per_index, index_of(pod)
    if limit is not None and index is not None:
        is_lost = verdict.action == "FailIndex" or failures_of_index(pod) >= limit
        lost.update((index,) if is_lost else ())
    return True


FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"


def failures_of_index(pod: Pod) -> int:
    """Return how often the index of a pod had failed before it."""
    text = pod.metadata.annotations.get(FAILURE_COUNT, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _uids(said: Any, key: str) -> list[str]:
    found = said.get(key) if isinstance(said, dict) else None
    return [uid for uid in found if isinstance(uid, str)] if isinstance(found, list) else []


def _counted(
    job: Job,
    succeeded: int,
    failed: int,
    good: list[str],
    bad: list[str],
    completed: set[int],
    lost: set[int],
) -> JobStatus:
    listed = {"succeeded": good, "failed": bad}
    status = replace(
        job.status,
        succeeded=len(completed) if is_indexed(job) else succeeded,
        failed=failed,
        uncounted_terminated_pods={key: uids for key, uids in listed.items() if uids},
    )
    if is_indexed(job):
        status = replace(status, completed_indexes=write_indexes(completed))
        if job.spec.backoff_limit_per_index is not None:
            status = replace(status, failed_indexes=write_indexes(lost))
    return status


def read_indexes(text: str, count: int) -> set[int]:
    """Return the indexes below a count that a text names; what cannot be read names none."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        low, dash, high = part.partition("-")
        first = parse_int64(low)
        last = parse_int64(high) if dash else first
        if first is not None and last is not None:
            found.update(range(max(0, first), min(last, count - 1, INDEXES_MAX) + 1))
    return found


def write_indexes(indexes: Iterable[int]) -> str:
    """Return indexes as text: `0-3,5`, and two in a row as `6,7`."""
    parts: list[tuple[int, int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][1] == index - 1:
            parts[-1] = (parts[-1][0], index)
        else:
            parts.append((index, index))
    return ",".join(_written(*part) for part in parts)


def _written(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{low},{high}" if high == low + 1 else f"{low}-{high}"


def index_of(pod: Pod) -> int | None:
    """Return the completion index of a pod, if it has one."""
    return parse_int64(pod.metadata.annotations.get(COMPLETION_INDEX, ""))


class FailurePolicyAction(NamedTuple):
    """The action of a policy for a failed pod."""

    action: str = "Count"  # Count, Ignore, FailJob, FailIndex
    message: str = ""


COUNTED = FailurePolicyAction()


def failure_policy_action(job: Job, pod: Pod) -> FailurePolicyAction:
    """Return the action of the first matching rule; without one the failure counts."""
    policy = job.spec.pod_failure_policy
    rules = policy.get("rules") if isinstance(policy, dict) else None
    for number, rule in enumerate(rules if isinstance(rules, list) else ()):
        if not isinstance(rule, dict):
            continue
        action = str(rule.get("action", ""))
        place = f"{pod.metadata.namespace}/{pod.metadata.name}"
        if isinstance(codes := rule.get("onExitCodes"), dict):
            if (status := _exited(pod, codes)) is not None:
                code = status.state.terminated.exit_code  # type: ignore[union-attr]
                message = (
                    f"Container {status.name} for pod {place} failed with exit code {code} "
                    f"matching {action} rule at index {number}"
                )
                return FailurePolicyAction(action, message)
        elif (kind := _condition(pod, rule.get("onPodConditions"))) is not None:
            message = f"Pod {place} has condition {kind} matching {action} rule at index {number}"
            return FailurePolicyAction(action, message)
    return COUNTED


def _exited(pod: Pod, codes: dict[str, Any]) -> ContainerStatus | None:
    values = codes.get("values")
    listed = values if isinstance(values, list) else []
    is_in = codes.get("operator") == "In"
    for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        ended = status.state.terminated
        if ended is None or ended.exit_code == 0:
            continue
        is_meant = codes.get("containerName") in (None, status.name)
        if is_meant and (ended.exit_code in listed) == is_in:
            return status
    return None


def _condition(pod: Pod, patterns: Any) -> str | None:
    for condition in pod.status.conditions:
        for pattern in patterns if isinstance(patterns, list) else ():
            if not isinstance(pattern, dict):
                continue
            wanted = (pattern.get("type"), pattern.get("status", "True"))
            if wanted == (condition.type, condition.status):
                return condition.type
    return None


def waits_s(pods: Iterable[Pod], now: Timestamp) -> float:
    """Return how long to wait before another pod: longer with each failure since a success."""
    ended = sorted((pod for pod in pods if _end(pod) is not None), key=lambda pod: _at(pod).instant)
    failures = 0
    for pod in ended:
        failures = 0 if pod.status.phase == SUCCEEDED else failures + 1
    if failures == 0:
        return 0.0
    delay = min(BACKOFF_S * 2.0 ** min(failures - 1, 20), BACKOFF_MAX_S)
    end = _at(ended[-1]).after(delay)
    return max(0.0, (end.instant - now.instant).total_seconds())


def _at(pod: Pod) -> Timestamp:
    found = _end(pod)
    assert found is not None
    return found


def _end(pod: Pod) -> Timestamp | None:
    """Return when a pod came to its end: when its last container did, or when it was deleted."""
    if pod.status.phase not in (SUCCEEDED, FAILED):
        return None
    ends = [
        status.state.terminated.finished_at
        for status in pod.status.container_statuses
        if status.state.terminated is not None and status.state.terminated.finished_at is not None
    ]
    if ends:
        return max(ends, key=lambda end: end.instant)
    changes = [
        condition.last_transition_time
        for condition in pod.status.conditions
        if condition.type == "Ready" and condition.last_transition_time is not None
    ]
    return changes[0] if changes else pod.metadata.creation_timestamp


def restarts(pods: Iterable[Pod]) -> int:
    """Return how often containers of active pods were started again."""
    return sum(
        status.restart_count
        for pod in pods
        if pod.status.phase in ("Running", "Pending")
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )


# --- how it ends ------------------------------------------------------------------------------


class JobOutcome(NamedTuple):
    """Why a job is to end."""

    kind: str  # FailureTarget or SuccessCriteriaMet
    reason: str
    message: str


def outcome_of(job: Job, pods: list[Pod], counts: JobCounts, now: Timestamp) -> JobOutcome | None:
    """Return why a job is to end, if it is."""
    for kind in ("SuccessCriteriaMet", "FailureTarget"):
        found = condition_of(job.status.conditions, kind)
        if found is not None and found.status == "True":
            return JobOutcome(kind, found.reason, found.message)
    return _failure(job, pods, counts, now) or _success(job, pods, counts)


def _failure(job: Job, pods: list[Pod], counts: JobCounts, now: Timestamp) -> JobOutcome | None:
    for pod in pods:
        if JOB_TRACKING in pod.metadata.finalizers and has_failed(job, pod):
            verdict = failure_policy_action(job, pod)
            if verdict.action == "FailJob":
                return JobOutcome("FailureTarget", "PodFailurePolicy", verdict.message)
    limit = job.spec.backoff_limit
    per_index = job.spec.backoff_limit_per_index is not None
    if limit is None:
        limit = 2**31 - 1 if per_index else LIMIT
    is_restarted = job.spec.template.spec.restart_policy == "OnFailure"
    again = restarts(pods) if is_restarted else 0
    if counts.failed > limit or (is_restarted and again and again >= limit):
        message = "Job has reached the specified backoff limit"
        return JobOutcome("FailureTarget", "BackoffLimitExceeded", message)
    left_s = deadline_s(job, now)
    if left_s is not None and left_s <= 0:
        message = "Job was active longer than specified deadline"
        return JobOutcome("FailureTarget", "DeadlineExceeded", message)
    return _failed_indexes(job, counts) if per_index else None


def _failed_indexes(job: Job, counts: JobCounts) -> JobOutcome | None:
    lost, most = len(counts.lost), job.spec.max_failed_indexes
    if most is not None and lost > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return JobOutcome("FailureTarget", "MaxFailedIndexesExceeded", message)
    if lost and lost + len(counts.completed) >= (completions_of(job) or 0):
        return JobOutcome("FailureTarget", "FailedIndexes", "Job has failed indexes")
    return None


def _success(job: Job, pods: list[Pod], counts: JobCounts) -> JobOutcome | None:
    wanted = completions_of(job)
    if counts.succeeded < (1 if wanted is None else wanted) or any(map(is_active, pods)):
        return None
    message = "Reached expected number of succeeded pods"
    return JobOutcome("SuccessCriteriaMet", "CompletionsReached", message)


def deadline_s(job: Job, now: Timestamp) -> float | None:
    """Return how long a job may still run; None if it has no deadline."""
    limit_s, start = job.spec.active_deadline_seconds, job.status.start_time
    if limit_s is None or start is None or job.spec.suspend:
        return None
    return (start.after(limit_s).instant - now.instant).total_seconds()
