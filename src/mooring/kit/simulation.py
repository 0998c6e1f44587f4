"""An event loop whose time jumps, so that nobody waits, and its clock.

When no task can go on, the loop's time jumps to the next timer. So hours pass in an instant, timers
and sleeps keep their order, and the same steps have the same history. Each turn of the loop takes
a moment, as work does: later events have later times, and a busy loop does not stop the time.

    asyncio.Runner(loop_factory=SimulatedLoop)

Only work in threads (`asyncio.to_thread`) is waited for in real time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from mooring.kit.clock import Timer

TURN_S = 0.000_02

R = TypeVar("R")


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop that does not wait."""

    def __init__(self) -> None:
        self._elapsed_s = 0.0
        self._in_threads = 0
        super().__init__(_Selector(self))

    def time(self) -> float:
        """Return the loop's time, in seconds since it began."""
        return self._elapsed_s

    def pass_time(self, timeout_s: float | None) -> float | None:
        """Move the time instead of waiting; return how long to wait in real time."""
        if timeout_s is None or (timeout_s > 0 and self._in_threads):
            return None if self._in_threads else timeout_s
        self._elapsed_s += max(timeout_s, TURN_S)
        return 0

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., R], *args: Any
    ) -> asyncio.Future[R]:
        """Run a function in a thread; the time stops meanwhile."""
        future: asyncio.Future[R] = super().run_in_executor(executor, func, *args)
        self._in_threads += 1
        future.add_done_callback(self._end_thread)
        return future

    async def shutdown_default_executor(self, *timeout: float | None) -> None:
        """Wait for the threads in real time: asyncio's timeout is in the loop's time."""
        self._in_threads += 1
        try:
            await super().shutdown_default_executor(*timeout)
        finally:
            self._in_threads -= 1

    def _end_thread(self, _: asyncio.Future[Any]) -> None:
        self._in_threads -= 1


class _Selector(selectors.DefaultSelector):  # type: ignore[misc,valid-type,unused-ignore]
    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(self._loop.pass_time(timeout))


class LoopClock:
    """The time of the running event loop, as a clock."""

    def __init__(self, start: datetime | None = None) -> None:
        self._start = start or datetime.now(UTC)

    def now(self) -> datetime:
        """Return the date and time, in UTC."""
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Return seconds since the loop began."""
        return asyncio.get_running_loop().time()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Call a function after a delay."""
        return asyncio.get_running_loop().call_later(delay_s, call)

    async def sleep(self, delay_s: float) -> None:
        """Wait."""
        await asyncio.sleep(delay_s)


def run_simulated(main: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine in simulated time and return its result."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)
