"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes where it is declared."""

from __future__ import annotations

from mooring.scheduler.framework import Unschedulable
from mooring.scheduler.node_info import NodeInfo
from mooring.scheduler.plugins import Filter, FilterStatus, Reads
from mooring.scheduler.pod_signature import PodSignature
from mooring.scheduler.topology_state import TopologyState

PLUGIN = "NodeDeclaredFeatures"
REJECTED = Unschedulable(
    PLUGIN, ("node(s) didn't match Pod's required features",), is_unresolvable=True
)


def filter_node(signature: PodSignature, node: NodeInfo, _state: TopologyState) -> FilterStatus:
    """Reject a node that lacks one."""
    return None if signature.required_features <= node.facts.features else REJECTED


FILTER = Filter(
    PLUGIN,
    filter_node,
    applies=lambda signature, _state: bool(signature.required_features),
    reads=Reads.NODE,
    runs_after_claims=True,
)
