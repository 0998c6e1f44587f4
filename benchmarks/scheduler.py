"""Choosing nodes of a full cluster: signature, topology state, filters and scores.

Every time is the best of some rounds. "rank" filters and scores all nodes once; "next" is one more
pod of a known signature: signature, topology state, ranking and placing.
"""

from __future__ import annotations

from collections.abc import Callable
from timeit import repeat
from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.scheduler.framework import RankingWork
from moorage.scheduler.node_ranking import NodeRanking
from moorage.scheduler.node_snapshot import NodeSnapshot
from moorage.scheduler.plugins.registry import DEFAULT_PROFILE, score_nodes
from moorage.scheduler.pod_signature import sign
from moorage.scheduler.signature_cache import SignatureCache
from moorage.scheduler.topology_state import TopologyState

NODES = 5_000
PODS_PER_NODE = 30
ROUNDS = 5
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WEB = {"matchLabels": {"app": "web"}}


def main() -> None:
    """Print the costs for some kinds of pods."""
    snapshot, signatures = full_cluster()
    print(f"{NODES} nodes, {NODES * PODS_PER_NODE} pods")
    print("pod            sign   cached     state      rank    scores      next")
    print("                 µs       µs        ms   µs/node   µs/node        ms")
    for name, spec in KINDS.items():
        measure(snapshot, signatures, name, spec)


def measure(
    snapshot: NodeSnapshot, signatures: SignatureCache, name: str, spec: dict[str, Any]
) -> None:
    """Print the costs for one kind of pods."""
    one = pod("new", spec)
    signature = signatures.of(one)
    state = snapshot.topology_state(signature)
    ranking = NodeRanking(snapshot, signature, RankingWork())
    feasible = ranking.diagnose().feasible
    number = iter(range(10**9))

    def next_pod() -> None:
        another = pod(f"{name}-{next(number)}", spec)
        assert signatures.of(another) is signature
        found = ranking.choose()
        assert found is not None
        snapshot.add_pod(signatures.pod_info(another), found[0].facts.name)

    def rank() -> None:
        NodeRanking(snapshot, signature, RankingWork()).choose()

    def score() -> None:
        score_nodes(DEFAULT_PROFILE, signature, feasible, state)

    figures = (
        best_s(lambda: sign(one)) * 1e6,
        best_s(lambda: signatures.of(one)) * 1e6,
        best_s(lambda: TopologyState(signature, snapshot.inputs)) * 1e3,
        best_s(rank) * 1e6 / NODES,
        best_s(score) * 1e6 / max(len(feasible), 1),
        best_s(next_pod) * 1e3,
    )
    sign_us, cached_us, state_ms, rank_us, scores_us, next_ms = figures
    print(
        f"{name:10} {sign_us:8.0f} {cached_us:8.1f} {state_ms:9.2f} "
        f"{rank_us:9.2f} {scores_us:9.2f} {next_ms:9.2f}"
    )


def best_s(action: Callable[[], object]) -> float:
    """Return the least seconds of some rounds."""
    return min(repeat(action, number=1, repeat=ROUNDS))


# --- the cluster --------------------------------------------------------------------------------


def spread(key: str, when: str) -> dict[str, Any]:
    """Return a spread constraint for web pods."""
    return {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": when, "labelSelector": WEB}


def apart(key: str) -> dict[str, Any]:
    """Return anti-affinity to web pods."""
    term = {"topologyKey": key, "labelSelector": WEB}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "selecting": {
        "nodeSelector": {ZONE: "zone-1"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    },
    "spread": {
        "topologySpreadConstraints": [
            spread(ZONE, "DoNotSchedule"),
            spread(HOST, "ScheduleAnyway"),
        ]
    },
    "apart": {"affinity": apart(HOST)},
}


def full_cluster() -> tuple[NodeSnapshot, SignatureCache]:
    """Return nodes in ten zones, some tainted, with pods of a hundred kinds."""
    snapshot, signatures = NodeSnapshot(), SignatureCache()
    for number in range(NODES):
        snapshot.put_node(node(number))
    for number in range(NODES * PODS_PER_NODE):
        one = pod(f"old-{number}", {}, app=f"app-{number % 100}")
        snapshot.add_pod(signatures.pod_info(one), f"node-{number % NODES:04}")
    return snapshot, signatures


def node(number: int) -> Node:
    """Return one node."""
    name = f"node-{number:04}"
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}] if number % 10 == 0 else []
    tree = {
        "metadata": {"name": name, "labels": {HOST: name, ZONE: f"zone-{number % 10}"}},
        "spec": {"taints": taints},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}},
    }
    return decode_tree(tree, Node).value


def pod(name: str, spec: dict[str, Any], app: str = "web") -> Pod:
    """Return one pod."""
    requests = {"cpu": "500m", "memory": "1Gi"}
    container = {"name": "main", "image": "web", "resources": {"requests": requests}}
    tree = {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "spec": {"containers": [container], **spec},
    }
    return decode_tree(tree, Pod).value


if __name__ == "__main__":
    main()
