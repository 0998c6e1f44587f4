"""Long steps run beside the event loop, and users take turns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from moorage.apiserver import worker_threads
from moorage.apiserver.http.status import StatusError
from moorage.apiserver.worker_threads import (
    EXPRESSIONS_BYTES_MAX,
    MEDIUM_BYTES_MAX,
    SMALL_BYTES_MAX,
    WAITING_BYTES_MAX,
    OnLoop,
    Turns,
    WorkerThreads,
)

LARGE = MEDIUM_BYTES_MAX + 1


def test_small_steps_run_on_the_event_loop_and_others_beside_it() -> None:
    async def threads() -> list[int]:
        workers = WorkerThreads()
        sizes = (SMALL_BYTES_MAX, SMALL_BYTES_MAX + 1, LARGE)
        return [await workers.run("ann", size, threading.get_ident) for size in sizes]

    small, medium, large = asyncio.run(threads())
    assert small == threading.get_ident()
    assert len({small, medium, large}) == 3


def test_the_event_loop_goes_on_while_a_step_computes() -> None:
    async def story() -> list[str]:
        workers, done = WorkerThreads(), threading.Event()
        told: list[str] = []

        def step() -> None:
            assert done.wait(10)
            told.append("step")

        task = asyncio.create_task(workers.run("ann", LARGE, step))
        await asyncio.sleep(0)
        told.append("others")
        done.set()
        await task
        return told

    assert asyncio.run(story()) == ["others", "step"]


def test_an_error_of_a_step_reaches_the_request() -> None:
    def fail() -> None:
        raise ZeroDivisionError("no")

    async def story() -> None:
        workers = WorkerThreads()
        for size in (1, LARGE):
            with pytest.raises(ZeroDivisionError, match="no"):
                await workers.run("ann", size, fail)
        assert await workers.run("ann", LARGE, lambda: 5) == 5

    asyncio.run(story())


async def _held(workers: WorkerThreads, hold: threading.Event) -> asyncio.Task[Any]:
    """Return a step that holds the lane of large steps until the event is set."""
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def step() -> None:
        loop.call_soon_threadsafe(begun.set)
        assert hold.wait(10)

    task = asyncio.create_task(workers.run("ann", LARGE, step))
    await begun.wait()
    return task


def test_users_take_turns() -> None:
    async def story() -> list[str]:
        workers, hold = WorkerThreads(), threading.Event()
        order: list[str] = []
        first = await _held(workers, hold)

        def step(name: str) -> Callable[[], None]:
            return lambda: order.append(name)

        names = [*(("ann", f"ann-{n}") for n in range(5)), ("bob", "bob-0"), ("eve", "eve-0")]
        tasks = [asyncio.create_task(workers.run(u, LARGE, step(n))) for u, n in names]
        await asyncio.sleep(0)
        hold.set()
        await asyncio.gather(first, *tasks)
        assert workers.waiting_bytes == 0
        return order

    order = asyncio.run(story())
    assert order[:3] == ["ann-0", "bob-0", "eve-0"]
    assert order[3:] == [f"ann-{n}" for n in range(1, 5)]


def test_a_cancelled_step_gives_its_turn_to_the_next() -> None:
    async def story() -> None:
        workers, hold = WorkerThreads(), threading.Event()
        first = await _held(workers, hold)
        waiting = asyncio.create_task(workers.run("bob", LARGE, lambda: 1))
        last = asyncio.create_task(workers.run("eve", LARGE, lambda: 2))
        await asyncio.sleep(0)
        waiting.cancel()
        hold.set()
        await first
        assert await last == 2
        assert workers.waiting_bytes == 0

    asyncio.run(story())


def test_more_waiting_bytes_than_allowed_are_refused() -> None:
    async def story() -> None:
        workers, hold = WorkerThreads(), threading.Event()
        first = await _held(workers, hold)
        with pytest.raises(StatusError) as caught:
            await workers.run("bob", WAITING_BYTES_MAX, lambda: 1)
        assert caught.value.status.code == 429
        hold.set()
        await first
        assert await workers.run("bob", WAITING_BYTES_MAX + 1, lambda: 1) == 1

    asyncio.run(story())


def test_a_step_asks_in_the_thread_of_the_event_loop() -> None:
    async def story() -> tuple[int, int]:
        ask = OnLoop(threading.get_ident)
        return ask(), await WorkerThreads().run("ann", LARGE, ask)

    assert set(asyncio.run(story())) == {threading.get_ident()}


def test_a_step_does_not_wait_for_an_event_loop_that_has_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_threads, "ON_LOOP_S_MAX", 0.01)

    async def make() -> OnLoop[[], int]:
        return OnLoop(threading.get_ident)

    loop = asyncio.new_event_loop()
    try:
        ask = loop.run_until_complete(make())
        with ThreadPoolExecutor(1) as thread, pytest.raises(TimeoutError):
            thread.submit(ask).result(10)
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        loop.close()


def test_users_take_turns_and_none_has_two() -> None:
    async def story() -> list[str]:
        turns, told = Turns(2), list[str]()
        go = {name: asyncio.Event() for name in ("ann1", "ann2", "bob1", "eve1")}

        async def read(name: str) -> None:
            async with turns.turn(name[:-1]):
                told.append(name)
                await go[name].wait()

        tasks = [asyncio.create_task(read(name)) for name in go]
        await asyncio.sleep(0)
        assert told == ["ann1", "bob1"]  # ann's second waits, though she came before bob
        go["bob1"].set()
        await tasks[2]
        await asyncio.sleep(0)
        assert told == ["ann1", "bob1", "eve1"]
        tasks[0].cancel()
        await asyncio.wait({tasks[0]})
        await asyncio.sleep(0)
        assert told[-1] == "ann2"
        go["ann2"].set()
        go["eve1"].set()
        await asyncio.gather(*tasks[1:])
        async with turns.turn("ann"), turns.turn("bob"):
            pass
        return told

    assert asyncio.run(story()) == ["ann1", "bob1", "eve1", "ann2"]


def test_expressions_have_a_thread_of_their_own() -> None:
    async def threads() -> list[int]:
        workers = WorkerThreads()
        return [
            await workers.run("ann", SMALL_BYTES_MAX + 1, threading.get_ident),
            await workers.run("ann", LARGE, threading.get_ident),
            await workers.run_expressions("ann", EXPRESSIONS_BYTES_MAX, threading.get_ident),
            await workers.run_expressions("ann", EXPRESSIONS_BYTES_MAX + 1, threading.get_ident),
            await workers.run_expressions("ann", LARGE, threading.get_ident),
        ]

    medium, large, few, some, many = asyncio.run(threads())
    assert few == threading.get_ident()
    assert some == many
    assert some not in {medium, large, few}
