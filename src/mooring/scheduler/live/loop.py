"""The thin part of the live scheduler: it waits, reads and writes, and decides nothing.

Deciding is one thing after the other; writes are carried out by some workers beside it. After some
milliseconds of deciding everyone else gets a turn.

What goes wrong is logged once for each cause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from mooring.client.contract import Client
from mooring.client.writes import Tell, Write
from mooring.scheduler.live.asks import (
    CONFLICT,
    NOT_FOUND,
    Answer,
    Done,
    Lost,
    Read,
    Refused,
)
from mooring.scheduler.live.core import LiveScheduler
from mooring.scheduler.live.jobs import Request
from mooring.scheduler.live.moment import Moment

LOG = logging.getLogger(__name__)

DECIDING_S = 0.005
WORKERS = 32
CAUSES_MAX = 256
REASONS = {404: NOT_FOUND, 409: CONFLICT}
AGAIN_CODES = (408, 429)  # refused for now: not carried out, and to be repeated


class Timer(Protocol):
    """Something that is to happen later."""

    def cancel(self) -> None:
        """Call it off."""


class Clock(Protocol):
    """What time it is, and how to be called later."""

    def now(self) -> datetime:
        """Return the date and time; it may jump."""

    def monotonic(self) -> float:
        """Return seconds since some moment; it never goes back."""

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Have something called after a while."""


class Loop:
    """Runs a scheduler with a client."""

    def __init__(
        self,
        scheduler: LiveScheduler,
        client: Client,
        *,
        clock: Clock,
        tell: Callable[[Tell], None],
        workers: int = WORKERS,
    ) -> None:
        self.scheduler = scheduler
        self._client = client
        self._clock = clock
        self._tell = tell
        self._workers = workers
        self._requests: asyncio.Queue[Request] = asyncio.Queue()
        self._is_awake = asyncio.Event()
        self._causes: set[str] = set()

    def changed(self, old: Any | None, new: Any | None, *, is_listed: bool = False) -> None:
        """Take in a change, as informers tell it: what was there, and what is there now."""
        if new is not None:
            self.scheduler.put(new, self._moment(), is_listed=is_listed)
        elif old is not None:
            self.scheduler.remove(old, self._moment())
        self._is_awake.set()

    async def run(self) -> None:
        """Schedule until cancelled; begin once all objects have been told."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self._workers):
                    tasks.create_task(self._work())
                while True:
                    self._is_awake.clear()
                    is_busy = self._decide()
                    self._hand_out()
                    await (asyncio.sleep(0) if is_busy else self._wait())
        finally:
            self.scheduler.close()

    def _decide(self) -> bool:
        """Decide for some milliseconds; tell whether there may be more to decide."""
        end_s = self._clock.monotonic() + DECIDING_S
        while self.scheduler.step(self._moment()):
            if self._clock.monotonic() >= end_s:
                return True
        return False

    def _hand_out(self) -> None:
        """Give what is to be done to the workers; events are told at once."""
        while requests := self.scheduler.outgoing():
            for request in requests:
                if isinstance(request.ask, Tell):
                    self._tell(request.ask)
                    self.scheduler.answer(request, Done(), self._moment())
                else:
                    self._requests.put_nowait(request)

    async def _wait(self) -> None:
        """Wait until something happens, or time brings something."""
        next_s = self.scheduler.next_s()
        timer = None
        if next_s is not None:
            delay_s = max(next_s - self._clock.monotonic(), 0.0)
            timer = self._clock.call_later(delay_s, self._is_awake.set)
        try:
            await self._is_awake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def _work(self) -> None:
        while True:
            request = await self._requests.get()
            answer = await self._carry_out(request.ask)
            self.scheduler.answer(request, answer, self._moment())
            self._hand_out()
            self._is_awake.set()

    async def _carry_out(self, ask: Read | Write) -> Answer:
        assert not isinstance(ask, Tell), "events are told, and not waited for"
        try:
            if isinstance(ask, Read):
                target = ask.target
                return Done(await self._client.get(target.struct, target.namespace, target.name))
            return Done(await self._client.write(ask))
        except Exception as error:
            answer = answer_of(error)
            if answer is None:
                raise
            self._note(answer)
            return answer

    def _note(self, answer: Refused | Lost) -> None:
        """Log a cause, once."""
        if isinstance(answer, Refused) and answer.reason in (CONFLICT, NOT_FOUND):
            return  # part of life
        if answer.message not in self._causes and len(self._causes) < CAUSES_MAX:
            self._causes.add(answer.message)
            LOG.warning("a write was not carried out: %s", answer.message)

    def _moment(self) -> Moment:
        return Moment(self._clock.monotonic(), self._clock.now())


def answer_of(error: Exception) -> Refused | Lost | None:
    """Return what an error of a client means; None if it is not one of a client."""
    code, reason = getattr(error, "code", None), getattr(error, "reason", None)
    if not isinstance(code, int) or not isinstance(reason, str):
        return None
    if 400 <= code < 500 and code not in AGAIN_CODES:
        return Refused(reason or REASONS.get(code, ""), str(error))
    return Lost(str(error))
