"""Groups of pods: those of a gang are placed together or not at all.

Kubernetes tries the pods of a gang one after the other, each on what the earlier ones leave, and
gives up when too few are left. It never takes back an earlier pod's choice; we do, within a
number of steps, so that a gang for which there is room gets it. A gang is not tried before enough
of its pods may be: those without their claims, or with a gate, are waited for in silence.

    # needed: how many of the pods must get a node now
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from mooring.api.core.pod import Pod
from mooring.api.scheduling import PodGroup
from mooring.scheduler import messages
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.cycle import (
    NEVER_PREEMPTS,
    Attempt,
    Pending,
    Placed,
    attempt,
    gate,
    schedule,
)
from mooring.scheduler.filtering import Survey
from mooring.scheduler.obstacles import GANG_SCHEDULING
from mooring.scheduler.preemption import lower_than, thought_away
from mooring.scheduler.refusals import Fault, Refusal
from mooring.scheduler.reserving import Fresh, Reservation, release, reserve

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

Result = Reservation | Pending


class Gang(Struct, frozen=True):
    """The pods of one group that look for nodes, and how many others there are."""

    group: PodGroup
    pods: tuple[Pod, ...]
    scheduled: int = 0  # pods of the group that have a node
    existing: int = 0  # pods of the group that there are, with those

    @property
    def minimum(self) -> int:
        """How many pods of the group must have nodes for any to have one."""
        gang = self.group.spec.scheduling_policy.gang
        return gang.min_count if gang is not None else 1

    @property
    def priority(self) -> int:
        """The priority of the group; a group that no server has admitted has that of its pods."""
        given = self.group.spec.priority
        return (self.pods[0].spec.priority or 0) if given is None else given

    @property
    def needed(self) -> int:
        """How many of the pods must get a node now."""
        return max(self.minimum - self.scheduled, 0)


class Decided(Struct, frozen=True):
    """What became of a group and of each of its pods."""

    results: tuple[Result, ...]
    # What Kubernetes says of the group: "" if it has its nodes, None if it was not tried.
    message: str | None = None

    @property
    def is_fault(self) -> bool:
        """Whether an attempt failed, which is no fault of the group."""
        return any(isinstance(each, Pending) and each.is_fault for each in self.results)


def schedule_group(
    cluster: Cluster, gang: Gang, fresh: Fresh, *, steps_max: int = STEPS_MAX
) -> tuple[Result, ...]:
    """Reserve nodes for the pods of a group, or for none; return what became of each."""
    return decide_group(cluster, gang, fresh, steps_max=steps_max).results


def decide_group(
    cluster: Cluster, gang: Gang, fresh: Fresh, *, steps_max: int = STEPS_MAX
) -> Decided:
    """Do the same, and return what is said of the group as well."""
    if gang.existing < gang.minimum:
        return Decided(tuple(_waiting(cluster, pod) for pod in gang.pods))
    gates = [gate(cluster, pod) for pod in gang.pods]
    if gates.count(None) < max(gang.needed, 1):
        pairs = zip(gates, gang.pods, strict=True)
        return Decided(tuple(gated or _waiting(cluster, pod) for gated, pod in pairs))
    if (fault := _disagreement(cluster, gang)) is not None:
        return Decided(tuple(_failed(cluster, pod, fault) for pod in gang.pods), fault)
    results, is_placed = _try(cluster, gang, fresh, steps_max)
    if any(isinstance(each, Reservation) for each in results) and is_placed:
        return Decided(results, "")
    said = _said(cluster, gang, results, steps_max)
    return Decided(results if is_placed else _refused(cluster, gang, results, said), said)


def _try(
    cluster: Cluster, gang: Gang, fresh: Fresh, steps_max: int
) -> tuple[tuple[Result, ...], bool]:
    """Return what became of the pods that were tried, and whether enough have a node.

    If not enough have, none keeps what it got; the results still say which of them had a node.
    """
    results = _one_after_the_other(cluster, gang, fresh)
    placed = [each for each in results if isinstance(each, Reservation)]
    if len(placed) >= gang.needed:
        return results, True
    for reservation in reversed(placed):
        release(cluster, reservation)
    if placed and len(gang.pods) >= gang.needed:
        found = _Search(cluster, gang, fresh, steps_max).run()
        if found is not None:
            return found, True
    return results, False


def _disagreement(cluster: Cluster, gang: Gang) -> str | None:
    """Return in what pods differ in which all of a group must agree, with it and among them.

    A group that no server has admitted may say nothing of it.
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
    """Return whether the group preempts: as it says, or else as its first pod says."""
    said = gang.group.spec.preemption_policy if cluster.features.group_preemption_policy else None
    return said or gang.pods[0].spec.preemption_policy or PREEMPTS


def _failed(cluster: Cluster, pod: Pod, text: str) -> Pending:
    survey = Survey(len(cluster.fleet.nodes), obstacle=Fault(GANG_SCHEDULING, text))
    return Pending(pod, survey, reason=text, message=text, is_fault=True)


def _one_after_the_other(cluster: Cluster, gang: Gang, fresh: Fresh) -> tuple[Result, ...]:
    """Place each pod on what the earlier ones leave, as long as enough can get a node."""
    results: list[Result] = []
    for number, pod in enumerate(gang.pods):
        placed = sum(isinstance(each, Reservation) for each in results)
        if placed + len(gang.pods) - number < gang.needed:
            break
        outcome = schedule(cluster, pod, alone=False)
        if isinstance(outcome, Placed):
            results.append(reserve(cluster, outcome, fresh))
        else:
            results.append(_without_node(outcome))
    return tuple(results)


