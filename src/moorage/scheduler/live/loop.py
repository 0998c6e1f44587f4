"""The thin part of the live scheduler: it waits, reads and writes, and decides nothing.

Scheduling is one pod after the other; workers beside it carry out reads and writes. After some
milliseconds of scheduling everyone else gets a turn. Each cause of a failure is logged once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from moorage.api.meta import identity_text, object_text, without_managed_fields
from moorage.client.contract import Client
from moorage.client.writes import RecordEvent, Target, Write
from moorage.kit.backoff import Backoff
from moorage.kit.bulkhead import FAULTS
from moorage.scheduler.errors import INTERNAL_ERROR
from moorage.scheduler.live.config import Moment
from moorage.scheduler.live.effects import (
    CONFLICT,
    NOT_FOUND,
    EffectDone,
    EffectLost,
    EffectRefused,
    EffectRequest,
    EffectResult,
    ReadObject,
)
from moorage.scheduler.live.scheduler import LiveScheduler

LOG = logging.getLogger(__name__)

SCHEDULING_S = 0.005
WORKERS = 32
CAUSES_MAX = 256
REASONS = {404: NOT_FOUND, 409: CONFLICT}
BACKOFF = Backoff(first_s=0.1, longest_s=30.0)  # after scheduling failed as a whole
AGAIN_CODES = (408, 429)  # not carried out, and to be repeated


class CancellableTimer(Protocol):
    """Something that is to happen later."""

    def cancel(self) -> None:
        """Cancel it."""


class Clock(Protocol):
    """The time, and timers."""

    def now(self) -> datetime:
        """Return the date and time; it may jump."""

    def monotonic(self) -> float:
        """Return seconds since some moment; it never goes back."""

    def call_later(self, delay_s: float, call: Callable[[], None]) -> CancellableTimer:
        """Call a function after a while."""


class SchedulerLoop:
    """Runs a scheduler with a client."""

    def __init__(
        self,
        scheduler: LiveScheduler,
        client: Client,
        *,
        clock: Clock,
        record: Callable[[RecordEvent], None],
        workers: int = WORKERS,
    ) -> None:
        self.scheduler = scheduler
        self._client = client
        self._clock = clock
        self._record = record
        self._workers = workers
        self._requests: asyncio.Queue[EffectRequest] = asyncio.Queue()
        self._is_awake = asyncio.Event()
        self._causes: set[str] = set()
        self._failures = 0  # of scheduling, in a row
        self._timer: CancellableTimer | None = None
        self._timer_s = 0.0  # when it is due

    def changed(self, old: Any | None, new: Any | None, *, is_listed: bool = False) -> None:
        """Take a change from an informer: the old object and the new one."""
        if new is not None:
            self.scheduler.put(new, self._moment(), is_listed=is_listed)
        elif old is not None:
            self.scheduler.remove(old, self._moment())
        self._is_awake.set()

    async def run(self) -> None:
        """Schedule until cancelled; begin once all informers have synced."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self._workers):
                    tasks.create_task(self._work())
                while True:
                    self._is_awake.clear()
                    is_busy = self._step_guarded()
                    await (asyncio.sleep(0) if is_busy else self._wait())
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self.scheduler.close()

    def _step_guarded(self) -> bool:
        """Schedule and hand out effects; what fails is tried again after a while."""
        try:
            is_busy = self._schedule()
            self._hand_out()
        except Exception as error:
            self._failures += 1
            FAULTS.note("scheduling", "the loop", error, "goes on")
            return False
        self._failures = 0
        return is_busy

    def _schedule(self) -> bool:
        """Schedule for some milliseconds; return whether there may be more to schedule."""
        end_s = self._clock.monotonic() + SCHEDULING_S
        while self.scheduler.step(self._moment()):
            if self._clock.monotonic() >= end_s:
                return True
        return False

    def _hand_out(self) -> None:
        """Hand effects to the workers; events are recorded at once."""
        while requests := self.scheduler.outgoing():
            for request in requests:
                if isinstance(request.effect, RecordEvent):
                    self._record(request.effect)
                    self.scheduler.answer(request, EffectDone(), self._moment())
                else:
                    self._requests.put_nowait(request)

    async def _wait(self) -> None:
        """Wait until something changes, or a timer is due."""
        next_s = self.scheduler.next_s()
        if next_s is not None or self._failures:
            now_s = self._clock.monotonic()
            due_s = max(next_s or 0.0, now_s)
            if self._failures:
                due_s = max(due_s, now_s + BACKOFF.delay_s(self._failures))
            self._set_timer(due_s, now_s)
        await self._is_awake.wait()

    def _set_timer(self, due_s: float, now_s: float) -> None:
        """Wake up at a time, or before: a timer that is set for earlier is kept."""
        if self._timer is not None:
            if self._timer_s <= due_s:
                return
            self._timer.cancel()
        self._timer_s = due_s
        self._timer = self._clock.call_later(due_s - now_s, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._is_awake.set()

    async def _work(self) -> None:
        while True:
            request = await self._requests.get()
            result = await self._carry_out(request.effect)
            with FAULTS.guard("scheduling", partial(_text, request.effect)):
                self.scheduler.answer(request, result, self._moment())
                self._hand_out()
            self._is_awake.set()

    async def _carry_out(self, effect: ReadObject | Write) -> EffectResult:
        assert not isinstance(effect, RecordEvent), "events are recorded, and not waited for"
        try:
            if isinstance(effect, ReadObject):
                target = effect.target
                return EffectDone(
                    await self._client.get(target.struct, target.namespace, target.name)
                )
            stored = await self._client.write(effect)
            return EffectDone(None if stored is None else without_managed_fields(stored))
        except Exception as error:
            result = result_of(error)
            if result is None:  # an object that cannot be written
                FAULTS.note("writing", _text(effect), error, "is not written")
                return EffectRefused("InternalError", INTERNAL_ERROR)
            self._note(result)
            return result

    def _note(self, result: EffectRefused | EffectLost) -> None:
        """Log a cause, once."""
        if isinstance(result, EffectRefused) and result.reason in (CONFLICT, NOT_FOUND):
            return  # expected
        if result.message not in self._causes and len(self._causes) < CAUSES_MAX:
            self._causes.add(result.message)
            LOG.warning("a write was not carried out: %s", result.message)

    def _moment(self) -> Moment:
        return Moment(self._clock.monotonic(), self._clock.now())


def _text(effect: ReadObject | Write) -> str:
    """Return what logs call the object of an effect."""
    target: Target | None = getattr(effect, "target", None)
    if target is None:
        return object_text(getattr(effect, "value", None))
    return identity_text(target.struct.__name__, target.namespace, target.name, target.uid)


def result_of(error: Exception) -> EffectRefused | EffectLost | None:
    """Return the result that an error of a client means; None if it is not one of a client."""
    code, reason = getattr(error, "code", None), getattr(error, "reason", None)
    if not isinstance(code, int) or not isinstance(reason, str):
        return None
    if 400 <= code < 500 and code not in AGAIN_CODES:
        return EffectRefused(reason or REASONS.get(code, ""), str(error))
    return EffectLost(str(error))
