"""What nodes say about a pod: alike ones together, the nearest first.

    nodes ─ same reasons, devices equally short ─► kinds ─ by distance ─► verdicts

Nearness is a matter of counting, so the nearest are known before any is diagnosed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from moorage.allocator.allocation import Budget
from moorage.api.core.pod import Pod
from moorage.insight.explain.diagnosis import Diagnosis
from moorage.insight.explain.funnel import Missing
from moorage.insight.explain.nodes import DeviceCounts, NodeProbe
from moorage.insight.explain.trials import Effort
from moorage.insight.plan.planner import Progress, unwatched
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.errors import CycleError
from moorage.scheduler.framework import DYNAMIC_RESOURCES as CLAIMS
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.plugins.taint_toleration import PLUGIN as TAINTS
from moorage.scheduler.scheduling_cycle import Pending, attempt

ENDS = "the attempt ends here, whatever other nodes have"
DIAGNOSES_MAX = 12  # kinds of nodes whose devices are diagnosed, the nearest
ALIKE_ASKED_MAX = 32  # nodes that seem alike, whose devices are looked at
FAR = 10  # as much as a node without any device of a class has wrong with it
TROUBLED = 3  # and a node that is not well: nothing that users write helps there
# Taints that keep pods from nodes that are not well, and what they mean.
NODE_TROUBLES = {
    "node.kubernetes.io/not-ready": "is not ready",
    "node.kubernetes.io/unreachable": "is unreachable",
    "node.kubernetes.io/unschedulable": "is cordoned",
    "node.kubernetes.io/disk-pressure": "has too little disk left",
    "node.kubernetes.io/memory-pressure": "has too little memory left",
    "node.kubernetes.io/pid-pressure": "has too many processes",
    "node.kubernetes.io/network-unavailable": "has no network yet",
    "node.kubernetes.io/out-of-service": "is out of service",
    "node.cloudprovider.kubernetes.io/uninitialized": "is not initialised by its cloud yet",
    "node.cloudprovider.kubernetes.io/shutdown": "is shut down",
    "ToBeDeletedByClusterAutoscaler": "is about to be deleted by the cluster autoscaler",
}
# Nodes that are not meant for the pods of users.
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
VerdictKey = tuple[tuple[str, ...], DeviceCounts, tuple[str, ...]]
# How much is wrong with nodes, how many devices they lack, how few questions devices pass, and how
# much they lack of other resources.
Distance = tuple[int, int, int, int]


class NodeVerdict(Struct, frozen=True):
    """What several nodes say alike."""

    nodes: tuple[str, ...]
    texts: tuple[str, ...]  # Kubernetes' reasons; none if the nodes fit
    facts: tuple[str, ...] = ()  # behind these reasons, on the first of the nodes
    diagnosis: Diagnosis | None = None  # of the claims, there
    is_behind: bool = False  # the diagnosis is not why the nodes reject the pod, but comes next
    is_short: bool = False  # of devices; without a diagnosis if there were too many kinds of nodes
    distance: Distance = (0, 0, 0, 0)  # from taking the pod


def look_at_nodes(
    cluster: Cluster, pod: Pod, effort: Callable[[], Effort]
) -> tuple[str, tuple[NodeVerdict, ...]]:
    """Return what stops a pod on every node, if anything, and what nodes say, the nearest first."""
    ready = attempt(cluster, pod)
    if isinstance(ready, Pending):
        return ready.reason, ()
    probe = NodeProbe(ready)
    try:
        survey = ready.ranking.diagnose(probe)
    except CycleError as fault:
        return str(fault), (ended_verdict(probe, effort),)
    return "", nearest_verdicts(probe, survey, effort)


def ended_verdict(probe: NodeProbe, effort: Callable[[], Effort]) -> NodeVerdict:
    """Return the verdict of the node on which an error ended the attempt, for all nodes."""
    return NodeVerdict((probe.last,), (ENDS,), diagnosis=probe.diagnose(probe.last, effort))


def nearest_verdicts(
    probe: NodeProbe,
    survey: FitDiagnosis,
    effort: Callable[[], Effort],
    progress: Progress = unwatched,
) -> tuple[NodeVerdict, ...]:
    """Return what nodes say, alike ones together and the nearest first."""
    left, found = DIAGNOSES_MAX, list[NodeVerdict]()
    for verdict in sorted(_kinds(probe, survey, effort, progress), key=lambda v: v.distance):
        if verdict.is_short and left > 0:
            left -= 1
            diagnosis = probe.diagnose(verdict.nodes[0], effort)
            verdict = replace(verdict, diagnosis=diagnosis)
        found.append(verdict)
    return tuple(found)


def _kinds(
    probe: NodeProbe, survey: FitDiagnosis, effort: Callable[[], Effort], progress: Progress
) -> Iterator[NodeVerdict]:
    """Yield a verdict, not diagnosed yet, for each kind of nodes."""
    alike: dict[VerdictKey, list[str]] = {}
    counts_of = _DeviceCounter(probe, Budget(interrupt=effort().interrupt))
    for number, (name, rejection) in enumerate(sorted(survey.node_to_status.items())):
        progress(number, len(survey.node_to_status))
        taints = tuple(probe.facts(name, rejection)) if rejection.plugin == TAINTS else ()
        alike.setdefault((rejection.reasons, counts_of(name, rejection), taints), []).append(name)
    for (texts, counts, _), nodes in alike.items():
        short = {name: probe.shortfall(name, survey.node_to_status[name]) for name in nodes}
        nodes.sort(key=short.__getitem__)
        rejection = survey.node_to_status[nodes[0]]
        facts, is_behind = tuple(probe.facts(nodes[0], rejection)), rejection.plugin != CLAIMS
        wrong = int(is_behind or not counts) + TROUBLED * _is_for_others(facts)
        missing = Missing()
        if counts:
            missing = probe.lack(nodes[0])
            wrong += 1 + FAR * missing.classes
        distance = (wrong, missing.devices, -missing.passed, short[nodes[0]])
        yield NodeVerdict(tuple(nodes), texts, facts, None, is_behind, bool(counts), distance)
    if survey.feasible:
        yield NodeVerdict(tuple(state.facts.name for state in survey.feasible), ())
    unasked = sorted(set(probe.all_nodes) - survey.node_to_status.keys())
    if survey.excluded is not None and unasked:
        yield NodeVerdict(tuple(unasked), survey.excluded.reasons, distance=(1, 0, 0, 0))


class _DeviceCounter:
    """Counts the devices that requests find on nodes.

    A node that rejects the pod for another reason may have any number of nodes like it. Of those
    whose pools have as many devices and as many taken, only the first ones are asked; the others
    are taken for the first.
    """

    def __init__(self, probe: NodeProbe, budget: Budget) -> None:
        self._probe, self._budget = probe, budget
        self._asked: dict[object, list[DeviceCounts]] = {}

    def __call__(self, name: str, rejection: Unschedulable) -> DeviceCounts:
        if rejection.plugin == CLAIMS:
            return self._probe.device_counts(name, self._budget)
        asked = self._asked.setdefault((rejection.reasons, self._probe.shape(name)), [])
        if len(asked) >= ALIKE_ASKED_MAX:
            return asked[0]
        asked.append(self._probe.device_counts(name, self._budget))
        return asked[-1]


def trouble_of(verdict: NodeVerdict) -> str:
    """Return what is wrong with nodes that are not well: `is not ready`; else nothing."""
    return _trouble(verdict.facts)


def _is_for_others(facts: Sequence[str]) -> bool:
    """Return whether nodes are not well, or not meant for the pods of users."""
    return bool(_trouble(facts)) or any(key in fact for fact in facts for key in CONTROL_PLANE)


def _trouble(facts: Iterable[str]) -> str:
    taints = [fact.removeprefix("taint ") for fact in facts if fact.startswith("taint ")]
    keys = (taint.partition(":")[0].partition("=")[0] for taint in taints)
    return next((NODE_TROUBLES[key] for key in keys if key in NODE_TROUBLES), "")