def _without_node(outcome: Attempt | Pending) -> Pending:
    """Return what is said of a pod that gets no node, without what only pods by themselves get."""
    if not isinstance(outcome, Pending):
        return outcome.refused(alone=False)
    is_message = bool(outcome.message) and not outcome.is_fault
    message = messages.unavailable(outcome.survey) if is_message else outcome.message
    return replace(outcome, message=message)


class _Try(Struct):
    """One pod of the gang in the search: the nodes that are left to try, and what it has."""

    attempt: Attempt | Pending
    nodes: Iterator[str]
    result: Result | None = None  # None: not decided, or taken back


class _Search:
    """Goes back to earlier pods' choices until enough pods have a node.

    Each pod tries its nodes, the best first, and at last to go without; so does the next on what
    is left. A pod that has nothing left to try sends the search back to the one before it.
    """

    def __init__(self, cluster: Cluster, gang: Gang, fresh: Fresh, steps_max: int) -> None:
        self._cluster = cluster
        self._gang = gang
        self._fresh = fresh
        self._steps_left = steps_max
        self._tries: list[_Try] = []

    def run(self) -> tuple[Result, ...] | None:
        """Return what became of each pod once enough have a node; None if that is not found."""
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
        """Take back what the pod has and give it the next thing; False if there is none."""
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
                    this.result = reserve(self._cluster, placed, self._fresh)
                    return True
        if self._steps_left <= 0 or self._most_placed() < self._gang.needed:
            return False
        this.result = _without_node(this.attempt)
        return True

    def _most_placed(self) -> int:
        """Return how many pods can get a node if the last one tried gets none."""
        placed = sum(isinstance(each.result, Reservation) for each in self._tries)
        return placed + len(self._gang.pods) - len(self._tries)


# --- what is said of pods without a node ----------------------------------------------------------


def _waiting(cluster: Cluster, pod: Pod) -> Pending:
    survey = Survey(len(cluster.fleet.nodes), obstacle=Refusal(GANG_SCHEDULING, (TOO_FEW,)))
    return Pending(pod, survey, reason=TOO_FEW, message="")


def _refused(
    cluster: Cluster, gang: Gang, results: Sequence[Result], said: str
) -> tuple[Pending, ...]:
    """Return what is said of each pod of a gang that could not be placed.

    Pods that found no node have their own message. Those that had one get that of the group, and
    those that were not tried get the part of it that was known then.
    """
    found = {each.pod.metadata.name: each for each in results}
    nodes_count = len(cluster.fleet.nodes)

    def pending(pod: Pod) -> Pending:
        result = found.get(pod.metadata.name)
        if isinstance(result, Pending):
            return result
        text = _too_few(cluster, gang, results)
        if result is not None:
            text = f"{UNSCHEDULABLE}, {said}"
        survey = Survey(nodes_count, obstacle=Refusal(GANG_SCHEDULING, (text,)))
        return Pending(pod, survey, reason=text, message=text)

    return tuple(map(pending, gang.pods))


def _too_few(cluster: Cluster, gang: Gang, results: Sequence[Result]) -> str:
    """Return what is said of a group before anybody thinks of preemption."""
    if not gang.needed:
        return UNSCHEDULABLE
    placed = sum(isinstance(each, Reservation) for each in results)
    counts = f"{gang.scheduled + placed} scheduled, {len(gang.pods) - len(results)} remaining"
    text = f"minCount ({gang.minimum}) cannot be satisfied: {counts}"
    if cluster.features.group_placements:
        # Topology constraints are not modelled, so all nodes are one placement.
        return f"{UNSCHEDULABLE}, 0/1 placements are available, first placement status: {text}"
    return text


def _said(cluster: Cluster, gang: Gang, results: Sequence[Result], steps_max: int) -> str:
    """Return what is said of a group without the nodes that it needs."""
    for each in results:
        if isinstance(each, Pending) and each.is_fault:
            return f"failed to schedule other pod from a pod group: {each.message}"
    return f"{_too_few(cluster, gang, results)}, {_preemption_text(cluster, gang, steps_max)}"


def _preemption_text(cluster: Cluster, gang: Gang, steps_max: int) -> str:
    """Return what came of preemption: who could leave is looked for, and whether that helps.

    1. A group that does not preempt others is not eligible.
    2. Without a pod of lower priority there are no victims.
    3. The group is tried with all of these thought away; nothing is kept of that.
    """
    if _preemption_policy(cluster, gang) == NEVER_PREEMPTS:
        return f"{CLAIMS_CLEARED}, pod group preemption: {NOT_ELIGIBLE}"
    victims = lower_than(cluster, gang.priority)
    if not victims:
        return f"pod group preemption: {NO_VICTIMS}"
    with thought_away(cluster, victims):
        results, is_placed = _try(cluster, gang, _trial_names(), steps_max)
        placed = [each for each in results if isinstance(each, Reservation)]
        if is_placed:
            for reservation in reversed(placed):
                release(cluster, reservation)
    if is_placed and placed:
        return f"pod group preemption: {NOT_PREEMPTING}"
    return f"{CLAIMS_CLEARED}, pod group preemption: {_too_few(cluster, gang, results)}"


def _trial_names() -> Fresh:
    """Return names for what is thought and never written."""
    numbers = count()
    return Fresh(lambda: f"trial-{next(numbers)}", lambda prefix: f"{prefix}trial-{next(numbers)}")
