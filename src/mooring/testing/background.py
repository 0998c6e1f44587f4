"""An event loop in a thread of its own, so that tests need none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import cache
from typing import Any, TypeVar

from mooring.driver.errors import DriverError
from mooring.node.contract import DevicesRefusedError

__tracebackhide__ = True  # pytest shows the test, not us

T = TypeVar("T")

WAIT_S = 60.0
TOLD = (AssertionError, DriverError, DevicesRefusedError)  # say all by themselves, and their causes


class Background:
    """Runs what is asynchronous, while the test waits."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="mooring-testing", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Coroutine[Any, Any, T], within_s: float = WAIT_S) -> T:
        """Return what a coroutine returns; it must not be called in this very loop."""

        async def bounded() -> T:
            try:
                async with asyncio.timeout(within_s) as limit:
                    return await work
            except TimeoutError:
                if not limit.expired():
                    raise
                raise TimeoutError(f"it was not done within {within_s:g} s") from None

        try:
            return asyncio.run_coroutine_threadsafe(bounded(), self.loop).result()
        except TOLD as error:
            raise error.with_traceback(None)  # noqa: B904  # the same error

    @contextmanager
    def entered(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Have an asynchronous block go on in the background; what it raises is raised here."""
        opened: asyncio.Future[T] = self.loop.create_future()
        closing = asyncio.Event()
        running = asyncio.run_coroutine_threadsafe(_hold(manager, opened, closing), self.loop)
        try:
            value = self.run(_waited(opened))
        except BaseException:
            running.cancel()  # It is still being opened, or it is over.
            raise
        try:
            yield value
        finally:
            self.loop.call_soon_threadsafe(closing.set)
            running.result(WAIT_S)


@cache
def background() -> Background:
    """Return the one of this process, which stays: gRPC cannot do without a loop it has met."""
    return Background()


async def _hold(
    manager: AbstractAsyncContextManager[T], opened: asyncio.Future[T], closing: asyncio.Event
) -> None:
    """Enter and leave in one task, as task groups need it."""
    try:
        async with manager as value:
            opened.set_result(value)
            await closing.wait()
    except BaseException as error:
        if opened.done():
            raise
        opened.set_exception(error)


async def _waited(future: asyncio.Future[T]) -> T:
    return await future
