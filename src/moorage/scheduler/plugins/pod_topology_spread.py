"""PodTopologySpread: pods are spread over the domains of a topology.

Hard constraints reject a node whose domain would have too many pods; soft ones make nodes in
domains with fewer pods better.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log

from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins import SCORE_MAX, Filter, FilterStatus, Reads, Score
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.topology_spread import HOSTNAME
from moorage.scheduler.topology_state import DomainCounts, TopologyState

PLUGIN = "PodTopologySpread"
TEXT = "node(s) didn't match pod topology spread constraints"
UNEVEN = Unschedulable(PLUGIN, (TEXT,))
NO_DOMAIN = Unschedulable(PLUGIN, (f"{TEXT} (missing required label)",), is_unresolvable=True)


def filter_node(_signature: PodSignature, node: NodeInfo, state: TopologyState) -> FilterStatus:
    """Reject a node whose domain has too many pods: two look-ups a constraint."""
    labels = node.facts.labels
    for counts in state.hard_spread:
        constraint = counts.constraint
        domain = labels.get(constraint.topology_key)
        if domain is None:
            return NO_DOMAIN
        pods = counts.pods_in.get(domain, 0) + constraint.counts_itself
        if pods - counts.minimum > constraint.max_skew:
            return UNEVEN
    return None


def score_nodes(
    signature: PodSignature, nodes: Sequence[NodeInfo], state: TopologyState
) -> list[int] | None:
    """Return scores by the pods in each node's domains; more domains give a topology more weight.

    Nodes without the label of some constraint get nothing.
    """
    if not state.soft_spread:
        return None
    keys = [counts.constraint.topology_key for counts in state.soft_spread]
    needs_all = signature.spread_constraints.needs_all_keys
    counted = [
        node for node in nodes if not needs_all or all(key in node.facts.labels for key in keys)
    ]
    weights = [_topology_weight(counts, counted) for counts in state.soft_spread]
    raw = {node.facts.name: _crowd(node, state.soft_spread, weights) for node in counted}
    least, most = min(raw.values(), default=0), max(raw.values(), default=0)
    return [reversed_score(raw.get(node.facts.name), least, most) for node in nodes]


def reversed_score(crowd: int | None, least: int, most: int) -> int:
    """Return the score of a node by how crowded it is; nothing if it is not counted."""
    if crowd is None:
        return 0
    return SCORE_MAX if most == 0 else SCORE_MAX * (most + least - crowd) // most


def _topology_weight(counts: DomainCounts, nodes: Sequence[NodeInfo]) -> float:
    key = counts.constraint.topology_key
    if key == HOSTNAME:
        return log(len(nodes) + 2)
    return log(len({node.facts.labels.get(key, "") for node in nodes}) + 2)


def _crowd(node: NodeInfo, spread: Sequence[DomainCounts], weights: Sequence[float]) -> int:
    """Return the weighted number of pods in the node's domains."""
    labels, pods = node.facts.labels, list[int | None]()
    for counts in spread:
        key = counts.constraint.topology_key
        domain = labels.get(key)
        if domain is None:
            pods.append(None)
        elif key == HOSTNAME:
            pods.append(counts.pods_on.get(node.facts.name, 0))
        else:
            pods.append(counts.pods_in.get(domain, 0))
    return crowd_of(pods, spread, weights)


def crowd_of(
    pods: Sequence[int | None], spread: Sequence[DomainCounts], weights: Sequence[float]
) -> int:
    """Return a weighted number of pods, rounded half up; None where a node has no domain."""
    total = 0.0
    for number, counts, weight in zip(pods, spread, weights, strict=True):
        if number is not None:
            total += number * weight + (counts.constraint.max_skew - 1)
    whole = floor(total)
    return whole + (total - whole >= 0.5)


FILTER: Filter = Filter(
    PLUGIN,
    filter_node,
    applies=lambda signature, _state: bool(signature.spread_constraints.hard),
    reads=Reads.NODE | Reads.PODS | Reads.OTHER_PODS,
)
SCORE: Score = Score(
    PLUGIN, 2, score_nodes=score_nodes, applies=lambda _signature, state: bool(state.soft_spread)
)
