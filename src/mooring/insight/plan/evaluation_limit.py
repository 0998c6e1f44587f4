"""A limit on the time that expressions take: of each pod, and of all together.

A dump may hold expressions that take a tenth of a second for each device. Kubernetes' scheduler
gives up on such a pod after its filter timeout; a command does the same, and answers in the end.
Only evaluations count, so a large cluster with usual expressions is never cut short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mooring.scheduler.cluster import Cluster

EACH_S = 10.0  # as Kubernetes' filter timeout
ALL_S = 60.0
TIMED_OUT = "timed out trying to allocate devices"  # as Kubernetes' scheduler says
TOOK_LONG = "expressions took more than"
SIMPLER = (
    "write selectors and derived attributes that do less for each device; moor cel shows costs"
)


class EvaluationLimit:
    """Ends the evaluations of clusters that take too long; `clock` gives seconds."""

    def __init__(
        self, clock: Callable[[], float], *, each_s: float = EACH_S, all_s: float = ALL_S
    ) -> None:
        self._clock = clock
        self._each_s = each_s
        self._all_s = all_s
        self._clusters: list[Cluster] = []
        self._begin_s = 0.0  # what evaluations had taken when the present pod's turn came

    def watch(self, cluster: Cluster) -> Cluster:
        """Limit the evaluations of a cluster."""
        cluster.inventory.compiler.meter.clock = self._clock
        cluster.budget = cluster.budget._replace(interrupt=self.interrupt)
        self._clusters.append(cluster)
        return cluster

    def begin(self) -> None:
        """Begin with a pod."""
        self._begin_s = self._taken_s()

    @contextmanager
    def limited(self, cluster: Cluster) -> Iterator[None]:
        """Begin with a pod that is explained: within, evaluations raise Interrupted."""
        self.begin()
        with cluster.inventory.compiler.meter.bounded(self.interrupt):
            yield

    def interrupt(self) -> str | None:
        """Return why evaluations must end, if so."""
        taken_s = self._taken_s()
        if taken_s > self._all_s:
            return f"{TIMED_OUT}: {TOOK_LONG} {self._all_s:g} s for all pods"
        if taken_s - self._begin_s > self._each_s:
            return f"{TIMED_OUT}: {TOOK_LONG} {self._each_s:g} s"
        return None

    def _taken_s(self) -> float:
        return sum(each.inventory.compiler.meter.seconds for each in self._clusters)
