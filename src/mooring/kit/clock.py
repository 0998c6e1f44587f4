"""Time as something that is passed in: the real one, and one that tests move by hand.

A program that waits asks its clock to be called later, or sleeps by it. With a `ManualClock`
nothing waits: `advance` moves the time from one sleeper to the next, in the order they are due.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

SETTLE_ROUNDS = 50  # how often all that can go on gets its turn, before time moves on
EPOCH = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Timer(Protocol):
    """Something that is to happen later, unless it is called off."""

    def cancel(self) -> None:
        """Call it off."""


class Clock(Protocol):
    """What time it is, and how to wait."""

    def now(self) -> datetime:
        """Return the date and time, in UTC; it may jump."""

    def monotonic(self) -> float:
        """Return seconds since some moment; it never goes back."""

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Have something called after a while, in the running event loop."""

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
        """Have something called after a while."""
        return asyncio.get_running_loop().call_later(delay_s, call)

    async def sleep(self, delay_s: float) -> None:
        """Wait."""
        await asyncio.sleep(delay_s)


REAL = RealClock()


class ManualTimer:
    """Something that happens when a `ManualClock` gets there."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Call it off."""
        self.call = None


class ManualClock:
    """A time that stands still until a test moves it."""

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
        """Have something called once the time is moved that far."""
        timer = ManualTimer(call)
        self._number += 1  # those due at the same time go in the order they were asked for
        heapq.heappush(self._timers, (self._elapsed_s + max(delay_s, 0), self._number, timer))
        return timer

    async def sleep(self, delay_s: float) -> None:
        """Wait until the time is moved that far."""
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
        """Set the date and time to another one, as somebody may do with a real clock."""
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
        """Move the time; whoever is due on the way goes on at its moment, and in order."""
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
    """Let everything go on that can go on without the time or the world outside."""
    for _ in range(SETTLE_ROUNDS):
        await asyncio.sleep(0)
