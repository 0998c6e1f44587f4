"""Pod groups: the pods of a gang are placed together or not at all.

Kubernetes tries the pods of a gang one after the other, each on what the earlier ones leave, and
gives up when too few are left. It never revises an earlier pod's node; Mooring does, within a
number of steps, so that a gang that fits gets its nodes. A gang is not tried before enough of its
pods may be: those without claims, or with a scheduling gate, are waited for without a message.

    # needed: how many of the pods must get a node now
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from mooring.api.core.pod import Pod
from mooring.api.scheduling import PodGroup
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.diagnosis import FitDiagnosis, fit_message
from mooring.scheduler.framework import GANG_SCHEDULING, PluginError, Unschedulable
from mooring.scheduler.preemption import lower_than, removed
from mooring.scheduler.reservation import IdSource, Reservation, release, reserve
from mooring.scheduler.scheduling_cycle import (
    NEVER_PREEMPTS,
    Attempt,
    Pending,
    Placed,
    attempt,
    pre_enqueue,
    schedule,
)

TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"
UNSCHEDULABLE = "pod group is unschedulable"
NO_VICTIMS = "No preemption victims found for incoming preemptor"
NOT_ELIGIBLE = "not eligible due to preemptionPolicy=Never."
CLAIMS_CLEARED = "deallocation and deletion of ResourceClaims completed"
NOT_PREEMPTING = (
    "removing pods of lower priority would make room, but Mooring does not preempt for pod groups"
)
STEPS_MAX = 1000
PREEMPTS = "PreemptLowerPriority"

_ALIKE = "all pods in a single pod group should have the same"

PodResult = Reservation | Pending


class Gang(Struct, frozen=True):
    """The pods of one group that look for nodes, and how many others there are."""

    group: PodGroup
    pods: tuple[Pod, ...]
    scheduled: int = 0  # pods of the group that have a node
    existing: int = 0  # all pods of the group

    @property
    def minimum(self) -> int:
        """How many pods of the group must have nodes for any to have one."""
        gang = self.group.spec.scheduling_policy.gang
        return gang.min_count if gang is not None else 1

    @property
    def priority(self) -> int:
        """The priority of the group, or of its pods if no server has admitted the group."""
        own = self.group.spec.priority
        return (self.pods[0].spec.priority or 0) if own is None else own

    @property
    def needed(self) -> int:
        """How many of the pods must get a node now."""
        return max(self.minimum - self.scheduled, 0)


class GroupDecision(Struct, frozen=True):
    """The results of a group and of each of its pods."""

    results: tuple[PodResult, ...]
    # What Kubernetes reports of the group: "" if it has its nodes, None if it was not tried.
    message: str | None = None

    @property
    def is_fault(self) -> bool:
        """Whether an attempt failed for a reason outside the group."""
        return any(isinstance(each, Pending) and each.is_fault for each in self.results)


def gang_order(pod: Pod) -> tuple[int, str, str]:
    """Return the place of a pod among those of its group: by priority, then age, then name."""
    created = pod.metadata.creation_timestamp
    return -(pod.spec.priority or 0), "" if created is None else str(created), pod.metadata.name


def schedule_group(
    cluster: Cluster, gang: Gang, ids: IdSource, *, steps_max: int = STEPS_MAX
) -> tuple[PodResult, ...]:
    """Reserve nodes for the pods of a group, or for none; return the result of each."""
    return decide_group(cluster, gang, ids, steps_max=steps_max).results


def decide_group(
    cluster: Cluster, gang: Gang, ids: IdSource, *, steps_max: int = STEPS_MAX
) -> GroupDecision:
    """Do the same, and return the message about the group as well."""
    if gang.existing < gang.minimum:
        return GroupDecision(tuple(_waiting(cluster, pod) for pod in gang.pods))
    gates = [pre_enqueue(cluster, pod) for pod in gang.pods]
    if gates.count(None) < max(gang.needed, 1):
        pairs = zip(gates, gang.pods, strict=True)
        return GroupDecision(tuple(gated or _waiting(cluster, pod) for gated, pod in pairs))
    if (fault := _disagreement(cluster, gang)) is not None:
        return GroupDecision(tuple(_failed(cluster, pod, fault) for pod in gang.pods), fault)
    results, is_placed = _try(cluster, gang, ids, steps_max)
    if any(isinstance(each, Reservation) for each in results) and is_placed:
        return GroupDecision(results, "")
    message = _group_message(cluster, gang, results, steps_max)
    return GroupDecision(
        results if is_placed else _rejected(cluster, gang, results, message), message
    )


def _try(
    cluster: Cluster, gang: Gang, ids: IdSource, steps_max: int
) -> tuple[tuple[PodResult, ...], bool]:
    """Return the results of the pods that were tried, and whether enough have a node.

    If not enough have, none keeps its node; the results still say which of them had one.
    """
    results = _one_after_the_other(cluster, gang, ids)
    placed = [each for each in results if isinstance(each, Reservation)]
    if len(placed) >= gang.needed:
        return results, True
    for reservation in reversed(placed):
        release(cluster, reservation)
    if placed and len(gang.pods) >= gang.needed:
        found = _Search(cluster, gang, ids, steps_max).run()
        if found is not None:
            return found, True
    return results, False


def _disagreement(cluster: Cluster, gang: Gang) -> str | None:
    """Return a field in which the pods differ from each other or from the group, if there is one.

    A group that no server has admitted may leave the fields empty.
    """
    spec, first = gang.group.spec, gang.pods[0].spec
    for pod in gang.pods:
        name, own = pod.spec.scheduler_name, pod.spec.priority or 0
        if name != first.scheduler_name:
            return f'{_ALIKE} .spec.schedulerName set, got: "{name}" and "{first.scheduler_name}"'
        if spec.priority is not None and own != spec.priority:
            return f"{_ALIKE} priority as the pod group's priority, got {own} and {spec.priority}"
        policy, wanted = pod.spec.preemption_policy or PREEMPTS, _preemption_policy(cluster, gang)
        if policy != wanted:
            what = "preemption policy"
            if cluster.features.group_preemption_policy:
                what += " as the pod group's preemption policy"
            return f"{_ALIKE} {what}, got {policy} and {wanted}"
    return None


def _preemption_policy(cluster: Cluster, gang: Gang) -> str:
    """Return the preemption policy of the group, or else of its first pod."""
    said = gang.group.spec.preemption_policy if cluster.features.group_preemption_policy else None
    return said or gang.pods[0].spec.preemption_policy or PREEMPTS


def _failed(cluster: Cluster, pod: Pod, text: str) -> Pending:
    diagnosis = FitDiagnosis(
        len(cluster.snapshot.nodes), pre_filter_status=PluginError(GANG_SCHEDULING, text)
    )
    return Pending(pod, diagnosis, reason=text, message=text, is_fault=True)


def _one_after_the_other(cluster: Cluster, gang: Gang, ids: IdSource) -> tuple[PodResult, ...]:
    """Place each pod on the resources that earlier ones leave, while enough can get a node."""
    results: list[PodResult] = []
    for number, pod in enumerate(gang.pods):
        placed = sum(isinstance(each, Reservation) for each in results)
        if placed + len(gang.pods) - number < gang.needed:
            break
        outcome = schedule(cluster, pod, alone=False)
        if isinstance(outcome, Placed):
            results.append(reserve(cluster, outcome, ids))
        else:
            results.append(_without_node(outcome))
    return tuple(results)


def _without_node(outcome: Attempt | Pending) -> Pending:
    """Return a pod that gets no node, with the message for members of a group."""
    if not isinstance(outcome, Pending):
        return outcome.rejected(alone=False)
    is_message = bool(outcome.message) and not outcome.is_fault
    message = fit_message(outcome.diagnosis) if is_message else outcome.message
    return replace(outcome, message=message)


class _Try(Struct):
    """One pod of the gang in the search: the nodes that are left to try, and its result."""

    attempt: Attempt | Pending
    nodes: Iterator[str]
    result: PodResult | None = None  # None: not decided, or taken back


class _Search:
    """Backtracks over earlier pods' nodes until enough pods have one.

    Each pod tries its nodes, the best first, and at last to go without; so does the next on what
    is left. A pod with nothing left to try sends the search back to the one before it.
    """

    def __init__(self, cluster: Cluster, gang: Gang, ids: IdSource, steps_max: int) -> None:
        self._cluster = cluster
        self._gang = gang
        self._ids = ids
        self._steps_left = steps_max
        self._tries: list[_Try] = []

    def run(self) -> tuple[PodResult, ...] | None:
        """Return the result of each pod once enough have a node; None if that is not found."""
        self._begin()
        while self._tries:
            if not self._advance(self._tries[-1]):
                self._tries.pop()
            elif len(self._tries) == len(self._gang.pods):
                return tuple(each.result for each in self._tries if each.result is not None)
            else:
                self._begin()
        return None

    def _begin(self) -> None:
        ready = attempt(self._cluster, self._gang.pods[len(self._tries)])
        nodes = () if isinstance(ready, Pending) else ready.nodes_by_score()
        self._tries.append(_Try(ready, iter(nodes)))

    def _advance(self, this: _Try) -> bool:
        """Release the pod's node and devices, and try the next; False if there is none."""
        if isinstance(this.result, Pending):
            return False
        if this.result is not None:
            release(self._cluster, this.result)
            this.result = None
        if not isinstance(this.attempt, Pending):
            for node in this.nodes:
                if self._steps_left <= 0:
                    return False
                self._steps_left -= 1
                placed = this.attempt.on(node)
                if placed is not None:
                    this.result = reserve(self._cluster, placed, self._ids)
                    return True
        if self._steps_left <= 0 or self._most_placed() < self._gang.needed:
            return False
        this.result = _without_node(this.attempt)
        return True

    def _most_placed(self) -> int:
        """Return how many pods can get a node if the last one tried gets none."""
        placed = sum(isinstance(each.result, Reservation) for each in self._tries)
        return placed + len(self._gang.pods) - len(self._tries)


