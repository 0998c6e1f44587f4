"""Controllers run to a fixed point in memory: deterministic, without I/O, without waiting.

    world = Settling(Model(now), [controller, …])
    world.model.put(pod)          # changes are followed from here on
    world.settle()                # until nobody has anything more to do now
    world.advance(30)             # time passes: what waited for it is done, then settled

A controller that never comes to rest is an error, not an endless loop.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import timedelta

from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey
from moorage.client.writes import Create, Write
from moorage.controllers.controller import (
    Answers,
    Controller,
    Lookup,
    ObjectChange,
    ReconcileFailed,
    Step,
    WriteRefused,
)
from moorage.controllers.plan_steps import RefusedWrites, SortedSteps, WriteChain, sort_steps
from tests.controllers.model import Model, RefusedError

PLANS_MAX = 100_000
ASKS_MAX = 10
BACKOFF_S, BACKOFF_MAX_S = 1.0, 1000.0

Work = tuple[int, ObjectKey]  # the number of the controller, and the key


class Settling:
    """Controllers at work on a server in memory."""

    def __init__(
        self, model: Model, controllers: Sequence[Controller], *, plans_max: int = PLANS_MAX
    ) -> None:
        self.model = model
        self._plans_max = plans_max
        self.controllers = tuple(controllers)
        self._queue: deque[Work] = deque()
        self._queued: set[Work] = set()
        self._later: list[tuple[Timestamp, int, Work]] = []
        self._failures: dict[Work, int] = {}
        self._count = 0
        self._last = ("", ("", ""))
        for controller in self.controllers:
            controller.add_indexes(model.objects)
        model.follow = self._follow

    def settle(self) -> None:
        """Plan and write until nothing is left to do now."""
        for _ in range(self._plans_max):
            self._wake()
            if not self._queue:
                return
            work = self._queue.popleft()
            self._queued.discard(work)
            self._last = self.controllers[work[0]].name, work[1]
            self._do(work)
        raise AssertionError(f"no rest after {self._plans_max} plans; last: {self._last}")

    def advance(self, seconds: float) -> None:
        """Let time pass, and settle each time that something is due."""
        end = Timestamp(self.model.now.instant + timedelta(seconds=seconds))
        self.settle()
        while self._later and self._later[0][0] < end:
            self.model.now = max(self.model.now, self._later[0][0])
            self.settle()
        self.model.now = end
        self.settle()

    def everything(self) -> None:
        """Queue every object of every kind, as a start of the controllers does."""
        for struct in {kind: None for each in self.controllers for kind in each.kinds}:
            for value in list(self.model.objects.list(struct)):
                self._follow(ObjectChange(None, value))

    def plan(self, number: int, key: ObjectKey) -> SortedSteps:
        """Return what a controller would do for a key now; nothing is done."""
        controller = self.controllers[number]
        answers: Answers = {}
        for _ in range(ASKS_MAX):
            steps = controller.reconcile(self.model.objects, key, self.model.now, answers)
            plan = sort_steps(steps)
            if not plan.asks:
                return plan
            asks = [ask for ask in plan.asks if isinstance(ask, Lookup)]
            assert len(asks) == len(plan.asks), "no server here has kinds that nobody knows"
            answers = {**answers, **{ask: self.model.answer(ask) for ask in asks}}
        raise AssertionError(f"{controller.name} asks again and again about {key}")

    # --- inside ---------------------------------------------------------------------------------

    def _follow(self, change: ObjectChange) -> None:
        for number, controller in enumerate(self.controllers):
            if isinstance(change.value, controller.kinds):
                for key in controller.keys(self.model.objects, change):
                    self._add((number, key))

    def _add(self, work: Work) -> None:
        if work not in self._queued:
            self._queued.add(work)
            self._queue.append(work)

    def _add_after(self, work: Work, seconds: float) -> None:
        self._count += 1
        when = Timestamp(self.model.now.instant + timedelta(seconds=min(seconds, 1e9)))
        heapq.heappush(self._later, (when, self._count, work))

    def _wake(self) -> None:
        while self._later and not self.model.now < self._later[0][0]:
            self._add(heapq.heappop(self._later)[2])

    def _do(self, work: Work) -> None:
        plan = self.plan(*work)
        is_independent = self.controllers[work[0]].has_independent_steps
        chain, refusals = WriteChain(), RefusedWrites(is_independent=is_independent)
        for write in plan.writes:
            if not refusals.skips(write):
                self._carry_out(work, write, chain, refusals)
        if is_independent or refusals.gravest is None:
            self._then(work, plan.again)
        if refusals.gravest is not None:
            self._plan_again(work, refusals.gravest[1])
        elif plan.failed is not None:
            self._fail(work, plan.failed)
        else:
            self._failures.pop(work, None)
            has_created = any(isinstance(write, Create) for write in plan.writes)
            if has_created and self.controllers[work[0]].continues_after_create:
                self._add(work)

    def _carry_out(
        self, work: Work, write: Write, chain: WriteChain, refusals: RefusedWrites
    ) -> None:
        controller, (_, key), model = self.controllers[work[0]], work, self.model
        try:
            chain.note(write, model.write(chain.follow(write)))
        except RefusedError as error:
            self._tell(controller.refused(model.objects, key, write, error.refused))
            if isinstance(write, Create) or not error.refused.is_gone:
                refusals.note(write, error.refused)
            return
        self._then(work, controller.wrote(model.objects, key, write, model.now))

    def _plan_again(self, work: Work, refused: WriteRefused) -> None:
        if refused.is_conflict:
            self._add(work)
        else:
            self._fail(work, ReconcileFailed(refused.message))

    def _tell(self, steps: Iterable[Step]) -> None:
        for write in sort_steps(steps).writes:
            self.model.write(write)

    def _then(self, work: Work, steps: Iterable[Step]) -> None:
        for again in sort_steps(steps).again:
            self._add_after((work[0], again.key), again.after_s)

    def _fail(self, work: Work, failed: ReconcileFailed) -> None:
        times = self._failures[work] = self._failures.get(work, 0) + 1
        if failed.attempts_max is None or times < failed.attempts_max:
            self._add_after(work, min(BACKOFF_S * 2 ** (times - 1), BACKOFF_MAX_S))


def settle(controllers: Sequence[Controller], objects: Indexer, now: Timestamp) -> Model:
    """Run controllers on objects, as after a start, until nothing is left to do now."""
    world = Settling(Model(now, objects), controllers)
    world.everything()
    world.settle()
    return world.model
