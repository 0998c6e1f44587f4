"""Pods that are spread get the node that scoring all nodes would choose, for less work."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.reservation import Reservation, release, reserve
from moorage.scheduler.scheduling_cycle import Attempt, Placed, attempt
from tests.scheduler.makers import HOST, ZONE, node
from tests.scheduler.scenes import claim, cluster, device_class, new_names, slice_of, user

STEPS = 40
LABELS = {"app": "web"}


def constraints(*keys: str, hard: bool = False) -> list[dict[str, Any]]:
    found = [
        {
            "maxSkew": 2 + number,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": LABELS},
        }
        for number, key in enumerate(keys)
    ]
    if hard:
        found.append({**found[0], "maxSkew": 5, "whenUnsatisfiable": "DoNotSchedule"})
    return found


def spread(name: str, *claims: str, over: list[dict[str, Any]]) -> Pod:
    requests = {"cpu": "1"}
    return user(name, *claims, labels=LABELS, requests=requests, topologySpreadConstraints=over)


def some_node(random: Random, number: int) -> Node:
    name = f"node-{number}"
    labels = {HOST: name, ZONE: random.choice("abc")}
    if random.random() < 0.2:
        del labels[random.choice(sorted(labels))]
    cpu = str(random.randint(2, 9))
    return node(name, labels=labels, allocatable={"cpu": cpu, "memory": "8Gi", "pods": "9"})


def check(ready: Attempt) -> Placed | None:
    """Return the pod on the chosen node, which must be the best of all by their scores."""
    found = ready.best_placed()
    assert (None if found is None else found.node) == next(iter(ready.nodes_by_score()), None)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_best_node_is_that_of_all_scores(seed: int) -> None:
    random = Random(seed)
    made = Cluster()
    for number in range(8):
        made.put_node(some_node(random, number))
    placed: list[Reservation] = []
    keys = random.choice([(HOST, ZONE), (ZONE,), (HOST,), ("rack", ZONE)])
    over = constraints(*keys, hard=seed % 3 == 0)
    for number in range(STEPS):
        ready = attempt(made, spread(f"pod-{number}", over=over))
        assert isinstance(ready, Attempt)
        outcome = check(ready)
        if outcome is not None:
            placed.append(reserve(made, outcome, new_names()))
        event = random.random()
        if event < 0.3 and placed:
            release(made, placed.pop(random.randrange(len(placed))))
        elif event < 0.4:
            made.put_node(some_node(random, random.randrange(10)))


@pytest.mark.parametrize("seed", range(6))
def test_devices_that_are_taken_and_freed_count(seed: int) -> None:
    random = Random(seed)
    nodes = [some_node(random, number) for number in range(6)]
    slices = [slice_of(each.metadata.name, random.randint(0, 3)) for each in nodes]
    made = cluster(device_class(), *nodes, *slices)
    placed: list[Reservation] = []
    for number in range(STEPS):
        made.put_claim(claim(f"claim-{number}"))
        using = spread(f"pod-{number}", f"claim-{number}", over=constraints(HOST, ZONE))
        ready = attempt(made, using)
        assert isinstance(ready, Attempt)
        outcome = check(ready)
        if outcome is not None:
            placed.append(reserve(made, outcome, new_names()))
        if placed and (outcome is None or random.random() < 0.3):
            release(made, placed.pop(random.randrange(len(placed))))


def test_one_more_pod_looks_at_the_nodes_that_changed() -> None:
    nodes, pods = 150, 60
    made = Cluster()
    for number in range(nodes):
        name = f"node-{number}"
        made.put_node(node(name, labels={HOST: name, ZONE: "abc"[number % 3]}))
    for number in range(pods):
        ready = attempt(made, spread(f"pod-{number}", over=constraints(HOST, ZONE)))
        assert isinstance(ready, Attempt)
        outcome = ready.best_placed()
        assert outcome is not None
        reserve(made, outcome, new_names())

    assert made.work.nodes_compared <= nodes + 2 * pods
