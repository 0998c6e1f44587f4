"""InterPodAffinity: pods that must be, or like to be, near others or apart from them.

The terms of placed pods count as well: those that keep this pod away, and those that attract it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins import SCORE_MAX, Filter, FilterStatus, Reads, Score
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.topology_state import TopologyState

PLUGIN = "InterPodAffinity"
NO_AFFINITY = Unschedulable(
    PLUGIN, ("node(s) didn't match pod affinity rules",), is_unresolvable=True
)
ANTI_AFFINITY = Unschedulable(PLUGIN, ("node(s) didn't match pod anti-affinity rules",))
EXISTING_ANTI_AFFINITY = Unschedulable(
    PLUGIN, ("node(s) didn't satisfy existing pods anti-affinity rules",)
)


def _has_required_terms(signature: PodSignature, state: TopologyState) -> bool:
    """Return whether the pod, or a placed pod that selects it, has required terms."""
    terms = signature.affinity_terms
    return bool(terms.affinity or terms.anti_affinity or state.existing_anti_affinity)


def filter_node(signature: PodSignature, node: NodeInfo, state: TopologyState) -> FilterStatus:
    """Reject a node where a term does not hold: a look-up for each term or label."""
    labels = node.facts.labels
    terms, existing = signature.affinity_terms, state.existing_anti_affinity
    if terms.affinity and not _has_affinity(signature, node, state):
        return NO_AFFINITY
    if state.anti_affinity:
        for term in terms.anti_affinity:
            if (term.topology_key, labels.get(term.topology_key)) in state.anti_affinity:
                return ANTI_AFFINITY
    if existing and not existing.keys().isdisjoint(labels.items()):
        return EXISTING_ANTI_AFFINITY
    return None


def _has_affinity(signature: PodSignature, node: NodeInfo, state: TopologyState) -> bool:
    """Return whether pods that all terms select are in the domain of every term.

    The first pod of a series with affinity to itself may go anywhere that has the labels.
    """
    labels = node.facts.labels
    are_there = True
    for term in signature.affinity_terms.affinity:
        value = labels.get(term.topology_key)
        if value is None:
            return False
        are_there = are_there and (term.topology_key, value) in state.affinity
    return are_there or (not state.affinity and state.matches_itself)


def score_nodes(
    _signature: PodSignature,
    nodes: Sequence[NodeInfo],
    state: TopologyState,
) -> list[int] | None:
    """Return scores between the least and the most attractive node: a look-up for each topology."""
    if not state.scores or not nodes:
        return None
    sums = [_sum(node.facts.labels, state.scores) for node in nodes]
    least, most = min(sums), max(sums)
    if least == most:
        return [0] * len(sums)
    return [int(SCORE_MAX * ((one - least) / (most - least))) for one in sums]


def _sum(labels: Mapping[str, str], scores: Mapping[str, Mapping[str, int]]) -> int:
    total = 0
    for key, values in scores.items():
        value = labels.get(key)
        if value is not None:
            total += values.get(value, 0)
    return total


FILTER: Filter = Filter(
    PLUGIN,
    filter_node,
    applies=_has_required_terms,
    reads=Reads.NODE | Reads.PODS | Reads.OTHER_PODS,
)
SCORE: Score = Score(
    PLUGIN, 2, score_nodes=score_nodes, applies=lambda _signature, state: bool(state.scores)
)
