"""The writer: one thread, one connection, one commit for all waiting writes.

    event loop                          writer thread
    ----------                          -------------
    submit(write) ──► queue ──────────► take all waiting jobs, up to the bounds of a group
                                        BEGIN, apply each, update the state, COMMIT (one fsync)
    publish the changes, ◄───────────── deliver
    answer each caller                  then a step of expiry and of compaction, if necessary

While a commit waits for the disk, the next group gathers. A rejected write is answered after the
commit like the others, because the entry that it lost to is durable only then. A write is answered
after its change was published, so its caller finds it in every subscribed watch.

When a commit fails because the disk is full, the group is rolled back and rejected, and the next
may succeed. After any other failure of the disk nobody knows what it holds: the writer answers only
UnavailableError, and tries to find out.

    trouble   why the last commit failed; the writer looks for the end of it by itself
    fault     nothing is written before the database is opened again and found to be whole

The database is whole if it holds every answered change, all pages are written anew (a sync that
failed may have lost them, though they can be read), and a commit succeeds. Then what it holds
beyond that is published. A database that contradicts itself stays faulty until the store is opened
again.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

from moorage.store.contract import KeyChange
from moorage.store.errors import (
    ClosedError,
    FutureRevisionError,
    NoSpaceError,
    OverloadedError,
    StoreError,
)
from moorage.store.sqlite.disk import DatabaseFiles, probe
from moorage.store.sqlite.jobs import (
    Compact,
    Expire,
    Job,
    JobAnswer,
    JobFuture,
    JobResult,
    Stop,
    WaitingJob,
    size_of,
)
from moorage.store.sqlite.recovery import (
    WriterFault,
    commit_nothing,
    fault_of,
    open_again,
    read_missed,
)
from moorage.store.sqlite.transactions import (
    Write,
    due_keys,
    next_due_ms,
    read_state,
    sweep,
    write_state,
)
from moorage.store.sqlite.write_group import WriteGroup

GROUP_WRITES_MAX = 1000
GROUP_BYTES_MAX = 16 * 2**20
WAITING_JOBS_MAX = 20_000
WAITING_BYTES_MAX = 128 * 2**20
PAUSE_S_MIN = 0.05  # between checks of the clock, while a key is due
PAUSE_S_TROUBLE = 1.0  # before the writer looks whether the disk works again
PAUSE_S_MAX = 60.0  # until the writer notices a clock that was set forward

LOG = logging.getLogger(__name__)


class Writer:
    """Writes to the database; callers use `submit` in the event loop."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        database: Path,
        *,
        loop: AbstractEventLoop,
        publish: Callable[[Sequence[KeyChange]], None],
        clock: Callable[[], float],
    ) -> None:
        self.connection = connection
        self.trouble = ""  # why nothing can be written; set by the thread
        self.files = DatabaseFiles(database)
        self._database = database
        self._loop = loop
        self._publish = publish
        self._clock = clock
        self._queue: SimpleQueue[list[WaitingJob]] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        # Used by the event loop only:
        self._submitted: list[WaitingJob] = []  # not yet in the queue
        self._waiting_jobs = 0
        self._waiting_bytes = 0
        self._is_closed = False
        # Used by the thread only:
        self._state = read_state(connection)
        self._due_ms = next_due_ms(connection)  # no key expires before
        self._compactions: list[WaitingJob] = []  # whose sweep is not finished
        self._fault: WriterFault | None = None
        self._look_at_s = 0.0  # when to look whether the trouble has passed
        self._thread.start()

    # --- the event loop's side

    def submit(self, job: Job) -> Future[KeyChange | None]:
        """Submit a job; the future has its change once that is durable."""
        if self._is_closed:
            raise ClosedError
        future: Future[KeyChange | None] = self._loop.create_future()
        size = size_of(job)
        if isinstance(job, Stop):
            self._is_closed = True
        else:
            self._check_overload(size)
        self._waiting_jobs += 1
        self._waiting_bytes += size
        if not self._submitted:  # jobs of one turn of the loop go together
            self._loop.call_soon(self._hand_over)
        self._submitted.append(WaitingJob(job, future, size))
        return future

    def _hand_over(self) -> None:
        submitted, self._submitted = self._submitted, []
        self._queue.put(submitted)

    def _check_overload(self, size: int) -> None:
        full = self._waiting_jobs >= WAITING_JOBS_MAX
        if full or self._waiting_bytes + size > WAITING_BYTES_MAX:
            raise OverloadedError(f"{self._waiting_jobs} requests are waiting; try again later")

    def _answer(
        self, done: Sequence[WaitingJob], answers: Sequence[JobAnswer], changes: Sequence[KeyChange]
    ) -> None:
        """Publish the changes and answer the callers."""
        self._waiting_jobs -= len(done)
        self._waiting_bytes -= sum(job.size for job in done)
        self._publish(changes)
        for waiting, outcome in answers:
            _resolve(waiting, outcome)

    # --- the thread's side

    def _run(self) -> None:
        while True:
            jobs = self._take()
            if is_due := not self.trouble or time.monotonic() >= self._look_at_s:
                self._look_again()
            if jobs and isinstance(jobs[-1].job, Stop):
                self._commit(jobs[:-1])
                self._finish(jobs[-1])
                return
            self._commit(jobs)
            if is_due and self._fault is None:  # on a full disk, too: both make room
                self._expire()
                self._sweep()

    def _take(self) -> list[WaitingJob]:
        """Return waiting jobs, up to the bounds of a group; wait a while for the first."""
        try:
            jobs = self._queue.get(timeout=self._pause_s())
        except Empty:
            return []
        bytes_left = GROUP_BYTES_MAX - sum(job.size for job in jobs)
        while bytes_left > 0 and len(jobs) < GROUP_WRITES_MAX and not self._queue.empty():
            more = self._queue.get()
            jobs += more
            bytes_left -= sum(job.size for job in more)
        return jobs  # Stop is submitted last, so it can only be the last here.

    def _pause_s(self) -> float | None:
        """Return how long to wait for jobs at most."""
        if self.trouble:
            if self._fault is not None and not self._fault.may_pass:
                return None
            return max(self._look_at_s - time.monotonic(), 0.0)
        if self._state.swept < self._state.compacted:
            return 0
        if self._due_ms is None:
            return None
        left_s = self._due_ms / 1000 - self._clock()
        return min(max(left_s, PAUSE_S_MIN), PAUSE_S_MAX)

    def _commit(self, jobs: Sequence[WaitingJob]) -> None:
        """Do the jobs of a group in one transaction and answer them."""
        if self._fault is not None:
            self._reject(jobs, self._fault.error)
        elif jobs:
            compactions = len(self._compactions)
            changes: list[KeyChange] = []
            answers: list[JobAnswer] = []
            fault = self._transact(lambda: self._apply_all(jobs, changes, answers))
            if fault is not None:
                del self._compactions[compactions:]
                self._reject(jobs, fault)
            else:
                self._deliver(jobs, answers, changes)

    def _transact(self, work: Callable[[], None]) -> StoreError | None:
        """Run a function in one transaction; return the error if it was rolled back."""
        before = self._state
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            work()
            if self._state == before:
                self.connection.execute("ROLLBACK")  # nothing was written
            else:
                write_state(self.connection, self._state)
                self.connection.execute("COMMIT")
                self.files.check()
            if self._due_ms is not None and self._due_ms <= self._now_ms():
                self._due_ms = next_due_ms(self.connection)
        except Exception as error:  # whatever it is, the thread must go on and answer
            self._state = before
            return self._undo(error)
        return None

    def _apply_all(
        self, jobs: Sequence[WaitingJob], changes: list[KeyChange], answers: list[JobAnswer]
    ) -> None:
        group = WriteGroup(self.connection, self._now_ms(), self._due_ms)
        group.read(each.job.key for each in jobs if isinstance(each.job, Write))
        for job in jobs:
            try:
                match job.job:
                    case Compact(revision):
                        if self._mark_compacted(revision):
                            self._compactions.append(job)  # answered after the sweep
                            continue
                    case Expire():
                        group.write()  # what is due may be among it
                        due = due_keys(self.connection, self._now_ms())
                        group.read(each.key for each in due)
                        changes.extend(self._write(group, each) for each in due)
                    case Stop():
                        pass
                    case write:
                        changes.append(self._write(group, write))
                        answers.append((job.future, changes[-1]))
                        continue
                answers.append((job.future, None))
            except StoreError as error:
                answers.append((job.future, error))
        group.write()
        self._due_ms = group.due_ms

    def _write(self, group: WriteGroup, write: Write) -> KeyChange:
        revision = self._state.revision + 1
        change = group.apply(write, revision)
        self._state = self._state._replace(revision=revision)
        return change

    def _mark_compacted(self, revision: int) -> bool:
        """Set the compacted revision; return False if it is compacted already."""
        if revision > self._state.revision:
            raise FutureRevisionError(revision, self._state.revision)
        if revision <= self._state.compacted:
            return False
        self._state = self._state._replace(compacted=revision)
        return True

    def _expire(self) -> None:
        """Delete some expired keys, if there are any."""
        if self._due_ms is not None and self._due_ms <= self._now_ms():
            changes: list[KeyChange] = []
            if self._transact(lambda: self._apply_all([WaitingJob(Expire())], changes, [])) is None:
                self._deliver((), (), changes)

    def _sweep(self) -> None:
        """Do a step of compaction, if one is pending."""
        if self._state.swept < self._state.compacted:
            self._transact(self._sweep_step)
        if self._state.swept >= self._state.compacted and self._compactions:
            done, self._compactions = self._compactions, []
            self._deliver((), [(job.future, None) for job in done], ())

    def _sweep_step(self) -> None:
        self._state = sweep(self.connection, self._state)

    def _undo(self, error: Exception) -> StoreError:
        """Roll back the transaction; stop writing if the state of the disk is unknown."""
        with suppress(sqlite3.Error):
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        match getattr(error, "sqlite_errorname", None):
            case "SQLITE_FULL":
                self._note_trouble("the disk is full")
                return NoSpaceError(f"the disk is full: {error}")
            case "SQLITE_BUSY":  # the transaction did not begin
                return OverloadedError(f"another program holds the database: {error}")
        self._fault = fault_of(error, self._database.parent)
        self._note_trouble(str(self._fault.error))
        pending, self._compactions = self._compactions, []
        self._deliver((), [(job.future, self._fault.error) for job in pending], ())
        return self._fault.error

    def _note_trouble(self, text: str) -> None:
        if text and text != self.trouble:
            LOG.error("%s: %s; writes are refused", self._database, text)
        elif self.trouble and not text:
            LOG.warning("%s: can be written again", self._database)
        if not self.trouble:
            self._look_at_s = time.monotonic()
        self.trouble = text

    def _look_again(self) -> None:
        """Find out whether a trouble has passed; if so, go on with what the database holds."""
        if not self.trouble:
            return
        self._look_at_s = time.monotonic() + PAUSE_S_TROUBLE
        fault = self._fault
        if fault is not None and not fault.may_pass:
            return
        try:
            self.files.check()
            probe(self._database.parent)
            if fault is not None:
                self.files.forget_log()
                self.connection = open_again(self.connection, self._database, self._state)
            commit_nothing(self.connection)
            self.files.check()
            state = read_state(self.connection)
            missed = read_missed(self.connection, self._state.revision, state.revision)
            due_ms = next_due_ms(self.connection)
        except OSError:
            return  # of the probe; the text that is known says enough
        except (sqlite3.Error, StoreError) as error:
            self._undo(error)
            return
        self._state, self._due_ms, self._fault = state, due_ms, None
        self._note_trouble("")
        self._deliver((), (), missed)

    def _reject(self, jobs: Sequence[WaitingJob], fault: StoreError) -> None:
        self._deliver(jobs, [(job.future, fault) for job in jobs], ())

    def _finish(self, stop: WaitingJob) -> None:
        pending: list[JobAnswer] = [(job.future, ClosedError()) for job in self._compactions]
        self._deliver([stop], [*pending, (stop.future, None)], ())

    def _deliver(
        self, done: Sequence[WaitingJob], answers: Sequence[JobAnswer], changes: Sequence[KeyChange]
    ) -> None:
        with suppress(RuntimeError):  # The loop is closed, so nobody waits.
            self._loop.call_soon_threadsafe(self._answer, done, answers, changes)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _resolve(waiting: JobFuture, outcome: JobResult) -> None:
    if waiting is None or waiting.done():  # done: the caller was cancelled
        return
    if isinstance(outcome, StoreError):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)
