"""Groups of pods: tried together, bound together, and preempting as one.

An entry of the queue has the pods of a whole tree of groups. Those that get no node while others
do are tried again at once, as in Kubernetes: only then pods may be preempted for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from typing import Protocol

from moorage.api.core.pod import DEFAULT_SCHEDULER, Pod
from moorage.api.scheduling import CompositePodGroup, PodGroup
from moorage.claims.pod_claims import group_name
from moorage.kit.lru import LRU
from moorage.scheduler.cluster import FINISHED
from moorage.scheduler.group_forest import GROUP, AnyGroup, GroupKey, key_of
from moorage.scheduler.live.assume_cache import AssumeCache
from moorage.scheduler.live.config import Moment, SchedulerConfig
from moorage.scheduler.live.effects import EffectRunner
from moorage.scheduler.live.evaluation_turns import EvaluationTurns
from moorage.scheduler.live.failure_handler import FailureHandler
from moorage.scheduler.live.metrics import (
    ERROR,
    SCHEDULED,
    UNSCHEDULABLE,
    WAITING_ON_PREEMPTION,
    Metrics,
    profile_of,
)
from moorage.scheduler.live.queue_entries import QueuedPodInfo, QueueKey
from moorage.scheduler.live.queueing_hints import EVERYTHING, combined_hints, departures, hints_for
from moorage.scheduler.live.scheduling_queue import SchedulingQueue
from moorage.scheduler.live.status_updates import report_group
from moorage.scheduler.pod_groups import (
    Gang,
    GroupDecision,
    UnitDecision,
    decide,
    held_back,
    unit_of,
    unready,
)
from moorage.scheduler.pod_signature import PodInfo, pod_key
from moorage.scheduler.reservation import IdSource, Reservation
from moorage.scheduler.scheduling_cycle import Pending, pre_enqueue

REPORTED_MAX = 4096
INCOMPLETE = "waiting for all groups above the pod's group to exist"


class SchedulerParts(Protocol):
    """What scheduling groups shares with scheduling pods."""

    cache: AssumeCache
    queue: SchedulingQueue
    effects: EffectRunner
    metrics: Metrics

    def bind(self, reservation: Reservation, entry: QueuedPodInfo) -> None:
        """Bind a pod to its node."""

    def resolves_double_allocation(self, pod: Pod) -> bool:
        """Deallocate the pod's claims whose devices other claims got first, if there are any."""

    def count_rejected(self, pending: Pending) -> None:
        """Count a pod that got no node."""

    def elapsed_s(self) -> float:
        """Return how long the present step has taken."""


