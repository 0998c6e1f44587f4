"""Runs questions in worker threads: a few at a time, users in turn, each with a deadline.

A user has one thread at a time, so that somebody else's next question has another one. A question
ends at its next checkpoint when nobody waits any more: at the deadline, or when the client is gone.
Until the thread is done, it counts as busy. A question whose turn has not come by then is not asked
any more.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, Final, TypeVar

from moorage.apiserver.worker_threads import Turns
from moorage.kit.checkpoints import ending_when
from moorage.web.errors import BusyError, DeadlineError

T = TypeVar("T")
THREADS: Final = 2
WAITING_MAX: Final = 32
EACH_MAX: Final = 4  # of one user, including waiting questions
DEADLINE_S: Final = 20.0


class Asking:
    """Answers questions outside the event loop."""

    def __init__(self, *, deadline_s: float = DEADLINE_S, threads: int = THREADS) -> None:
        self._deadline_s = deadline_s
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="page")
        self._turns = Turns(threads)
        self._asked: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def busy(self) -> int:
        """How many questions wait or are under way."""
        return self._asked.total()

    async def answer(
        self,
        user: str,
        question: Callable[[], T],
        gone: Callable[[], Awaitable[object]] | None = None,
    ) -> T:
        """Return the answer to a question, or raise BusyError or DeadlineError.

        `gone` returns when the client is gone; then nobody waits for the answer.
        """
        if self._asked[user] >= EACH_MAX or self._asked.total() >= WAITING_MAX:
            raise BusyError("Too many questions are in progress; try again in a moment.")
        self._asked[user] += 1
        begun, unwanted = asyncio.Event(), Event()

        def ask() -> T:
            with ending_when(unwanted):
                return question()

        task = asyncio.create_task(self._run(user, ask, begun))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._done(user, done))
        left = None if gone is None else asyncio.ensure_future(gone())
        waited: set[asyncio.Future[Any]] = {task} if left is None else {task, left}
        try:
            await asyncio.wait(
                waited, timeout=self._deadline_s, return_when=asyncio.FIRST_COMPLETED
            )
            if task.done():
                return task.result()
            if left is not None and left.done():
                raise DeadlineError("The client is gone.")
            raise DeadlineError(f"No answer within {self._deadline_s:g} s.")
        finally:
            unwanted.set()
            if left is not None:
                left.cancel()
            if not begun.is_set():
                task.cancel()
            # An error has this frame in its traceback, and the task has the error.
            del task, waited

    async def _run(self, user: str, ask: Callable[[], T], begun: asyncio.Event) -> T:
        async with self._turns.turn(user):
            begun.set()
            return await asyncio.get_running_loop().run_in_executor(self._pool, ask)

    def _done(self, user: str, task: asyncio.Task[T]) -> None:
        self._tasks.discard(task)
        self._asked[user] -= 1
        if not self._asked[user]:
            del self._asked[user]
        if not task.cancelled():
            task.exception()  # whoever asked may be gone

    def close(self) -> None:
        """Take no more questions, and end those under way."""
        for each in self._tasks:
            each.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)
