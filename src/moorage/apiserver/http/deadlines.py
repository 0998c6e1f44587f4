"""Deadlines of requests, with a single timer, because all requests get the same time.

The oldest request has the next deadline, so one timer suffices. When it fires, late requests are
cancelled, and the timer is set for the oldest remaining one.
"""

from __future__ import annotations

import asyncio


class Deadlines:
    """Cancels blocks in tasks that take too long."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._open: dict[Deadline, float] = {}  # oldest first
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def begin(self) -> Deadline:
        """Return a block for the current task that raises TimeoutError at its deadline."""
        return Deadline(self)

    def opened(self, deadline: Deadline) -> None:
        """Record that a block begins now."""
        loop = asyncio.get_running_loop()
        self._open[deadline] = loop.time() + self._limit_s
        if self._timer is None:
            self._timer = loop.call_later(self._limit_s, self._cancel_late)

    def closed(self, deadline: Deadline) -> None:
        """Record that a block ends."""
        self._open.pop(deadline, None)

    def _cancel_late(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        for deadline, at in list(self._open.items()):
            if at > loop.time():
                self._timer = loop.call_at(at, self._cancel_late)
                return
            del self._open[deadline]
            deadline.cancel()


class Deadline:
    """A block with a deadline."""

    __slots__ = ("_deadlines", "_is_over", "_task")

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._is_over = False
        self._task: asyncio.Task[object] | None = None

    def cancel(self) -> None:
        """Cancel the block."""
        assert self._task is not None
        self._is_over = True
        self._task.cancel()

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        self._deadlines.opened(self)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._deadlines.closed(self)
        if self._is_over:
            assert self._task is not None
            # Another cancellation, as when the server stops, has precedence.
            if self._task.uncancel() == 0 and kind is asyncio.CancelledError:
                raise TimeoutError
