"""The writer: one thread, one connection, one commit for all writes that wait.

    event loop                          writer thread
    ----------                          -------------
    submit(write) ──► queue ──────────► take all that wait, up to the bounds of a group
                                        BEGIN, apply each, note the state, COMMIT (one fsync)
    publish the changes, ◄───────────── deliver
    answer each writer                  then a step of expiry and of compaction, if there is need

While a commit waits for the disk, the next group gathers. A write that is refused is answered
like the others, after the commit: what it was refused for is durable by then. A write is answered
after its change was published, so whoever was answered finds it in every watch that follows.

When a commit fails for lack of room, the group is undone and refused and the next may succeed.
When it fails otherwise nobody knows what the disk holds. Then the writer answers nothing more but
UnavailableError, until the store is opened anew.
"""

from __future__ import annotations

import sqlite3
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

from mooring.store.contract import Change
from mooring.store.errors import (
    ClosedError,
    FutureRevisionError,
    NoRoomError,
    OverloadedError,
    StoreError,
    UnavailableError,
)
from mooring.store.sqlite.jobs import Answer, Compact, Expire, Job, Stop, Ticket, answer
from mooring.store.sqlite.reads import read_state
from mooring.store.sqlite.writes import Write, apply, due_keys, next_due_ms, sweep, write_state

GROUP_WRITES_MAX = 1000
GROUP_BYTES_MAX = 16 * 2**20
WAITING_JOBS_MAX = 20_000
WAITING_BYTES_MAX = 128 * 2**20
PAUSE_S_MIN = 0.05  # between looks at the clock, while a key is due
PAUSE_S_STALLED = 1.0  # before a step of a sweep that failed is done again
PAUSE_S_MAX = 60.0  # a clock that was set forward is noticed within that


