"""TaintToleration: taints keep away pods that do not tolerate them, or make a node worse."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins import (
    SCORE_MAX,
    Filter,
    FilterStatus,
    Reads,
    Score,
    proportional_reversed,
)
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.topology_state import TopologyState

PLUGIN = "TaintToleration"
REJECTED = Unschedulable(PLUGIN, ("node(s) had untolerated taint(s)",), is_unresolvable=True)


def filter_node(signature: PodSignature, node: NodeInfo, _state: TopologyState) -> FilterStatus:
    """Reject a node with an untolerated taint: taints × tolerations comparisons."""
    taints = node.facts.hard_taints
    if not taints or signature.tolerations.tolerate_all(taints):
        return None
    return REJECTED


def score_nodes(
    signature: PodSignature,
    nodes: Sequence[NodeInfo],
    _state: TopologyState,
) -> list[int] | None:
    """Return higher scores for fewer PreferNoSchedule taints that the pod does not tolerate."""
    if not any(node.facts.soft_taints for node in nodes):
        return [SCORE_MAX] * len(nodes)
    tolerate = signature.prefer_no_schedule_tolerations.tolerate
    return proportional_reversed(
        [sum(not tolerate(taint) for taint in node.facts.soft_taints) for node in nodes]
    )


FILTER: Filter = Filter(
    PLUGIN,
    filter_node,
    applies=lambda _signature, state: state.inputs.hard_tainted_nodes > 0,
    reads=Reads.NODE,
)
SCORE: Score = Score(
    PLUGIN,
    3,
    score_nodes=score_nodes,
    applies=lambda _signature, state: state.inputs.soft_tainted_nodes > 0,
)
