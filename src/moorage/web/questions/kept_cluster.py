"""The scheduler's cluster, updated as objects change, for questions about single pods.

Making it takes a second or two for thousands of nodes, and most questions are about a cluster that
differs from the last one in a few objects. One question at a time may use it; who waits for a long
one gets another cluster instead, which is made anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, Final

from moorage.api.core import Namespace, Node, Pod
from moorage.api.core.persistent_volume import PersistentVolume, PersistentVolumeClaim
from moorage.api.policy import PodDisruptionBudget
from moorage.api.resource.v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.api.runtime_class import RuntimeClass
from moorage.api.scheduling import CompositePodGroup, PodGroup
from moorage.api.storage import StorageClass
from moorage.insight.messages import full_name
from moorage.insight.plan.evaluation_limit import EvaluationLimit
from moorage.insight.plan.planner import Plan, plan_completed
from moorage.insight.snapshot.completion import Completed, complete
from moorage.insight.snapshot.snapshot import Snapshot, Spreader, key_of
from moorage.kit.checkpoints import Unwanted, checkpoint
from moorage.scheduler.cluster import Cluster
from moorage.validation.strategy import Context

EACH_S: Final = 5.0  # for the expressions of one pod
ALL_S: Final = 15.0  # for the expressions of all pods
KEPT_S: Final = 600.0  # before it is rebuilt, because its clock stands still


class KeptCluster:
    """A cluster that is updated to snapshots."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self.askers = 0  # who use it or wait for it
        self._clock = clock
        self._cluster: Cluster | None = None
        self._objects: dict[tuple[str, str, str], Any] = {}
        self._made_s = 0.0

    @contextmanager
    def turn(self, wait_s: float = -1) -> Iterator[bool]:
        """Wait for this cluster, to be used by one question; yield whether it was free in time."""
        self.askers += 1
        try:
            has_turn = self._lock.acquire(timeout=wait_s)
            try:
                yield has_turn
            except Unwanted:
                self._cluster = None  # which may have seen a part of its changes
                raise
            finally:
                if has_turn:
                    self._lock.release()
        finally:
            self.askers -= 1

    @contextmanager
    def mine(self, wait_s: float) -> Iterator[KeptCluster]:
        """Yield this cluster for one question, or a new one if this is not free within a time."""
        with self.turn(wait_s) as has_turn:
            yield self if has_turn else KeptCluster(self._clock)

    def plan(self, snapshot: Snapshot, context: Context) -> Plan:
        """Return a plan of a snapshot without any decisions yet."""
        completed = complete(snapshot, context)
        kept = self._current(completed, context)
        limit = EvaluationLimit(self._clock, each_s=EACH_S, all_s=inf)
        limit.watch(kept)
        concerns, over_quota = completed.concerns, completed.over_quota
        return Plan(completed.snapshot, (), concerns, lambda: kept, over_quota, limit)

    def placed(self, snapshot: Snapshot, context: Context) -> Plan:
        """Return the plan of all pods of a snapshot; its cluster is valid until the next question.

        Placed pods count as changes: the next snapshot does not have them, so the update removes
        them.
        """
        completed = complete(snapshot, context)
        cluster = self._current(completed, context)
        objects, self._cluster = self._objects, None  # its state is unknown if this fails
        limit = EvaluationLimit(self._clock, each_s=EACH_S, all_s=ALL_S)
        found = plan_completed(completed, context, limit=limit, kept=cluster)
        for each in found.placed:
            objects |= {key_of(value): value for value in (*each.claims, each.pod)}
        self._cluster, self._objects = cluster, objects
        return found

    def _current(self, completed: Completed, context: Context) -> Cluster:
        """Return the cluster of a snapshot, updated from the last one if possible."""
        objects = {key_of(each): each for each in completed.snapshot.objects()}
        cluster = self._cluster
        is_old = self._clock() - self._made_s > KEPT_S
        if cluster is None or is_old or not self._follow(cluster, objects):
            cluster = _made(completed, context)
            self._made_s = self._clock()
        self._cluster, self._objects = cluster, objects
        return cluster

    def _follow(self, cluster: Cluster, objects: dict[tuple[str, str, str], Any]) -> bool:
        """Apply the changes since the last snapshot; return False if one cannot be applied."""
        known = self._objects
        gone = [value for key, value in known.items() if key not in objects]
        changed = [(old, new) for key, new in objects.items() if (old := known.get(key)) is not new]
        if any(isinstance(each, RuntimeClass) for each in (*gone, *(new for _, new in changed))):
            return False
        for value in gone:
            checkpoint()
            _remove(cluster, value)
        for old, new in changed:
            checkpoint()
            if isinstance(old, Pod | PodDisruptionBudget | PodGroup | CompositePodGroup | Spreader):
                _remove(cluster, old)
            _put(cluster, new)
        return True


def _made(completed: Completed, context: Context) -> Cluster:
    waiting = {full_name(pod) for pod in completed.snapshot.pods if not pod.spec.node_name}
    return plan_completed(completed, context, left_out=waiting).cluster


def _put(cluster: Cluster, value: Any) -> None:
    match value:
        case Pod():
            cluster.put_pod(value)
        case ResourceClaim():
            cluster.put_claim(value)
        case Node():
            cluster.put_node(value)
        case ResourceSlice():
            cluster.put_slice(value)
        case DeviceClass():
            cluster.put_class(value)
        case DeviceTaintRule():
            cluster.put_taint_rule(value)
        case Namespace():
            cluster.snapshot.put_namespace(value.metadata.name, value.metadata.labels)
        case PodGroup() | CompositePodGroup():
            cluster.put_group(value)
        case PodDisruptionBudget():
            cluster.disruption_budgets.put(value)
        case PersistentVolumeClaim() | PersistentVolume() | StorageClass():
            cluster.volumes.put(value)
        case _ if isinstance(value, Spreader):
            cluster.default_selectors.put(value)


def _remove(cluster: Cluster, value: Any) -> None:
    name = value.metadata.name
    match value:
        case Pod():
            cluster.remove_pod(value)
        case ResourceClaim():
            cluster.remove_claim(value.metadata.namespace, name)
        case Node():
            cluster.remove_node(name)
        case ResourceSlice():
            cluster.remove_slice(name)
        case DeviceClass():
            cluster.remove_class(name)
        case DeviceTaintRule():
            cluster.remove_taint_rule(name)
        case Namespace():
            cluster.snapshot.remove_namespace(name)
        case PodGroup() | CompositePodGroup():
            cluster.remove_group(value)
        case PodDisruptionBudget():
            cluster.disruption_budgets.remove(value)
        case PersistentVolumeClaim() | PersistentVolume() | StorageClass():
            cluster.volumes.remove(value)
        case _ if isinstance(value, Spreader):
            cluster.default_selectors.remove(value)
