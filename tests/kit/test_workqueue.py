"""Work queues: each key once, one worker per key, retries of failures, nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.kit.backoff import Backoff
from moorage.kit.clock import ManualClock, settle
from moorage.kit.workqueue import QueueClosedError, WorkQueue


def play(
    scenario: Callable[[WorkQueue[str], ManualClock], Awaitable[None]], **options: Any
) -> None:
    async def run() -> None:
        clock = ManualClock()
        options.setdefault("backoff", Backoff(first_s=1, longest_s=60))
        await scenario(WorkQueue(clock=clock, **options), clock)

    asyncio.run(run())


def test_a_key_is_ready_once() -> None:
    async def scenario(queue: WorkQueue[str], _: ManualClock) -> None:
        for key in "abab":
            assert queue.add(key)
        assert [await queue.get(), await queue.get()] == ["a", "b"]
        assert queue.take_now() is None

    play(scenario)


def test_a_key_that_is_processing_is_not_taken_again() -> None:
    async def scenario(queue: WorkQueue[str], _: ManualClock) -> None:
        queue.add("a")
        assert await queue.get() == "a"
        queue.add("a")
        queue.add("a")
        assert queue.take_now() is None
        queue.done("a")
        assert queue.take_now() == "a"
        queue.done("a")
        assert len(queue) == 0

    play(scenario)


def test_a_delayed_key_comes_at_its_earliest_time() -> None:
    async def scenario(queue: WorkQueue[str], clock: ManualClock) -> None:
        queue.add_after("a", 10)
        queue.add_after("a", 5)
        queue.add_after("a", 7)
        queue.add_after("b", 6)
        await clock.advance(4.9)
        assert queue.depth == 0
        await clock.advance(1.2)
        assert [queue.take_now(), queue.take_now()] == ["a", "b"]
        queue.done("a")
        await clock.advance(20)
        assert queue.take_now() is None

    play(scenario)


def test_failures_make_a_key_wait_longer() -> None:
    async def scenario(queue: WorkQueue[str], clock: ManualClock) -> None:
        delays = []
        queue.add("a")
        for _ in range(4):
            assert await queue.get() == "a"
            delays.append(queue.add_rate_limited("a"))
            queue.done("a")
            await clock.advance(delays[-1])
        assert delays == [1, 2, 4, 8]
        queue.forget("a")
        assert queue.failures("a") == 0
        assert queue.add_rate_limited("a") == 1

    play(scenario)


def test_workers_wait_and_each_gets_one() -> None:
    async def scenario(queue: WorkQueue[str], _: ManualClock) -> None:
        workers = [asyncio.create_task(queue.get()) for _ in range(3)]
        await settle()
        workers[0].cancel()
        queue.add("a")
        queue.add("b")
        assert {await workers[1], await workers[2]} == {"a", "b"}

    play(scenario)


def test_a_worker_that_goes_leaves_its_key_to_others() -> None:
    async def scenario(queue: WorkQueue[str], _: ManualClock) -> None:
        first, second = (asyncio.create_task(queue.get()) for _ in range(2))
        await settle()
        queue.add("a")
        first.cancel()  # it was woken already
        assert await second == "a"

    play(scenario)


def test_a_closed_queue_ends_its_workers() -> None:
    async def scenario(queue: WorkQueue[str], _: ManualClock) -> None:
        worker = asyncio.create_task(queue.get())
        await settle()
        queue.close()
        with pytest.raises(QueueClosedError):
            await worker
        assert not queue.add("a")

    play(scenario)


def test_keys_that_do_not_fit_are_refilled(caplog: pytest.LogCaptureFixture) -> None:
    keys = [f"k{number}" for number in range(10)]

    async def scenario(queue: WorkQueue[str], _: ManualClock) -> None:
        assert [queue.add(key) for key in keys] == [True] * 4 + [False] * 6
        worked = []
        while (key := queue.take_now()) is not None:
            assert len(queue) <= 4
            worked.append(key)
            queue.done(key)
        assert set(worked) == set(keys)

    play(scenario, keys_max=4, refill=lambda: keys)
    assert "full" in caplog.text


def test_metrics_observe_the_queue() -> None:
    class Noted:
        def __init__(self) -> None:
            self.notes: list[Any] = []

        def added(self, depth: int) -> None:
            self.notes.append(("added", depth))

        def taken(self, depth: int, waited_s: float) -> None:
            self.notes.append(("taken", depth, waited_s))

        def finished(self, worked_s: float) -> None:
            self.notes.append(("finished", worked_s))

        def retried(self) -> None:
            self.notes.append("retried")

    noted = Noted()

    async def scenario(queue: WorkQueue[str], clock: ManualClock) -> None:
        queue.add("a")
        await clock.advance(2)
        await queue.get()
        await clock.advance(3)
        queue.add_rate_limited("a")
        queue.done("a")
        assert noted.notes == [("added", 1), ("taken", 0, 2.0), "retried", ("finished", 3.0)]

    play(scenario, metrics=noted)


STEPS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from("abc")),
    st.tuples(st.just("later"), st.sampled_from("abc")),
    st.tuples(st.just("retry"), st.sampled_from("abc")),
    st.tuples(st.sampled_from(["take", "done", "wait"]), st.just("")),
)


@given(steps=st.lists(STEPS, max_size=60))
def test_whatever_is_added_is_worked_on_afterwards(steps: list[tuple[str, str]]) -> None:
    """After a key was added, some worker takes it that had not taken it before."""

    async def scenario(queue: WorkQueue[str], clock: ManualClock) -> None:
        owed: set[str] = set()
        taken: list[str] = []
        for verb, key in steps:
            match verb:
                case "add":
                    assert queue.add(key)
                    owed.add(key)
                case "later":
                    assert queue.add_after(key, 2.5)
                    owed.add(key)
                case "retry":
                    queue.add_rate_limited(key)
                    owed.add(key)
                case "take" if (found := queue.take_now()) is not None:
                    assert found not in taken
                    taken.append(found)
                    owed.discard(found)
                case "done" if taken:
                    queue.done(taken.pop(0))
                case "wait":
                    await clock.advance(1)
        for key in taken:
            queue.done(key)
        await clock.advance(1000)
        while (found := queue.take_now()) is not None:
            owed.discard(found)
            queue.done(found)
        assert not owed
        assert len(queue) == 0

    play(scenario)
