"""Groups preempt as one, in the whole cluster."""

from __future__ import annotations

from typing import Any

from moorage.api.core.pod import Pod
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.pod_groups import Gang, UnitDecision, decide
from moorage.scheduler.reservation import Reservation
from moorage.scheduler.scheduling_cycle import Pending, Placed, schedule
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import (
    claim,
    cluster,
    device_class,
    group,
    new_names,
    slice_of,
    user,
)

MEMBER: dict[str, Any] = {"schedulingGroup": {"podGroupName": "gang"}, "priority": 5}


def high(name: str, cpu: str = "2", **more: Any) -> Pod:
    return pod(name, requests={"cpu": cpu}, **MEMBER, **more)


def low(name: str, cpu: str = "2", on: str = "node-1", **more: Any) -> Pod:
    return pod(name, requests={"cpu": cpu}, nodeName=on, **{"priority": 1, **more})


def run(made: Cluster, *pods: Pod, least: int | None = None) -> UnitDecision:
    found = group(least=least or len(pods), priority=5)
    made.put_group(found)
    return decide(made, Gang(found, pods, existing=len(pods)), new_names())


def victims_of(found: UnitDecision) -> list[str]:
    assert found.preemption is not None
    return [victim.name for victim in found.preemption.victims]


def test_only_as_many_pods_leave_as_must() -> None:
    made = cluster(node("node-1"), low("a"), low("b"))
    found = run(made, high("p"))
    assert len(victims_of(found)) == 1
    assert found.message is not None
    assert found.message.endswith(
        "pod group preemption: found a placement for podgroup, preempting 1 victims"
    )
    assert found.preemption is not None
    assert set(found.preemption.nominated.values()) == {"node-1"}
    assert len(made.snapshot.nodes["node-1"].pods) == 2, "nothing is changed"


def test_victims_of_lower_priority_leave_first() -> None:
    made = cluster(node("node-1"), low("more", priority=3), low("less", priority=2))
    assert victims_of(run(made, high("p"))) == ["less"]


def test_a_group_that_is_disrupted_as_a_whole_leaves_as_a_whole() -> None:
    whole = group("whole", priority=1, disruptionMode={"all": {}})
    of_whole: dict[str, Any] = {"schedulingGroup": {"podGroupName": "whole"}}
    nodes = (node("node-1"), node("node-2"))
    first = low("a", "4", **of_whole)
    made = cluster(*nodes, whole, first, low("b", "4", "node-2", **of_whole))
    assert sorted(victims_of(run(made, high("p")))) == ["a", "b"]


def test_a_group_of_one_by_one_loses_only_the_pods_that_must_leave() -> None:
    single = group("single", priority=1, disruptionMode={"single": {}})
    of_single: dict[str, Any] = {"schedulingGroup": {"podGroupName": "single"}}
    made = cluster(node("node-1"), single, low("a", **of_single), low("b", **of_single))
    assert len(victims_of(run(made, high("p")))) == 1


def test_pods_in_groups_are_more_important_than_others() -> None:
    made = cluster(
        node("node-1"),
        group("single", priority=1),
        low("alone"),
        low("of", schedulingGroup={"podGroupName": "single"}),
    )
    assert victims_of(run(made, high("p"))) == ["alone"]


def test_devices_are_never_freed_by_preemption() -> None:
    holder = user("holder", "held", nodeName="node-1", priority=1)
    made = cluster(
        node("node-1"),
        device_class(),
        slice_of("node-1", 1),
        claim("held", has=[("node-1", "gpu-0")], reserved=["holder"]),
        holder,
        claim("c"),
    )
    found = run(made, user("p", "c", **MEMBER))
    assert found.preemption is None
    assert found.message is not None
    assert "pod group preemption: pod group is unschedulable, 0/1 placements" in found.message


def leaving(name: str) -> Pod:
    victim = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    meta = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    return low(name, "4", metadata=meta, status={"conditions": [victim]})


def test_victims_that_are_leaving_are_waited_for() -> None:
    made = cluster(node("node-1"), leaving("a"))
    member = high("p", status={"nominatedNodeName": "node-1"})
    made.put_pod(member)
    found = run(made, member)
    assert found.message is not None
    assert found.message.endswith("pod group preemption: ongoing preemption on nominated nodes")
    assert found.preemption is not None
    assert not found.preemption.victims
    (result,) = found.results
    assert isinstance(result, Pending)
    assert result.nominated == "node-1"


