"""Turns of the event loop: a few callers go on in each, so that others are not kept waiting.

An event loop runs everything that is ready before it looks for what has arrived. So the work of
many tasks that are ready at once delays what arrives, although each does little.
"""

from __future__ import annotations

import asyncio
from collections import deque


class LoopTurns:
    """Lets some callers go on in each turn of the event loop, in the order in which they came."""

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
