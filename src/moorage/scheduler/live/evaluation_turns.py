"""Turns of evaluation: expressions that cost much are evaluated in slices, between other pods.

    popped ──► light: evaluations up to an allowance ──► decided
                  │ more is needed                         ▲
                  ▼                                        │
               put off ──its turn──► slice: some time ─────┤
                  ▲                       │ slice is over  │
                  └───────────────────────┘                │
                     all slices took the filter timeout ──► error

What was evaluated is kept, so an attempt that is put off goes on there in its next slice. An
allowance is an estimated cost, so a pod that needs more is put off before anything is evaluated;
and it is a time, for estimates may be wrong. Compiling counts as evaluating. An evaluation that has
begun is not put off, or it would never end; the filter timeout ends it.

    # lane: the namespace of a pod; pods of one lane share an allowance, and lanes take turns
    # light: not in a slice
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from moorage.api.core.pod import Pod
from moorage.cel.lang.metering import Interrupted, Meter
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.live.failure_handler import Explain
from moorage.scheduler.scheduling_cycle import Pending

TIMED_OUT = "timed out trying to allocate devices"
PUT_OFF = "other pods are tried first"
NO_TIME = "no time left"

# Estimated costs; a million takes a tenth of a second, or one if code cannot be generated.
LIGHT_COST = 250_000  # of one pod
LANE_COST_PER_S = 1_000_000  # of all pods of a lane
# Times, for evaluations that take longer than estimated.
LIGHT_S = 0.1
LANE_S_PER_S = 0.2
ALL_S_PER_S = 0.3  # of all lanes; beyond it only what costs little is light
LITTLE_COST = 5_000
LANES_MAX = 4_096
SLICE_S = 0.05
EXPLANATION_S = 0.1


@dataclass(slots=True)
class _Use:
    """What pods were allowed, and took, in the second since a moment; both without slices."""

    since_s: float = float("-inf")
    cost: int = 0
    took_s: float = 0.0

    def begin_anew(self, now_s: float) -> None:
        """Forget what was, after a second."""
        if now_s - self.since_s >= 1.0:
            self.since_s, self.cost, self.took_s = now_s, 0, 0.0


class EvaluationTurns:
    """Decides which evaluations may begin, and go on, for the pod that is being tried."""

    def __init__(
        self,
        elapsed: Callable[[], float],
        *,
        evaluated_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._elapsed = elapsed
        self._evaluated_s = evaluated_s  # how long all evaluations took so far
        self._counted_s = 0.0  # of them, in the uses
        self._lanes: dict[str, _Use] = {}
        self._all = _Use()
        self._pod = _Use()
        self._lane_use = _Use()
        self._begin_s = 0.0
        self._used_s = 0.0  # by slices before
        self._deadline_s = float("inf")
        self._deadline_cause = TIMED_OUT
        self._slice_end_s: float | None = None  # None: not in a slice
        self._admitted = 0
        self.is_put_off = False  # some evaluation was not admitted

    @property
    def took_s(self) -> float:
        """How long the present pod has been tried this time."""
        return self._elapsed() - self._begin_s

    @property
    def used_s(self) -> float:
        """The same, with its slices before."""
        return self._used_s + self.took_s

    def begin(self, lane: str, *, used_s: float | None = None, timeout_s: float = 0.0) -> None:
        """Begin to try a pod of a lane; in a slice, if those before it used some time already.

        It may take as long as `timeout_s`, or any time if that is 0.
        """
        now_s = self._elapsed()
        self._count_time(now_s)
        self._pod = _Use(now_s)
        self._lane_use = self._use_of(lane)
        self._begin_s = now_s
        self._used_s = used_s or 0.0
        self._deadline_s = now_s + (timeout_s or float("inf")) - self._used_s
        self._deadline_cause = TIMED_OUT
        self._slice_end_s = None if used_s is None else now_s + SLICE_S
        self._admitted = 0
        self.is_put_off = False

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Allow the explanation of the present pod a little time, and cheap evaluations."""
        before = self._deadline_s, self._slice_end_s, self.is_put_off
        self._deadline_s = self._elapsed() + EXPLANATION_S
        self._deadline_cause = NO_TIME
        self._slice_end_s = None
        self._pod = _Use(self._elapsed())
        try:
            yield
        finally:
            self._deadline_s, self._slice_end_s, self.is_put_off = before
            self._deadline_cause = TIMED_OUT

    def interrupt(self) -> str | None:
        """Return why nothing can go on for the pod, if so."""
        return self._deadline_cause if self._elapsed() > self._deadline_s else None

    def admit(self, cost: int) -> str | None:
        """Return why an evaluation of this estimated cost cannot begin now, if so."""
        if self._slice_end_s is None:
            may_begin = self._is_light(cost)
        else:
            # One is admitted in any case, so that every slice brings the pod further.
            may_begin = not self._admitted or self._elapsed() < self._slice_end_s
        if not may_begin:
            self.is_put_off = True
            return PUT_OFF
        self._admitted += 1
        return None

    def _is_light(self, cost: int) -> bool:
        """Take a cost from the allowances of pod and lane; False if too little is left."""
        now_s = self._elapsed()
        self._count_time(now_s)
        pod, lane = self._pod, self._lane_use
        lane.begin_anew(now_s)
        pod.cost += cost
        if pod.cost > LIGHT_COST or pod.took_s > LIGHT_S:
            return False
        if lane.cost + cost > LANE_COST_PER_S or lane.took_s > LANE_S_PER_S:
            return False
        if self._all.took_s > ALL_S_PER_S and pod.cost > LITTLE_COST:
            return False
        lane.cost += cost
        return True

    def _count_time(self, now_s: float) -> None:
        """Count the time of evaluations since the last count, if they were light."""
        evaluated_s = self._evaluated_s()
        took_s = evaluated_s - self._counted_s
        self._counted_s = evaluated_s
        self._all.begin_anew(now_s)
        if took_s and self._slice_end_s is None:
            for use in (self._pod, self._lane_use, self._all):
                use.took_s += took_s

    def _use_of(self, lane: str) -> _Use:
        use = self._lanes.get(lane)
        if use is None:
            if len(self._lanes) >= LANES_MAX:
                self._lanes.clear()
            use = self._lanes[lane] = _Use()
        return use


class BoundedExplanation:
    """Explains pods without a node in little time, and by answers that cost little."""

    def __init__(self, explain: Explain, turns: EvaluationTurns, meter: Meter) -> None:
        self._explain = explain
        self._turns = turns
        self._meter = meter

    def __call__(self, cluster: Cluster, pod: Pod, pending: Pending) -> str | None:
        """Return the explanation; None if it would need more than that."""
        turns = self._turns
        with turns.explaining(), self._meter.bounded(turns.interrupt, turns.admit):
            try:
                return self._explain(cluster, pod, pending)
            except Interrupted:
                return None
