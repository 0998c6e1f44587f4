"""Workers go on, whatever happens with one key."""

from __future__ import annotations

import asyncio

import pytest

from mooring.kit.backoff import Backoff
from mooring.kit.clock import ManualClock, settle
from mooring.kit.queue import WorkQueue
from mooring.kit.workers import run_workers


def test_a_key_that_fails_comes_again_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        clock = ManualClock()
        queue: WorkQueue[str] = WorkQueue(clock=clock, backoff=Backoff(first_s=1))
        worked: list[tuple[str, float]] = []

        async def handle(key: str) -> float | None:
            worked.append((key, clock.monotonic()))
            if key == "bad" and clock.monotonic() < 5:
                raise OSError("it is away")
            return 100 if key == "again" else None

        working = asyncio.create_task(
            run_workers(queue, handle, name="test", count=2, expected=OSError)
        )
        for key in ("bad", "good", "again"):
            queue.add(key)
        await clock.advance(120)
        assert [at for key, at in worked if key == "bad"] == [0, 1, 3, 7]
        assert [at for key, at in worked if key == "again"] == [0, 100]
        queue.close()
        await settle()
        assert working.done()

    asyncio.run(run())
    assert caplog.text.count("it is away") == 1
    assert "Traceback" not in caplog.text


def test_an_error_nobody_expected_is_logged_with_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        queue: WorkQueue[str] = WorkQueue(clock=ManualClock())

        async def handle(key: str) -> None:
            raise ValueError(f"a bug with {key}")

        working = asyncio.create_task(run_workers(queue, handle, name="test"))
        queue.add("a")
        await settle()
        queue.close()
        await settle()
        assert working.done()

    asyncio.run(run())
    assert "a bug with a" in caplog.text
    assert "Traceback" in caplog.text
