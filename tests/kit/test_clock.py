"""Time in tests moves only when a test advances it, and everything happens in order."""

from __future__ import annotations

import asyncio

from moorage.kit.clock import EPOCH, ManualClock, RealClock


def test_sleepers_wake_in_the_order_they_are_due() -> None:
    async def run() -> None:
        clock = ManualClock()
        woken: list[tuple[str, float]] = []

        async def sleep(name: str, delays: list[float]) -> None:
            for delay in delays:
                await clock.sleep(delay)
                woken.append((name, clock.monotonic()))

        tasks = [
            asyncio.create_task(sleep("a", [3, 1])),
            asyncio.create_task(sleep("b", [1, 1, 1.5])),
        ]
        await clock.advance(2.5)
        assert woken == [("b", 1), ("b", 2)]
        await clock.advance(10)
        await asyncio.gather(*tasks)
        assert woken[2:] == [("a", 3), ("b", 3.5), ("a", 4)]
        assert (clock.now() - EPOCH).total_seconds() == 12.5

    asyncio.run(run())


def test_what_is_called_off_does_not_happen() -> None:
    async def run() -> None:
        clock = ManualClock()
        happened: list[str] = []
        clock.call_later(1, lambda: happened.append("a")).cancel()
        clock.call_later(2, lambda: happened.append("b"))
        assert clock.waiting == 1
        await clock.advance(5)
        assert happened == ["b"]

    asyncio.run(run())


def test_a_date_that_jumps_moves_no_sleeper() -> None:
    clock = ManualClock()
    clock.jump(-3600)
    assert clock.monotonic() == 0
    assert clock.now() < EPOCH


def test_the_real_clock_is_the_machines() -> None:
    async def run() -> None:
        clock = RealClock()
        called = asyncio.Event()
        clock.call_later(0, called.set)
        await clock.sleep(0)
        await asyncio.wait_for(called.wait(), 5)
        assert clock.now().tzinfo is not None
        assert clock.monotonic() <= clock.monotonic()

    asyncio.run(run())
