"""The reconciler: runs one controller with a server and a workqueue.

1. `changed` is called for each change (see `controller_manager`); its keys go to the workqueue.
2. Workers take keys. A key whose own last writes the informers have not seen yet waits for them, so
   that no plan creates twice what it has created already (as Kubernetes' expectations).
3. The plan's lookups are done at the server, then its steps are carried out in order.
4. A key whose plan takes long, such as a replica set of 1,000 pods, is planned once for many
   changes: they wait a while, so that its plans take a small share of the time.
5. A refused write ends the plan, or what the plan does with that object (`RefusedWrites`); the key
   is requeued with backoff. A cause is logged when it is new; a conflict only when it does not end.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any, Protocol

from moorage.api.core.namespace import RemainingContent
from moorage.api.meta import object_text
from moorage.api.timestamp import Timestamp
from moorage.client.contract import Client
from moorage.client.errors import ClientError
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Create, Delete, RecordEvent, RequeueAfter, Write
from moorage.controllers.controller import (
    Answers,
    Controller,
    DeleteContent,
    Lookup,
    ObjectChange,
    Question,
    ReconcileFailed,
    Step,
    WriteRefused,
)
from moorage.controllers.plan_steps import RefusedWrites, SortedSteps, WriteChain, sort_steps
from moorage.kit.bulkhead import FAULTS
from moorage.kit.workqueue import QueueClosedError

LOOKUPS_MAX = 10  # plans of one key in a row with lookups
ROUNDS_MAX = 3  # plans of one key in a row that continue after creations
CONFLICTS_MAX = 10  # of one key in a row before they are logged: about five seconds
EXPECTATION_WAIT_S = 0.02
EXPECTATION_WAITS_MAX = 250  # five seconds in all; then the plan is made anyway
SLOW_PLAN_S = 0.002  # plans that take less follow each change at once
PLANS_APART = 20  # changes wait this multiple of the time that a plan takes
BATCH_S_MAX = 0.5
KEYS_MAX = 10_000  # keys with remembered state; the oldest are forgotten first

_LOG = logging.getLogger(__name__)

_QUOTED = re.compile(r'"[^"]*"')

# Deletes the content of a namespace, and returns what remains.
EmptyNamespace = Callable[[DeleteContent], Awaitable[RemainingContent]]
# Returns whether the informer of a kind is at least as new as a resource version.
HasSeen = Callable[[type[Any], str], bool]


class Queue(Protocol):
    """The part of a `moorage.kit.workqueue.WorkQueue` that a reconciler uses."""

    def add(self, key: ObjectKey) -> object:
        """Queue a key, unless it is queued already."""

    def add_after(self, key: ObjectKey, delay_s: float) -> object:
        """Queue a key after a while."""

    def add_rate_limited(self, key: ObjectKey) -> object:
        """Queue a key after a while that grows each time."""

    async def get(self) -> ObjectKey:
        """Return the next key; nobody else gets it before it is done."""

    def done(self, key: ObjectKey) -> None:
        """Record that the work on a key has ended."""

    def forget(self, key: ObjectKey) -> None:
        """Record that a key has succeeded: the next failure is its first."""


class Reconciler:
    """One controller and its workqueue."""

    def __init__(
        self,
        controller: Controller,
        *,
        objects: Indexer,
        client: Client,
        queue: Queue,
        record: Callable[[RecordEvent], None],
        now: Callable[[], Timestamp],
        has_seen: HasSeen = lambda struct, revision: True,  # noqa: ARG005
        empty: EmptyNamespace | None = None,
    ) -> None:
        self.controller = controller
        self.objects = objects
        self._client, self._queue, self._record = client, queue, record
        self._now, self._has_seen, self._empty = now, has_seen, empty
        self._kinds = frozenset(controller.kinds)
        self._expected: OrderedDict[ObjectKey, _Expectations] = OrderedDict()
        self._attempts: dict[ObjectKey, int] = {}
        self._conflicts: OrderedDict[ObjectKey, int] = OrderedDict()
        self._causes: OrderedDict[ObjectKey, str] = OrderedDict()
        self._slow: OrderedDict[ObjectKey, float] = OrderedDict()  # how long changes wait
        controller.add_indexes(objects)

    # --- in -------------------------------------------------------------------------------------

    def changed(self, change: ObjectChange) -> None:
        """Queue the keys of a change, which the objects have already."""
        if type(change.value) in self._kinds:
            for key in self.controller.keys(self.objects, change):
                self.enqueue(key)

    def enqueue(self, key: ObjectKey) -> None:
        """Queue a key after a change: at once, or with later changes if its plan is slow."""
        self._queue.add_after(key, self._slow.get(key, 0.0))

    def all_keys(self) -> Iterator[ObjectKey]:
        """Yield the keys of all objects, as after a start."""
        for struct in self.controller.kinds:
            for value in tuple(self.objects.list(struct)):
                with FAULTS.guard(self.controller.name, partial(object_text, value)):
                    yield from tuple(self.controller.keys(self.objects, ObjectChange(None, value)))

    async def run(self) -> None:
        """Work until cancelled, or until the queue is closed."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self.controller.workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except QueueClosedError:
                return
            try:
                await self.handle(key)
            except ClientError as error:
                self._fail(key, ReconcileFailed(error.message))
            except Exception as error:  # An error of one key must not stop the worker.
                name = "/".join(part for part in key if part)
                FAULTS.note(self.controller.name, name, error, "is tried again")
                self._queue.add_rate_limited(key)
            finally:
                self._queue.done(key)

    # --- one key --------------------------------------------------------------------------------

    async def handle(self, key: ObjectKey) -> None:
        """Plan a key and carry out its plan."""
        if self._is_behind(key):
            self._queue.add_after(key, EXPECTATION_WAIT_S)
            return
        is_independent = self.controller.has_independent_steps
        chain, refusals = WriteChain(), RefusedWrites(is_independent=is_independent)
        plan = await self._plan(key, {})
        for _ in range(ROUNDS_MAX):
            created = await self._carry_out_all(key, plan, chain, refusals)
            if not created or plan.failed is not None or refusals.gravest is not None:
                break
            plan = await self._plan(key, created)
        else:
            raise RuntimeError("the plan creates again and again")
        if is_independent or refusals.gravest is None:
            self._then(plan.again)
        if refusals.gravest is not None:
            self._plan_again(key, *refusals.gravest)
        elif plan.failed is not None:
            self._fail(key, plan.failed)
        else:
            self._succeed(key)

    async def _carry_out_all(
        self, key: ObjectKey, plan: SortedSteps, chain: WriteChain, refusals: RefusedWrites
    ) -> Answers:
        """Carry out the writes of a plan; return the created objects that the next one needs."""
        created: dict[Question, Any] = {}
        for write in plan.writes:
            if refusals.skips(write):
                continue
            stored = await self._carry_out(key, write, chain, refusals)
            if isinstance(write, Create) and stored is not None:
                created[Lookup(type(stored), *object_key(stored))] = stored
        return created if self.controller.continues_after_create else {}

    async def _plan(self, key: ObjectKey, answers: Answers) -> SortedSteps:
        for _ in range(LOOKUPS_MAX):
            began = self._now()
            plan = sort_steps(self.controller.reconcile(self.objects, key, began, answers))
            self._note_cost(key, (self._now().instant - began.instant).total_seconds())
            if not plan.asks:
                return plan
            answers = {**answers, **{ask: await self._answer(ask) for ask in plan.asks}}
        raise RuntimeError("the plan asks again and again")

    def _note_cost(self, key: ObjectKey, plan_s: float) -> None:
        self._slow.pop(key, None)
        if plan_s >= SLOW_PLAN_S:
            self._slow[key] = min(plan_s * PLANS_APART, BATCH_S_MAX)
            if len(self._slow) > KEYS_MAX:
                self._slow.popitem(last=False)

    async def _answer(self, question: Question) -> Any:
        if not isinstance(question, DeleteContent):
            return await self._client.get(question.struct, question.namespace, question.name)
        assert self._empty is not None, "no client that can delete kinds it does not know"
        return await self._empty(question)

    async def _carry_out(
        self, key: ObjectKey, write: Write, chain: WriteChain, refusals: RefusedWrites
    ) -> Any:
        """Carry out a write; return the stored object, if there is one."""
        if isinstance(write, RecordEvent):
            self._record(write)
            return None
        try:
            stored = await self._client.write(chain.follow(write))
        except ClientError as error:
            refused = WriteRefused(error.reason, error.message)
            self._report_refused(key, write, refused)
            # The object no longer exists: the informer will report that.
            if isinstance(write, Create) or not refused.is_gone:
                refusals.note(write, refused)
            return None
        chain.note(write, stored)
        if not isinstance(write, Delete):  # A deleted object is not seen again.
            self._expect(key, stored)
        self._then(self.controller.wrote(self.objects, key, write, self._now()))
        return stored

    def _report_refused(self, key: ObjectKey, write: Write, refused: WriteRefused) -> None:
        steps = self.controller.refused(self.objects, key, write, refused)
        for each in sort_steps(steps).writes:
            if isinstance(each, RecordEvent):
                self._record(each)

    # --- after ----------------------------------------------------------------------------------

    def _then(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if isinstance(step, RequeueAfter):
                self._queue.add_after(step.key, step.after_s)

    def _plan_again(self, key: ObjectKey, write: Write, refused: WriteRefused) -> None:
        """Requeue a key because of a refused write."""
        if not refused.is_conflict:
            self._fail(key, ReconcileFailed(_cause(write, refused)))
            return
        times = self._conflicts[key] = self._conflicts.get(key, 0) + 1
        if len(self._conflicts) > KEYS_MAX:
            self._conflicts.popitem(last=False)
        if times == CONFLICTS_MAX:
            self._log(key, f"{times} conflicts in a row: {refused.message}")
        self._queue.add_rate_limited(key)

    def _succeed(self, key: ObjectKey) -> None:
        self._queue.forget(key)
        self._conflicts.pop(key, None)
        self._attempts.pop(key, None)
        self._causes.pop(key, None)

    def _fail(self, key: ObjectKey, failed: ReconcileFailed) -> None:
        cause = _QUOTED.sub("", failed.reason)  # generated names differ each time
        if self._causes.get(key) != cause:
            self._log(key, failed.reason)
            self._causes[key] = cause
            if len(self._causes) > KEYS_MAX:
                self._causes.popitem(last=False)
        if failed.attempts_max is not None:
            self._attempts[key] = times = self._attempts.get(key, 0) + 1
            if times >= failed.attempts_max:
                self._attempts.pop(key)
                self._queue.forget(key)
                return
        self._queue.add_rate_limited(key)

    def _log(self, key: ObjectKey, cause: str) -> None:
        name = "/".join(part for part in key if part)
        _LOG.warning("%s: %s: %s", self.controller.name, name, cause)

    # --- own writes -----------------------------------------------------------------------------

    def _expect(self, key: ObjectKey, stored: Any) -> None:
        revision = stored.metadata.resource_version if stored is not None else ""
        if revision:
            expected = self._expected.setdefault(key, _Expectations())
            expected.versions.append((type(stored), revision))
            if len(self._expected) > KEYS_MAX:
                self._expected.popitem(last=False)

    def _is_behind(self, key: ObjectKey) -> bool:
        """Return whether the informers have not seen all writes of this key yet."""
        expected = self._expected.get(key)
        if expected is None:
            return False
        expected.versions[:] = [each for each in expected.versions if not self._has_seen(*each)]
        expected.waits += 1
        if expected.versions and expected.waits <= EXPECTATION_WAITS_MAX:
            return True
        del self._expected[key]
        return False


def _cause(write: Write, refused: WriteRefused) -> str:
    """Return why a write was refused, without a name that the server generates each time."""
    prefix = write.value.metadata.generate_name if isinstance(write, Create) else ""
    if not prefix:
        return refused.message
    return re.sub(rf"\b{re.escape(prefix)}[a-z0-9]{{5}}\b", prefix, refused.message)


class _Expectations:
    """Versions that a key has written, and how often it has waited for them."""

    __slots__ = ("versions", "waits")

    def __init__(self) -> None:
        self.versions: list[tuple[type[Any], str]] = []
        self.waits = 0