class Writer:
    """All that writes to the database; `submit` is called in the event loop."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        loop: AbstractEventLoop,
        publish: Callable[[Sequence[Change]], None],
        clock: Callable[[], float],
    ) -> None:
        self._connection = connection
        self._loop = loop
        self._publish = publish
        self._clock = clock
        self._queue: SimpleQueue[list[Ticket]] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        # The event loop's own:
        self._submitted: list[Ticket] = []  # not handed over yet
        self._waiting_jobs = 0
        self._waiting_bytes = 0
        self._is_closed = False
        # The thread's own:
        self._state = read_state(connection)
        self._due_ms = next_due_ms(connection)
        self._compactions: list[Ticket] = []  # whose sweep is not done
        self._is_stalled = False  # the last step of a sweep failed
        self._fault: UnavailableError | None = None
        self._thread.start()

    # --- the event loop's side

    def submit(self, job: Job) -> Future[Change | None]:
        """Have a job done; the future has its change once that is durable."""
        if self._is_closed:
            raise ClosedError
        future: Future[Change | None] = self._loop.create_future()
        ticket = Ticket(job, future)
        if not isinstance(job, Stop):
            self._check_room(ticket.size)
        self._is_closed = isinstance(job, Stop)
        self._waiting_jobs += 1
        self._waiting_bytes += ticket.size
        if not self._submitted:  # What comes in the same turn of the loop is handed over with it.
            self._loop.call_soon(self._hand_over)
        self._submitted.append(ticket)
        return future

    def _hand_over(self) -> None:
        submitted, self._submitted = self._submitted, []
        self._queue.put(submitted)

    def _check_room(self, size: int) -> None:
        full = self._waiting_jobs >= WAITING_JOBS_MAX
        if full or self._waiting_bytes + size > WAITING_BYTES_MAX:
            raise OverloadedError(f"{self._waiting_jobs} requests are waiting; try again later")

    def _answer(
        self, done: Sequence[Ticket], answers: Sequence[Answer], changes: Sequence[Change]
    ) -> None:
        """Publish what was written and tell whoever waits."""
        self._waiting_jobs -= len(done)
        self._waiting_bytes -= sum(ticket.size for ticket in done)
        self._publish(changes)
        for waiting, outcome in answers:
            answer(waiting, outcome)

    # --- the thread's side

    def _run(self) -> None:
        while True:
            tickets = self._take()
            if tickets and isinstance(tickets[-1].job, Stop):
                self._commit(tickets[:-1])
                self._finish(tickets[-1])
                return
            self._commit(tickets)
            self._expire()
            self._sweep()

    def _take(self) -> list[Ticket]:
        """Return what waits, up to the bounds of a group; wait a while for the first."""
        try:
            tickets = self._queue.get(timeout=self._pause_s())
        except Empty:
            return []
        bytes_left = GROUP_BYTES_MAX - sum(ticket.size for ticket in tickets)
        while bytes_left > 0 and len(tickets) < GROUP_WRITES_MAX and not self._queue.empty():
            more = self._queue.get()
            tickets += more
            bytes_left -= sum(ticket.size for ticket in more)
        return tickets  # Stop is the last that is ever submitted, so it can only be the last here.

    def _pause_s(self) -> float | None:
        """Return how long to wait for work at most."""
        if self._fault is not None:
            return None
        if self._state.swept < self._state.compacted:
            return PAUSE_S_STALLED if self._is_stalled else 0
        if self._due_ms is None:
            return None
        left_s = self._due_ms / 1000 - self._clock()
        return min(max(left_s, PAUSE_S_MIN), PAUSE_S_MAX)

    def _commit(self, tickets: Sequence[Ticket]) -> None:
        """Do the jobs of a group in one transaction, and answer them."""
        if self._fault is not None:
            self._refuse(tickets, self._fault)
        elif tickets:
            compactions = len(self._compactions)
            changes: list[Change] = []
            answers: list[Answer] = []
            fault = self._transact(lambda: self._apply_all(tickets, changes, answers))
            if fault is not None:
                del self._compactions[compactions:]
                self._refuse(tickets, fault)
            else:
                self._deliver(tickets, answers, changes)

    def _transact(self, work: Callable[[], None]) -> StoreError | None:
        """Do some work in one transaction; return why it was undone, if it was."""
        before = self._state
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            work()
            if self._state == before:
                self._connection.execute("ROLLBACK")  # nothing was written
            else:
                write_state(self._connection, self._state)
                self._connection.execute("COMMIT")
            self._due_ms = next_due_ms(self._connection)
        except Exception as error:  # Whatever it was: the thread goes on, and answers.
            self._state = before
            return self._undo(error)
        return None

    def _apply_all(
        self, tickets: Sequence[Ticket], changes: list[Change], answers: list[Answer]
    ) -> None:
        for ticket in tickets:
            try:
                match ticket.job:
                    case Compact(revision):
                        if self._mark_compacted(revision):
                            self._compactions.append(ticket)  # answered when it is swept
                            continue
                    case Expire():
                        due = due_keys(self._connection, self._now_ms())
                        changes.extend(map(self._write, due))
                    case Stop():
                        pass
                    case write:
                        changes.append(self._write(write))
                        answers.append((ticket.future, changes[-1]))
                        continue
                answers.append((ticket.future, None))
            except StoreError as refusal:
                answers.append((ticket.future, refusal))

    def _write(self, write: Write) -> Change:
        revision = self._state.revision + 1
        change = apply(self._connection, write, revision, self._now_ms())
        self._state = self._state._replace(revision=revision)
        return change

    def _mark_compacted(self, revision: int) -> bool:
        """Say that changes up to a revision may go; return whether that is news."""
        if revision > self._state.revision:
            raise FutureRevisionError(revision, self._state.revision)
        if revision <= self._state.compacted:
            return False
        self._state = self._state._replace(compacted=revision)
        return True

    def _expire(self) -> None:
        """Delete some keys whose time is over, if there are any."""
        if self._due_ms is not None and self._due_ms <= self._now_ms():
            changes: list[Change] = []
            if (
                self._fault is None
                and self._transact(lambda: self._apply_all([Ticket(Expire())], changes, [])) is None
            ):
                self._deliver((), (), changes)

    def _sweep(self) -> None:
        """Do a step of compaction, if one is to be done."""
        if self._fault is None and self._state.swept < self._state.compacted:
            self._is_stalled = self._transact(self._sweep_step) is not None
        if self._state.swept >= self._state.compacted and self._compactions:
            done, self._compactions = self._compactions, []
            self._deliver((), [(ticket.future, None) for ticket in done], ())

    def _sweep_step(self) -> None:
        self._state = sweep(self._connection, self._state)

    def _undo(self, error: Exception) -> StoreError:
        """Go back to before the transaction; if nobody knows what the disk holds, stop."""
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        match getattr(error, "sqlite_errorname", None):
            case "SQLITE_FULL":
                return NoRoomError(f"the disk is full: {error}")
            case "SQLITE_BUSY":  # nothing was begun
                return OverloadedError(f"another program holds the database: {error}")
        self._fault = UnavailableError(f"writing failed, open the store anew: {error}")
        pending, self._compactions = self._compactions, []
        self._deliver((), [(ticket.future, self._fault) for ticket in pending], ())
        return self._fault

    def _refuse(self, tickets: Sequence[Ticket], fault: StoreError) -> None:
        self._deliver(tickets, [(ticket.future, fault) for ticket in tickets], ())

    def _finish(self, stop: Ticket) -> None:
        pending: list[Answer] = [(ticket.future, ClosedError()) for ticket in self._compactions]
        self._deliver([stop], [*pending, (stop.future, None)], ())

    def _deliver(
        self, done: Sequence[Ticket], answers: Sequence[Answer], changes: Sequence[Change]
    ) -> None:
        with suppress(RuntimeError):  # The loop is gone, and with it all who could wait.
            self._loop.call_soon_threadsafe(self._answer, done, answers, changes)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)
