"""Time as an argument: the real clock, one that tests move by hand, and simulated time.

A program that waits sets a timer on its clock or sleeps by it. With a `ManualClock` nothing
waits: `advance` moves the time from one sleeper to the next, in the order they are due.

In a `SimulatedLoop`, the time of the event loop jumps. When no task can go on, it jumps to the next
timer. So hours pass in an instant, timers and sleeps keep their order, and the same steps have the
same history. Each turn of the loop takes a moment, as work does: later events have later times, and
a busy loop does not stop the time. Only work in threads (`asyncio.to_thread`) is waited for in real
time.

    asyncio.Runner(loop_factory=SimulatedLoop)
"""

from __future__ import annotations

import asyncio
import heapq
import selectors
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

TURN_S = 0.000_02  # of simulated time, for each turn of the loop
SETTLE_ROUNDS = 50  # turns of the event loop before time moves on
EPOCH = datetime(2026, 11, 15, 12, tzinfo=UTC)

R = TypeVar("R")


class Timer(Protocol):
    """A call that is scheduled for later."""

    def cancel(self) -> None:
        """Cancel the call."""


class Clock(Protocol):
    """The time, and how to wait."""

    def now(self) -> datetime:
        """Return the date and time, in UTC; it may jump."""

    def monotonic(self) -> float:
        """Return seconds since some moment; they never go back."""

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Call a function after a delay, in the running event loop."""

    async def sleep(self, delay_s: float) -> None:
        """Wait."""


class RealClock:
    """The time of this machine."""

    def now(self) -> datetime:
        """Return the date and time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since some moment."""
        return time.monotonic()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Call a function after a delay."""
        return asyncio.get_running_loop().call_later(delay_s, call)

    async def sleep(self, delay_s: float) -> None:
        """Wait."""
        await asyncio.sleep(delay_s)


REAL = RealClock()


class ManualTimer:
    """A call that a `ManualClock` makes when its time comes."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Cancel the call."""
        self.call = None


class ManualClock:
    """A clock that stops until a test moves it."""

    def __init__(self, start: datetime = EPOCH) -> None:
        self._start = start
        self._elapsed_s = 0.0
        self._jumped_s = 0.0
        self._number = 0
        self._timers: list[tuple[float, int, ManualTimer]] = []

    def now(self) -> datetime:
        """Return the date and time, in UTC."""
        return self._start + timedelta(seconds=self._elapsed_s + self._jumped_s)

    def monotonic(self) -> float:
        """Return seconds since the start."""
        return self._elapsed_s

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Call a function once a test has moved the time that far."""
        timer = ManualTimer(call)
        self._number += 1  # timers due at the same time fire in the order they were set
        heapq.heappush(self._timers, (self._elapsed_s + max(delay_s, 0), self._number, timer))
        return timer

    async def sleep(self, delay_s: float) -> None:
        """Wait until a test has moved the time that far."""
        awake: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not awake.done():
                awake.set_result(None)

        timer = self.call_later(delay_s, wake)
        try:
            await awake
        finally:
            timer.cancel()

    def jump(self, seconds: float) -> None:
        """Change the date and time without firing timers, as an administrator may."""
        self._jumped_s += seconds

    @property
    def waiting(self) -> int:
        """How many timers are set."""
        return sum(timer.call is not None for _, _, timer in self._timers)

    @property
    def next_s(self) -> float | None:
        """When the next timer is due, in seconds since the start; None if none is set."""
        while self._timers and self._timers[0][2].call is None:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def skip(self) -> bool:
        """Move the time to the next timer and call it; False if none is set."""
        if self.next_s is None:
            return False
        due, _, timer = heapq.heappop(self._timers)
        self._elapsed_s = max(self._elapsed_s, due)
        assert timer.call is not None
        timer.call()
        return True

    async def advance(self, seconds: float) -> None:
        """Move the time; timers due meanwhile fire at their moment and in order."""
        end = self._elapsed_s + seconds
        await settle()
        while self._timers and self._timers[0][0] <= end:
            due, _, timer = heapq.heappop(self._timers)
            if timer.call is None:
                continue
            self._elapsed_s = max(self._elapsed_s, due)
            timer.call()
            await settle()
        self._elapsed_s = end


async def settle() -> None:
    """Let every task run as far as it can without time passing or I/O."""
    for _ in range(SETTLE_ROUNDS):
        await asyncio.sleep(0)


# --- simulated time -------------------------------------------------------------------------------


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
