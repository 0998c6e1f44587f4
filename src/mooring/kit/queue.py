"""Keys to work on: each once, never two workers at one, again later if it failed.

    add ─► ready ─► take ─► at work ─► done
            ▲                 │  added meanwhile: ready again after `done`
    add_after, retry ─► later ┘

# ready: waits for a worker, in the order it came
# at work: a worker has taken it and has not said `done`
# again: came again while at work
# later: waits for its time; of several times for one key the earliest counts

The queue holds no more than `keys_max` keys. A key that finds no room is refused (`add` says so)
and nothing is lost in silence: once half of the room is free, the queue asks `refill` for all keys
that there are and takes them in, as room comes.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar

from mooring.kit.backoff import Backoff
from mooring.kit.clock import REAL, Clock, Timer

LOG = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

KEYS_MAX = 1_000_000


class QueueClosedError(Exception):
    """Nothing more comes from a queue: it is closed."""


class QueueMetrics(Protocol):
    """Who wants to know how a queue does."""

    def added(self, depth: int) -> None:
        """Note that a key became ready; so many are ready now."""

    def taken(self, depth: int, waited_s: float) -> None:
        """Note that a worker has taken a key, which was ready for that long."""

    def finished(self, worked_s: float) -> None:
        """Note that a worker is done with a key."""

    def retried(self) -> None:
        """Note that a key failed and comes again."""


class NoMetrics:
    """Notes nothing."""

    def added(self, depth: int) -> None:
        """Note nothing."""

    def taken(self, depth: int, waited_s: float) -> None:
        """Note nothing."""

    def finished(self, worked_s: float) -> None:
        """Note nothing."""

    def retried(self) -> None:
        """Note nothing."""


class WorkQueue(Generic[K]):
    """Hands keys to workers; see the module's own words for how."""

    def __init__(
        self,
        *,
        clock: Clock = REAL,
        backoff: Backoff = Backoff(),  # noqa: B008  # a value
        random: Callable[[], float] | None = None,
        keys_max: int = KEYS_MAX,
        refill: Callable[[], Iterable[K]] | None = None,
        metrics: QueueMetrics | None = None,
    ) -> None:
        self._clock = clock
        self._backoff = backoff
        self._random = random
        self._keys_max = keys_max
        self._refill = refill
        self._metrics = metrics or NoMetrics()
        self._ready: dict[K, float] = {}  # since when
        self._at_work: dict[K, float] = {}  # since when
        self._again: set[K] = set()
        self._later: dict[K, float] = {}  # when
        self._times: list[tuple[float, int, K]] = []  # of `later`, and some that do not count
        self._number = 0
        self._timer: Timer | None = None
        self._timer_due = 0.0
        self._failures: dict[K, int] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._has_refused = False
        self._refilling: deque[K] = deque()
        self._is_closed = False

    # --- putting in -------------------------------------------------------------------------------

    def add(self, key: K) -> bool:
        """Make a key ready, unless it is; return False if there is no room for it."""
        if key in self._ready or key in self._again:
            return True
        if key in self._at_work:
            self._again.add(key)
            return True
        if key in self._later:
            del self._later[key]
        elif not self._has_room(key):
            return False
        self._make_ready(key)
        return True

    def add_after(self, key: K, delay_s: float) -> bool:
        """Make a key ready after a while; return False if there is no room for it."""
        if delay_s <= 0:
            return self.add(key)
        due = self._clock.monotonic() + delay_s
        earlier = self._later.get(key)
        if earlier is not None and earlier <= due:
            return True
        is_known = earlier is not None or key in self._at_work or key in self._ready
        if not is_known and not self._has_room(key):
            return False
        self._later[key] = due
        self._number += 1
        heapq.heappush(self._times, (due, self._number, key))
        self._set_timer()
        return True

    def retry(self, key: K) -> float:
        """Make a key ready after a delay that grows with its failures; return the delay."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay_s = self._backoff.delay_s(failures, self._random)
        self._metrics.retried()
        self.add_after(key, delay_s)
        return delay_s

    def forget(self, key: K) -> None:
        """Forget that a key has failed."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Return how often a key has failed in a row."""
        return self._failures.get(key, 0)

    # --- taking out -------------------------------------------------------------------------------

    async def take(self) -> K:
        """Wait for a key and take it; it is at work until `done`. Raises when the queue closes."""
        while not self._ready:
            if self._is_closed:
                raise QueueClosedError
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(woken)
            try:
                await woken
            except asyncio.CancelledError:
                self._pass_on(woken)
                raise
        return self._take_ready()

    def take_now(self) -> K | None:
        """Take a key if one is ready."""
        return self._take_ready() if self._ready else None

    def done(self, key: K) -> None:
        """Say that a key is at work no more; if it came again meanwhile, it is ready."""
        started = self._at_work.pop(key)
        self._metrics.finished(self._clock.monotonic() - started)
        if key in self._again:
            self._again.discard(key)
            self._make_ready(key)
        elif key not in self._later:
            self._take_in_refused()

    @asynccontextmanager
    async def work(self) -> AsyncIterator[K]:
        """Take a key for a block: done after it, to be tried again later if the block raises.

        The error goes on to the caller, who logs it.
        """
        key = await self.take()
        try:
            yield key
        except Exception:
            self.retry(key)
            raise
        else:
            self.forget(key)
        finally:
            self.done(key)

    def close(self) -> None:
        """Let workers finish what is ready, and then no more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for woken in self._waiting:
            if not woken.done():
                woken.set_result(None)

    # --- what is there ----------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return how many keys are ready, at work or to come later."""
        only_later = sum(1 for key in self._later if key not in self._at_work)
        return len(self._ready) + len(self._at_work) + only_later

    @property
    def depth(self) -> int:
        """How many keys are ready."""
        return len(self._ready)

    @property
    def at_work(self) -> frozenset[K]:
        """The keys that workers have."""
        return frozenset(self._at_work)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ready and nobody works."""
        return not self._ready and not self._at_work

    # --- within -----------------------------------------------------------------------------------

    def _has_room(self, key: K) -> bool:
        if self._is_closed:
            return False
        if len(self._ready) + len(self._at_work) + len(self._later) < self._keys_max:
            return True
        if not self._has_refused:
            LOG.warning("the queue is full with %d keys; %r waits outside", self._keys_max, key)
        self._has_refused = True
        return False

    def _make_ready(self, key: K) -> None:
        self._ready[key] = self._clock.monotonic()
        self._metrics.added(len(self._ready))
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            woken = self._waiting.popleft()
            if not woken.done():
                woken.set_result(None)
                return

    def _pass_on(self, woken: asyncio.Future[None]) -> None:
        """Wake another worker, if this one was woken and goes without having taken anything."""
        if woken.done() and not woken.cancelled() and self._ready:
            self._wake()

    def _take_ready(self) -> K:
        key = next(iter(self._ready))
        since = self._ready.pop(key)
        now = self._clock.monotonic()
        self._at_work[key] = now
        self._metrics.taken(len(self._ready), now - since)
        return key

    def _take_in_refused(self) -> None:
        """Take in keys that found no room, once there is some."""
        if not self._has_refused and not self._refilling:
            return
        used = len(self._ready) + len(self._at_work) + len(self._later)
        if used > self._keys_max // 2:
            return
        if not self._refilling and self._refill is not None:
            self._has_refused = False
            self._refilling.extend(self._refill())
        was_refused = self._has_refused
        while self._refilling and self.add(self._refilling[0]):
            self._refilling.popleft()
        self._has_refused = was_refused  # what is still to be taken in was not lost

    # --- later ------------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        """Have the earliest of the keys that come later made ready in time."""
        if not self._times or self._is_closed:
            return
        due = self._times[0][0]
        if self._timer is not None:
            if self._timer_due <= due:
                return
            self._timer.cancel()
        self._timer_due = due
        self._timer = self._clock.call_later(due - self._clock.monotonic(), self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        while self._times and self._times[0][0] <= now:
            due, _, key = heapq.heappop(self._times)
            if self._later.get(key) == due:
                # `add` takes it from `later`, unless it is ready or at work.
                self.add(key)
                self._later.pop(key, None)
        self._set_timer()
