"""Short builders of pods, nodes and fleets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.framework import RankingWork, Unschedulable
from moorage.scheduler.node_ranking import NodeRanking
from moorage.scheduler.node_snapshot import NodeSnapshot
from moorage.scheduler.pod_signature import PodInfo, PodSignature, ReadingSettings, sign
from moorage.scheduler.signature_cache import SignatureCache

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    ports: Sequence[Any] = (),
    status: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    container = {
        "name": "main",
        "image": "app",
        "resources": {"requests": dict(requests or {})},
        "ports": [_port(port) for port in ports],
    }
    tree = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}/{name}",
            "labels": dict(labels or {}),
            **(metadata or {}),
        },
        "spec": {"containers": [container], **spec},
        "status": dict(status or {}),
    }
    return decode_tree(tree, Pod).value


def node(
    name: str = "node-1",
    *,
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Node:
    there = {"cpu": "4", "memory": "8Gi", "pods": "110"} if allocatable is None else allocatable
    tree = {
        "metadata": {"name": name, "labels": {HOST: name} if labels is None else dict(labels)},
        "spec": {"taints": [dict(taint) for taint in taints], **spec},
        "status": {"allocatable": dict(there), **(status or {})},
    }
    return decode_tree(tree, Node).value


def fleet(
    nodes: Sequence[Node],
    placed: Sequence[tuple[Pod, str]] = (),
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
) -> NodeSnapshot:
    made = NodeSnapshot()
    signatures = SignatureCache()
    for each in nodes:
        made.put_node(each)
    for name, labels in (namespaces or {}).items():
        made.put_namespace(name, labels)
    for one, where in placed:
        made.add_pod(signatures.pod_info(one), where)
    return made


def pod_info(one: Pod, signature: PodSignature | None = None) -> PodInfo:
    return PodInfo(one.metadata.uid, signature or sign(one))


def diagnose(made: NodeSnapshot, signature: PodSignature) -> FitDiagnosis:
    """Return the status of every node, as the scheduling cycle finds it."""
    if signature.pre_filter_status is not None:
        return FitDiagnosis(len(made.nodes), pre_filter_status=signature.pre_filter_status)
    return NodeRanking(made, signature, RankingWork()).diagnose()


def verdicts(
    made: NodeSnapshot, one: Pod, settings: ReadingSettings | None = None
) -> dict[str, tuple[str, ...] | None]:
    """Return what each node that is asked says: None where it will do."""
    found = answers(made, one, settings)
    return {name: refusal.reasons if refusal else None for name, refusal in found.items()}


def answers(
    made: NodeSnapshot, one: Pod, settings: ReadingSettings | None = None
) -> dict[str, Unschedulable | None]:
    found = diagnose(made, sign(one, settings or ReadingSettings()))
    assert found.pre_filter_status is None, found.pre_filter_status
    fitting: dict[str, Unschedulable | None] = {each.facts.name: None for each in found.feasible}
    return {**fitting, **found.node_to_status}


def verdict(one: Pod, there: Node, *placed: Pod) -> Unschedulable | None:
    """Return what one node with some pods on it says."""
    made = fleet([there], [(each, there.metadata.name) for each in placed])
    return answers(made, one)[there.metadata.name]


def _port(port: Any) -> dict[str, Any]:
    if isinstance(port, int):
        return {"containerPort": port, "hostPort": port}
    address, protocol, number = port
    return {
        "containerPort": number,
        "hostPort": number,
        "protocol": protocol,
        "hostIP": address,
    }
