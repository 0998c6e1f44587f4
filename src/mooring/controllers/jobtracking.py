"""Counting the ended pods of a job, each exactly once, whoever deletes them.

A pod carries a finalizer until it is counted. It is counted in two steps, so that nothing is lost
and nothing counted twice wherever one stops between them:

1. its uid is written into the status as not yet counted, then its finalizer is taken off;
2. once the pod has no finalizer its uid leaves the list, and the number grows.

Succeeded pods of indexed jobs need no list: their index says that it is done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from mooring.api.batch import Job, JobStatus
from mooring.api.core import Pod
from mooring.api.core.podstatus import FAILED, SUCCEEDED
from mooring.controllers.jobfailures import judge
from mooring.controllers.jobindexes import index_of, read_indexes, write_indexes
from mooring.controllers.podmaking import JOB_TRACKING

UNCOUNTED_MAX = 500


class Tally(NamedTuple):
    """How often a job has succeeded and failed, and what must be written to keep it."""

    succeeded: int
    failed: int
    status: JobStatus  # with the counts
    done: list[Pod]  # pods whose finalizer may go once the status is written
    completed: set[int]  # indexes
    lost: set[int]  # indexes that failed for good


def is_indexed(job: Job) -> bool:
    """Tell whether every completion has a number."""
    return job.spec.completion_mode == "Indexed"


def completions_of(job: Job) -> int | None:
    """Return how often a job must succeed; None where its pods find out themselves.

    A job that says nothing at all runs one pod once.
    """
    if job.spec.completions is None and job.spec.parallelism is None:
        return 1
    return job.spec.completions


def replaces_only_failed(job: Job) -> bool:
    """Tell whether a pod on its way out is only replaced when it has ended."""
    said = job.spec.pod_replacement_policy
    return said == "Failed" or (said is None and job.spec.pod_failure_policy is not None)


def has_failed(job: Job, pod: Pod) -> bool:
    """Tell whether a pod counts as failed: one that is deleted may never come to say so."""
    if pod.status.phase == FAILED:
        return True
    is_leaving = pod.metadata.deletion_timestamp is not None
    return is_leaving and pod.status.phase != SUCCEEDED and not replaces_only_failed(job)


def tally(job: Job, pods: Iterable[Pod]) -> Tally:
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
        return Tally(len(completed), failed + len(bad), status, done, completed, lost)
    return Tally(succeeded + len(good), failed + len(bad), status, done, completed, lost)


def _noted(pod: Pod, uids: list[str], others: int) -> bool:
    """Note a pod as not yet counted, and tell whether there was room for it."""
    uid = pod.metadata.uid
    if uid not in uids and others + len(uids) < UNCOUNTED_MAX:
        uids.append(uid)
    return uid in uids


def _failure_noted(job: Job, pod: Pod, bad: list[str], lost: set[int], others: int) -> bool:
    """Note a failed pod; one that a policy ignores needs no note."""
    verdict = judge(job, pod)
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
