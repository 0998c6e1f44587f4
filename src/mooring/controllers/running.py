"""A controller at work with a server: changes in, plans, writes out.

1. Whoever keeps the objects calls `changed` for each change; the keys that follow go to the queue.
2. Workers take keys. A key whose own last writes are not among the objects yet waits for them, so
   that no plan makes twice what it has made already.
3. The plan's questions are asked at the server, then its steps are carried out in order.
4. A conflict is planned again. Any other refusal ends the plan; the key comes again after a while,
   later each time. The cause is logged when it is a new one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

from mooring.api.timestamp import Timestamp
from mooring.client.contract import Client
from mooring.client.objects import Key, Objects
from mooring.client.writes import LookAgain, Tell, Write
from mooring.controllers.controller import Answers, Change, Controller, Failed, Refused, Step
from mooring.controllers.steps import Chain, Sorted, sort_steps

ASKS_MAX = 10  # plans of one key in a row that ask
UNSEEN_WAIT_S = 0.02
UNSEEN_WAITS_MAX = 250  # five seconds in all; then the copy is planned with as it is
CAUSES_MAX = 10_000  # keys whose last failure is remembered

_LOG = logging.getLogger("mooring.controllers")

# Tells whether the objects of a kind are at least as new as a resource version.
HasSeen = Callable[[type[Any], str], bool]
Record = Callable[[Tell, str], Awaitable[None]]  # an event, and who it comes from


class Queue(Protocol):
    """The keys to plan: each once at a time, with delays."""

    def add(self, key: Key) -> None:
        """Queue a key, unless it is queued already."""

    def add_after(self, key: Key, seconds: float) -> None:
        """Queue a key after a while."""

    def add_rate_limited(self, key: Key) -> None:
        """Queue a key after a while that grows each time."""

    async def get(self) -> Key:
        """Return the next key; nobody else gets it before it is done."""

    def done(self, key: Key) -> None:
        """Say that the work on a key has ended."""

    def forget(self, key: Key) -> None:
        """Say that a key has succeeded: the next failure is its first."""


class Running:
    """One controller and its queue."""

    def __init__(
        self,
        controller: Controller,
        *,
        objects: Objects,
        client: Client,
        queue: Queue,
        record: Record,
        now: Callable[[], Timestamp],
        has_seen: HasSeen = lambda struct, revision: True,  # noqa: ARG005
    ) -> None:
        self.controller = controller
        self.objects = objects
        self._client, self._queue, self._record = client, queue, record
        self._now, self._has_seen = now, has_seen
        self._unseen: dict[Key, list[tuple[type[Any], str]]] = {}
        self._waits: dict[Key, int] = {}
        self._attempts: dict[Key, int] = {}
        self._causes: OrderedDict[Key, str] = OrderedDict()
        controller.prepare(objects)

    # --- in -------------------------------------------------------------------------------------

    def changed(self, change: Change) -> None:
        """Queue what follows from a change of an object, which the objects have already."""
        if isinstance(change.value, self.controller.kinds):
            for key in self.controller.keys(self.objects, change):
                self._queue.add(key)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self.controller.workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self.handle(key)
            except Exception as error:  # A fault of one key must not end the loop.
                self._fail(key, Failed(f"{type(error).__name__}: {error}"), error)
            finally:
                self._queue.done(key)

    # --- one key --------------------------------------------------------------------------------

    async def handle(self, key: Key) -> None:
        """Plan a key and carry out its plan."""
        if self._is_late(key):
            self._queue.add_after(key, UNSEEN_WAIT_S)
            return
        plan = await self._plan(key)
        chain = Chain()
        for write in plan.writes:
            if not await self._carry_out(key, write, chain):
                return
        self._then(plan.again)
        if plan.failed is not None:
            self._fail(key, plan.failed)
        else:
            self._succeed(key)

    async def _plan(self, key: Key) -> Sorted:
        answers: Answers = {}
        for _ in range(ASKS_MAX):
            plan = sort_steps(self.controller.plan(self.objects, key, self._now(), answers))
            if not plan.asks:
                return plan
            found = {
                ask: await self._client.get(ask.struct, ask.namespace, ask.name)
                for ask in plan.asks
            }
            answers = {**answers, **found}
        raise RuntimeError("the plan asks again and again")

    async def _carry_out(self, key: Key, write: Write, chain: Chain) -> bool:
        """Tell whether the rest of the plan may go on after a write."""
        if isinstance(write, Tell):
            await self._record(write, self.controller.source or self.controller.name)
            return True
        try:
            stored = await self._client.write(chain.follow(write))
        except Exception as error:
            refused = _refused(error)
            if refused is None:
                raise
            return await self._refuse(key, write, refused)
        chain.note(write, stored)
        self._await_sight(key, stored)
        self._then(self.controller.wrote(self.objects, key, write, self._now()))
        return True

    async def _refuse(self, key: Key, write: Write, refused: Refused) -> bool:
        told = self.controller.refused(self.objects, key, write, refused)
        for each in sort_steps(told).writes:
            if isinstance(each, Tell):
                await self._record(each, self.controller.source or self.controller.name)
        if refused.is_gone:
            return True  # What was to be changed is not there: the change that says so will come.
        if refused.is_conflict:
            self._queue.add_rate_limited(key)
        else:
            self._fail(key, Failed(refused.message))
        return False

    # --- after ----------------------------------------------------------------------------------

    def _then(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if isinstance(step, LookAgain):
                self._queue.add_after(step.key, step.after_s)

    def _succeed(self, key: Key) -> None:
        self._queue.forget(key)
        self._attempts.pop(key, None)
        self._causes.pop(key, None)

    def _fail(self, key: Key, failed: Failed, error: Exception | None = None) -> None:
        if self._causes.get(key) != failed.reason:
            name = "/".join(part for part in key if part)
            _LOG.warning("%s: %s: %s", self.controller.name, name, failed.reason, exc_info=error)
            self._causes[key] = failed.reason
            if len(self._causes) > CAUSES_MAX:
                self._causes.popitem(last=False)
        if failed.attempts_max is not None:
            self._attempts[key] = times = self._attempts.get(key, 0) + 1
            if times >= failed.attempts_max:
                self._attempts.pop(key)
                self._queue.forget(key)
                return
        self._queue.add_rate_limited(key)

    # --- own writes -----------------------------------------------------------------------------

    def _await_sight(self, key: Key, stored: Any) -> None:
        revision = stored.metadata.resource_version if stored is not None else ""
        if revision:
            self._unseen.setdefault(key, []).append((type(stored), revision))

    def _is_late(self, key: Key) -> bool:
        """Tell whether writes of this key are not among the objects yet."""
        unseen = self._unseen.get(key)
        if unseen is None:
            return False
        unseen[:] = [each for each in unseen if not self._has_seen(*each)]
        waits = self._waits[key] = self._waits.get(key, 0) + 1
        if unseen and waits <= UNSEEN_WAITS_MAX:
            return True
        del self._unseen[key], self._waits[key]
        return False


def _refused(error: Exception) -> Refused | None:
    """Return what the server said, if it was the server; a `ClientError` carries the reason."""
    reason = getattr(error, "reason", None)
    return Refused(reason, str(error)) if isinstance(reason, str) and reason else None
