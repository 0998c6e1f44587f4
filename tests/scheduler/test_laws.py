"""Laws of every cluster, whatever its history: see also the campaign soak/scheduler.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from random import Random

import pytest

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.node_ranking import NODES_ALL_ASKED_MAX
from moorage.scheduler.reservation import Reservation, release, reserve
from moorage.scheduler.scheduling_cycle import Attempt, Placed, attempt, schedule
from tests.scheduler.histories import described, pods, run_history, some_node, some_slice
from tests.scheduler.makers import ZONE, node, pod
from tests.scheduler.scenes import (
    Object,
    claim,
    cluster,
    device_class,
    new_names,
    placed,
    slice_of,
    user,
    wanting,
)


@pytest.mark.parametrize("seed", range(10))
def test_a_cluster_with_a_history_answers_as_one_made_anew(seed: int) -> None:
    counts = run_history(Random(seed), steps=30, check_every=5)
    assert counts["fits"]
    assert counts["pending"]


# --- plans --------------------------------------------------------------------------------------


def planned(made: Cluster, wanted: Iterable[Pod]) -> list[Reservation]:
    """Give nodes to all pods that fit, one after the other."""
    names = new_names()
    outcomes = (schedule(made, one) for one in wanted)
    return [reserve(made, each, names) for each in outcomes if isinstance(each, Placed)]


def scene(random: Random) -> tuple[list[Object], list[Pod]]:
    """Return a cluster's objects and pods that look for nodes there."""
    objects: list[Object] = [device_class(extendedResourceName="example.com/gpu")]
    for _ in range(6):
        objects += [some_node(random), some_slice(random)]
    unique = {(type(each), each.metadata.name): each for each in objects}
    claims = [claim(f"c-{number}", wanting(random.choice([1, 1, 2]))) for number in range(5)]
    sorts = [random.choice(pods(f"p-{number}")) for number in range(20)]
    return [*unique.values(), *claims], sorts


@pytest.mark.parametrize("seed", range(8))
def test_a_plan_does_not_depend_on_the_order_of_objects(seed: int) -> None:
    random = Random(seed)
    objects, wanted = scene(random)
    expected = planned(cluster(*objects), wanted)
    assert expected
    random.shuffle(objects)
    assert planned(cluster(*objects), wanted) == expected


@pytest.mark.parametrize("seed", range(8))
def test_no_device_is_given_twice_and_no_node_is_overfull(seed: int) -> None:
    objects, wanted = scene(Random(seed))
    made = cluster(*objects)
    found = planned(made, wanted)
    assert max(Counter(devices_in(made.claims.values())).values(), default=0) <= 1
    for name in made.snapshot.nodes:
        here = [each.pod for each in found if each.node == name]
        there = made.node(name).status.allocatable
        assert len(here) <= there["pods"].value
        assert sum(map(cpu_of, here)) <= Fraction(there["cpu"].milli_value, 1000)


def devices_in(claims: Iterable[ResourceClaim]) -> list[tuple[str, str]]:
    return [
        (result.pool, result.device)
        for each in claims
        if each.status.allocation is not None
        for result in each.status.allocation.devices.results
    ]


def cpu_of(one: Pod) -> Fraction:
    """Return what a pod takes of the node's CPUs, by itself and with its devices."""
    amounts = [each.resources.requests.get("cpu") for each in one.spec.containers]
    for status in one.status.node_allocatable_resource_claim_statuses or ():
        amounts += [each.quantity for each in status.mapping if each.name == "cpu"]
    return sum((Fraction(each.milli_value, 1000) for each in amounts if each), Fraction(0))


# --- large clusters -----------------------------------------------------------------------------


def large(random: Random, *, size: int) -> Cluster:
    """Return a cluster in which no two nodes are sure to be alike."""
    made = cluster(device_class())
    for number in range(size):
        name = f"node-{number:03}"
        there = {"cpu": random.choice(["2", "4", "8"]), "memory": "8Gi", "pods": "9"}
        made.put_node(node(name, labels={ZONE: random.choice("abc")}, allocatable=there))
        made.put_slice(slice_of(name, random.randint(0, 2)))
    return made


@pytest.mark.parametrize("seed", range(3))
def test_asking_the_best_first_finds_the_node_that_weighing_all_finds(seed: int) -> None:
    random = Random(seed)
    made = large(random, size=NODES_ALL_ASKED_MAX + 20)
    for number in range(25):
        made.put_claim(claim(f"c-{number}", wanting(random.choice([1, 2]))))
        one = user(f"p-{number}", f"c-{number}", requests={"cpu": random.choice(["1", "3"])})
        ready = attempt(made, one)
        assert isinstance(ready, Attempt)
        outcome = ready.best(alone=True)
        assert isinstance(outcome, Placed)
        assert outcome.node == ready.nodes_by_score()[0]
        reserve(made, outcome, new_names())


def test_one_more_pod_of_a_kind_costs_what_changed() -> None:
    size = 500
    made = cluster(device_class(), *(node(f"node-{number:03}") for number in range(size)))
    for number in range(size):
        made.put_slice(slice_of(f"node-{number:03}"))
    for number in range(10):
        made.put_claim(claim(f"c-{number}"))
        one = user(f"p-{number}", f"c-{number}", requests={"cpu": "1"})
        assert placed(made, one).node == f"node-{number:03}"
        # Every node once, and then the one that the pod before got.
        assert made.work.nodes_filtered == size + number
        assert made.work.nodes_asked == number + 1


def test_a_shared_claim_costs_what_changed() -> None:
    size = 500
    made = cluster(device_class(), *(node(f"node-{number:03}") for number in range(size)))
    made.put_slice(slice_of("net", where={"allNodes": True}))
    made.put_claim(claim("c"))
    assert placed(made, user("p", "c")).node == "node-000"
    before = made.work.nodes_filtered
    for number in range(10):
        placed(made, user(f"p-{number}", "c"))
    # The kind whose claim is allocated is of the size of the one whose claim was not.
    assert made.work.nodes_filtered == before + 10


def test_kinds_of_one_size_share_the_scores_of_nodes() -> None:
    nodes, kinds = 150, 10
    made = cluster(*(node(f"node-{number:03}") for number in range(nodes)))
    for number in range(kinds):
        one = pod(f"p-{number}", labels={"app": str(number)}, requests={"cpu": "1"})
        outcome = schedule(made, one)
        assert isinstance(outcome, Placed)
        reserve(made, outcome, new_names())
    assert made.work.nodes_filtered == nodes + kinds - 1


def test_what_is_released_costs_what_changed() -> None:
    size = 500
    made = cluster(*(node(f"node-{number:03}") for number in range(size)))
    one = pod("p", requests={"cpu": "1"})
    for _ in range(10):
        before = described(schedule(made, one))
        release(made, placed(made, one))
        assert described(schedule(made, one)) == before
    assert made.work.nodes_filtered == size + 10
