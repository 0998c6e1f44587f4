"""Filters by one fact of a node: its name, cordon, ports, features, and the volumes on it.

NodeName              a pod that names its node goes to no other
NodeUnschedulable     a cordoned node takes only pods that tolerate the taint of cordoned nodes
NodePorts             two pods on one node cannot use the same host port
NodeDeclaredFeatures  a pod that needs a feature of the kubelet goes where it is declared
VolumeRestrictions    a volume for one pod has one pod at a time
VolumeBinding         a pod goes only where its bound volumes are
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from moorage.api.codec import decode_json
from moorage.api.core.placement import NO_SCHEDULE, NodeSelector, Taint
from moorage.api.core.pod import Pod
from moorage.api.node_affinity import NodeQuery, read_node_selector
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins import Filter, FilterStatus, Reads
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.resources import is_port_free
from moorage.scheduler.topology_state import TopologyState
from moorage.scheduler.volume_binding import IN_USE, NODES, RESTRICTIONS
from moorage.scheduler.volume_binding import PLUGIN as VOLUME_BINDING_PLUGIN

OTHER_NAME = Unschedulable(
    "NodeName", ("node(s) didn't match the requested node name",), is_unresolvable=True
)
CORDONED = Unschedulable("NodeUnschedulable", ("node(s) were unschedulable",), is_unresolvable=True)
CORDONED_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
PORTS_USED = Unschedulable(
    "NodePorts", ("node(s) didn't have free ports for the requested pod ports",)
)
FEATURES_MISSING = Unschedulable(
    "NodeDeclaredFeatures",
    ("node(s) didn't match Pod's required features",),
    is_unresolvable=True,
)


def _filter_name(signature: PodSignature, node: NodeInfo, _state: TopologyState) -> FilterStatus:
    return None if node.facts.name == signature.node_name else OTHER_NAME


def _filter_cordoned(
    _signature: PodSignature, node: NodeInfo, _state: TopologyState
) -> FilterStatus:
    return CORDONED if node.facts.is_unschedulable else None


def _filter_ports(signature: PodSignature, node: NodeInfo, _state: TopologyState) -> FilterStatus:
    """Reject a node where a port is used: a look-up for each port."""
    used = node.used_ports
    if not used or all(is_port_free(port, used) for port in signature.host_ports):
        return None
    return PORTS_USED


def _filter_features(
    signature: PodSignature, node: NodeInfo, _state: TopologyState
) -> FilterStatus:
    return None if signature.required_features <= node.facts.features else FEATURES_MISSING


NODE_NAME = Filter(
    OTHER_NAME.plugin,
    _filter_name,
    applies=lambda signature, _state: signature.node_name != "",
    reads=Reads.NODE,
)
NODE_UNSCHEDULABLE = Filter(
    CORDONED.plugin,
    _filter_cordoned,
    applies=lambda signature, state: (
        state.inputs.unschedulable_nodes > 0 and not signature.tolerations.tolerate(CORDONED_TAINT)
    ),
    reads=Reads.NODE,
)
NODE_PORTS = Filter(
    PORTS_USED.plugin,
    _filter_ports,
    applies=lambda signature, _state: bool(signature.host_ports),
    reads=Reads.NODE | Reads.PODS,
)
NODE_DECLARED_FEATURES = Filter(
    FEATURES_MISSING.plugin,
    _filter_features,
    applies=lambda signature, _state: bool(signature.required_features),
    reads=Reads.NODE,
)

# --- volumes -------------------------------------------------------------------------------------

QUERIES_MAX = 1024
OTHER_VOLUME_NODES = Unschedulable(
    VOLUME_BINDING_PLUGIN,
    ("node(s) didn't match PersistentVolume's node affinity",),
    is_unresolvable=True,
)
CLAIM_IN_USE = Unschedulable(
    RESTRICTIONS,
    (
        (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
            "already in-use by another pod"
        ),
    ),
)

_selector_encoder = msgspec.json.Encoder(order="deterministic")


def _read_volumes(pod: Pod) -> tuple[bytes, ...]:
    """Return the node selectors of the pod's bound volumes."""
    return tuple(
        _selector_encoder.encode(volume[NODES])
        for volume in pod.spec.volumes
        if isinstance(volume, dict) and NODES in volume
    )


@lru_cache(maxsize=QUERIES_MAX)
def _volume_query(text: bytes) -> NodeQuery:
    return read_node_selector(decode_json(text, NodeSelector).value)


def _filter_volumes(signature: PodSignature, node: NodeInfo, _state: TopologyState) -> FilterStatus:
    facts = node.facts
    for text in signature.by_plugin[VOLUME_BINDING_PLUGIN]:
        if not _volume_query(text).matches(facts.name, facts.labels):
            return OTHER_VOLUME_NODES
    return None


def _has_claim_in_use(pod: Pod) -> bool:
    return any(isinstance(volume, dict) and IN_USE in volume for volume in pod.spec.volumes)


VOLUME_RESTRICTIONS = Filter(
    RESTRICTIONS,
    lambda _signature, _node, _state: CLAIM_IN_USE,
    applies=lambda signature, _state: bool(signature.by_plugin.get(RESTRICTIONS)),
    reads=Reads.PODS | Reads.OTHER_PODS,
    read_pod=_has_claim_in_use,
)
VOLUME_BINDING = Filter(
    VOLUME_BINDING_PLUGIN,
    _filter_volumes,
    applies=lambda signature, _state: bool(signature.by_plugin.get(VOLUME_BINDING_PLUGIN)),
    reads=Reads.NODE,
    read_pod=_read_volumes,
)
