"""Rules of the status of Jobs, which other controllers than ours may write (spec.managedBy).

A rule about a field holds only where the field, or a condition that the rule is about, changes: a
status that breaks it already can still be updated. `JobChange` knows what changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from moorage.api.batch import Job
from moorage.api.field_path import Path, root
from moorage.kit.go_quote import go_quote
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import (
    ErrorList,
    FieldError,
    duplicate,
    invalid,
    invalid_whole,
    required,
)
from moorage.validation.field_rules import not_negative
from moorage.validation.job_spec import INDEXED

STATUS = root("status")
CONDITIONS = STATUS.child("conditions")
COMPLETION_TIME = STATUS.child("completionTime")

COMPLETE, FAILED = "Complete", "Failed"
CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"
SUSPENDED = "Suspended"

INDEX_DIGITS_MAX = 10
INTERVALS_MAX = 100_000


class JobChange:
    """An update of a job's status."""

    def __init__(self, new: Job, old: Job) -> None:
        self.new, self.old = new, old
        self.status, self.spec = new.status, new.spec
        self.is_complete, self.is_failed = is_true(new, COMPLETE), is_true(new, FAILED)
        self.is_finished = self.is_complete or self.is_failed
        self.is_met, self.is_targeted = is_true(new, CRITERIA_MET), is_true(new, FAILURE_TARGET)

    def changes(self, *names: str) -> bool:
        """Return whether one of these fields or conditions changes."""
        return any(self._changes(name) for name in names)

    def _changes(self, name: str) -> bool:
        if name == "finished":
            return self.is_finished != (is_true(self.old, COMPLETE) or is_true(self.old, FAILED))
        if name[0].isupper():
            return is_true(self.old, name) != is_true(self.new, name)
        return not semantic_equal(getattr(self.old.status, name), getattr(self.status, name))


def is_true(job: Job, condition: str) -> bool:
    """Return whether a condition of a job is true."""
    return _has(job, condition, "True")


def _has(job: Job, condition: str, status: str) -> bool:
    return any(c.type == condition and c.status == status for c in job.status.conditions)


def validate_job_status(new: Job, old: Job) -> ErrorList:
    """Validate an update of a job's status."""
    change = JobChange(new, old)
    return (
        _validate_counts(change)
        + _validate_uncounted(change)
        + list(_contradictions(change))
        + list(_validate_times(change))
        + list(_validate_finished(change))
        + list(_validate_indexes(change))
        + list(_validate_transitions(change))
    )


def _validate_counts(change: JobChange) -> ErrorList:
    status = change.status
    found: ErrorList = []
    for name, count in (
        ("active", status.active),
        ("succeeded", status.succeeded),
        ("failed", status.failed),
        ("ready", status.ready),
        ("terminating", status.terminating),
    ):
        found += not_negative(count, STATUS.child(name))
    return found


def _validate_uncounted(change: JobChange) -> ErrorList:
    """Validate that no pod that is yet to be counted is named twice."""
    found: ErrorList = []
    pods = change.status.uncounted_terminated_pods or {}
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for position, uid in enumerate(pods.get(name) or ()):
            place = STATUS.child("uncountedTerminatedPods", name).index(position)
            if not uid:
                found.append(invalid(place, uid, "must not be empty"))
            elif uid in seen:
                found.append(duplicate(place, uid))
            seen.add(uid)
    return found


