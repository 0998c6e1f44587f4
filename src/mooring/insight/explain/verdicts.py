"""What nodes say about a pod: alike ones together, the nearest first, diagnosed on demand.

    nodes ─ same reasons, devices equally short ─► kinds ─ by distance ─► verdicts

Nearness is a matter of counting. Why the nearest is short of devices is a matter of trials, which
take long: so a verdict is diagnosed when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import Struct

from mooring.allocator.allocation import Budget
from mooring.api.core.pod import Pod
from mooring.insight.explain.diagnosis import Diagnosis
from mooring.insight.explain.nodes import DeviceCounts, NodeProbe
from mooring.insight.explain.trials import Effort
from mooring.insight.plan.planner import Progress, unwatched
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.diagnosis import FitDiagnosis
from mooring.scheduler.errors import CycleError
from mooring.scheduler.framework import DYNAMIC_RESOURCES as CLAIMS
from mooring.scheduler.framework import Unschedulable
from mooring.scheduler.scheduling_cycle import Pending, attempt

ENDS = "the attempt ends here, whatever other nodes have"
DIAGNOSES_MAX = 12  # kinds of nodes whose devices are diagnosed, the nearest
FAR = 10  # as much as a node without any device of a class has wrong with it
VerdictKey = tuple[tuple[str, ...], DeviceCounts]
# How much is wrong with nodes, how many devices they lack, and how much of other resources.
Distance = tuple[int, int, int]


class NodeVerdict(Struct, frozen=True):
    """What several nodes say alike."""

    nodes: tuple[str, ...]
    texts: tuple[str, ...]  # Kubernetes' reasons; none if the nodes fit
    facts: tuple[str, ...] = ()  # behind these reasons, on the first of the nodes
    diagnosis: Diagnosis | None = None  # of the claims, there
    is_behind: bool = False  # the diagnosis is not why the nodes reject the pod, but comes next
    is_short: bool = False  # of devices; without a diagnosis if there were too many kinds of nodes
    distance: Distance = (0, 0, 0)  # from taking the pod


def look_at_nodes(
    cluster: Cluster, pod: Pod, effort: Callable[[], Effort]
) -> tuple[str, Iterator[NodeVerdict]]:
    """Return what stops a pod on every node, if anything, and what nodes say, the nearest first.

    Each verdict is found when it is asked for, so that whoever needs one pays for one.
    """
    ready = attempt(cluster, pod)
    if isinstance(ready, Pending):
        return ready.reason, iter(())
    probe = NodeProbe(ready)
    try:
        survey = ready.ranking.diagnose(probe)
    except CycleError as fault:
        return str(fault), iter((ended_verdict(probe, effort),))
    return "", nearest_verdicts(probe, survey, effort)


def ended_verdict(probe: NodeProbe, effort: Callable[[], Effort]) -> NodeVerdict:
    """Return the verdict of the node on which an error ended the attempt, for all nodes."""
    return NodeVerdict((probe.last,), (ENDS,), diagnosis=probe.diagnose(probe.last, effort()))


class _NodeKind(NamedTuple):
    """Nodes that reject a pod for the same reasons, and whose devices are equally short."""

    nodes: tuple[str, ...]
    texts: tuple[str, ...]
    rejection: Unschedulable | None = None
    counts: DeviceCounts = ()
    distance: Distance = (0, 0, 0)


def nearest_verdicts(
    probe: NodeProbe,
    survey: FitDiagnosis,
    effort: Callable[[], Effort],
    progress: Progress = unwatched,
) -> Iterator[NodeVerdict]:
    """Yield what nodes say, alike ones together and the nearest first, diagnosed one by one."""
    left = DIAGNOSES_MAX
    kinds = _node_kinds(probe, survey, effort, progress)
    for kind in sorted(kinds, key=lambda each: each.distance):
        rejection, is_short, diagnosis = kind.rejection, bool(kind.counts), None
        if rejection is None:
            yield NodeVerdict(kind.nodes, kind.texts, distance=kind.distance)
            continue
        facts = tuple(probe.facts(kind.nodes[0], rejection))
        if is_short and left > 0:
            left -= 1
            diagnosis = probe.diagnose(kind.nodes[0], effort())
        is_behind = rejection.plugin != CLAIMS
        yield NodeVerdict(
            kind.nodes, kind.texts, facts, diagnosis, is_behind, is_short, kind.distance
        )


def _node_kinds(
    probe: NodeProbe, survey: FitDiagnosis, effort: Callable[[], Effort], progress: Progress
) -> Iterator[_NodeKind]:
    alike: dict[VerdictKey, list[str]] = {}
    budget = Budget(interrupt=effort().interrupt)
    for number, (name, rejection) in enumerate(sorted(survey.node_to_status.items())):
        progress(number, len(survey.node_to_status))
        key = rejection.reasons, probe.device_counts(name, budget)
        alike.setdefault(key, []).append(name)
    for (texts, counts), nodes in alike.items():
        short = {name: probe.shortfall(name, survey.node_to_status[name]) for name in nodes}
        nodes.sort(key=short.__getitem__)
        rejection = survey.node_to_status[nodes[0]]
        wrong, lacking = int(rejection.plugin != CLAIMS or not counts), 0
        if counts:
            without, lacking = probe.lack(nodes[0])
            wrong += 1 + FAR * without
        yield _NodeKind(tuple(nodes), texts, rejection, counts, (wrong, lacking, short[nodes[0]]))
    if survey.feasible:
        yield _NodeKind(tuple(state.facts.name for state in survey.feasible), ())
    unasked = sorted(set(probe.all_nodes) - survey.node_to_status.keys())
    if survey.excluded is not None and unasked:
        yield _NodeKind(tuple(unasked), survey.excluded.reasons, distance=(1, 0, 0))
