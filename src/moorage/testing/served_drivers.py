"""Drivers that run in a test: started with a timeout, and watched for bugs while the test waits.

A bug of a driver shows up far from it: a pod does not start, a claim is not allocated. So a
test that waits also looks for bugs of the drivers, and raises the first one with its cause.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from moorage.client.contract import Client
from moorage.driver.errors import DriverError
from moorage.node.contract import DevicesRefusedError

if TYPE_CHECKING:
    from moorage.driver.driver import Driver
    from moorage.driver.serving import DriverProblem, Running

T = TypeVar("T")

START_S = 30.0
PROBLEMS_SHOWN_MAX = 5


class DriverFailedError(AssertionError):
    """A driver under test has a bug or does not start; its exception is the cause."""


class ServedDrivers:
    """The drivers that run in a test."""

    def __init__(self) -> None:
        self._running: dict[str, Running] = {}
        self._raised: list[DriverProblem] = []

    @contextmanager
    def run(
        self,
        driver: Driver,
        client: Client,
        registered: Callable[[Running], Awaitable[None]],
        within_s: float,
        **settings: Any,
    ) -> Iterator[Running]:
        """Run a driver in the background, published and registered; raises why it is not."""
        serving = self._serving(driver, client, registered, within_s, settings)
        with background().entered(serving) as running:
            yield running

    @asynccontextmanager
    async def _serving(
        self,
        driver: Driver,
        client: Client,
        registered: Callable[[Running], Awaitable[None]],
        within_s: float,
        options: dict[str, Any],
    ) -> AsyncIterator[Running]:
        from moorage.driver.serving import serving
        from moorage.driver.settings import Settings

        settings = Settings(**options)
        starting = _Starting(driver.name, within_s)
        async with AsyncExitStack() as stack:
            entering = stack.enter_async_context(serving(driver, settings, client))
            running = await starting.within(entering, "devices() to return")
            await starting.within(running.wait_published(), "its devices to be published", running)
            await starting.within(registered(running), "the node to register it", running)
            self._running[driver.name] = running
            stack.callback(self._running.pop, driver.name, None)
            yield running

    def raise_bugs(self) -> None:
        """Raise DriverFailedError for a bug that was not raised before."""
        __tracebackhide__ = True
        for name, problem in self._new():
            if problem.is_bug:
                self._raised.append(problem)
                raise DriverFailedError(f"driver {name}: {problem.text}") from _cause(problem)

    def last_bug(self) -> BaseException | None:
        """Return the last bug that was not raised before, for the caller to raise."""
        bugs = [problem for _, problem in self._new() if problem.is_bug]
        self._raised += bugs
        return _cause(bugs[-1]) if bugs else None

    def said(self) -> str:
        """Return the problems that drivers reported, to append to a message, or ""."""
        texts = dict.fromkeys(f"driver {name}: {problem.text}" for name, problem in self._all())
        shown = list(texts)[-PROBLEMS_SHOWN_MAX:]
        return "".join(f"\n{each}" for each in shown)

    def _all(self) -> Iterator[tuple[str, DriverProblem]]:
        for name, running in tuple(self._running.items()):
            for problem in running.problems:
                yield name, problem

    def _new(self) -> Iterator[tuple[str, DriverProblem]]:
        for name, problem in self._all():
            if not any(problem is each for each in self._raised):
                yield name, problem


def _cause(problem: DriverProblem) -> BaseException | None:
    """Return the exception of the driver; the text of our own errors is enough."""
    from moorage.driver.errors import DriverError

    error = problem.error
    return error.__cause__ if isinstance(error, DriverError) else error


class _Starting:
    """The timeout within which a driver starts."""

    def __init__(self, name: str, limit_s: float) -> None:
        self._name, self._limit_s = name, limit_s
        self._end_s = asyncio.get_running_loop().time() + limit_s

    async def within(self, wait: Awaitable[T], what: str, running: Running | None = None) -> T:
        """Return the awaited value, or raise DriverFailedError that names it."""
        try:
            async with asyncio.timeout_at(self._end_s):
                return await wait
        except TimeoutError:
            texts = [each.text for each in running.problems] if running is not None else []
            said = "".join(f"\n{each}" for each in dict.fromkeys(texts[-PROBLEMS_SHOWN_MAX:]))
            raise DriverFailedError(
                f"driver {self._name}: waited {self._limit_s:g} s for {what}{said}"
            ) from None


# --- an event loop in a thread of its own -------------------------------------------------

__tracebackhide__ = True  # pytest shows the test, not us


WAIT_S = 60.0
# Errors whose text and causes are enough: their tracebacks would only show the event loop.
SELF_EXPLANATORY = (AssertionError, DriverError, DevicesRefusedError)


class Background:
    """Runs coroutines while the test waits."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="moorage-testing", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Coroutine[Any, Any, T], within_s: float = WAIT_S) -> T:
        """Run a coroutine and return its result; not to be called from this loop itself."""

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
        except SELF_EXPLANATORY as error:
            raise error.with_traceback(None)  # noqa: B904  # the same error

    @contextmanager
    def entered(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Keep an async context manager open in the background; its errors are raised here."""
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
    """Return the one of this process; it stays, because gRPC depends on the first loop it sees."""
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
