"""Fills a cluster with replicas, one after the other, until none fits, and empties it again.

The cluster is changed in place: what it remembers of nodes makes one more replica cost what the
last one changed, whatever the size of the fleet.
"""

from __future__ import annotations

from typing import NamedTuple

from mooring.insight.fit.replicas import Replica, Replicas
from mooring.insight.plan.planner import Progress, new_names
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.cycle import Attempt, Pending, attempt
from mooring.scheduler.reserving import Fresh, Reservation, release, reserve


class Refused(NamedTuple):
    """The replica that fits nowhere any more."""

    pending: Pending
    ready: Attempt | None  # None if it was stopped before nodes were asked


class Filling:
    """Replicas in a cluster."""

    def __init__(self, cluster: Cluster, replicas: Replicas) -> None:
        self.cluster = cluster
        self.placed: list[Reservation] = []
        self.refused: Refused | None = None
        self._replicas = replicas
        self._fresh = Fresh(new_names(cluster).share_id, self._free_name)
        self._made: list[Replica] = []
        self._next: Replica | None = None
        self._namespace = ""

    def ask(self) -> Attempt | Pending:
        """Return the next replica, ready to be put to nodes; it stays the next until placed."""
        if self._next is None:
            self._next = self._replicas.next()
            self._namespace = self._next.pod.metadata.namespace
            self._made.append(self._next)
            for claim in self._next.claims:
                self.cluster.put_claim(claim)
        return attempt(self.cluster, self._next.pod)

    def run(self, replicas_max: int, progress: Progress) -> None:
        """Place replicas until one is refused, or so many are placed."""
        while len(self.placed) < replicas_max:
            ready = self.ask()
            # Whom a replica could evict is nobody's question here.
            outcome = ready if isinstance(ready, Pending) else ready.best(alone=False)
            if isinstance(outcome, Pending):
                self.refused = Refused(outcome, None if isinstance(ready, Pending) else ready)
                return
            self.placed.append(reserve(self.cluster, outcome, self._fresh))
            self._next = None
            progress(len(self.placed), replicas_max)

    def empty(self) -> None:
        """Take all replicas out of the cluster, with their claims."""
        for reservation in reversed(self.placed):
            release(self.cluster, reservation)
        for replica in self._made:
            for claim in replica.claims:
                self.cluster.remove_claim(claim.metadata.namespace, claim.metadata.name)
        self.placed, self._made, self._next = [], [], None

    def _free_name(self, prefix: str) -> str:
        claims = self.cluster.claims
        names = (f"{prefix}{number}" for number in range(10**9))
        return next(name for name in names if (self._namespace, name) not in claims)
