"""Caches of a cluster never change its decisions: a new cluster decides the same."""

from __future__ import annotations

from collections import deque

import pytest
from msgspec.structs import replace

from benchmarks._workloads import Setting, Variation, find
from moorage.api.core.node import Node
from moorage.insight.plan.planner import new_names
from moorage.scheduler import node_ranking
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.plugins.claim_needs import ClaimKey
from moorage.scheduler.reservation import Reservation, reserve
from moorage.scheduler.scheduling_cycle import Outcome, Placed, schedule

NODES = 3
NAMES = (
    "template-500",
    "match-500",
    "consumable-500",
    "partitionable-500",
    "backtracking-500",
    "extended-explicit-200",
)


class World:
    """A cluster that is kept, and all that it was told."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.kept = Cluster()
        self.claims = {_key(claim): claim for claim in setting.claims}
        self.there: deque[Reservation] = deque()
        self.fresh = new_names(self.kept)
        self.tell(self.kept)

    def tell(self, cluster: Cluster) -> None:
        for node in self.setting.nodes:
            cluster.put_node(node)
        for device_class in self.setting.classes:
            cluster.put_class(device_class)
        for slice_ in self.setting.slices:
            cluster.put_slice(slice_)
        for claim in self.claims.values():
            cluster.put_claim(claim)
        for reservation in self.there:
            cluster.put_pod(reservation.pod)

    def again(self) -> Cluster:
        cluster = Cluster()
        self.tell(cluster)
        return cluster

    def keep(self, placed: Placed) -> None:
        reservation = reserve(self.kept, placed, self.fresh)
        self.there.append(reservation)
        self.claims |= {_key(claim): claim for claim in reservation.claims}

    def let_go(self) -> None:
        reservation = self.there.popleft()
        self.kept.remove_pod(reservation.pod)
        for claim in reservation.claims:
            del self.claims[_key(claim)]
            self.kept.remove_claim(*_key(claim))


def _key(claim: object) -> ClaimKey:
    metadata = claim.metadata  # type: ignore[attr-defined]
    return metadata.namespace, metadata.name


def said(outcome: Outcome) -> tuple[str, str]:
    if isinstance(outcome, Placed):
        return "placed", outcome.node
    return "pending", outcome.message


@pytest.mark.parametrize("all_asked_max", [0, 100], ids=["best first", "all"])
@pytest.mark.parametrize("name", NAMES)
def test_a_kept_cluster_decides_as_a_new_one(
    name: str, all_asked_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ranking, "NODES_ALL_ASKED_MAX", all_asked_max)
    (workload,) = find([name])
    # Pods for a larger fleet than there is, so that it is full most of the time.
    setting = workload.make(3 * NODES, Variation(shapes=4, seed=7))
    world = World(setting._replace(nodes=setting.nodes[:NODES]))
    outcomes = set()
    for number, (pod, claims) in enumerate(setting.arrivals[:60]):
        for claim in claims:
            world.kept.put_claim(claim)
            world.claims[_key(claim)] = claim
        outcome = schedule(world.kept, pod)
        assert said(outcome) == said(schedule(world.again(), pod))
        outcomes.add(type(outcome))
        if isinstance(outcome, Placed):
            world.keep(outcome)
        elif number % 3 == 0:
            world.let_go()
    assert len(outcomes) == 2


@pytest.mark.parametrize("name", NAMES)
def test_kinds_of_one_size_choose_as_each_would_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ranking, "NODES_ALL_ASKED_MAX", 0)
    (workload,) = find([name])
    setting = workload.make(5 * NODES, Variation(shapes=12, seed=5))
    world = World(setting._replace(nodes=setting.nodes[: 2 * NODES]))
    nodes = world.setting.nodes
    for number, (pod, claims) in enumerate(setting.arrivals[:120]):
        for claim in claims:
            world.kept.put_claim(claim)
            world.claims[_key(claim)] = claim
        if number % 40 == 39:  # Some kinds may not go to the zone of a node any more.
            place = number % len(nodes)
            nodes[place] = _moved(nodes[place], f"elsewhere-{number % 12}")
            world.kept.put_node(nodes[place])
        if number % 4 == 3:
            place = number % 3
            is_off = not nodes[place].spec.unschedulable
            nodes[place] = replace(
                nodes[place], spec=replace(nodes[place].spec, unschedulable=is_off)
            )
            world.kept.put_node(nodes[place])
        if number % 60 == 59:
            gone = nodes.pop()
            world.kept.remove_node(gone.metadata.name)
            nodes.insert(0, gone)
            world.kept.put_node(gone)
        outcome = schedule(world.kept, pod)
        with monkeypatch.context() as alone:
            alone.setattr(node_ranking, "choice_by_size", lambda *_: None)
            assert said(outcome) == said(schedule(world.again(), pod))
        if isinstance(outcome, Placed):
            world.keep(outcome)
        if number % 3 == 0 and len(world.there) > NODES:
            world.let_go()


def _moved(node: Node, zone: str) -> Node:
    labels = {**node.metadata.labels, "topology.kubernetes.io/zone": zone}
    return replace(node, metadata=replace(node.metadata, labels=labels))
