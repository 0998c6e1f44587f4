"""NodePorts: two pods on one node cannot use the same host port."""

from __future__ import annotations

from mooring.scheduler.framework import Unschedulable
from mooring.scheduler.node_info import NodeInfo
from mooring.scheduler.plugins import Filter, FilterStatus, Reads
from mooring.scheduler.pod_signature import PodSignature
from mooring.scheduler.resources import is_port_free
from mooring.scheduler.topology_state import TopologyState

PLUGIN = "NodePorts"
REJECTED = Unschedulable(PLUGIN, ("node(s) didn't have free ports for the requested pod ports",))


def filter_node(signature: PodSignature, node: NodeInfo, _state: TopologyState) -> FilterStatus:
    """Reject a node where a port is used: a look-up for each port."""
    used = node.used_ports
    if not used or all(is_port_free(port, used) for port in signature.host_ports):
        return None
    return REJECTED


FILTER = Filter(
    PLUGIN,
    filter_node,
    applies=lambda signature, _state: bool(signature.host_ports),
    reads=Reads.NODE | Reads.PODS,
)
