"""DefaultPreemption: which pods of lower priority must leave so that a pod gets a node.

On each node that rejects the pod, but not for good:

1. All pods of lower priority are removed. If the node still rejects the pod, it is no use.
2. They are reprieved one by one, the most important first, as long as the pod still fits; those
   that would violate a disruption budget before all others. Those that cannot stay are the victims.

The node with the fewest violations is chosen, and among these that with the least important
victims. Nothing is changed: pods are removed from a copy of the node, and their counts in the
topology state are subtracted.

    # candidate: a node with its victims
    # victim: a pod, or all pods below a group of which the disruption mode is "all"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.errors import CycleError
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.group_forest import COMPOSITE, GROUP, GroupKey, key_of
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins.dynamic_resources import FilterClaims, NodeAllocation
from moorage.scheduler.plugins.registry import active_filters, run_filters
from moorage.scheduler.pod_signature import PodInfo, PodSignature, pod_key
from moorage.scheduler.topology_state import TopologyState

NOT_STARTED = datetime.max.replace(tzinfo=UTC)
PRIORITY_OFFSET = 2**31  # makes all priorities count as positive


class Preemption(Struct, frozen=True):
    """The pod would get this node once these pods have left it."""

    node: str
    victims: tuple[PodInfo, ...]  # the most important first
    violations: int = 0  # victims that violate a disruption budget


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
    profile = cluster.profile_of(signature)
    # Of so many candidates the best is good enough, as in Kubernetes.
    enough = max(profile.candidates_min, len(tried) * profile.candidates_percent // 100)
    dry_run = _DryRun(cluster, signature, claims)
    wholes = _Wholes(cluster)
    candidates: list[Preemption] = []
    outcomes: dict[str, Unschedulable] = {}
    fault: str | None = None
    is_harmless = False  # some candidate violates no budget
    for name in tried:
        info = cluster.snapshot.nodes[name]
        lower = [each for each in info.pods.values() if cluster.priority_of(each) < priority]
        if not lower:
            continue
        units = sorted(wholes.victims(info, lower), key=lambda each: each.importance)
        try:
            found = dry_run.victims(info, units)
        except CycleError as error:
            fault = fault or str(error)
            continue
        if isinstance(found, Unschedulable):
            outcomes[name] = found
        elif found[0]:
            candidates.append(Preemption(name, *found))
            is_harmless = is_harmless or not candidates[-1].violations
            if is_harmless and len(candidates) >= enough:
                break
    if candidates:
        return min(candidates, key=_cost)
    return NoPreemption(outcomes, fault)


def fits_without(
    cluster: Cluster,
    signature: PodSignature,
    claims: FilterClaims,
    node: str,
    leaving: Sequence[tuple[PodInfo, str]],
) -> bool:
    """Return whether a node takes a pod once others have left theirs, or raise CycleError."""
    dry_run = _DryRun(cluster, signature, claims)
    return dry_run.without(cluster.snapshot.nodes[node], leaving) is None


def is_under_way(cluster: Cluster, pod: Pod, diagnosis: FitDiagnosis) -> bool:
    """Return whether a pod has a nominated node that a victim of lower priority is leaving.

    It does not matter whose victim that is; a node that can never take the pod does not count.
    """
    node = cluster.nominated.node_of(pod_key(pod))
    status = None if node is None else diagnosis.node_to_status.get(node)
    if node is None or (status is not None and status.is_unresolvable):
        return False
    return has_leaving(cluster, node, pod.spec.priority or 0)


def has_leaving(cluster: Cluster, node: str, priority: int) -> bool:
    """Return whether a pod of lower priority is leaving a node because of the scheduler."""
    info = cluster.snapshot.nodes.get(node)
    return info is not None and any(
        each.is_preempted and cluster.priority_of(each) < priority for each in info.pods.values()
    )


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


class Victim(Struct, frozen=True):
    """Pods that leave together, each with its node."""

    places: tuple[tuple[PodInfo, str], ...]
    kind: str = ""  # GROUP or COMPOSITE, if they are of a group
    priority: int = 0

    @property
    def pods(self) -> tuple[PodInfo, ...]:
        """The pods."""
        return tuple(pod for pod, _ in self.places)

    @property
    def importance(self) -> tuple[int, int, int, datetime]:
        """What sorts the most important first: by priority, kind, size and age."""
        started = min((pod.started or NOT_STARTED) for pod, _ in self.places)
        rank = ("", GROUP, COMPOSITE).index(self.kind)
        return -self.priority, -rank, -len(self.places), started


def whole_of(cluster: Cluster, pod: PodInfo) -> GroupKey | None:
    """Return the highest group above a pod that is disrupted as a whole."""
    if pod.group is None or not cluster.features.pod_groups:
        return None
    found: GroupKey | None = None
    for group in cluster.forest.upwards((GROUP, pod.signature.namespace, pod.group)):
        mode = group.spec.disruption_mode
        if mode is not None and mode.all is not None:
            found = key_of(group)
    return found


def victims_of(cluster: Cluster, places: Iterable[tuple[PodInfo, str]]) -> list[Victim]:
    """Return pods as they leave: alone, or with all others here of a group that goes as a whole."""
    together: dict[GroupKey, list[tuple[PodInfo, str]]] = {}
    alone: list[Victim] = []
    for place in places:
        pod, _ = place
        if (whole := whole_of(cluster, pod)) is not None:
            together.setdefault(whole, []).append(place)
            continue
        kind = GROUP if pod.group is not None and cluster.features.pod_groups else ""
        alone.append(Victim((place,), kind, cluster.priority_of(pod)))
    groups = [
        Victim(tuple(members), key[0], cluster.priority_of(members[0][0]))
        for key, members in together.items()
    ]
    return [*alone, *groups]


class _Wholes:
    """The pods of groups that are disrupted as a whole, on all nodes; found when first needed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._places: dict[GroupKey, list[tuple[PodInfo, str]]] | None = None

    def victims(self, info: NodeInfo, lower: Iterable[PodInfo]) -> list[Victim]:
        """Return the victims on a node, with their pods on other nodes."""
        name = info.facts.name
        found = victims_of(self._cluster, [(pod, name) for pod in sorted(lower, key=_by_key)])
        return [self._completed(each) for each in found]

    def _completed(self, victim: Victim) -> Victim:
        whole = whole_of(self._cluster, victim.places[0][0])
        return victim if whole is None else replace(victim, places=tuple(self._all()[whole]))

    def _all(self) -> dict[GroupKey, list[tuple[PodInfo, str]]]:
        if self._places is None:
            self._places = {}
            for name, info in self._cluster.snapshot.nodes.items():
                for pod in info.pods.values():
                    if (whole := whole_of(self._cluster, pod)) is not None:
                        self._places.setdefault(whole, []).append((pod, name))
        return self._places


