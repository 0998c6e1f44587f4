"""Preemption for groups: which pods of lower priority must leave so that a group gets its nodes.

The whole cluster counts, and the group preempts as one:

1. All victims of lower priority are removed, and the group is tried. Their claims keep their
   devices, as in Kubernetes: a group that lacks devices preempts nobody.
2. Victims are reprieved one by one, the most important first, as long as each pod of the group
   still fits on the node that it got; those that would violate a disruption budget first.

    # reprieved: it may stay
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count

from msgspec import Struct

from moorage.api.core.pod import Pod
from moorage.api.scheduling.v1beta1 import PREEMPT_NEVER
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.plugins.registry import ActiveFilters, active_filters, run_filters
from moorage.scheduler.pod_groups.algorithm import GroupAlgorithm, GroupResult, Held
from moorage.scheduler.pod_groups.gang_search import STEPS_MAX
from moorage.scheduler.pod_groups.gangs import (
    CompositeGang,
    Unit,
    pods_of,
    preemption_policy,
    priority_of,
    unit_key,
)
from moorage.scheduler.pod_signature import PodInfo, PodSignature, pod_key
from moorage.scheduler.preemption import Victim, has_leaving, lower_than, removed, victims_of
from moorage.scheduler.reservation import IdSource

NO_VICTIMS = "No preemption victims found for incoming preemptor"
NOT_ELIGIBLE = "not eligible due to preemptionPolicy=Never."
ONGOING = "ongoing preemption on nominated nodes"
CLAIMS_CLEARED = "deallocation and deletion of ResourceClaims completed"
PREFIX = "pod group preemption: "
NOT_CLEARED = 'error in "DynamicResources" PodGroupPostFilter plugins: not found'


class GroupPreemption(Struct, frozen=True):
    """The group would get these nodes once these pods have left."""

    nominated: Mapping[str, str]  # nodes by pod
    victims: tuple[PodInfo, ...] = ()  # the most important first; none: they are leaving already


def post_filter(
    cluster: Cluster, unit: Unit, pods: Sequence[Pod], *, steps_max: int = STEPS_MAX
) -> tuple[str, GroupPreemption | None]:
    """Return what preemption says of a root without its nodes, and who must leave."""
    profile = cluster.profile_for(pods[0])
    before = [CLAIMS_CLEARED] if _clears_claims(cluster, unit) and profile.groups_deallocate else []
    if not profile.groups_preempt:
        return ", ".join(before), None
    if preemption_policy(cluster, unit, pods) == PREEMPT_NEVER:
        return ", ".join([*before, PREFIX + NOT_ELIGIBLE]), None
    priority = priority_of(unit, pods)
    if (ongoing := _ongoing(cluster, pods, priority)) is not None:
        return PREFIX + ONGOING, ongoing
    lower = lower_than(cluster, priority)
    if not lower:
        return PREFIX + NO_VICTIMS, None
    algorithm = GroupAlgorithm(cluster, _trial_names(), steps_max=steps_max)
    nodes = {each.key: cluster.snapshot.node_of(each.key) or "" for each in lower}
    with removed(cluster, lower):
        results, held = algorithm.run(unit)
        status = results[unit_key(unit)].status
        if not status.is_success:
            return ", ".join([*before, PREFIX + status.message]), None
        nominated = {pod_key(each.pod): each.node for each in held}
        assigned = _Assignments(cluster, held, pods)
        algorithm.undo(held)
        victims = _chosen(cluster, assigned, lower, nodes)
    text = f"found a placement for podgroup, preempting {len(victims)} victims"
    return PREFIX + text, GroupPreemption(nominated, victims)


def fails_to_clear_claims(cluster: Cluster, result: GroupResult) -> bool:
    """Return whether there is nothing to clear claims by: no pod of the group got to a node."""
    if result.status.is_success or result.status.is_fault:
        return False
    if result.pods and cluster.snapshot.nodes:
        return False
    pod = next(iter(pods_of(result.unit)))
    return cluster.profile_for(pod).groups_deallocate and _clears_claims(cluster, result.unit)


def _clears_claims(cluster: Cluster, unit: Unit) -> bool:
    """Return whether claims are reported as cleared, whether there are any or not."""
    is_constrained = unit.group.spec.scheduling_constraints is not None
    return not (
        isinstance(unit, CompositeGang) or (is_constrained and cluster.features.group_placements)
    )


def _ongoing(cluster: Cluster, pods: Iterable[Pod], priority: int) -> GroupPreemption | None:
    """Return the nominations of pods whose victims have not left yet."""
    nominated = {
        pod_key(pod): node
        for pod in pods
        if (node := cluster.nominated.node_of(pod_key(pod))) in cluster.snapshot.nodes
        and node is not None
    }
    is_ongoing = any(has_leaving(cluster, name, priority) for name in set(nominated.values()))
    return GroupPreemption(nominated) if is_ongoing else None


# --- victims --------------------------------------------------------------------------------------


def _chosen(
    cluster: Cluster,
    assigned: _Assignments,
    lower: Iterable[PodInfo],
    nodes: Mapping[str, str],
) -> tuple[PodInfo, ...]:
    """Return the pods that cannot be reprieved; all of them are removed meanwhile."""
    back: list[PodInfo] = []
    try:
        places = [(pod, nodes[pod.key]) for pod in _as_bound(lower)]
        units = sorted(victims_of(cluster, places), key=lambda each: each.importance)
        violating, others = cluster.disruption_budgets.split(units)
        leaving: list[Victim] = []
        for victim in (*(each for each, _ in violating), *others):
            for pod, node in victim.places:
                cluster.snapshot.add_pod(pod, node)
            if assigned.still_fit({node for _, node in victim.places}):
                back += victim.pods
            else:
                leaving.append(victim)
                for pod in victim.pods:
                    cluster.snapshot.remove_pod(pod.key)
    finally:
        for pod in back:
            cluster.snapshot.remove_pod(pod.key)
    if violating:
        leaving.sort(key=lambda each: each.importance)
    return tuple(pod for victim in leaving for pod in victim.pods)


def _as_bound(pods: Iterable[PodInfo]) -> list[PodInfo]:
    """Return pods in the order in which Kubernetes has equal ones: the last of a group comes first.

    Kubernetes binds the pods of a group at once, and begins with the last.
    """
    together: dict[tuple[str, str], list[PodInfo]] = {}
    for pod in pods:
        name = pod.key if pod.group is None else pod.group
        together.setdefault((pod.signature.namespace, name), []).append(pod)
    return [pod for each in together.values() for pod in (each[-1], *each[:-1])]


class _Assignment(Struct, frozen=True):
    """A pod of the group, and the node that it got."""

    pod: PodInfo
    signature: PodSignature
    node: str


class _Assignments:
    """The pods of the group on their nodes, checked as victims come back."""

    def __init__(self, cluster: Cluster, held: Held, pods: Iterable[Pod]) -> None:
        self._cluster = cluster
        self._snapshot = cluster.snapshot
        unbound = {pod_key(pod): pod for pod in pods}
        self._all = [
            _Assignment(
                cluster.snapshot.nodes[each.node].pods[pod_key(each.pod)],
                cluster.signature(unbound[pod_key(each.pod)]),
                each.node,
            )
            for each in held
        ]
        self._read_other_nodes = any(self._filters(each).reads_other_nodes for each in self._all)

    def _filters(self, each: _Assignment) -> ActiveFilters:
        state = self._snapshot.topology_state(each.signature)
        return active_filters(self._cluster.profile_of(each.signature), each.signature, state)

    def still_fit(self, changed: set[str]) -> bool:
        """Return whether the pods still fit, one after the other, now that nodes have more pods."""
        snapshot = self._snapshot
        with ExitStack() as undo:
            for each in self._all:
                if each.node not in changed and not self._read_other_nodes:
                    continue
                state = snapshot.topology_state(each.signature)
                filters = self._filters(each)
                every = filters.before_claims + filters.after_claims
                info = snapshot.nodes[each.node]
                if run_filters(every, each.signature, info, state) is not None:
                    return False
                snapshot.add_pod(each.pod, each.node)
                undo.callback(snapshot.remove_pod, each.pod.key)
        return True


def _trial_names() -> IdSource:
    """Return names for a trial that is never written."""
    numbers = count()
    return IdSource(
        lambda: f"trial-{next(numbers)}", lambda prefix: f"{prefix}trial-{next(numbers)}"
    )
