"""Limits the time that CEL expressions take, for each pod and in all.

A dump may contain expressions that take a tenth of a second for each device. Kubernetes' scheduler
gives up on such a pod after its filter timeout. Commands do the same, so that they always end. Only
evaluations count, so a large cluster with normal expressions never reaches the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from moorage.cel.lang.metering import Meter
from moorage.kit.checkpoints import checkpoint
from moorage.scheduler.cluster import Cluster

EACH_S = 10.0  # like Kubernetes' filter timeout
ALL_S = 60.0
TIMED_OUT = "timed out trying to allocate devices"  # the message of Kubernetes' scheduler
TOOK_LONG = "expressions took more than"
SIMPLER = (
    "write selectors and derived attributes that do less for each device; moor cel shows costs"
)


class EvaluationLimit:
    """Interrupts evaluations of clusters that take too long; `clock` returns seconds."""

    def __init__(
        self, clock: Callable[[], float], *, each_s: float = EACH_S, all_s: float = ALL_S
    ) -> None:
        self._clock = clock
        self._each_s = each_s
        self._all_s = all_s
        # Not their clusters: these refer to this limit.
        self._meters: list[Meter] = []
        self._begin_s = 0.0  # the time of evaluations before the current pod

    def __reduce__(self) -> tuple[object, ...]:  # meters are never pickled
        again = partial(EvaluationLimit, each_s=self._each_s, all_s=self._all_s)
        return again, (self._clock,)

    def watch(self, cluster: Cluster) -> Cluster:
        """Limit the evaluations of a cluster."""
        cluster.inventory.compiler.meter.clock = self._clock
        cluster.budget = cluster.budget._replace(interrupt=self.interrupt)
        self._meters.append(cluster.inventory.compiler.meter)
        return cluster

    def begin(self) -> None:
        """Start the time of a pod."""
        self._begin_s = self._taken_s()

    @contextmanager
    def limited(self, cluster: Cluster) -> Iterator[None]:
        """Start the time of a pod to explain; within the block, evaluations raise Interrupted."""
        self.begin()
        with cluster.inventory.compiler.meter.bounded(self.interrupt):
            yield

    def interrupt(self) -> str | None:
        """Return why evaluations must end, or None."""
        checkpoint()
        taken_s = self._taken_s()
        if taken_s > self._all_s:
            return f"{TIMED_OUT}: {TOOK_LONG} {self._all_s:g} s for all pods"
        if taken_s - self._begin_s > self._each_s:
            return f"{TIMED_OUT}: {TOOK_LONG} {self._each_s:g} s"
        return None

    def _taken_s(self) -> float:
        return sum(each.seconds for each in self._meters)
