"""A scheduler and a server in memory, run step by step, with faults at will."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import count
from typing import Any

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.client.writes import RecordEvent, Write
from moorage.scheduler.live import (
    EffectDone,
    EffectLost,
    EffectRefused,
    LiveScheduler,
    Moment,
    ReadObject,
    SchedulerConfig,
)
from moorage.scheduler.live.effects import EffectRequest, EffectResult
from moorage.scheduler.reservation import IdSource
from tests.scheduler.live.fakeserver import Change, FakeServer, ServerError
from tests.scheduler.scenes import NOW

# What becomes of a write instead: a fault, and whether it was carried out all the same.
Trouble = Callable[[Write], tuple[ServerError, bool] | None]

_names = count(1)


def fresh_names() -> IdSource:
    return IdSource(lambda: f"share-{next(_names)}", lambda prefix: f"{prefix}{next(_names)}")


class Rig:
    """One scheduler at a server; what happens is told to it when `run` comes to it."""

    def __init__(
        self, server: FakeServer, config: SchedulerConfig | None = None, **more: Any
    ) -> None:
        """Begin with a list of all that there is."""
        self.server = server
        self.elapsed_s = 0.0
        self.clock: Callable[[], float] = lambda: self.elapsed_s  # while the scheduler computes
        self.trouble: Trouble = lambda _: None
        self.hears_first = False  # the watch reports a write before its response arrives
        self.scheduler = LiveScheduler(
            config or SchedulerConfig(), fresh_names(), elapsed=lambda: self.clock(), **more
        )
        self._told: deque[Change] = deque()
        self._requests: deque[EffectRequest] = deque()
        server.watch(self._told.append)
        self._listed = len(self._told)

    @property
    def now(self) -> Moment:
        return Moment(self.elapsed_s, NOW + timedelta(seconds=self.elapsed_s))

    # --- single steps -----------------------------------------------------------------------------

    def hear(self) -> bool:
        """Take in one change, or the list."""
        if not self._told:
            return False
        while self._listed > 0:
            self._listed -= 1
            self.scheduler.put(self._told.popleft()[1], self.now, is_listed=True)
        if not self._told:
            return True
        old, new = self._told.popleft()
        if new is not None:
            self.scheduler.put(new, self.now)
        else:
            self.scheduler.remove(old, self.now)
        return True

    def decide(self) -> bool:
        return self.scheduler.step(self.now)

    def write(self) -> bool:
        """Carry out one request."""
        self._requests.extend(self.scheduler.outgoing())
        if not self._requests:
            return False
        request = self._requests.popleft()
        result = self._carry_out(request.effect)
        while self.hears_first and self.hear():
            pass
        self.scheduler.answer(request, result, self.now)
        return True

    def _carry_out(self, ask: ReadObject | Write) -> EffectResult:
        if isinstance(ask, RecordEvent):
            self.server.write(ask)
            return EffectDone()
        try:
            if isinstance(ask, ReadObject):
                return EffectDone(self.server.read(ask.target))
            trouble = self.trouble(ask)
            if trouble is not None:
                error, is_done = trouble
                if is_done:
                    self.server.write(ask)
                raise error
            return EffectDone(self.server.write(ask))
        except ServerError as error:
            if 400 <= error.code < 500:
                return EffectRefused(error.reason, str(error))
            return EffectLost(str(error))

    # --- many steps -------------------------------------------------------------------------------

    def run(self, *, for_s: float = 0.0, steps_max: int = 20_000) -> None:
        """Do all that can be done, and let time pass."""
        end_s = self.elapsed_s + for_s
        for _ in range(steps_max):
            if self.hear() or self.decide() or self.write():
                continue
            next_s = self.scheduler.next_s()
            if next_s is None or next_s > end_s:
                self.elapsed_s = max(self.elapsed_s, end_s)
                if not (self.decide() or self.write()):
                    return
                continue
            self.elapsed_s = max(self.elapsed_s, next_s)
        raise AssertionError("it does not come to rest")

    # --- what there is ----------------------------------------------------------------------------

    def node_of(self, name: str) -> str:
        pod = self.server.get(Pod, name)
        return pod.spec.node_name if pod is not None else "-"

    def condition(self, name: str) -> str:
        for each in self.server.get(Pod, name).status.conditions:
            if each.type == "PodScheduled":
                return f"{each.status} {each.reason} {each.message}".strip()
        return ""

    def claim(self, name: str) -> ResourceClaim:
        found: ResourceClaim = self.server.get(ResourceClaim, name)
        return found

    def told(self, reason: str) -> list[str]:
        return [each.message for each in self.server.events if each.reason == reason]

    def check(self) -> None:
        """See that nothing is given twice, and that the scheduler knows what the server has."""
        check_devices(self.server)
        known = self.scheduler.cache.cluster.claims
        stored = {
            (each.metadata.namespace, each.metadata.name): each
            for each in self.server.all(ResourceClaim)
        }
        assert dict(known) == stored, "the scheduler sees the claims as they are"
        assert not self.scheduler.cache.in_flight
        assert not self.scheduler.effects.running


def check_devices(server: FakeServer) -> None:
    """See that no device has two claims."""
    _check(server.all(ResourceClaim))


def check_bound(server: FakeServer) -> None:
    """See that no device has two claims whose pods are on nodes, and may run."""
    bound = {pod.metadata.uid for pod in server.all(Pod) if pod.spec.node_name}
    _check(
        claim
        for claim in server.all(ResourceClaim)
        if any(consumer.uid in bound for consumer in claim.status.reserved_for)
    )


def _check(claims: Iterable[ResourceClaim]) -> None:
    users = Counter(
        (result.driver, result.pool, result.device)
        for claim in claims
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
        if result.share_id is None and not result.admin_access
    )
    assert all(number == 1 for number in users.values()), users
