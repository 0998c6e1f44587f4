"""Worker threads: long steps of requests run beside the event loop, fairly among users.

    step of a request ─┬─ small: at once, on the event loop
                       ├─ medium: the lane of medium steps ─┐
                       ├─ large: the lane of large steps ───┼─ one thread each
                       └─ new expressions: their own lane ──┘

A step is a pure function: it decodes, patches, defaults, validates or encodes, and reads neither
the store nor a cache, which belong to the event loop. While a thread computes, the interpreter
passes from it to the event loop within a millisecond, so other requests wait hardly longer. More
threads would not compute faster, as all share one interpreter; and they would make others wait.

In a lane, users take turns: a user with many large requests delays the next user by one step.
Beyond a number of bytes that wait, requests are answered with 429. Users also take turns with reads
of lists, of which the store does few at once and which may be large.

New CEL expressions take 25 µs a byte to compile and to estimate, a hundred times longer than other
input, so objects with them are created in a lane of their own.

# size: bytes of the input of a step, as JSON
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from threading import get_ident
from typing import Generic, ParamSpec, TypeVar

from moorage.apiserver.http.status import too_many_requests
from moorage.validation.strategy import DriverRefusal, StatusAuthorizer

SMALL_BYTES_MAX = 8 * 1024  # takes less than 100 ms in the worst case
MEDIUM_BYTES_MAX = 128 * 1024
WAITING_BYTES_MAX = 128 * 1024 * 1024
ON_LOOP_S_MAX = 60.0  # how long a step waits for the event loop, which may have ended
EXPRESSIONS_BYTES_MAX = 1024  # of an object with expressions that is created on the event loop
READS_MAX = 3  # lists that are read from the store at once, each for another user
SWITCH_S = 0.001  # how long a thread computes before another one gets the interpreter
RETRY_AFTER_S = 1

# Resources whose expressions are compiled when they are created, and when they are updated: the
# spec of a claim does not change.
UPDATED_WITH_EXPRESSIONS = frozenset(
    {
        "customresourcedefinitions",
        "deviceclasses",
        "mutatingadmissionpolicies",
        "mutatingwebhookconfigurations",
        "resourceclaimtemplates",
        "validatingadmissionpolicies",
        "validatingwebhookconfigurations",
    }
)
CREATED_WITH_EXPRESSIONS = UPDATED_WITH_EXPRESSIONS | {"resourceclaims"}

T = TypeVar("T")
P = ParamSpec("P")


class WorkerThreads:
    """The lanes of one server."""

    def __init__(self) -> None:
        self._medium = _Lane("medium-steps")
        self._large = _Lane("large-steps")
        self._expressions = _Lane("expressions")
        self.waiting_bytes = 0
        self.list_reads = Turns(READS_MAX)

    async def run(
        self, user: str, size: int, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the result of a step on an input of a size."""
        if size <= SMALL_BYTES_MAX:
            return step(*args, **kwargs)
        lane = self._medium if size <= MEDIUM_BYTES_MAX else self._large
        return await self._run_in(lane, user, size, lambda: step(*args, **kwargs))

    async def run_expressions(
        self, user: str, size: int, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the result of a step that may compile expressions."""
        if size <= EXPRESSIONS_BYTES_MAX:
            return step(*args, **kwargs)
        return await self._run_in(self._expressions, user, size, lambda: step(*args, **kwargs))

    async def _run_in(self, lane: _Lane, user: str, size: int, step: Callable[[], T]) -> T:
        if self.waiting_bytes and self.waiting_bytes + size > WAITING_BYTES_MAX:
            raise too_many_requests(RETRY_AFTER_S)
        self.waiting_bytes += size
        try:
            return await lane.run(user, step)
        finally:
            self.waiting_bytes -= size


class _Lane:
    """One thread, and the steps that wait for it, by user."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: ThreadPoolExecutor | None = None
        self._turns = Turns(1)

    async def run(self, user: str, step: Callable[[], T]) -> T:
        """Return the result of a step, when it is the user's turn."""
        async with self._turns.turn(user):
            if self._thread is None:
                sys.setswitchinterval(SWITCH_S)
                self._thread = ThreadPoolExecutor(1, thread_name_prefix=self._name)
            return await asyncio.get_running_loop().run_in_executor(self._thread, step)


class Turns:
    """Turns of users: some users have one at once, and no user has two."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._holders: set[str] = set()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, user: str) -> AsyncIterator[None]:
        """Hold a turn in a block, when it is the user's."""
        await self._take(user)
        try:
            yield
        finally:
            self._pass_on(user)

    async def _take(self, user: str) -> None:
        if len(self._holders) < self._places and user not in self._holders:
            self._holders.add(user)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(user)  # It had the turn, and does not use it.
            raise

    def _pass_on(self, holder: str) -> None:
        """Give the turn to the first request of the next user who has none."""
        self._holders.discard(holder)
        while next_users := [user for user in self._waiting if user not in self._holders][:1]:
            (user,) = next_users
            turns = self._waiting.pop(user)
            turn = turns.popleft()
            if turns:
                self._waiting[user] = turns  # behind the other users
            if not turn.done():
                self._holders.add(user)
                turn.set_result(None)
                return


class LoopTurns:
    """Lets some callers go on in each turn of the event loop, in the order in which they came.

    An event loop runs everything that is ready before it looks for what has arrived. So the work of
    many tasks that are ready at once delays what arrives, although each does little.
    """

    def __init__(self, callers_max: int) -> None:
        self._callers_max = callers_max
        self._left = callers_max
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_requested = False  # the next turn

    async def take(self) -> None:
        """Return in a turn that has room."""
        if self._left and not self._waiting:
            self._left -= 1
            self._request()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._request()
        await turn

    def _request(self) -> None:
        if not self._is_requested:
            self._is_requested = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._is_requested = False
        self._left = self._callers_max
        while self._left and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # its caller may have been cancelled
                turn.set_result(None)
                self._left -= 1
        if self._waiting:
            self._request()


class OnLoop(Generic[P, T]):
    """A function of the event loop's thread that a step may call; it is called in that thread."""

    __slots__ = ("_function", "_loop", "_thread")

    def __init__(
        self, function: Callable[P, T], place: tuple[asyncio.AbstractEventLoop, int] | None = None
    ) -> None:
        self._function = function
        self._loop, self._thread = place or (asyncio.get_running_loop(), get_ident())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the function's result; wait for the event loop if another thread calls."""
        if get_ident() == self._thread:
            return self._function(*args, **kwargs)

        async def call() -> T:
            return self._function(*args, **kwargs)

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(ON_LOOP_S_MAX)


class StatusAuthorizerOnLoop:
    """Asks in the event loop's thread, to which the caches of the authorizer belong."""

    def __init__(self, authorizer: StatusAuthorizer) -> None:
        self._authorizer = authorizer
        self._place = (asyncio.get_running_loop(), get_ident())

    def refuse_binding(self) -> str | None:
        """Return why the user may not set allocation and reservations of any claim."""
        return OnLoop(self._authorizer.refuse_binding, self._place)()

    def refuse_driver(self, driver: str, *, node: str | None) -> DriverRefusal | None:
        """Return why the user may not report for a driver on the node of the allocation."""
        return OnLoop(self._authorizer.refuse_driver, self._place)(driver, node=node)
