"""Refusals that pods share: the same pod gets the same answer from the same cluster.

Hundreds of pods of one workload wait for the same. The first one is tried on all nodes, with its
diagnosis and preemption; as long as no pod is placed, the others are refused as it was.
"""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from mooring.api.core.pod import Pod
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.scheduling_cycle import Attempt, Pending, attempt


class Refusals:
    """The pods that got no node since a cluster changed last."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[Hashable, Pending] = {}

    def like(self, pod: Pod) -> Pending | None:
        """Return the refusal of a pod if one like it was refused, else None."""
        if not self._known or _is_nominated(pod):
            return None
        ready = attempt(self._cluster, pod)
        found = self._known.get(_kind(ready)) if isinstance(ready, Attempt) else None
        return None if found is None else replace(found, pod=pod)

    def remember(self, pending: Pending) -> None:
        """Keep a refusal, unless it is about this pod alone.

        A fault may pass; victims and claims to be deallocated are those of one pod.
        """
        is_own = pending.is_fault or pending.preemption is not None
        if is_own or pending.deallocation is not None or _is_nominated(pending.pod):
            return
        if pending.diagnosis.pre_filter_status is None:
            ready = attempt(self._cluster, pending.pod)
            if isinstance(ready, Attempt):
                self._known[_kind(ready)] = pending

    def forget(self) -> None:
        """Forget all refusals: the cluster has changed."""
        self._known.clear()


def _kind(ready: Attempt) -> Hashable:
    spec = ready.pod.spec
    return ready.kind, spec.priority or 0, spec.preemption_policy


def _is_nominated(pod: Pod) -> bool:
    return bool(pod.status.nominated_node_name)
