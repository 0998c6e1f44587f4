"""An event loop that asks what happens next whenever nothing in it can go on by itself.

There is no time and there are no sockets: all that programs wait for is something that we do. So a
story, which is a generator, decides alone in which order things happen.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Iterator, Mapping
from typing import Any


class Turnstile(selectors.BaseSelector):
    """Is polled for events when all tasks wait; lets the history continue instead."""

    def __init__(self, go_on: Callable[[], None]) -> None:
        self._go_on = go_on
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Record the loop's own registrations, without effect."""
        key = self._keys[fileobj] = selectors.SelectorKey(fileobj, 0, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Forget it."""
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Let the story go on if there is nothing else to do."""
        if timeout is None or timeout > 0:
            self._go_on()
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """Return the registrations."""
        return self._keys


def play(story: Callable[[], Iterator[None]]) -> None:
    """Run a story to its end; each time that it yields, tasks run until all of them wait."""
    steps: Iterator[None] | None = None

    def go_on() -> None:
        nonlocal steps
        if steps is None:
            steps = story()
        if next(steps, over) is over and not ended.done():
            ended.set_result(None)

    over = object()
    loop = asyncio.SelectorEventLoop(Turnstile(go_on))
    ended: asyncio.Future[None] = loop.create_future()
    try:
        loop.run_until_complete(ended)
    finally:
        steps = iter(())
        _cancel_all(loop)
        loop.close()


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
