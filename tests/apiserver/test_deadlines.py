"""Requests that take too long are cancelled, with one timer for all."""

from __future__ import annotations

import asyncio

import pytest

from moorage.apiserver.http.deadlines import Deadlines

LIMIT_S = 0.01


def test_a_late_block_times_out_and_others_go_on() -> None:
    async def run() -> list[str]:
        deadlines = Deadlines(LIMIT_S)
        told: list[str] = []

        async def late() -> None:
            try:
                with deadlines.begin():
                    await asyncio.Event().wait()
            except TimeoutError:
                told.append("late")

        async def quick() -> None:
            with deadlines.begin():
                await asyncio.sleep(0)
            told.append("quick")

        await asyncio.gather(late(), quick(), late())
        with deadlines.begin():  # after the first timer
            await asyncio.sleep(0)
        assert not len(deadlines)
        return told

    assert asyncio.run(run()) == ["quick", "late", "late"]


def test_a_cancelled_block_stays_cancelled() -> None:
    async def run() -> None:
        deadlines = Deadlines(60.0)

        async def waiting() -> None:
            with deadlines.begin():
                await asyncio.Event().wait()

        task = asyncio.create_task(waiting())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not len(deadlines)

    asyncio.run(run())


def test_many_blocks_have_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> int:
        loop, timers = asyncio.get_running_loop(), 0
        call_later = loop.call_later

        def counted(*given: object) -> object:
            nonlocal timers
            timers += 1
            return call_later(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(loop, "call_later", counted)
        deadlines = Deadlines(60.0)
        for _ in range(100):
            with deadlines.begin():
                pass
        return timers

    assert asyncio.run(run()) == 1
