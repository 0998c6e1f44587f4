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
from typing import NamedTuple

from mooring.api.core.pod import Pod
from mooring.cel.lang.metering import Interrupted, Meter
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.live.failure_handler import Explain
from mooring.scheduler.scheduling_cycle import Pending

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


class _Use(NamedTuple):
    """What pods were allowed, and took, since a moment; both without slices."""

    since_s: float = float("-inf")
    cost: int = 0
    took_s: float = 0.0

    def at(self, now_s: float) -> _Use:
        """Return the use, which counts for a second."""
        return self if now_s - self.since_s < 1.0 else _Use(now_s)

    def plus(self, cost: int, took_s: float = 0.0) -> _Use:
        """Return the use with some more."""
        return self._replace(cost=self.cost + cost, took_s=self.took_s + took_s)


class EvaluationTurns:
    """Decides which evaluations may begin, and go on, for the pod that is being tried."""

    def __init__(
        self,
        elapsed: Callable[[], float],
        *,
        timeout_s: float,
        evaluated_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._elapsed = elapsed
        self._evaluated_s = evaluated_s  # how long all evaluations took so far
        self._counted_s = 0.0  # of them, in the uses
        self._timeout_s = timeout_s or float("inf")
        self._lanes: dict[str, _Use] = {}
        self._all = _Use()
        self._pod = _Use()
        self._lane = ""
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

    def begin(self, lane: str, *, used_s: float | None = None) -> None:
        """Begin to try a pod of a lane; in a slice, if those before it used some time already."""
        now_s = self._elapsed()
        self._count_time(now_s)
        self._pod = _Use(now_s)
        self._lane = lane
        self._begin_s = now_s
        self._used_s = used_s or 0.0
        self._deadline_s = now_s + self._timeout_s - self._used_s
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
        lane = self._lanes.get(self._lane, _Use()).at(now_s)
        self._pod = self._pod.plus(cost)
        if self._pod.cost > LIGHT_COST or self._pod.took_s > LIGHT_S:
            return False
        if lane.cost + cost > LANE_COST_PER_S or lane.took_s > LANE_S_PER_S:
            return False
        if self._all.took_s > ALL_S_PER_S and self._pod.cost > LITTLE_COST:
            return False
        self._keep(lane.plus(cost))
        return True

    def _count_time(self, now_s: float) -> None:
        """Count the time of evaluations since the last count, if they were light."""
        evaluated_s = self._evaluated_s()
        took_s = evaluated_s - self._counted_s
        self._counted_s = evaluated_s
        self._all = self._all.at(now_s)
        if took_s and self._slice_end_s is None:
            self._pod = self._pod.plus(0, took_s)
            self._all = self._all.plus(0, took_s)
            self._keep(self._lanes.get(self._lane, _Use()).at(now_s).plus(0, took_s))

    def _keep(self, use: _Use) -> None:
        if len(self._lanes) >= LANES_MAX:
            self._lanes.clear()
        self._lanes[self._lane] = use


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
