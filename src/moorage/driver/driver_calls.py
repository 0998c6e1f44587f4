"""Calls of a driver's methods, async or not, in parallel or one at a time.

A method that is not async runs in a thread, and so does a generator that it returns: both may
block. Errors of a driver are shown from the driver's own line on, without the SDK's. Two files
order calls, also between two instances of a driver:

    instance.lock    held while a driver runs: by one, or by several that know of each other
    serialize.lock   held during a call, by drivers that run beside their next version
"""

from __future__ import annotations

import asyncio
import fcntl
import inspect
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import copy_context
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from moorage.driver.errors import StartError

LOG = logging.getLogger(__name__)

VALUES_MAX = 131_072  # from a driver's generator

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)

_OURS = {
    f"moorage.driver.{each}"
    for each in (
        "driver_calls",
        "health_service",
        "node_service",
        "claim_preparation",
        "slice_controller",
    )
}
INSTANCE_LOCK, SERIALIZE_LOCK = "instance.lock", "serialize.lock"


async def call_driver(method: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a driver's method; a generator is read to its end.

    SystemExit would end the event loop and whatever else runs in it, so it is an error like others.
    """
    try:
        return await _result(method, *arguments)
    except SystemExit as error:
        raise RuntimeError(f"sys.exit({error.code!r}) was called") from error


async def _result(method: Callable[..., Any], *arguments: Any) -> Any:
    if inspect.iscoroutinefunction(method):
        found = await method(*arguments)
    elif inspect.isasyncgenfunction(method):
        found = method(*arguments)
    else:
        found = await in_thread(_called, method, *arguments)
        if inspect.isawaitable(found):
            found = await found
    if isinstance(found, AsyncIterator):
        return await _read_async(found)
    return _read(found) if isinstance(found, Iterator) else found


def _called(method: Callable[..., Any], *arguments: Any) -> Any:
    found = method(*arguments)
    return _read(found) if isinstance(found, Iterator) else found


def _read(values: Iterator[Any]) -> list[Any]:
    """Return the values of a generator; one beyond the bound shows that there are too many."""
    return list(islice(values, VALUES_MAX + 1))


async def _read_async(values: AsyncIterator[Any]) -> list[Any]:
    found: list[Any] = []
    async for each in values:
        found.append(each)
        if len(found) > VALUES_MAX:
            break
    return found


def raised_text(method: str, error: BaseException) -> str:
    """Return a line about an exception of a driver's method."""
    text = str(error)
    return f"{method}() raised {type(error).__name__}{f': {text}' if text else ''}"


def driver_error(error: E) -> E:
    """Return an error whose traceback begins in the driver."""
    lines = error.__traceback__
    while lines is not None and lines.tb_frame.f_globals.get("__name__") in _OURS:
        lines = lines.tb_next
    return error.with_traceback(lines or error.__traceback__)


async def in_thread(call: Callable[..., T], *arguments: Any) -> T:
    """Return the result of a function that runs in a thread of its own.

    Unlike with asyncio.to_thread, one that hangs does not keep the program from exiting.
    """
    loop = asyncio.get_running_loop()
    context = copy_context()
    outcome: asyncio.Future[Callable[[], T]] = loop.create_future()

    def work() -> None:
        try:
            result = context.run(call, *arguments)
            publish(lambda: result)
        except BaseException as error:
            publish(partial(_raise, error))

    def publish(found: Callable[[], T]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(take, found)

    def take(found: Callable[[], T]) -> None:
        if not outcome.done():
            outcome.set_result(found)

    threading.Thread(target=work, name="driver", daemon=True).start()
    return (await outcome)()


def _raise(error: BaseException) -> Any:
    raise error


async def run_to_completion(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of some work, and wait for its end even if cancelled meanwhile.

    So locks around it are held until nothing changes any more.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.warning("failed after its caller gave up: %s", error)
        raise


# --- one at a time --------------------------------------------------------------------------------


@contextmanager
def only_instance(folder: Path, *, shares: bool) -> Iterator[None]:
    """Be the only driver in a folder, or one of those that share it; else raise StartError."""
    path = folder / INSTANCE_LOCK
    with _opened(path) as handle:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shares else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            raise StartError(
                f"another driver runs with the folder {folder}; "
                "two may run side by side only if each has its --pod-uid"
            ) from None
        yield


class SerialCalls:
    """Lets calls in one after the other."""

    def __init__(self, lock_file: Path | None) -> None:
        self._lock = asyncio.Lock()
        self._lock_file = lock_file  # None: no other instance

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Wait for our turn, and hold it."""
        async with self._lock:
            if self._lock_file is None:
                yield
                return
            with _opened(self._lock_file) as handle:
                # Not closed while a thread still waits for the lock.
                await run_to_completion(in_thread(fcntl.flock, handle, fcntl.LOCK_EX))
                yield


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a lock file; closing it releases the lock."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from None
    try:
        yield handle
    finally:
        os.close(handle)
