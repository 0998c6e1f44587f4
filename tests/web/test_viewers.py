"""What one viewer of the page asks neither stops others nor shows what is not theirs to see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mooring.web.asking import Asking
from mooring.web.errors import DeadlineError


def until(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> Callable[[], Any]:
    """Return a question whose thread is busy until an event."""
    return lambda: asyncio.run_coroutine_threadsafe(event.wait(), loop).result(60)


def test_a_viewer_with_long_questions_leaves_a_thread_to_others() -> None:
    async def run() -> None:
        asking, held = Asking(deadline_s=60.0, threads=2), asyncio.Event()
        loop = asyncio.get_running_loop()
        long = [
            asyncio.create_task(asking.answer("ann", until(loop, held))) for _ in range(4)
        ]
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            assert await asking.answer("bob", lambda: 3) == 3
        assert not any(each.done() for each in long)
        held.set()
        await asyncio.gather(*long)
        asking.close()

    asyncio.run(run())


def test_a_question_whose_turn_does_not_come_is_never_asked() -> None:
    async def run() -> None:
        asking, held = Asking(deadline_s=0.01, threads=1), asyncio.Event()
        loop, asked = asyncio.get_running_loop(), []
        with pytest.raises(DeadlineError):
            await asking.answer("ann", until(loop, held))
        with pytest.raises(DeadlineError):
            await asking.answer("bob", lambda: asked.append("bob"))
        held.set()
        async with asyncio.timeout(60):
            while asking.busy:
                await asyncio.sleep(0)
        assert not asked
        asking.close()

    asyncio.run(run())
