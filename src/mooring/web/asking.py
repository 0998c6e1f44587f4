"""Questions in worker threads: a few at a time, each user in turn, and each within its time.

A thread cannot be stopped. So what takes time has limits of its own, and whoever asks is answered
at the deadline; until the thread is done, it counts as busy.
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
EACH_MAX: Final = 4  # questions of one user, waiting ones included
DEADLINE_S: Final = 20.0


class Asking:
    """Answers questions beside the event loop."""

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
            future.exception()  # whoever asked may be gone

    def close(self) -> None:
        """Take no more questions."""
        self._pool.shutdown(wait=False, cancel_futures=True)
