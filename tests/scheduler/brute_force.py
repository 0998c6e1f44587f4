"""Choosing a node as one would write it down: run every filter on every node, then all scores.

`NodeRanking` remembers, skips and takes a fast path; it is compared with this.
"""

from __future__ import annotations

from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.node_snapshot import NodeSnapshot
from moorage.scheduler.plugins import registry
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.topology_state import TopologyState

FILTERS = (*registry.FILTERS, *registry.FILTERS_AFTER_CLAIMS)


def diagnose(snapshot: NodeSnapshot, signature: PodSignature) -> FitDiagnosis:
    """Return the status of every node."""
    count = len(snapshot.nodes)
    if signature.pre_filter_status is not None:
        return FitDiagnosis(count, pre_filter_status=signature.pre_filter_status)
    state = TopologyState(signature, snapshot.inputs)
    feasible: list[NodeInfo] = []
    statuses: dict[str, Unschedulable] = {}
    for name in sorted(snapshot.nodes):
        if signature.node_names is not None and name not in signature.node_names:
            continue
        node = snapshot.nodes[name]
        applying = (each for each in FILTERS if each.applies(signature, state))
        answers = (each.filter_node(signature, node, state) for each in applying)
        status = next((each for each in answers if each is not None), None)
        if status is None:
            feasible.append(node)
        else:
            statuses[name] = status
    return FitDiagnosis(count, tuple(feasible), statuses, signature.excluded)


def best(snapshot: NodeSnapshot, signature: PodSignature) -> str | None:
    """Return the feasible node with the highest score; of equals the first by name."""
    feasible = diagnose(snapshot, signature).feasible
    state = TopologyState(signature, snapshot.inputs)
    scores = registry.score_nodes(registry.DEFAULT_PROFILE, signature, feasible, state)
    ranked = sorted(zip(scores, feasible, strict=True), key=lambda pair: -pair[0])
    return ranked[0][1].facts.name if ranked else None
