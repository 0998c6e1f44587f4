"""Those who work on the keys of a queue, and never stop because of one.

A key whose work fails comes again after a delay that grows. Its cause is logged when it is new;
while it stays the same, nothing more is said.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

from mooring.kit.queue import QueueClosedError, WorkQueue

LOG = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

CAUSES_MAX = 10_000

# Works on a key; returns after how many seconds to look at it again, or None.
Handle = Callable[[K], Awaitable[float | None]]


async def run_workers(
    queue: WorkQueue[K],
    handle: Handle[K],
    *,
    name: str,
    count: int = 1,
    expected: type[Exception] | tuple[type[Exception], ...] = (),
) -> None:
    """Work on keys until the queue is closed or we are cancelled.

    Errors that are `expected` (a server that is away) are logged by their words, others with their
    traceback.
    """
    causes = _Causes(name, expected)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(count):
            tasks.create_task(_work(queue, handle, causes))


async def _work(queue: WorkQueue[K], handle: Handle[K], causes: _Causes) -> None:
    while True:
        try:
            key = await queue.take()
        except QueueClosedError:
            return
        try:
            after_s = await handle(key)
        except Exception as error:
            delay_s = queue.retry(key)
            causes.note(key, error, delay_s)
        else:
            queue.forget(key)
            causes.forget(key)
            if after_s is not None:
                queue.add_after(key, after_s)
        finally:
            queue.done(key)


class _Causes:
    """Why keys failed last, so that each cause is logged once."""

    def __init__(self, name: str, expected: type[Exception] | tuple[type[Exception], ...]) -> None:
        self._name = name
        self._expected = expected
        self._causes: OrderedDict[Hashable, str] = OrderedDict()

    def note(self, key: Hashable, error: Exception, delay_s: float) -> None:
        cause = f"{type(error).__name__}: {error}"
        if self._causes.get(key) == cause:
            return
        self._causes[key] = cause
        if len(self._causes) > CAUSES_MAX:
            self._causes.popitem(last=False)
        is_expected = isinstance(error, self._expected)
        LOG.warning(
            "%s: %s: %s; again in %.3g s",
            self._name,
            key,
            error if is_expected else cause,
            delay_s,
            exc_info=None if is_expected else error,
        )

    def forget(self, key: Hashable) -> None:
        self._causes.pop(key, None)
