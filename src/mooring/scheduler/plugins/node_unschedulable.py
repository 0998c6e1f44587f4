"""NodeUnschedulable: a cordoned node takes only pods that tolerate the taint of cordoned nodes."""

from __future__ import annotations

from mooring.api.core.placement import NO_SCHEDULE, Taint
from mooring.scheduler.framework import Unschedulable
from mooring.scheduler.node_info import NodeInfo
from mooring.scheduler.plugins import Filter, FilterStatus, Reads
from mooring.scheduler.pod_signature import PodSignature
from mooring.scheduler.topology_state import TopologyState

PLUGIN = "NodeUnschedulable"
REJECTED = Unschedulable(PLUGIN, ("node(s) were unschedulable",), is_unresolvable=True)
TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


def filter_node(_signature: PodSignature, node: NodeInfo, _state: TopologyState) -> FilterStatus:
    """Reject a cordoned node."""
    return REJECTED if node.facts.is_unschedulable else None


FILTER = Filter(
    PLUGIN,
    filter_node,
    applies=lambda signature, state: (
        state.inputs.unschedulable_nodes > 0 and not signature.tolerations.tolerate(TAINT)
    ),
    reads=Reads.NODE,
)
