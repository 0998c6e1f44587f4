"""Choosing nodes: what a shape, a survey and the scores cost, on an idle and on a full fleet.

Every time is the best of some rounds. "next" is the whole way of one more pod of a known shape:
shape, outlook, survey, scores and placing.
"""

from __future__ import annotations

from collections.abc import Callable
from timeit import repeat
from typing import Any

from mooring.api.codec import decode_tree
from mooring.api.core.node import Node
from mooring.api.core.pod import Pod
from mooring.scheduler import Fleet, Shapes, best, prepare, survey, totals
from mooring.scheduler.outlook import Outlook

NODES = 5_000
PODS_PER_NODE = 30
ROUNDS = 5
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WEB = {"matchLabels": {"app": "web"}}


def main() -> None:
    """Print the costs for some kinds of pods."""
    fleet, shapes = full_fleet()
    print(f"{NODES} nodes, {NODES * PODS_PER_NODE} pods")
    print("pod           shape    known   outlook    survey    scores      next")
    print("                 µs       µs        ms   µs/node   µs/node        ms")
    for name, spec in KINDS.items():
        measure(fleet, shapes, name, spec)


def measure(fleet: Fleet, shapes: Shapes, name: str, spec: dict[str, Any]) -> None:
    """Print the costs for one kind of pods."""
    one = pod("new", spec)
    shape = shapes.of(one)
    outlook = fleet.outlook(shape)
    found = survey(fleet, shape)
    number = iter(range(10**9))

    def next_pod() -> None:
        another = pod(f"{name}-{next(number)}", spec)
        wanted = shapes.of(another)
        there = survey(fleet, wanted)
        chosen = best(there.fitting, totals(wanted, there.fitting, fleet.outlook(wanted)))
        fleet.place(shapes.occupant(another), chosen.facts.name)

    figures = (
        best_s(lambda: prepare(one)) * 1e6,
        best_s(lambda: shapes.of(one)) * 1e6,
        best_s(lambda: Outlook(shape, fleet.world)) * 1e3,
        best_s(lambda: survey(fleet, shape)) * 1e6 / NODES,
        best_s(lambda: totals(shape, found.fitting, outlook)) * 1e6 / max(len(found.fitting), 1),
        best_s(next_pod) * 1e3,
    )
    shape_us, known_us, outlook_ms, survey_us, scores_us, next_ms = figures
    print(
        f"{name:10} {shape_us:8.0f} {known_us:8.1f} {outlook_ms:9.2f} "
        f"{survey_us:9.2f} {scores_us:9.2f} {next_ms:9.2f}"
    )


def best_s(action: Callable[[], object]) -> float:
    """Return the least seconds of some rounds."""
    return min(repeat(action, number=1, repeat=ROUNDS))


# --- the fleet ----------------------------------------------------------------------------------


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


def full_fleet() -> tuple[Fleet, Shapes]:
    """Return nodes in ten zones, some tainted, with pods of a hundred kinds."""
    fleet, shapes = Fleet(), Shapes()
    for number in range(NODES):
        fleet.put_node(node(number))
    for number in range(NODES * PODS_PER_NODE):
        one = pod(f"old-{number}", {}, app=f"app-{number % 100}")
        fleet.place(shapes.occupant(one), f"node-{number % NODES:04}")
    return fleet, shapes


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