class GroupScheduling:
    """Schedules the groups of a live scheduler."""

    def __init__(
        self,
        parts: SchedulerParts,
        failures: FailureHandler,
        turns: EvaluationTurns,
        ids: IdSource,
        config: SchedulerConfig,
    ) -> None:
        self._parts = parts
        self._cache = parts.cache
        self._cluster = parts.cache.cluster
        self._failures = failures
        self._turns = turns
        self._ids = ids
        self._names = frozenset(config.names)
        self._reports_composites = config.reports_composites
        # The versions of groups whose conditions we change or have changed.
        self._reported: LRU[GroupKey, str] = LRU(REPORTED_MAX)

    def pods_below(self, value: AnyGroup) -> list[tuple[str, QueueKey]]:
        """Return the pods of all groups below a group, with the root that they wait under."""
        namespace, forest = value.metadata.namespace, self._cluster.forest
        names = {value.metadata.name} if isinstance(value, PodGroup) else set()
        names |= {leaf.metadata.name for leaf in forest.leaves(key_of(value))}
        return [
            (key, forest.root_of((GROUP, namespace, name)))
            for name in sorted(names)
            for key in self._cache.members.get((namespace, name), ())
        ]

    def schedule(self, entry: QueuedPodInfo, now: Moment) -> None:
        """Schedule the pods of an entry together; those that get no node wait together."""
        kind, namespace, name = entry.key
        root: GroupKey = (kind, namespace, name)
        pods = list(entry.pods.values())
        by_group: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in pods:
            by_group[group_name(pod) or ""].append(pod)
        unit = unit_of(
            self._cluster, root, lambda group: self._gang(group, by_group[group.metadata.name])
        )
        if unit is None:
            waiting = (
                pre_enqueue(self._cluster, pod) or unready(self._cluster, pod, INCOMPLETE)
                for pod in pods
            )
            self._keep(entry, list(waiting), now)
            return
        parts = self._parts
        if any(list(map(parts.resolves_double_allocation, pods))):  # of each pod
            parts.queue.back_off(entry, now.elapsed_s)
            return
        decision = decide(self._cluster, unit, self._ids, is_ready=entry.is_ready)
        reserved = [each for each in decision.results if isinstance(each, Reservation)]
        if self._turns.is_put_off and not reserved:
            parts.queue.put_off(entry, self._turns.used_s)
            return
        self._count(decision, profile_of(pods[0]))
        for reservation in reserved:
            parts.bind(self._cache.assume(reservation), entry)
        for group in decision.groups:
            self._report_group(group.gang.group, group, now)
        if self._reports_composites and isinstance(unit.group, CompositePodGroup):
            self._report_group(unit.group, decision, now)
        victims = () if decision.preemption is None else decision.preemption.victims
        if victims:
            self._failures.preempt_for_group(unit.group, pods, victims, now)
        pending = [each for each in decision.results if isinstance(each, Pending)]
        if reserved and pending:
            self._report(pending, now, entry.muted)
            for each in pending:
                key = pod_key(each.pod)
                priority, now_s = entry.priority, now.elapsed_s
                parts.queue.put(entry.key, key, each.pod, priority=priority, now_s=now_s)
        else:
            is_gated = entry.is_ready and held_back(self._cluster, unit) is not None
            is_parked = self._are_several(victims)
            self._keep(entry, pending, now, is_gated=is_gated, is_parked=is_parked)

    def is_just_ready(self, key: QueueKey, pod: Pod) -> bool:
        """Return whether those that wait under a root can be tried, and not without this pod."""
        entry = self._parts.queue.find(key)
        if entry is None or not entry.has_failed or entry.is_parked or key[0] == "pod":
            return False
        place = pod.metadata.namespace, group_name(pod) or ""
        group, members = self._cluster.groups.get(place), self._cache.members.get(place, {})
        if group is None or Gang(group, ()).minimum != len(members):
            return False
        kind, namespace, name = key
        pods = entry.pods.values()
        unit = unit_of(
            self._cluster,
            (kind, namespace, name),
            lambda group: self._gang(
                group, [pod for pod in pods if group_name(pod) == group.metadata.name]
            ),
        )
        return unit is not None and held_back(self._cluster, unit) is None

    def _are_several(self, victims: Iterable[PodInfo]) -> bool:
        """Return whether more than one pod has yet to be told to leave.

        Until they are, Kubernetes holds the group back, and then until the first has left. One is
        told sooner than the group is back in the queue.
        """
        pods = self._cache.pods
        found = (pods.get(victim.key) for victim in victims)
        return sum(pod is not None and not pod.metadata.deletion_timestamp for pod in found) > 1

    def _gang(self, group: PodGroup, pods: list[Pod]) -> Gang:
        """Return a group with its pods as they are: in the order of their arrival."""
        members = self._cache.members.get((group.metadata.namespace, group.metadata.name), {})
        placed = tuple(self._placed(members))
        return Gang(
            group,
            tuple(sorted(pods, key=lambda pod: -(pod.spec.priority or 0))),
            scheduled=len(placed),
            existing=sum(map(self._counts, members.values())),
            nodes=tuple(node for _, node in placed),
            placed=tuple(pod for pod, _ in placed),
        )

    def _placed(self, members: dict[str, Pod]) -> Iterator[tuple[Pod, str]]:
        """Yield pods that have a node and have not finished, with their nodes."""
        for key, pod in members.items():
            if pod.status.phase in FINISHED:
                continue
            if (reservation := self._cache.in_flight.get(key)) is not None:
                yield pod, reservation.node
            elif self._cache.has_node(key):
                yield pod, pod.spec.node_name or self._cluster.snapshot.node_of(key) or ""

    def _counts(self, pod: Pod) -> bool:
        """Return whether a pod counts as a member: it has not finished, and is ours to schedule."""
        name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
        is_ours = bool(pod.spec.node_name) or name in self._names
        return is_ours and pod.status.phase not in FINISHED

    def _count(self, decision: UnitDecision, profile: str) -> None:
        if decision.message is None:
            return  # it was not tried
        result = SCHEDULED
        if decision.message:
            result = ERROR if decision.is_fault else UNSCHEDULABLE
            result = WAITING_ON_PREEMPTION if decision.preemption is not None else result
        self._parts.metrics.group_attempted(profile, result, self._parts.elapsed_s())

    def _report_group(
        self, group: AnyGroup, decision: GroupDecision | UnitDecision, now: Moment
    ) -> None:
        """Write a group's condition; our copy is outdated until it has what we wrote last."""
        key, version = key_of(group), group.metadata.resource_version
        is_outdated = self._reported.get(key) == version
        self._reported.put(key, version)

        def finished(is_written: bool) -> None:
            if not is_written and not is_outdated and self._reported.get(key) == version:
                self._reported.discard(key)

        update = report_group(group, decision, now, is_outdated=is_outdated)
        self._parts.effects.start(update, finished)

    def _report(self, pending: list[Pending], now: Moment, muted: Container[str]) -> bool:
        """Report why pods have no node; return whether an event was left out."""
        self._cluster.work.measure(None)  # explanations are not part of the cycle
        is_left_out = False
        for each in pending:
            self._parts.count_rejected(each)
            name = each.pod.metadata.namespace, group_name(each.pod) or ""
            is_muted = self._failures.is_muted(each, muted)
            is_left_out = is_left_out or is_muted
            group = self._cluster.groups.get(name)
            self._failures.handle_member(group, each, now, is_muted=is_muted)
        return is_left_out

    def _keep(
        self,
        entry: QueuedPodInfo,
        pending: list[Pending],
        now: Moment,
        *,
        is_gated: bool = False,
        is_parked: bool = False,
    ) -> None:
        """Keep pods that got no node waiting together.

        Kubernetes adds an event to the last one if the pod has not changed since, whatever it
        says. So an event that says something new comes with the next attempt after a condition.
        """
        entry.pods = {pod_key(each.pod): each.pod for each in pending}
        is_left_out = self._report(pending, now, entry.muted)
        queue = self._parts.queue
        if any(each.is_fault for each in pending):
            queue.back_off(entry, now.elapsed_s)
        elif pending:
            hints = combined_hints([hints_for(each) for each in pending])
            hints = hints._replace(is_timed=True)
            if is_gated:
                hints = hints._replace(shared=frozenset(), is_gated=True)
            elif is_parked:
                hints = hints._replace(shared=departures(hints.shared), is_parked=True)
            elif not hints.is_gated:  # what it says of the cluster changes with anything there
                hints = hints._replace(shared=hints.shared | EVERYTHING)
            queue.add_unschedulable(entry, hints, None, now.elapsed_s)
            if is_left_out:
                queue.try_again(entry.key, now.elapsed_s)