# --- nominated nodes ------------------------------------------------------------------------------


def nominated(priority: int) -> Cluster:
    made = cluster(node("node-1"))
    made.put_pod(
        pod(
            "waits",
            requests={"cpu": "4"},
            priority=priority,
            status={"nominatedNodeName": "node-1"},
        )
    )
    return made


def test_room_is_held_for_nominated_pods() -> None:
    found = schedule(nominated(5), pod("late", requests={"cpu": "2"}, priority=5))
    assert isinstance(found, Pending)
    assert found.reason == "0/1 nodes are available: 1 Insufficient cpu."


def test_no_room_is_held_against_pods_of_higher_priority() -> None:
    found = schedule(nominated(5), pod("late", requests={"cpu": "2"}, priority=6))
    assert isinstance(found, Placed)


def test_a_nominated_pod_takes_the_room_that_is_held_for_it() -> None:
    made = nominated(5)
    own = pod("waits", requests={"cpu": "4"}, priority=5, status={"nominatedNodeName": "node-1"})
    assert isinstance(schedule(made, own), Placed)
    assert not made.snapshot.nodes["node-1"].pods


def test_room_is_held_against_groups_too() -> None:
    made = nominated(5)
    found = run(made, high("p"))
    assert not any(isinstance(each, Reservation) for each in found.results)
    assert not made.snapshot.nodes["node-1"].pods


def near(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_a_pod_that_is_only_nominated_attracts_no_pod() -> None:
    made = cluster(node("node-1"), node("node-2"))
    status = {"nominatedNodeName": "node-1"}
    made.put_pod(pod("waits", labels={"app": "db"}, priority=5, status=status))
    late = pod("late", affinity=near("db"), priority=5)
    found = schedule(made, late)
    assert isinstance(found, Pending)
    assert found.reason == "0/2 nodes are available: 2 node(s) didn't match pod affinity rules."
    made.put_pod(pod("there", labels={"app": "db"}, nodeName="node-2"))
    found = schedule(made, late)
    assert isinstance(found, Placed)
    assert found.node == "node-2"
    assert not made.snapshot.nodes["node-1"].pods


def test_a_pod_that_is_only_nominated_attracts_no_pod_of_a_gang_that_is_placed_anew() -> None:
    made = cluster(node("node-1"), node("node-2"))
    made.put_pod(pod("there", labels={"app": "db"}, nodeName="node-1"))
    status = {"nominatedNodeName": "node-2"}
    waits = pod("waits", labels={"app": "db"}, priority=99, status=status)
    made.put_pod(waits)
    members = (
        high("a", "3", affinity=near("db")),
        high("b", "3", nodeSelector={"kubernetes.io/hostname": "node-1"}),
    )
    found = run(made, *members)
    assert not any(isinstance(each, Reservation) for each in found.results)
    made.put_pod(pod("waits", labels={"app": "db"}, nodeName="node-2"))
    found = run(made, *members)
    assert [each.node for each in found.results if isinstance(each, Reservation)] == [
        "node-2",
        "node-1",
    ]


def test_a_pod_that_is_only_nominated_evens_no_spread() -> None:
    made = cluster(node("node-1"), node("node-2"))
    made.put_pod(pod("a", labels={"app": "db"}, nodeName="node-2"))
    status = {"nominatedNodeName": "node-1"}
    made.put_pod(
        pod("waits", labels={"app": "db"}, priority=5, status=status, requests={"cpu": "4"})
    )
    constraint = {
        "topologyKey": "kubernetes.io/hostname",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "db"}},
    }
    late = pod(
        "late", labels={"app": "db"}, topologySpreadConstraints=[constraint], requests={"cpu": "1"}
    )
    assert isinstance(schedule(made, late), Pending)


def test_pods_that_have_nodes_already_must_agree_with_the_group() -> None:
    made = cluster(node("node-1"))
    found = group(least=1, priority=5)
    made.put_group(found)
    there = pod("there", nodeName="node-1", **{**MEMBER, "priority": 1})
    gang = Gang(found, (high("p"),), scheduled=1, existing=2, nodes=("node-1",), placed=(there,))
    text = "should have the same priority as the pod group's priority, got 1 and 5"
    assert decide(made, gang, new_names()).message == f"all pods in a single pod group {text}"
