"""Groups of pods: together or not at all."""

from __future__ import annotations

from typing import Any

from mooring.api.core.pod import Pod
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.cycle import Pending
from mooring.scheduler.groups import TOO_FEW, Gang, schedule_group
from mooring.scheduler.reserving import Reservation
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import (
    claim,
    cluster,
    device_class,
    devices_of,
    group,
    new_names,
    placed,
    slice_of,
    user,
    wanting,
)

MEMBER = {"schedulingGroup": {"podGroupName": "gang"}}


def member(name: str, cpu: str = "2", **more: Any) -> Pod:
    return pod(name, requests={"cpu": cpu}, **MEMBER, **more)


def run(made: Cluster, *pods: Pod, least: int, **more: Any) -> list[str]:
    """Return what becomes of the pods: the node, or the message."""
    gang = Gang(group(least=least), pods, existing=len(pods) + more.get("scheduled", 0), **more)
    made.put_group(gang.group)
    results = schedule_group(made, gang, new_names())
    assert [each.pod.metadata.name for each in results] == [p.metadata.name for p in pods]
    return [each.node if isinstance(each, Reservation) else each.message for each in results]


def held(made: Cluster) -> int:
    return sum(len(state.pods) for state in made.fleet.nodes.values())


def test_a_gang_gets_nodes_together() -> None:
    made = cluster(node("node-1"), node("node-2"))
    assert run(made, member("a"), member("b"), member("c"), least=3) == [
        "node-1",
        "node-2",
        "node-1",
    ]


def test_a_gang_that_is_too_large_leaves_nothing_behind() -> None:
    made = cluster(node("node-1"))
    texts = run(made, member("a"), member("b"), member("c"), least=3)
    assert texts[0] == (
        "pod group is unschedulable, 0/1 placements are available, first placement status: "
        "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
    )
    assert texts[2] == "0/1 nodes are available: 1 Insufficient cpu."
    assert held(made) == 0
    assert not made.holds


def test_a_gang_waits_until_there_are_enough_of_it() -> None:
    made = cluster(node("node-1"))
    gang = Gang(group(least=2), (member("a"),), existing=1)
    (found,) = schedule_group(made, gang, new_names())
    assert isinstance(found, Pending)
    assert (found.reason, found.message) == (TOO_FEW, "")


def test_pods_of_a_gang_that_have_nodes_count() -> None:
    made = cluster(node("node-1", allocatable={"cpu": "2", "memory": "1Gi", "pods": "9"}))
    assert run(made, member("c"), member("d"), least=3, scheduled=2) == [
        "node-1",
        "0/1 nodes are available: 1 Insufficient cpu.",
    ]


def test_an_earlier_choice_is_taken_back_where_that_helps() -> None:
    # The first pod likes node-1, which is the only one that the second can use.
    small = {"cpu": "2", "memory": "8Gi", "pods": "9"}
    made = cluster(node("node-1"), node("node-2", allocatable=small), device_class())
    picky = member("b", "4", nodeSelector={"kubernetes.io/hostname": "node-1"})
    assert run(made, member("a"), picky, least=2) == ["node-2", "node-1"]
    assert held(made) == 2


def test_steps_of_the_search_are_bounded_and_all_is_given_back() -> None:
    made = cluster(*(node(f"node-{n}") for n in range(8)), device_class())
    pods = tuple(member(f"p{n}") for n in range(16)) + (member("large", "4"),)
    gang = Gang(group(least=17), pods, existing=17)
    results = schedule_group(made, gang, new_names(), steps_max=50)
    assert all(isinstance(each, Pending) for each in results)
    assert held(made) == 0


def test_a_large_gang_needs_no_deep_stack() -> None:
    made = cluster(node("node-1", allocatable={"cpu": "3000", "memory": "1Gi", "pods": "9999"}))
    pods = tuple(member(f"p{n}", "1") for n in range(1000)) + (member("large", "3000"),)
    texts = run(made, *pods, least=1001)
    assert held(made) == 0
    assert texts[-1] == "0/1 nodes are available: 1 Insufficient cpu."


def shared(name: str) -> Pod:
    entry = {"name": "shared", "resourceClaimName": "c"}
    return pod(name, requests={"cpu": "2"}, resourceClaims=[entry], **MEMBER)


def test_a_claim_of_the_group_is_reserved_for_the_group() -> None:
    claims = [{"name": "shared", "resourceClaimName": "c"}]
    made = cluster(node("node-1"), node("node-2"), device_class(), slice_of("node-2"), claim("c"))
    gang = Gang(group(least=2, resourceClaims=claims), (shared("a"), shared("b")), existing=2)
    made.put_group(gang.group)
    results = schedule_group(made, gang, new_names())
    assert [each.node for each in results if isinstance(each, Reservation)] == ["node-2", "node-2"]
    found = made.find_claim("default", "c")
    assert found is not None
    assert [each.name for each in found.status.reserved_for] == ["gang"]


def test_a_claim_of_a_group_that_does_not_fit_is_as_it_was() -> None:
    claims = [{"name": "shared", "resourceClaimName": "c"}]
    made = cluster(node("node-1"), device_class(), slice_of("node-1"), claim("c"))
    pods = (shared("a"), shared("b"), shared("c"))
    gang = Gang(group(least=3, resourceClaims=claims), pods, existing=3)
    made.put_group(gang.group)
    assert not any(isinstance(e, Reservation) for e in schedule_group(made, gang, new_names()))
    assert made.find_claim("default", "c") == claim("c")
    assert held(made) == 0


def test_devices_of_a_gang_that_does_not_fit_are_free_again() -> None:
    made = cluster(
        node("node-1"),
        device_class(),
        slice_of("node-1", 3),
        claim("a", wanting(2)),
        claim("b", wanting(2)),
    )
    run(made, user("a", "a", **MEMBER), user("b", "b", **MEMBER), least=2)
    made.put_claim(claim("all", wanting(3)))
    assert len(devices_of(placed(made, user("p", "all")))) == 3
