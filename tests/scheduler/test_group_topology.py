"""Groups that must stay within one domain of a topology."""

from __future__ import annotations

from typing import Any

from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.features import Features
from moorage.scheduler.pod_groups import Gang, UnitDecision, decide
from moorage.scheduler.reservation import Reservation
from moorage.scheduler.scheduling_cycle import Pending
from tests.scheduler.makers import HOST, node, pod
from tests.scheduler.scenes import (
    claim,
    cluster,
    device_class,
    group,
    new_names,
    slice_of,
    user,
)

ZONE = "topology.kubernetes.io/zone"
MEMBER: dict[str, Any] = {"schedulingGroup": {"podGroupName": "gang"}}
IN_ONE_ZONE: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": ZONE}]}}
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"


def zoned(name: str, zone: str | None, cpu: str = "4") -> Node:
    labels = {HOST: name} if zone is None else {HOST: name, ZONE: zone}
    return node(name, labels=labels, allocatable={"cpu": cpu, "memory": "8Gi", "pods": "110"})


def member(name: str, cpu: str = "2", **more: Any) -> Pod:
    return pod(name, requests={"cpu": cpu}, **MEMBER, **more)


def run(
    made: Cluster, *pods: Pod, least: int = 2, nodes: tuple[str, ...] = (), **spec: Any
) -> UnitDecision:
    found = group(least=least, **{**IN_ONE_ZONE, **spec})
    made.put_group(found)
    count = len(pods) + len(nodes)
    placed = tuple(member(f"placed-{number}") for number, _ in enumerate(nodes))
    gang = Gang(found, pods, scheduled=len(nodes), existing=count, nodes=nodes, placed=placed)
    return decide(made, gang, new_names())


def nodes_of(found: UnitDecision) -> list[str]:
    return [each.node if isinstance(each, Reservation) else "" for each in found.results]


def texts_of(found: UnitDecision) -> list[str]:
    return [each.message for each in found.results if isinstance(each, Pending)]


def test_a_gang_goes_to_the_domain_that_has_room_for_it() -> None:
    made = cluster(zoned("a", "east", "2"), zoned("b", "west"), zoned("c", "west"))
    assert nodes_of(run(made, member("p", "3"), member("q", "3"))) == ["b", "c"]


def test_devices_decide_like_other_resources() -> None:
    nodes = (zoned("a", "east"), zoned("b", "west"))
    devices = (device_class(), slice_of("a", 1), slice_of("b", 2))
    made = cluster(*nodes, *devices, claim("c"), claim("d"))
    found = run(made, user("p", "c", **MEMBER), user("q", "d", **MEMBER))
    assert nodes_of(found) == ["b", "b"]


def test_no_domain_has_room() -> None:
    made = cluster(zoned("a", "east", "2"), zoned("b", "west", "2"))
    found = run(made, member("p"), member("q"))
    first = (
        "pod group is unschedulable, 0/2 placements are available, first placement status: "
        "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    )
    assert found.message == f"{first}, {NO_VICTIMS}"
    assert texts_of(found) == [
        f"pod group is unschedulable, {first}, {NO_VICTIMS}",
        "0/1 nodes are available: 1 Insufficient cpu.",
    ]
    assert not any(info.pods for info in made.snapshot.nodes.values())


def test_nodes_without_the_label_are_in_no_domain() -> None:
    made = cluster(zoned("a", None), zoned("b", None))
    found = run(made, member("p"), member("q"))
    assert found.message == f"no feasible placements found, {NO_VICTIMS}"
    assert texts_of(found) == ["no feasible placements found"] * 2


def test_late_members_stay_in_the_domain_of_the_others() -> None:
    made = cluster(zoned("a", "east"), zoned("b", "west", "2"))
    found = run(made, member("late", "3"), nodes=("b", "b"))
    assert nodes_of(found) == [""]
    assert texts_of(found) == ["0/1 nodes are available: 1 Insufficient cpu."]


def test_nodes_of_two_domains_are_an_error() -> None:
    made = cluster(zoned("a", "east"), zoned("b", "west"))
    found = run(made, member("late"), nodes=("a", "b"))
    assert found.is_fault
    assert found.message is not None
    assert found.message.endswith("more than 1 domain found for pod group: east, west")


def test_the_domain_with_more_of_the_pods_is_better() -> None:
    made = cluster(zoned("a", "east"), zoned("b", "west"), zoned("c", "west"))
    found = run(made, *(member(f"p{n}") for n in range(4)), least=2)
    assert sorted(nodes_of(found)) == ["b", "b", "c", "c"]


def test_of_equal_domains_the_fuller_one_is_better() -> None:
    made = cluster(zoned("a", "east"), zoned("b", "west"))
    made.put_pod(pod("there", requests={"cpu": "1"}, nodeName="b"))
    assert nodes_of(run(made, member("p", "1"), member("q", "1"))) == ["b", "b"]


def test_without_the_gate_a_constraint_is_not_read() -> None:
    off = Features.of(Gates.parse("TopologyAwareWorkloadScheduling=false"))
    made = cluster(zoned("a", "east", "2"), zoned("b", "west", "2"), features=off)
    assert sorted(nodes_of(run(made, member("p"), member("q")))) == ["a", "b"]


def test_claims_are_not_said_to_be_cleared_under_a_constraint() -> None:
    made = cluster(zoned("a", "east", "2"))
    never: dict[str, Any] = {"preemptionPolicy": "Never"}
    found = run(made, member("p", **never), member("q", **never), **never)
    assert found.message is not None
    assert found.message.endswith(
        "0 remaining, pod group preemption: not eligible due to preemptionPolicy=Never."
    )
