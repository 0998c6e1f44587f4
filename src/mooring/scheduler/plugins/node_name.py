"""NodeName: a pod that names its node goes to no other."""

from __future__ import annotations

from mooring.scheduler.framework import Unschedulable
from mooring.scheduler.node_info import NodeInfo
from mooring.scheduler.plugins import Filter, FilterStatus, Reads
from mooring.scheduler.pod_signature import PodSignature
from mooring.scheduler.topology_state import TopologyState

PLUGIN = "NodeName"
REJECTED = Unschedulable(
    PLUGIN, ("node(s) didn't match the requested node name",), is_unresolvable=True
)


def filter_node(signature: PodSignature, node: NodeInfo, _state: TopologyState) -> FilterStatus:
    """Reject any other node."""
    return None if node.facts.name == signature.node_name else REJECTED


FILTER = Filter(
    PLUGIN,
    filter_node,
    applies=lambda signature, _state: signature.node_name != "",
    reads=Reads.NODE,
)
