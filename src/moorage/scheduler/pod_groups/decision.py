"""The decision about groups: nodes for the pods of a tree, or messages for each of them.

    waiting? ─ alike? ─ algorithm ─► nodes
                            └ PodGroupPostFilter ─► messages, perhaps victims

A group is not tried before enough of its pods exist, and before all that look for a node may be
tried: one without its claims, or with a scheduling gate, holds back all, without a message.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.core.pod import DEFAULT_SCHEDULER, Pod
from moorage.api.scheduling.v1beta1 import PREEMPT_LOWER_PRIORITY
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.framework import GANG_SCHEDULING, PluginError, Unschedulable
from moorage.scheduler.pod_groups.algorithm import (
    UNSCHEDULABLE,
    GroupAlgorithm,
    GroupResult,
    GroupStatus,
    Results,
)
from moorage.scheduler.pod_groups.gang_search import STEPS_MAX, PodResult
from moorage.scheduler.pod_groups.gangs import (
    CompositeGang,
    Gang,
    Unit,
    gangs_of,
    pods_of,
    preemption_policy,
    priority_of,
    unit_key,
)
from moorage.scheduler.pod_groups.preemption import (
    NOT_CLEARED,
    GroupPreemption,
    fails_to_clear_claims,
    post_filter,
)
from moorage.scheduler.pod_signature import PodInfo, pod_key
from moorage.scheduler.reservation import IdSource, Reservation
from moorage.scheduler.scheduling_cycle import Pending, pre_enqueue

TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"

_ALIKE = "all pods in a single pod group should have the same"


class GroupDecision(Struct, frozen=True):
    """The results of a group and of each of its pods."""

    gang: Gang
    results: tuple[PodResult, ...]
    # What Kubernetes reports of the group: "" if it has its nodes, None if it was not tried.
    message: str | None = None
    is_fault: bool = False  # the attempt failed for a reason outside the group


class UnitDecision(Struct, frozen=True):
    """The results of all groups of a tree."""

    groups: tuple[GroupDecision, ...]
    message: str | None = None  # of the root, in the same way
    is_fault: bool = False
    preemption: GroupPreemption | None = None  # the pods that must leave for them

    @property
    def results(self) -> tuple[PodResult, ...]:
        """The results of all pods."""
        return tuple(each for group in self.groups for each in group.results)


def schedule_group(
    cluster: Cluster, unit: Unit, ids: IdSource, *, steps_max: int = STEPS_MAX
) -> tuple[PodResult, ...]:
    """Reserve nodes for the pods of a group, or for none; return the result of each."""
    return decide(cluster, unit, ids, steps_max=steps_max).results


def decide(
    cluster: Cluster,
    unit: Unit,
    ids: IdSource,
    *,
    steps_max: int = STEPS_MAX,
    is_ready: bool = False,
) -> UnitDecision:
    """Do the same, and return the messages about the groups as well.

    One that is known to be ready is tried at once, although it may have too few pods by now.
    """
    pods = pods_of(unit)
    if not pods:
        return UnitDecision(())
    if not is_ready and (waiting := held_back(cluster, unit)) is not None:
        return waiting
    if (fault := _disagreement(cluster, unit, pods)) is not None:
        return _faulty(cluster, unit, fault)
    priority = priority_of(unit, pods)
    with cluster.nominated.held(priority, frozenset(map(pod_key, pods))):
        results, _ = GroupAlgorithm(cluster, ids, steps_max=steps_max).run(unit)
        return _decided(cluster, unit, results, pods, steps_max)


def _decided(
    cluster: Cluster, unit: Unit, results: Results, pods: Sequence[Pod], steps_max: int
) -> UnitDecision:
    root = results[unit_key(unit)].status
    _complete(unit, results, None)
    untried = {key: result.status.message for key, result in results.items()}
    preemption = None
    if fails_to_clear_claims(cluster, results[unit_key(unit)]):
        root = results[unit_key(unit)].status = GroupStatus(error=NOT_CLEARED, is_fault=True)
    elif not root.is_success and not root.is_fault:
        text, preemption = post_filter(cluster, unit, pods, steps_max=steps_max)
        for result in results.values() if text else ():
            result.status.reasons.append(text)
    decisions = []
    for gang in gangs_of(unit):
        key = unit_key(gang)
        pod_results = _pod_results(cluster, gang, results[key], untried[key], preemption)
        status = results[key].status
        message = "" if status.is_success else status.message
        decisions.append(GroupDecision(gang, pod_results, message, status.is_fault))
    message = "" if root.is_success else root.message
    return UnitDecision(tuple(decisions), message, root.is_fault, preemption)


def _complete(unit: Unit, results: Results, parent: GroupStatus | None) -> None:
    """Give groups that were not tried, or succeeded in vain, the status of the one above."""
    key = unit_key(unit)
    result = results.get(key)
    if parent is not None and (
        result is None or (result.status.is_success and not parent.is_success)
    ):
        result = results[key] = GroupResult(unit, parent)
    assert result is not None, "a root is always tried"
    if isinstance(unit, CompositeGang):
        for child in unit.children:
            _complete(child, results, result.status)


# --- before the attempt ---------------------------------------------------------------------------


def held_back(cluster: Cluster, unit: Unit) -> UnitDecision | None:
    """Return why groups are not tried yet, if so; nothing is reported of them then."""
    gated: dict[str, Pending] = {}
    if unit.is_ready:
        found = ((pod, pre_enqueue(cluster, pod)) for pod in pods_of(unit))
        gated = {pod_key(pod): status for pod, status in found if status is not None}
        if not gated:
            return None
        first = next(iter(gated.values()))
        text = f"waiting for pod {first.pod.metadata.name} of the group: {first.reason}"
    elif isinstance(unit, CompositeGang):
        name = unit.group.metadata.name
        text = f'waiting for composite pod group "{name}" tree to meet quorum'
    else:
        text = TOO_FEW

    def waiting(pod: Pod) -> Pending:
        return gated.get(pod_key(pod)) or unready(cluster, pod, text)

    groups = (GroupDecision(gang, tuple(map(waiting, gang.pods))) for gang in gangs_of(unit))
    return UnitDecision(tuple(groups))


def _disagreement(cluster: Cluster, unit: Unit, pods: Sequence[Pod]) -> str | None:
    """Return a field in which the pods differ from each other or from the root, if there is one.

    Pods of the groups that have a node already count, too, after the others. A group that no
    server has admitted may leave the fields empty.
    """
    priority, first = unit.group.spec.priority, pods[0].spec
    scheduler = first.scheduler_name or DEFAULT_SCHEDULER
    wanted = first.preemption_policy or PREEMPT_LOWER_PRIORITY
    what = "preemption policy"
    if cluster.features.group_preemption_policy:
        wanted = preemption_policy(cluster, unit, pods)
        what += " as the pod group's preemption policy"
    placed = [pod for gang in gangs_of(unit) for pod in gang.placed]
    for pod in (*pods, *placed):
        name, own = pod.spec.scheduler_name or DEFAULT_SCHEDULER, pod.spec.priority or 0
        if name != scheduler:
            return f'{_ALIKE} .spec.schedulerName set, got: "{name}" and "{scheduler}"'
        if priority is not None and own != priority:
            return f"{_ALIKE} priority as the pod group's priority, got {own} and {priority}"
        policy = pod.spec.preemption_policy or PREEMPT_LOWER_PRIORITY
        if policy != wanted:
            return f"{_ALIKE} {what}, got {policy} and {wanted}"
    return None


def _faulty(cluster: Cluster, unit: Unit, text: str) -> UnitDecision:
    groups = tuple(
        GroupDecision(
            gang, tuple(_failed(cluster, pod, text) for pod in gang.pods), text, is_fault=True
        )
        for gang in gangs_of(unit)
    )
    return UnitDecision(groups, text, is_fault=True)


# --- pods -----------------------------------------------------------------------------------------


def _pod_results(
    cluster: Cluster,
    gang: Gang,
    result: GroupResult,
    untried: str,
    preemption: GroupPreemption | None,
) -> tuple[PodResult, ...]:
    """Return each pod of a group.

    Of a group that could not be placed, pods that found no node have their own message. Those that
    had one get the group's, and those that were not tried get the part of it that was known then.
    """
    status, found = result.status, {pod_key(each.pod): each for each in result.pods}

    def pending(pod: Pod) -> PodResult:
        key = pod_key(pod)
        own = found.get(key)
        if isinstance(own, Reservation) and status.is_success:
            return own
        if status.is_fault:
            is_own = isinstance(own, Pending) and own.is_fault
            return own if is_own and own is not None else _failed(cluster, pod, status.message)
        nominated = "" if isinstance(own, Reservation) else None
        victims: tuple[PodInfo, ...] = ()
        if preemption is not None:
            nominated = preemption.nominated.get(key, nominated)
            victims = preemption.victims
        if isinstance(own, Pending):
            return replace(own, nominated=nominated, group_victims=victims)
        text = untried
        if own is not None:
            text = status.message if preemption else f"{UNSCHEDULABLE}, {status.message}"
        waiting = unready(cluster, pod, text)
        return replace(waiting, message=text, nominated=nominated, group_victims=victims)

    return tuple(map(pending, gang.pods))


def unready(cluster: Cluster, pod: Pod, text: str) -> Pending:
    """Return that a pod waits because of its group; nothing is reported of it."""
    diagnosis = FitDiagnosis(
        len(cluster.snapshot.nodes), pre_filter_status=Unschedulable(GANG_SCHEDULING, (text,))
    )
    return Pending(pod, diagnosis, reason=text, message="")


def _failed(cluster: Cluster, pod: Pod, text: str) -> Pending:
    diagnosis = FitDiagnosis(
        len(cluster.snapshot.nodes), pre_filter_status=PluginError(GANG_SCHEDULING, text)
    )
    return Pending(pod, diagnosis, reason=text, message=text, is_fault=True)
