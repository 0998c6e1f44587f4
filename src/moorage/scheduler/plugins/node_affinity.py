"""NodeAffinity: a pod's node selector and node affinity decide by a node's labels and name."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api.core.placement import NodeAffinity
from moorage.api.node_affinity import read_node_selector
from moorage.scheduler.affinity import PreferredNodeTerm, preferred_node_terms
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins import Filter, FilterStatus, Reads, Score, proportional
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.topology_state import TopologyState

PLUGIN = "NodeAffinity"
REJECTED = Unschedulable(
    PLUGIN, ("node(s) didn't match Pod's node affinity/selector",), is_unresolvable=True
)

NOT_ENFORCED = Unschedulable(
    PLUGIN, ("node(s) didn't match scheduler-enforced node affinity",), is_unresolvable=True
)


def filter_node(signature: PodSignature, node: NodeInfo, _state: TopologyState) -> FilterStatus:
    """Reject a node that does not match: a look-up for each requirement."""
    facts, required = node.facts, signature.required_node_affinity
    if required is None or required.is_met(facts.name, facts.labels):
        return None
    return REJECTED


def score_nodes(
    signature: PodSignature,
    nodes: Sequence[NodeInfo],
    _state: TopologyState,
) -> list[int] | None:
    """Return scores by the sum of the weights of the preferred terms that match."""
    if not signature.preferred_node_terms:
        return None
    return proportional([_weight(signature, node) for node in nodes])


def _weight(signature: PodSignature, node: NodeInfo) -> int:
    return _matching(signature.preferred_node_terms, node)


def _matching(terms: Sequence[PreferredNodeTerm], node: NodeInfo) -> int:
    name, labels = node.facts.name, node.facts.labels
    return sum(each.weight for each in terms if each.term.matches(name, labels))


FILTER: Filter = Filter(
    PLUGIN,
    filter_node,
    applies=lambda signature, _state: signature.required_node_affinity is not None,
    reads=Reads.NODE,
)
SCORE: Score = Score(
    PLUGIN,
    2,
    score_nodes=score_nodes,
    applies=lambda signature, _state: bool(signature.preferred_node_terms),
)


# --- with an affinity that a profile adds to all pods -------------------------------------------


def affinity_filter(added: NodeAffinity | None) -> Filter:
    """Return the filter by the affinity of a profile, and then by that of the pod."""
    wanted = added and added.required_during_scheduling_ignored_during_execution
    if not wanted:
        return FILTER
    query = read_node_selector(wanted)

    def filter_added(signature: PodSignature, node: NodeInfo, state: TopologyState) -> FilterStatus:
        facts = node.facts
        if not query.matches(facts.name, facts.labels):
            return NOT_ENFORCED
        return filter_node(signature, node, state)

    return Filter(PLUGIN, filter_added, reads=Reads.NODE)


def affinity_score(added: NodeAffinity | None) -> Score:
    """Return the score by the preferences of a profile and of the pod."""
    preferred = added.preferred_during_scheduling_ignored_during_execution if added else ()
    terms, _ = preferred_node_terms(preferred)
    if not terms:
        return SCORE

    def score_added(
        signature: PodSignature, nodes: Sequence[NodeInfo], _state: TopologyState
    ) -> list[int] | None:
        return proportional([_matching(terms, node) + _weight(signature, node) for node in nodes])

    return Score(PLUGIN, SCORE.weight, score_nodes=score_added)