def _by_key(pod: PodInfo) -> str:
    return pod.key


class _Cost(NamedTuple):
    """The cost of a candidate: the lowest is chosen."""

    violations: int
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
        candidate.violations,
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
        self._budgets = cluster.disruption_budgets
        self._state: TopologyState = cluster.snapshot.topology_state(signature)
        self._filters = active_filters(cluster.profile_of(signature), signature, self._state)

    def victims(
        self, info: NodeInfo, lower: Sequence[Victim]
    ) -> tuple[tuple[PodInfo, ...], int] | Unschedulable:
        """Return which of the victims must leave the node, or why that would be no use.

        With them comes how many pods violate a budget. Those that would are reprieved first.
        """
        away: list[Victim] = []
        name = info.facts.name
        try:
            for victim in lower:
                for pod, node in victim.places:
                    info = info.without_pod(pod.key) if node == name else info
                self._count(victim, -1)
                away.append(victim)
            status = self._status(info)
            if status is not None:
                return status
            violating, others = self._budgets.split(lower)
            count = 0
            for victim, violations in (*violating, *((each, 0) for each in others)):
                back = info
                for pod, node in victim.places:
                    back = back.with_pod(pod) if node == name else back
                self._count(victim, 1)
                away.remove(victim)
                if self._status(back) is None:
                    info = back
                else:
                    self._count(victim, -1)
                    away.append(victim)
                    count += violations
            leaving = sorted(away, key=lambda each: each.importance) if violating else away
            return tuple(pod for victim in leaving for pod in victim.pods), count
        finally:
            for victim in away:
                self._count(victim, 1)

    def without(
        self, info: NodeInfo, leaving: Sequence[tuple[PodInfo, str]]
    ) -> Unschedulable | None:
        """Return why a node rejects the pod without others; None if it does not."""
        away = Victim(tuple(leaving))
        for pod, node in leaving:
            info = info.without_pod(pod.key) if node == info.facts.name else info
        self._count(away, -1)
        try:
            return self._status(info)
        finally:
            self._count(away, 1)

    def _count(self, victim: Victim, sign: int) -> None:
        for pod, node in victim.places:
            self._state.count(pod, node, sign)

    def _status(self, info: NodeInfo) -> Unschedulable | None:
        filters, signature = self._filters, self._signature
        status = run_filters(filters.before_claims, signature, info, self._state)
        if status is not None:
            return status
        allocation = self._claims(info)
        if not isinstance(allocation, NodeAllocation):
            return allocation
        return run_filters(filters.after_claims, signature, info, self._state)
