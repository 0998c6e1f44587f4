"""In a simulated event loop hours pass in no time, and in order."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from moorage.kit.clock import LoopClock, run_simulated

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_what_waits_goes_on_in_the_order_it_is_due() -> None:
    async def run() -> list[str]:
        clock, woken = LoopClock(START), list[str]()

        async def sleep(name: str, delay_s: float) -> None:
            await clock.sleep(delay_s)
            woken.append(name)

        clock.call_later(5400, lambda: woken.append("timer"))
        await asyncio.gather(sleep("late", 7200), sleep("early", 3600))
        assert timedelta(hours=2) <= clock.now() - START < timedelta(hours=2, seconds=1)
        return woken

    began = time.monotonic()
    assert run_simulated(run()) == ["early", "timer", "late"]
    assert time.monotonic() - began < 60


def test_timeouts_end_what_takes_too_long() -> None:
    async def run() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(86_400):
                await asyncio.sleep(100_000)

    run_simulated(run())


def test_a_loop_that_never_rests_does_not_stop_the_time() -> None:
    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    async def run() -> None:
        spinning = asyncio.create_task(spin())
        await asyncio.sleep(0.1)
        spinning.cancel()

    run_simulated(run())


def test_the_time_stands_still_while_a_thread_works() -> None:
    async def run() -> str:
        timer = asyncio.create_task(asyncio.sleep(0.5, "timer"))
        thread = asyncio.create_task(asyncio.to_thread(lambda: "thread"))
        done, _ = await asyncio.wait({timer, thread}, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()

    assert run_simulated(run()) == "thread"


def test_the_time_stands_still_while_threads_are_waited_for_at_the_end() -> None:
    working, is_enough = threading.Event(), threading.Event()

    def work() -> None:
        working.set()
        is_enough.wait(60)

    async def run() -> float:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(asyncio.to_thread(work))
        await asyncio.to_thread(working.wait)
        task.cancel()  # the thread works on
        threading.Timer(0.05, is_enough.set).start()
        async with asyncio.timeout(300):  # as asyncio.Runner does from Python 3.13 on
            await loop.shutdown_default_executor()
        return loop.time()

    assert run_simulated(run()) < 1