# --- messages -------------------------------------------------------------------------------------


def _waiting(cluster: Cluster, pod: Pod) -> Pending:
    diagnosis = FitDiagnosis(
        len(cluster.snapshot.nodes), pre_filter_status=Unschedulable(GANG_SCHEDULING, (TOO_FEW,))
    )
    return Pending(pod, diagnosis, reason=TOO_FEW, message="")


def _rejected(
    cluster: Cluster, gang: Gang, results: Sequence[PodResult], message: str
) -> tuple[Pending, ...]:
    """Return each pod of a gang that could not be placed, with its message.

    Pods that found no node have their own message. Those that had one get the group's, and those
    that were not tried get the part of it that was known then.
    """
    found = {each.pod.metadata.name: each for each in results}
    nodes_count = len(cluster.snapshot.nodes)

    def pending(pod: Pod) -> Pending:
        result = found.get(pod.metadata.name)
        if isinstance(result, Pending):
            return result
        text = _too_few_message(cluster, gang, results)
        if result is not None:
            text = f"{UNSCHEDULABLE}, {message}"
        diagnosis = FitDiagnosis(
            nodes_count, pre_filter_status=Unschedulable(GANG_SCHEDULING, (text,))
        )
        return Pending(pod, diagnosis, reason=text, message=text)

    return tuple(map(pending, gang.pods))


