"""Groups of pods: together or not at all."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.features import ALL_FEATURES, Features
from moorage.scheduler.pod_groups import TOO_FEW, Gang, UnitDecision, decide, schedule_group
from moorage.scheduler.reservation import Reservation
from moorage.scheduler.scheduling_cycle import Pending
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

MEMBER: dict[str, Any] = {"schedulingGroup": {"podGroupName": "gang"}}


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
    return sum(len(state.pods) for state in made.snapshot.nodes.values())


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
        "pod group is unschedulable, pod group is unschedulable, "
        "0/1 placements are available, first placement status: "
        "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, "
        "pod group preemption: No preemption victims found for incoming preemptor"
    )
    assert texts[2] == "0/1 nodes are available: 1 Insufficient cpu."
    assert held(made) == 0
    assert not made.assumed_claims


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
    pods = (*(member(f"p{n}") for n in range(16)), member("large", "4"))
    gang = Gang(group(least=17), pods, existing=17)
    results = schedule_group(made, gang, new_names(), steps_max=50)
    assert all(isinstance(each, Pending) for each in results)
    assert held(made) == 0


def test_a_large_gang_needs_no_deep_stack() -> None:
    made = cluster(node("node-1", allocatable={"cpu": "3000", "memory": "1Gi", "pods": "9999"}))
    pods = (*(member(f"p{n}", "1") for n in range(1000)), member("large", "3000"))
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


def test_a_claim_for_node_resources_is_not_shared_within_a_group() -> None:
    claims = [{"name": "shared", "resourceClaimName": "c"}]
    cores: dict[str, Any] = {
        "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}}
    }
    large = node("node-1", allocatable={"cpu": "8", "memory": "8Gi", "pods": "9"})
    made = cluster(large, device_class(), slice_of("node-1", **cores), claim("c"))
    gang = Gang(group(least=1, resourceClaims=claims), (shared("a"), shared("b")), existing=2)
    made.put_group(gang.group)
    first, second = schedule_group(made, gang, new_names())
    assert isinstance(first, Reservation)
    assert isinstance(second, Pending)
    assert second.message == (
        "0/1 nodes are available: 1 node allocatable resource claim c has a mapped device "
        "and cannot be shared across pods."
    )


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.data(),
)
def test_a_gang_for_which_there_is_room_gets_it(
    rooms: list[int], sizes: list[int], data: st.DataObject
) -> None:
    least = data.draw(st.integers(1, len(sizes)))
    nodes = [
        node(f"node-{n}", allocatable={"cpu": str(cpu), "memory": "8Gi", "pods": "9"})
        for n, cpu in enumerate(rooms)
    ]
    made = cluster(*nodes)
    run(made, *(member(f"p{n}", str(size)) for n, size in enumerate(sizes)), least=least)
    assert (held(made) >= least) == is_possible(rooms, sizes, least)
    for state in made.snapshot.nodes.values():
        assert state.requested.milli_cpu <= state.facts.allocatable.milli_cpu
    assert held(made) == 0 or held(made) >= least


def is_possible(rooms: list[int], sizes: list[int], least: int) -> bool:
    """Return whether so many of the pods find room, by trying every way to put them."""
    ways = product(range(-1, len(rooms)), repeat=len(sizes))
    return any(
        sum(place >= 0 for place in way) >= least
        and all(
            sum(size for size, place in zip(sizes, way, strict=True) if place == number) <= room
            for number, room in enumerate(rooms)
        )
        for way in ways
    )


# --- what is said -------------------------------------------------------------------------------

SHORT = "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"
CLEARED = "deallocation and deletion of ResourceClaims completed"
PLACEMENTS = "pod group is unschedulable, 0/1 placements are available, first placement status: "


def decided(made: Cluster, *pods: Pod, least: int = 3, **spec: Any) -> UnitDecision:
    gang = Gang(group(least=least, **spec), pods, existing=len(pods))
    made.put_group(gang.group)
    return decide(made, gang, new_names())


def messages_of(found: UnitDecision) -> list[str]:
    return [each.message for each in found.results if isinstance(each, Pending)]


def short_of_nodes(features: Features = ALL_FEATURES, **spec: Any) -> UnitDecision:
    """Return what is said of three pods, of which the first finds a node and the second none."""
    made = cluster(node("node-1"), features=features)
    return decided(made, member("a", "3"), member("b"), member("c"), **spec)


def test_messages_count_placements_only_where_the_gate_is_on() -> None:
    on = short_of_nodes()
    assert on.message == f"{PLACEMENTS}{SHORT}, {NO_VICTIMS}"
    assert messages_of(on) == [
        f"pod group is unschedulable, {PLACEMENTS}{SHORT}, {NO_VICTIMS}",
        "0/1 nodes are available: 1 Insufficient cpu.",
        f"{PLACEMENTS}{SHORT}",
    ]
    off = short_of_nodes(Features.of(Gates.parse("TopologyAwareWorkloadScheduling=false")))
    assert off.message == f"{SHORT}, {NO_VICTIMS}"
    assert messages_of(off) == [
        f"pod group is unschedulable, {SHORT}, {NO_VICTIMS}",
        "0/1 nodes are available: 1 Insufficient cpu.",
        SHORT,
    ]


def test_kubernetes_defaults_do_not_count_placements() -> None:
    gates = Gates.parse("GenericWorkload=true", preset="kubernetes-1.37")
    assert short_of_nodes(Features.of(gates)).message == f"{SHORT}, {NO_VICTIMS}"


def test_a_group_that_does_not_preempt_says_so() -> None:
    found = decided(
        cluster(node("node-1")),
        member("a", "9", preemptionPolicy="Never"),
        least=1,
        preemptionPolicy="Never",
    )
    assert found.message is not None
    assert found.message.endswith(
        f"{CLEARED}, pod group preemption: not eligible due to preemptionPolicy=Never."
    )


def test_without_the_gate_the_pods_decide_whether_a_group_preempts() -> None:
    features = Features.of(Gates.parse("PodGroupPreemptionPolicy=false"))
    never = member("a", "9", preemptionPolicy="Never")
    found = decided(cluster(node("node-1"), features=features), never, least=1)
    assert found.message is not None
    assert "not eligible due to preemptionPolicy=Never." in found.message
    fault = decided(cluster(node("node-1"), features=features), never, member("b"), least=2)
    assert fault.message == (
        "all pods in a single pod group should have the same preemption policy, "
        "got PreemptLowerPriority and Never"
    )


def low(name: str, cpu: str) -> Pod:
    return pod(name, requests={"cpu": cpu}, priority=1, nodeName="node-1")


def high(name: str, cpu: str) -> Pod:
    return member(name, cpu, priority=5)


def test_victims_are_looked_for_before_it_is_said_that_there_are_none() -> None:
    made = cluster(node("node-1"), low("low", "4"))
    found = decided(made, high("a", "2"), high("b", "2"), least=2, priority=5)
    assert found.message == (
        f"{PLACEMENTS}minCount (2) cannot be satisfied: 0 scheduled, 1 remaining, "
        "pod group preemption: found a placement for podgroup, preempting 1 victims"
    )
    assert held(made) == 1
    assert made.snapshot.node_of("default/low") == "node-1"


def test_a_group_that_would_not_fit_even_alone_says_so() -> None:
    made = cluster(node("node-1"), low("low", "4"))
    found = decided(made, high("a", "3"), high("b", "3"), least=2, priority=5)
    first = f"{PLACEMENTS}minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
    alone = f"{PLACEMENTS}minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    assert found.message == f"{first}, {CLEARED}, pod group preemption: {alone}"
    assert held(made) == 1


def test_pods_of_the_same_priority_are_no_victims() -> None:
    made = cluster(node("node-1"), low("low", "4"))
    found = decided(made, member("a", priority=1), member("b", priority=1), least=2, priority=1)
    assert found.message is not None
    assert found.message.endswith(NO_VICTIMS)


def test_a_group_without_a_gang_needs_one_pod() -> None:
    made = cluster(node("node-1"))
    found = decided(made, member("a", "9"), member("b", "9"), schedulingPolicy={"basic": {}})
    counts = "minCount (1) cannot be satisfied: 0 scheduled, 0 remaining"
    assert found.message == f"{PLACEMENTS}{counts}, {NO_VICTIMS}"
