"""Jobs that are over go after the time that they set themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import ClassVar

from mooring.api.batch import Job
from mooring.api.timestamp import Timestamp
from mooring.client.objects import Key, Objects
from mooring.client.writes import Delete, LookAgain, Target
from mooring.controllers.conditions import is_true
from mooring.controllers.controller import Answers, Ask, Controller, Step

ENDS = ("Complete", "Failed")


class FinishedJobs(Controller):
    """Deletes jobs that have been over for long enough."""

    name: ClassVar[str] = "ttl-after-finished-controller"
    kinds = (Job,)

    def plan(self, objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterable[Step]:
        """Give the deletion of a job, or when to look at it again."""
        return plan(objects, key, now, answers)


def is_finished(job: Job) -> bool:
    """Tell whether a job has come to its end."""
    return any(is_true(job.status.conditions, kind) for kind in ENDS)


def finished_at(job: Job) -> Timestamp | None:
    """Return when a job came to its end, if it did and says so."""
    for condition in job.status.conditions:
        if condition.type in ENDS and condition.status == "True":
            return condition.last_transition_time
    return None


def plan(objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterator[Step]:
    """Give the deletion of a job; a fresh look decides, for its time may just have changed."""
    job = objects.find(Job, *key)
    left_s = None if job is None else _left_s(job, now)
    ask = Ask(Job, *key)
    if left_s is None:
        return
    if left_s > 0:
        yield LookAgain(key, left_s)
    elif ask not in answers:
        yield ask
    elif (fresh := answers[ask]) is not None:
        left_s = _left_s(fresh, now)
        if left_s is not None and left_s <= 0:
            yield Delete(Target.of(fresh), propagation="Foreground")


def _left_s(job: Job, now: Timestamp) -> float | None:
    kept_s, end = job.spec.ttl_seconds_after_finished, finished_at(job)
    if kept_s is None or end is None or job.metadata.deletion_timestamp is not None:
        return None
    return (end.instant + timedelta(seconds=kept_s) - now.instant).total_seconds()
