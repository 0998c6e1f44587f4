"""What a failed pod means for its job: a policy's answer, and how long to wait before the next."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple

from mooring.api.batch import Job
from mooring.api.core import ContainerStatus, Pod
from mooring.api.core.podstatus import FAILED, SUCCEEDED
from mooring.api.timestamp import Timestamp

BACKOFF_S, BACKOFF_MAX_S = 10.0, 600.0
LIMIT = 6  # failures that a job stands, where it says nothing


class Verdict(NamedTuple):
    """What a policy says of a failed pod."""

    action: str = "Count"  # Count, Ignore, FailJob, FailIndex
    message: str = ""


COUNTED = Verdict()


def judge(job: Job, pod: Pod) -> Verdict:
    """Return what the first rule that fits says; without one the failure counts."""
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
                return Verdict(action, message)
        elif (kind := _condition(pod, rule.get("onPodConditions"))) is not None:
            message = f"Pod {place} has condition {kind} matching {action} rule at index {number}"
            return Verdict(action, message)
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
    end = _at(ended[-1]).instant + timedelta(seconds=delay)
    return max(0.0, (end - now.instant).total_seconds())


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
