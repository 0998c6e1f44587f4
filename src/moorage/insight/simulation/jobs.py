"""The pods of a trace, and the queues in which they wait.

Pods of a workload are alike, so they share one queue. Pods of higher priority come first, then
those that have waited longest, as in the scheduler's queue. If one pod gets no node, those behind
it in its queue get none, either: the queue is stuck until a pod leaves the cluster or, if the
workload has affinity or spreads over domains, until one enters it.

    # replica: the current pod and the claims made for it; a preempted pod gets a new replica
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from msgspec import Struct

from moorage.insight.fit.replicas import Replica
from moorage.insight.messages import full_name
from moorage.insight.simulation.result import SimulatedPod
from moorage.insight.simulation.trace import Arrival
from moorage.scheduler.reservation import Reservation

Order = tuple[int, float, int]  # priority, time in the queue, number


class TracePod(Struct, eq=False):
    """A pod of a trace, and what has happened to it so far."""

    number: int
    workload: str
    arrival_s: float
    duration_s: float | None
    queued_s: float = 0.0
    waited_s: float = 0.0
    started_s: float | None = None
    ended_s: float | None = None
    node: str | None = None
    runs: int = 0
    name: str = ""
    message: str = ""
    replica: Replica | None = None
    reservation: Reservation | None = None  # while it runs

    def shown(self, end_s: float) -> SimulatedPod:
        """Return what happened to the pod until the end."""
        is_waiting = self.node is None
        waited_s = self.waited_s + (end_s - self.queued_s if is_waiting else 0.0)
        return SimulatedPod(
            self.name,
            self.workload,
            self.arrival_s,
            max(waited_s, 0.0),
            None if is_waiting else self.started_s,
            None if is_waiting else self.ended_s,
            self.node,
            self.runs - (0 if is_waiting else 1),
            self.message if is_waiting else "",
        )


def trace_pods(arrivals: Sequence[Arrival], titles: Mapping[str, str]) -> list[TracePod]:
    """Return the pods of arrivals, in order; `titles` are the titles of workloads, by name."""
    numbers = count()
    return [
        TracePod(
            next(numbers),
            titles[each.workload],
            float(each.at_s),
            None if each.duration_s is None else float(each.duration_s),
        )
        for each in arrivals
        for _ in range(each.count)
    ]


class PodQueue:
    """The waiting pods of one workload."""

    def __init__(
        self,
        make: Callable[[], Replica],
        priority: int,
        *,
        depends_on_others: bool,
        is_stuck: bool = False,
    ) -> None:
        self.is_stuck = is_stuck
        self.depends_on_others = depends_on_others
        self._make = make
        self._priority = priority
        self._pods: deque[TracePod] = deque()

    def __len__(self) -> int:
        return len(self._pods)

    def put(self, pod: TracePod, now_s: float) -> None:
        """Add a pod behind those that wait."""
        pod.queued_s = now_s
        pod.node = pod.started_s = pod.ended_s = None
        self._pods.append(pod)

    @property
    def first(self) -> TracePod:
        """The pod to try next, with its replica."""
        pod = self._pods[0]
        if pod.replica is None:
            self._prepare(pod)
        return pod

    def pop(self) -> None:
        """Remove the first pod."""
        self._pods.popleft()

    @property
    def order(self) -> Order:
        """The place of the first pod among those of all queues."""
        pod = self._pods[0]
        return -self._priority, pod.queued_s, pod.number

    def finish(self) -> None:
        """Give pods that were not tried names, and the message of the first pod."""
        for pod in self._pods:
            if not pod.name:
                self._prepare(pod)
            pod.message = pod.message or self._pods[0].message

    def _prepare(self, pod: TracePod) -> None:
        pod.replica = self._make()
        pod.name = pod.name or full_name(pod.replica.pod)
