"""Runs questions in worker threads: a few at a time, users in turn, each with a deadline.

Threads cannot be stopped. So long computations have limits of their own, and users get an error at
the deadline; the thread counts as busy until it is done.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from mooring.web.errors import BusyError, DeadlineError

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
        self._asked: Counter[str] = Counter()

    async def answer(self, user: str, question: Callable[[], T]) -> T:
        """Return the answer to a question, or raise BusyError or DeadlineError."""
        if self._asked[user] >= EACH_MAX or self._asked.total() >= WAITING_MAX:
            raise BusyError("Too many questions are in progress; try again in a moment.")
        self._asked[user] += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, question)
        future.add_done_callback(lambda done: self._done(user, done))
        try:
            async with asyncio.timeout(self._deadline_s):
                return await asyncio.shield(future)
        except TimeoutError:
            text = f"No answer within {self._deadline_s:g} s."
            raise DeadlineError(text) from None

    def _done(self, user: str, future: asyncio.Future[T]) -> None:
        self._asked[user] -= 1
        if not self._asked[user]:
            del self._asked[user]
        if not future.cancelled():
            future.exception()  # the user may have left

    def close(self) -> None:
        """Accept no more questions."""
        self._pool.shutdown(wait=False, cancel_futures=True)
