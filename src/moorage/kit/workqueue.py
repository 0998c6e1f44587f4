"""A workqueue as in client-go: deduplicated keys, one worker per key, retries with backoff.

    add ─► ready ─► take ─► processing ─► done
            ▲                 │  added meanwhile: ready again after `done`
    add_after, retry ─► later ┘

# ready: waits for a worker, in the order of arrival
# processing: a worker has taken the key and has not called `done`
# dirty: added again while processing
# later: waits for its time; of several times for one key the earliest counts

The queue holds at most `keys_max` keys. `add` returns False for a key beyond that. No key is lost:
once the queue is half empty, it calls `refill` for all existing keys and adds them as space allows.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, Protocol, TypeVar

from moorage.kit.backoff import Backoff
from moorage.kit.clock import REAL, Clock, Timer

LOG = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

KEYS_MAX = 1_000_000


class QueueClosedError(Exception):
    """The queue is closed and empty."""


class QueueMetrics(Protocol):
    """Observes a queue."""

    def added(self, depth: int) -> None:
        """Record that a key became ready, and how many are ready now."""

    def taken(self, depth: int, waited_s: float) -> None:
        """Record that a worker took a key, and how long the key was ready."""

    def finished(self, worked_s: float) -> None:
        """Record that a worker is done with a key."""

    def retried(self) -> None:
        """Record that a key failed and is requeued."""


class _NoMetrics:
    def added(self, depth: int) -> None:
        pass

    def taken(self, depth: int, waited_s: float) -> None:
        pass

    def finished(self, worked_s: float) -> None:
        pass

    def retried(self) -> None:
        pass


class WorkQueue(Generic[K]):
    """Hands keys to workers; the module's docstring explains how."""

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
        self._metrics = metrics or _NoMetrics()
        self._ready: dict[K, float] = {}  # since when
        self._processing: dict[K, float] = {}  # since when
        self._dirty: set[K] = set()
        self._later: dict[K, float] = {}  # when
        self._times: list[tuple[float, int, K]] = []  # a heap of `later`, with some obsolete times
        self._number = 0
        self._timer: Timer | None = None
        self._timer_due = 0.0
        self._failures: dict[K, int] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._has_rejected = False
        self._refilling: deque[K] = deque()
        self._is_closed = False

    # --- adding -----------------------------------------------------------------------------------

    def add(self, key: K) -> bool:
        """Make a key ready, unless it is already; return False if the queue is full."""
        if key in self._ready or key in self._dirty:
            return True
        if key in self._processing:
            self._dirty.add(key)
            return True
        if key in self._later:
            del self._later[key]
        elif not self._has_space(key):
            return False
        self._make_ready(key)
        return True

    def add_after(self, key: K, delay_s: float) -> bool:
        """Make a key ready after a delay; return False if the queue is full."""
        if delay_s <= 0:
            return self.add(key)
        due = self._clock.monotonic() + delay_s
        earlier = self._later.get(key)
        if earlier is not None and earlier <= due:
            return True
        is_known = earlier is not None or key in self._processing or key in self._ready
        if not is_known and not self._has_space(key):
            return False
        self._later[key] = due
        self._number += 1
        heapq.heappush(self._times, (due, self._number, key))
        self._set_timer()
        return True

    def add_rate_limited(self, key: K) -> float:
        """Make a key ready after a delay that grows with its failures; return the delay."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay_s = self._backoff.delay_s(failures, self._random)
        self._metrics.retried()
        self.add_after(key, delay_s)
        return delay_s

    def forget(self, key: K) -> None:
        """Reset the backoff of a key."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Return how often a key was retried since it was last forgotten."""
        return self._failures.get(key, 0)

    # --- taking -----------------------------------------------------------------------------------

    async def get(self) -> K:
        """Wait for a key and take it until `done`; raise QueueClosedError once the queue closes."""
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
        """Finish a key; if it was added meanwhile, it is ready again."""
        started = self._processing.pop(key)
        self._metrics.finished(self._clock.monotonic() - started)
        if key in self._dirty:
            self._dirty.discard(key)
            self._make_ready(key)
        elif key not in self._later:
            self._refill_if_half_empty()

    def close(self) -> None:
        """Accept no more keys; workers finish those that are ready."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for woken in self._waiting:
            if not woken.done():
                woken.set_result(None)

    # --- reading ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return how many keys are ready, processing or to come later."""
        only_later = sum(1 for key in self._later if key not in self._processing)
        return len(self._ready) + len(self._processing) + only_later

    @property
    def depth(self) -> int:
        """How many keys are ready."""
        return len(self._ready)

    # --- internals --------------------------------------------------------------------------------

    def _has_space(self, key: K) -> bool:
        if self._is_closed:
            return False
        if len(self._ready) + len(self._processing) + len(self._later) < self._keys_max:
            return True
        if not self._has_rejected:
            LOG.warning("the queue is full with %d keys; %r has to wait", self._keys_max, key)
        self._has_rejected = True
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
        """Wake another worker if this one was woken and leaves without a key."""
        if woken.done() and not woken.cancelled() and self._ready:
            self._wake()

    def _take_ready(self) -> K:
        key = next(iter(self._ready))
        since = self._ready.pop(key)
        now = self._clock.monotonic()
        self._processing[key] = now
        self._metrics.taken(len(self._ready), now - since)
        return key

    def _refill_if_half_empty(self) -> None:
        """Add the keys that did not fit, once the queue is half empty."""
        if not self._has_rejected and not self._refilling:
            return
        used = len(self._ready) + len(self._processing) + len(self._later)
        if used > self._keys_max // 2:
            return
        if not self._refilling and self._refill is not None:
            self._has_rejected = False
            self._refilling.extend(self._refill())
        had_rejected = self._has_rejected
        while self._refilling and self.add(self._refilling[0]):
            self._refilling.popleft()
        self._has_rejected = had_rejected  # keys still to be refilled are not lost

    def _set_timer(self) -> None:
        """Schedule the earliest of the delayed keys."""
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
                # `add` removes it from `later`, unless it is ready or processing.
                self.add(key)
                self._later.pop(key, None)
        self._set_timer()