def _too_few_message(cluster: Cluster, gang: Gang, results: Sequence[PodResult]) -> str:
    """Return the message about a group before preemption is tried."""
    if not gang.needed:
        return UNSCHEDULABLE
    placed = sum(isinstance(each, Reservation) for each in results)
    counts = f"{gang.scheduled + placed} scheduled, {len(gang.pods) - len(results)} remaining"
    text = f"minCount ({gang.minimum}) cannot be satisfied: {counts}"
    if cluster.features.group_placements:
        # Topology constraints are not modelled, so all nodes are one placement.
        return f"{UNSCHEDULABLE}, 0/1 placements are available, first placement status: {text}"
    return text


def _group_message(
    cluster: Cluster, gang: Gang, results: Sequence[PodResult], steps_max: int
) -> str:
    """Return the message about a group without the nodes that it needs."""
    for each in results:
        if isinstance(each, Pending) and each.is_fault:
            return f"failed to schedule other pod from a pod group: {each.message}"
    preemption = _preemption_message(cluster, gang, steps_max)
    return f"{_too_few_message(cluster, gang, results)}, {preemption}"


def _preemption_message(cluster: Cluster, gang: Gang, steps_max: int) -> str:
    """Return whether preemption would help.

    1. A group that does not preempt others is not eligible.
    2. Without a pod of lower priority there are no victims.
    3. The group is tried without all of these; nothing of that is kept.
    """
    if _preemption_policy(cluster, gang) == NEVER_PREEMPTS:
        return f"{CLAIMS_CLEARED}, pod group preemption: {NOT_ELIGIBLE}"
    victims = lower_than(cluster, gang.priority)
    if not victims:
        return f"pod group preemption: {NO_VICTIMS}"
    with removed(cluster, victims):
        results, is_placed = _try(cluster, gang, _trial_names(), steps_max)
        placed = [each for each in results if isinstance(each, Reservation)]
        if is_placed:
            for reservation in reversed(placed):
                release(cluster, reservation)
    if is_placed and placed:
        return f"pod group preemption: {NOT_PREEMPTING}"
    return f"{CLAIMS_CLEARED}, pod group preemption: {_too_few_message(cluster, gang, results)}"


def _trial_names() -> IdSource:
    """Return names for a trial that is never written."""
    numbers = count()
    return IdSource(
        lambda: f"trial-{next(numbers)}", lambda prefix: f"{prefix}trial-{next(numbers)}"
    )
