"""Methods of drivers called, whether they are async or not; and work that must come to its end.

Those that are not run in a thread, and so does the generator that they return: it may wait, too.
Errors of a driver are shown from the driver's own line on, without ours.
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

from mooring.driver.errors import StartError

LOG = logging.getLogger(__name__)

VALUES_MAX = 131_072  # that a generator of a driver may yield

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)

_OURS = {
    f"mooring.driver.{each}"
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
    """Return what a method of a driver returns; a generator is read to its end."""
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
    """Return what a generator yields; one value too many shows that there are too many."""
    return list(islice(values, VALUES_MAX + 1))


async def _read_async(values: AsyncIterator[Any]) -> list[Any]:
    found: list[Any] = []
    async for each in values:
        found.append(each)
        if len(found) > VALUES_MAX:
            break
    return found


def raised_text(method: str, error: BaseException) -> str:
    """Return what a method of a driver raised, in a line."""
    text = str(error)
    return f"{method}() raised {type(error).__name__}{f': {text}' if text else ''}"


def driver_error(error: E) -> E:
    """Return an error with the part of its traceback that begins in the driver."""
    lines = error.__traceback__
    while lines is not None and lines.tb_frame.f_globals.get("__name__") in _OURS:
        lines = lines.tb_next
    return error.with_traceback(lines or error.__traceback__)


async def in_thread(call: Callable[..., T], *arguments: Any) -> T:
    """Return what a function returns in a thread of its own.

    Other than those of asyncio.to_thread, one that hangs does not keep the program from its end.
    """
    loop = asyncio.get_running_loop()
    context = copy_context()
    outcome: asyncio.Future[Callable[[], T]] = loop.create_future()

    def work() -> None:
        try:
            result = context.run(call, *arguments)
            tell(lambda: result)
        except BaseException as error:
            tell(partial(_raise, error))

    def tell(found: Callable[[], T]) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody waits.
            loop.call_soon_threadsafe(take, found)

    def take(found: Callable[[], T]) -> None:
        if not outcome.done():
            outcome.set_result(found)

    threading.Thread(target=work, name="driver", daemon=True).start()
    return (await outcome)()


def _raise(error: BaseException) -> Any:
    raise error


async def run_to_completion(work: Coroutine[Any, Any, T]) -> T:
    """Return what some work returns; whoever is cancelled meanwhile waits for its end all the same.

    So locks that are held around it are held until nothing changes any more.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.warning("failed after it was given up: %s", error)
        raise


# ---- from mooring.driver.serializing: Who may work now: one call at a time, also of two instances of a driver that run side by side.


@contextmanager
def only_instance(folder: Path, *, shares: bool) -> Iterator[None]:
    """Be the only driver in a folder, or one of those that share it; raises StartError if not."""
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
        self._lock_file = lock_file  # None: there is no other instance

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Wait for our turn, and have it."""
        async with self._lock:
            if self._lock_file is None:
                yield
                return
            with _opened(self._lock_file) as handle:
                # The file is not closed while a thread still waits for it.
                await run_to_completion(in_thread(fcntl.flock, handle, fcntl.LOCK_EX))
                yield


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a lock file; closing it lets the lock go."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from None
    try:
        yield handle
    finally:
        os.close(handle)