def _contradictions(change: JobChange) -> Iterable[FieldError]:
    """Yield the errors of conditions that exclude or need each other."""
    is_complete, is_failed = change.is_complete, change.is_failed
    is_met, is_targeted = change.is_met, change.is_targeted
    if is_complete and is_failed and change.changes(COMPLETE, FAILED):
        yield _wrong("cannot set Complete=True and Failed=true conditions")
    if is_complete and is_targeted and change.changes(COMPLETE, FAILURE_TARGET):
        yield _wrong("cannot set Complete=True and FailureTarget=true conditions")
    if is_failed and not is_targeted and change.changes(FAILED, "failed_indexes"):
        yield _wrong("cannot set Failed=True condition without the FailureTarget=true condition")
    if is_complete and not is_met and change.changes(COMPLETE, CRITERIA_MET):
        yield _wrong(
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        )
    if is_met and is_failed:
        yield _wrong("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if is_met and is_targeted:
        yield _wrong("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if change.spec.success_policy is not None and is_complete and not is_met:
        yield _wrong(
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        )


def _wrong(detail: str) -> FieldError:
    return invalid_whole(CONDITIONS, detail)


def _validate_times(change: JobChange) -> Iterable[FieldError]:
    start, completed = change.status.start_time, change.status.completion_time
    if change.changes(COMPLETE, "completion_time"):
        if completed is not None and not change.is_complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            yield invalid(COMPLETION_TIME, completed, detail)
        if completed is None and change.is_complete:
            yield required(COMPLETION_TIME, "completionTime is required for Complete jobs")
    is_early = start is not None and completed is not None and completed < start
    if is_early and change.changes("start_time", "completion_time"):
        yield invalid(COMPLETION_TIME, completed, "must be equal to or after `startTime`")


def _validate_finished(change: JobChange) -> Iterable[FieldError]:
    """Yield the errors of a job that has ended, but not all of it."""
    status, spec = change.status, change.spec
    ready = status.ready
    if ready is not None and ready > status.active and change.changes("ready", "active"):
        yield invalid(STATUS.child("ready"), ready, "cannot set more ready pods than active")
    if not change.is_finished:
        return
    if status.active > 0 and change.changes("finished", "active"):
        detail = "active>0 is invalid for finished job"
        yield invalid(STATUS.child("active"), status.active, detail)
    never_ran = spec.suspend is True and spec.completions == 0
    if status.start_time is None and change.changes("finished", "start_time") and not never_ran:
        yield required(STATUS.child("startTime"), "startTime is required for finished job")
    pods = status.uncounted_terminated_pods or {}
    if any(pods.values()) and change.changes("finished", "uncounted_terminated_pods"):
        path = STATUS.child("uncountedTerminatedPods")
        shown = {"Succeeded": pods.get("succeeded"), "Failed": pods.get("failed")}
        yield invalid(path, shown, "must be empty for finished job")
    if (status.terminating or 0) > 0 and change.changes("finished", "terminating"):
        detail = "terminating>0 is invalid for finished job"
        yield invalid(STATUS.child("terminating"), status.terminating, detail)


def _validate_transitions(change: JobChange) -> Iterable[FieldError]:
    """Yield the errors of what may never be taken back."""
    new, old, spec = change.status, change.old.status, change.spec
    for condition in (FAILED, COMPLETE, FAILURE_TARGET):
        if is_true(change.old, condition) and not is_true(change.new, condition):
            yield _wrong(f"cannot disable the terminal {condition}=True condition")
    if new.failed < old.failed:
        yield invalid(STATUS.child("failed"), new.failed, "cannot decrease the failed counter")
    can_shrink = spec.completion_mode == INDEXED and spec.completions == spec.parallelism
    if new.succeeded < old.succeeded and not can_shrink:
        detail = "cannot decrease the succeeded counter"
        yield invalid(STATUS.child("succeeded"), new.succeeded, detail)
    if new.completion_time and old.completion_time and change.changes("completion_time"):
        yield invalid(COMPLETION_TIME, new.completion_time, "field is immutable")
    is_resumed = is_true(change.old, SUSPENDED) and _has(change.new, SUSPENDED, "False")
    is_restarted = old.start_time is not None and change.changes("start_time")
    if is_restarted and not is_resumed and not spec.suspend:
        detail = "field is immutable for unsuspended job once set"
        yield invalid(STATUS.child("startTime"), new.start_time, detail)
    was_met = is_true(change.old, CRITERIA_MET)
    if was_met and not change.is_met:
        yield _wrong("cannot disable the SuccessCriteriaMet=True condition")
    if is_true(change.old, COMPLETE) and not was_met and change.is_met:
        yield _wrong(
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        )


# --- indexes: "1,3-5,7" ---------------------------------------------------------------------


def _validate_indexes(change: JobChange) -> Iterable[FieldError]:
    completed, failed = change.status.completed_indexes, change.status.failed_indexes
    completions, by_index = change.spec.completions, change.spec.backoff_limit_per_index
    path = STATUS.child("completedIndexes")
    if change.changes("completed_indexes"):
        if completions is not None:
            yield from _unreadable(completed, completions, path)
        if completed and change.spec.completion_mode != INDEXED:
            detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
            yield invalid(path, completed, detail)
    if failed is None:
        return
    path = STATUS.child("failedIndexes")
    if change.changes("failed_indexes"):
        if completions is not None and by_index is not None:
            yield from _unreadable(failed, completions, path)
        if by_index is None:
            detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            yield invalid(path, failed, detail)
    if completions is not None and change.changes("failed_indexes", "completed_indexes"):
        index = _common_index(_readable(completed, completions), _readable(failed, completions))
        if index is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {index}"
            yield invalid(path, failed, detail)


Interval = tuple[int, int]


def _unreadable(text: str, completions: int, path: Path) -> Iterable[FieldError]:
    """Yield the first error of a list of indexes."""
    last = -(2**63)
    for part in text.split(",", INTERVALS_MAX) if text else ():
        interval = _interval(part, completions)
        if not isinstance(interval, str) and last >= interval[0]:
            interval = f"non-increasing order, previous: {last}, current: {interval[0]}"
        if isinstance(interval, str):
            field = path.segment
            yield invalid(path, text, f"error parsing {field}: {interval}")
            return
        last = interval[1]


def _readable(text: str, completions: int) -> list[Interval]:
    parts = (_interval(part, completions) for part in text.split(",", INTERVALS_MAX))
    return [part for part in parts if not isinstance(part, str)]


def _interval(text: str, completions: int) -> Interval | str:
    """Return the first and last index of a part of a list, or what is wrong with it."""
    limits = text.split("-")
    if len(limits) > 2:
        return (
            f"the fragment {go_quote(text)} violates the requirement that an index interval can "
            "have at most two parts separated by '-'"
        )
    indexes = []
    for limit in limits:
        digits = limit.removeprefix("+")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= INDEX_DIGITS_MAX):
            return f"cannot convert string to integer for index: {go_quote(limit)}"
        if int(digits) >= completions:
            return f"too large index: {go_quote(limit)}"
        indexes.append(int(digits))
    first, last = indexes[0], indexes[-1]
    if len(indexes) > 1 and first >= last:
        return f"non-increasing order, previous: {first}, current: {last}"
    return first, last


def _common_index(completed: list[Interval], failed: list[Interval]) -> int | None:
    """Return the first index that is in both lists."""
    left, right = iter(completed), iter(failed)
    a, b = next(left, None), next(right, None)
    while a is not None and b is not None:
        if a[0] <= b[1] and b[0] <= a[1]:
            return max(a[0], b[0])
        if a[0] <= b[0]:
            a = next(left, None)
        else:
            b = next(right, None)
    return None
