"""DefaultPreemption: which pods of lower priority must leave so that a pod gets a node.

On each node that rejects the pod, but not for good:

1. All pods of lower priority are removed. If the node still rejects the pod, it is no use.
2. They are reprieved one by one, the most important first, as long as the pod still fits. Those
   that cannot stay are the victims.

The node with the least important victims is chosen. Nothing is changed: pods are removed from a
copy of the node, and their counts in the topology state are subtracted.

    # candidate: a node with its victims
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct

from mooring.scheduler.cluster import Cluster
from mooring.scheduler.diagnosis import FitDiagnosis
from mooring.scheduler.errors import CycleError
from mooring.scheduler.framework import Unschedulable
from mooring.scheduler.node_info import NodeInfo
from mooring.scheduler.plugins.dynamic_resources import FilterClaims, NodeAllocation
from mooring.scheduler.plugins.registry import active_filters, run_filters
from mooring.scheduler.pod_signature import PodInfo, PodSignature
from mooring.scheduler.topology_state import TopologyState

# As many candidates are enough, as in Kubernetes: 100, or a tenth of the nodes.
CANDIDATES_MIN = 100
CANDIDATES_PERCENT = 10
NOT_STARTED = datetime.max.replace(tzinfo=UTC)
PRIORITY_OFFSET = 2**31  # makes all priorities count as positive


class Preemption(Struct, frozen=True):
    """The pod would get this node once these pods have left it."""

    node: str
    victims: tuple[PodInfo, ...]  # the most important first


class NoPreemption(Struct, frozen=True):
    """No victims would help, or that could not be found out."""

    outcomes: Mapping[str, Unschedulable] = {}  # the statuses of nodes without all victims
    fault: str | None = None


def preempt(
    cluster: Cluster,
    signature: PodSignature,
    priority: int,
    diagnosis: FitDiagnosis,
    claims: FilterClaims,
) -> Preemption | NoPreemption:
    """Return what Kubernetes would do for a pod of this priority that all nodes reject."""
    if diagnosis.pre_filter_status is not None or not _has_lower(cluster, priority):
        return NoPreemption()
    statuses = diagnosis.node_to_status
    tried = [name for name, status in statuses.items() if not status.is_unresolvable]
    enough = max(CANDIDATES_MIN, len(tried) * CANDIDATES_PERCENT // 100)
    dry_run = _DryRun(cluster, signature, claims)
    candidates: list[Preemption] = []
    outcomes: dict[str, Unschedulable] = {}
    fault: str | None = None
    for name in tried:
        info = cluster.snapshot.nodes[name]
        lower = [each for each in info.pods.values() if cluster.priority_of(each) < priority]
        if not lower:
            continue
        lower.sort(key=lambda each: _importance(cluster, each))
        try:
            found = dry_run.victims(info, lower)
        except CycleError as error:
            fault = fault or str(error)
            continue
        if isinstance(found, Unschedulable):
            outcomes[name] = found
        elif found:
            candidates.append(Preemption(name, found))
            if len(candidates) >= enough:
                break
    if candidates:
        return min(candidates, key=_cost)
    return NoPreemption(outcomes, fault)


def lower_than(cluster: Cluster, priority: int) -> list[PodInfo]:
    """Return all placed pods of lower priority."""
    if not _has_lower(cluster, priority):
        return []
    placed = (each for info in cluster.snapshot.nodes.values() for each in info.pods.values())
    return [each for each in placed if cluster.priority_of(each) < priority]


@contextmanager
def removed(cluster: Cluster, pods: Sequence[PodInfo]) -> Iterator[None]:
    """Remove pods during a block; their claims keep their devices, as in Kubernetes."""
    snapshot = cluster.snapshot
    nodes = [snapshot.node_of(pod.key) for pod in pods]
    for pod in pods:
        snapshot.remove_pod(pod.key)
    try:
        yield
    finally:
        for pod, node in zip(pods, nodes, strict=True):
            assert node is not None
            snapshot.add_pod(pod, node)


def _has_lower(cluster: Cluster, priority: int) -> bool:
    """Return whether any placed pod may be preempted; most often none can."""
    return any(each < priority for each in cluster.snapshot.inputs.pod_index.priorities) or any(
        (group.spec.priority or 0) < priority for group in cluster.groups.values()
    )


def _importance(cluster: Cluster, pod: PodInfo) -> tuple[int, bool, datetime, str]:
    """Return what sorts the most important first: by priority, then groups, then age."""
    return -cluster.priority_of(pod), pod.group is None, pod.started or NOT_STARTED, pod.key


class _Cost(NamedTuple):
    """The cost of a candidate: the lowest is chosen."""

    highest: int
    total: int
    pods: int
    youth: float
    node: str


def _cost(candidate: Preemption) -> _Cost:
    victims = candidate.victims
    # Kubernetes takes the priority of the first, which is the most important.
    top = max(each.priority for each in victims)
    started = min((each.started or NOT_STARTED) for each in victims if each.priority == top)
    return _Cost(
        victims[0].priority,
        sum(each.priority + PRIORITY_OFFSET for each in victims),
        len(victims),
        -started.timestamp(),
        candidate.node,
    )


class _DryRun:
    """Filters a node without some of its pods."""

    def __init__(self, cluster: Cluster, signature: PodSignature, claims: FilterClaims) -> None:
        self._signature = signature
        self._claims = claims
        self._state: TopologyState = cluster.snapshot.topology_state(signature)
        self._filters = active_filters(signature, self._state)

    def victims(self, info: NodeInfo, lower: list[PodInfo]) -> tuple[PodInfo, ...] | Unschedulable:
        """Return which of the pods must leave the node, or why that would be no use."""
        away: list[PodInfo] = []
        name = info.facts.name
        try:
            for pod in lower:
                info = info.without_pod(pod.key)
                self._state.count(pod, name, -1)
                away.append(pod)
            status = self._status(info)
            if status is not None:
                return status
            for pod in lower:
                back = info.with_pod(pod)
                self._state.count(pod, name, 1)
                away.remove(pod)
                if self._status(back) is None:
                    info = back
                else:
                    self._state.count(pod, name, -1)
                    away.append(pod)
            return tuple(away)
        finally:
            for pod in away:
                self._state.count(pod, name, 1)

    def _status(self, info: NodeInfo) -> Unschedulable | None:
        filters, signature = self._filters, self._signature
        status = run_filters(filters.before_claims, signature, info, self._state)
        if status is not None:
            return status
        allocation = self._claims(info)
        if not isinstance(allocation, NodeAllocation):
            return allocation
        return run_filters(filters.after_claims, signature, info, self._state)
