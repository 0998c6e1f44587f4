"""NodeAffinity: a pod's node selector and node affinity decide by a node's labels and name."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.scheduler.framework import Unschedulable
from mooring.scheduler.node_info import NodeInfo
from mooring.scheduler.plugins import Filter, FilterStatus, Reads, Score, proportional
from mooring.scheduler.pod_signature import PodSignature
from mooring.scheduler.topology_state import TopologyState

PLUGIN = "NodeAffinity"
REJECTED = Unschedulable(
    PLUGIN, ("node(s) didn't match Pod's node affinity/selector",), is_unresolvable=True
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
    name, labels = node.facts.name, node.facts.labels
    preferred = signature.preferred_node_terms
    return sum(each.weight for each in preferred if each.term.matches(name, labels))


FILTER = Filter(
    PLUGIN,
    filter_node,
    applies=lambda signature, _state: signature.required_node_affinity is not None,
    reads=Reads.NODE,
)
SCORE = Score(
    PLUGIN,
    2,
    score_nodes=score_nodes,
    applies=lambda signature, _state: bool(signature.preferred_node_terms),
)
