"""What the writer is given to do, and the answers it gives."""

from __future__ import annotations

from asyncio import Future
from typing import NamedTuple

from mooring.store.contract import Change
from mooring.store.errors import StoreError
from mooring.store.sqlite.writes import Create, Delete, Update, Write


class Compact(NamedTuple):
    """Forget what happened up to a revision."""

    revision: int


class Expire(NamedTuple):
    """Delete the keys whose time is over, a bounded number."""


class Stop(NamedTuple):
    """Finish what was submitted before, and end."""


Job = Write | Compact | Expire | Stop
Waiting = Future[Change | None] | None  # None: nobody waits
Outcome = Change | StoreError | None
Answer = tuple[Waiting, Outcome]


class Ticket(NamedTuple):
    """A job and who waits for it."""

    job: Job
    future: Waiting = None

    @property
    def size(self) -> int:
        """Return how many bytes the job brings."""
        match self.job:
            case Create(key, value) | Update(key, value):
                return len(key) + len(value)
            case Delete(key):
                return len(key)
            case _:
                return 0


def answer(waiting: Waiting, outcome: Outcome) -> None:
    """Tell whoever waits what came of it; a caller that was cancelled waits no longer."""
    if waiting is None or waiting.done():
        return
    if isinstance(outcome, StoreError):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)
