"""What the writer is asked to do, with the futures of those who wait for it."""

from __future__ import annotations

from asyncio import Future
from typing import NamedTuple

from msgspec import Struct

from moorage.store.contract import KeyChange
from moorage.store.errors import StoreError
from moorage.store.sqlite.transactions import CreateKey, DeleteKey, UpdateKey, Write


class Compact(NamedTuple):
    """Drop the history up to a revision."""

    revision: int


class Expire(NamedTuple):
    """Delete expired keys, a bounded number."""


class Stop(NamedTuple):
    """Finish the jobs submitted before, and end."""


Job = Write | Compact | Expire | Stop
JobFuture = Future[KeyChange | None] | None  # None: nobody waits
JobResult = KeyChange | StoreError | None
JobAnswer = tuple[JobFuture, JobResult]


class WaitingJob(Struct, frozen=True):
    """A job, the future that waits for it, and the bytes that it writes."""

    job: Job
    future: JobFuture = None
    size: int = 0


def size_of(job: Job) -> int:
    """Return the bytes that a job writes."""
    match job:
        case CreateKey(key, value) | UpdateKey(key, value):
            return len(key) + len(value)
        case DeleteKey(key):
            return len(key)
        case _:
            return 0
