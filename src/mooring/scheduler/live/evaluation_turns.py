"""Turns of evaluation: expressions that cost much are evaluated in slices, between other pods.

    popped ──► light: evaluations up to an allowance ──► decided
                  │ more is needed                         ▲
                  ▼                                        │
               put off ──its turn──► slice: some time ─────┤
                  ▲                       │ slice is over  │
                  └───────────────────────┘                │
                     all slices took the filter timeout ──► error

What was evaluated is kept, so an attempt that is put off goes on there in its next slice. An
allowance is an estimated cost, so a pod that needs more is put off before anything is evaluated. An
evaluation that has begun is not put off, or it would never end; the filter timeout ends it.

    # lane: the namespace of a pod; pods of one lane share an allowance, and lanes take turns
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
LANES_MAX = 4_096
SLICE_S = 0.05
EXPLANATION_S = 0.1


class _LaneUse(NamedTuple):
    """What pods of a lane were allowed, since a moment."""

    since_s: float
    cost: int


class EvaluationTurns:
    """Decides which evaluations may begin, and go on, for the pod that is being tried."""

    def __init__(self, elapsed: Callable[[], float], *, timeout_s: float) -> None:
        self._elapsed = elapsed
        self._timeout_s = timeout_s or float("inf")
        self._lanes: dict[str, _LaneUse] = {}
        self._lane = ""
        self._begin_s = 0.0
        self._used_s = 0.0  # by slices before
        self._deadline_s = float("inf")
        self._deadline_cause = TIMED_OUT
        self._slice_end_s: float | None = None  # None: not in a slice
        self._light_left = 0
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
        self._lane = lane
        self._begin_s = now_s
        self._used_s = used_s or 0.0
        self._deadline_s = now_s + self._timeout_s - self._used_s
        self._deadline_cause = TIMED_OUT
        self._slice_end_s = None if used_s is None else now_s + SLICE_S
        self._light_left = LIGHT_COST
        self._admitted = 0
        self.is_put_off = False

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Allow the explanation of the present pod a little time, and cheap evaluations."""
        before = self._deadline_s, self._slice_end_s, self.is_put_off
        self._deadline_s = self._elapsed() + EXPLANATION_S
        self._deadline_cause = NO_TIME
        self._slice_end_s = None
        self._light_left = LIGHT_COST
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
            may_begin = cost <= self._light_left and self._lane_admits(cost)
            self._light_left -= cost
        else:
            # One is admitted in any case, so that every slice brings the pod further.
            may_begin = not self._admitted or self._elapsed() < self._slice_end_s
        if not may_begin:
            self.is_put_off = True
            return PUT_OFF
        self._admitted += 1
        return None

    def _lane_admits(self, cost: int) -> bool:
        """Take a cost from the allowance of the lane; False if too little is left."""
        now_s = self._elapsed()
        use = self._lanes.get(self._lane)
        if use is None or now_s - use.since_s >= 1.0:
            if len(self._lanes) >= LANES_MAX:
                self._lanes.clear()
            use = _LaneUse(now_s, 0)
        if use.cost + cost > LANE_COST_PER_S:
            return False
        self._lanes[self._lane] = use._replace(cost=use.cost + cost)
        return True


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
