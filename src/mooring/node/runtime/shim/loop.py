"""The keeper's event loop: descriptors, timers, and children that ended.

asyncio would be twice as large as all the rest. A call that fails is told, and nothing else
suffers from it.
"""

from __future__ import annotations

import heapq
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
WAIT_S_MAX = 3600.0

Call = Callable[[], object]


class Timer:
    """Something that is to happen later, unless it is called off."""

    def __init__(self, call: Call) -> None:
        self._call: Call | None = call

    def cancel(self) -> None:
        """Call it off."""
        self._call = None

    def fire(self) -> None:
        """Do it now."""
        if self._call is not None:
            guarded(self._call)


class Loop:
    """Waits for what happens, and calls whom it concerns."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Timer]] = []
        self._number = count()
        self._is_running = True
        self._on_signal: dict[int, Call] = {}
        self._wakeup, self._alarm = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.watch(self._wakeup, READ, self._signalled)
        signal.set_wakeup_fd(self._alarm, warn_on_full_buffer=False)

    def on_signal(self, number: int, call: Call) -> None:
        """Have something called, soon after a signal."""
        self._on_signal[number] = call
        signal.signal(number, lambda *_: None)

    def watch(self, descriptor: int, events: int, call: Call) -> None:
        """Have something called whenever a descriptor is ready for one of these events."""
        try:
            self._selector.modify(descriptor, events, call)
        except KeyError:
            self._selector.register(descriptor, events, call)

    def forget(self, descriptor: int) -> None:
        """Watch a descriptor no longer."""
        with suppress(KeyError, ValueError):
            self._selector.unregister(descriptor)

    def call_later(self, delay_s: float, call: Call) -> Timer:
        """Have something called after a while."""
        timer = Timer(call)
        heapq.heappush(self._timers, (time.monotonic() + delay_s, next(self._number), timer))
        return timer

    def stop(self) -> None:
        """End `run` after what is being done."""
        self._is_running = False

    def run(self) -> None:
        """Go on until stopped."""
        while self._is_running:
            for key, _ in self._selector.select(self._wait_s()):
                # An earlier call of this round may have closed it.
                if self._selector.get_map().get(key.fd) == key:
                    guarded(key.data)
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                heapq.heappop(self._timers)[2].fire()

    def _wait_s(self) -> float:
        if not self._timers:
            return WAIT_S_MAX
        return min(max(self._timers[0][0] - time.monotonic(), 0.0), WAIT_S_MAX)

    def _signalled(self) -> None:
        try:
            numbers = os.read(self._wakeup, 4096)
        except BlockingIOError:
            return
        for number in dict.fromkeys(numbers):
            if number in self._on_signal:
                guarded(self._on_signal[number])


def guarded(call: Call) -> None:
    """Call something; a fault is written down, and the keeper goes on."""
    try:
        call()
    except Exception as error:
        import traceback  # only now: it is large

        print(f"{time.time():.3f} fault: {error!r}", file=sys.stderr)
        traceback.print_exc()
        sys.stderr.flush()
