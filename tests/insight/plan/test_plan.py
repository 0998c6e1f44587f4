"""Plans of whole snapshots: the order of pods, rounds, and obstacles."""

from __future__ import annotations

from typing import Any

from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.validation.strategy import Context
from tests.scheduler.makers import HOST, node, pod
from tests.scheduler.scenes import (
    Object,
    claim,
    composite,
    device_class,
    group,
    slice_of,
    user,
)

CONTEXT = Context(gates=Gates.parse(""), now=Timestamp.parse("2026-01-01T00:00:00Z"))
WEB = {"app": "web"}


def planned(*objects: Object) -> Plan:
    return plan(Snapshot.of(objects), CONTEXT)


def ends(*objects: Object) -> dict[str, str]:
    """Return the node or the message of each pod that looks for a node."""
    found = planned(*objects)
    nodes = {each.pod.metadata.name: each.node for each in found.placed}
    return nodes | {each.pod.metadata.name: each.message for each in found.pending}


def near(labels: dict[str, str]) -> dict[str, Any]:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_pods_come_by_priority_and_then_by_age() -> None:
    def waiting(name: str, created: str, priority: int = 0) -> Pod:
        metadata = {"creationTimestamp": created}
        return pod(name, requests={"cpu": "2"}, priority=priority, metadata=metadata)

    young, old = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"
    found = ends(
        node(), waiting("young", young), waiting("old", old), waiting("high", young, priority=1)
    )
    assert (found["high"], found["old"]) == ("node-1", "node-1")
    assert found["young"].startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_pod_that_wants_company_waits_for_it() -> None:
    found = ends(node("node-1"), node("node-2"), pod("a", affinity=near(WEB)), pod("b", labels=WEB))
    assert found == {"a": "node-1", "b": "node-1"}


def test_a_plan_keeps_a_group_within_its_domain() -> None:
    zone = "topology.kubernetes.io/zone"
    small = {"cpu": "2", "memory": "8Gi", "pods": "9"}
    nodes = [
        node(name, labels={"kubernetes.io/hostname": name, zone: where}, allocatable=small)
        for name, where in (("n1", "east"), ("n2", "west"), ("n3", "west"))
    ]
    of = {"podGroupName": "gang"}
    pods = [pod(name, requests={"cpu": "2"}, schedulingGroup=of) for name in ("p", "q")]
    constraints = {"topology": [{"key": zone}]}
    found = planned(*nodes, group(schedulingConstraints=constraints), *pods)
    assert {each.node for each in found.placed} == {"n2", "n3"}


def test_a_plan_places_groups_of_a_composite_group_together_or_not_at_all() -> None:
    parts = [group(name, parentCompositePodGroupName="set", least=1) for name in ("a", "b")]
    pods = [
        pod(name, requests={"cpu": "3"}, schedulingGroup={"podGroupName": name})
        for name in ("a", "b")
    ]
    one, two = node("n1"), node("n2")
    assert not planned(one, composite(), *parts, *pods).placed
    assert len(planned(one, two, composite(), *parts, *pods).placed) == 2
    assert not planned(one, two, *parts, *pods).placed, "the composite group is waited for"


def test_a_plan_names_the_victims_of_a_group() -> None:
    there = pod("low", requests={"cpu": "4"}, nodeName="n1", priority=0)
    high = pod("p", requests={"cpu": "4"}, schedulingGroup={"podGroupName": "gang"}, priority=9)
    (waits,) = planned(node("n1"), there, group(least=1, priority=9), high).pending
    assert [victim.name for victim in waits.group_victims] == ["low"]


def test_pods_of_a_group_that_have_a_node_stay_there_while_others_wait_for_company() -> None:
    member: dict[str, Any] = {"schedulingGroup": {"podGroupName": "gang"}, "priority": 1}
    found = ends(
        node("node-1"),
        group(least=1, priority=1),
        pod("a", requests={"cpu": "3"}, **member),
        pod("b", affinity=near(WEB), **member),
        pod("c", labels=WEB),
    )
    assert found == {"a": "node-1", "b": "node-1", "c": "node-1"}


def test_a_pod_that_is_ending_still_has_its_place_and_one_that_ended_has_not() -> None:
    dying = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    there = pod("dying", requests={"cpu": "3"}, nodeName="node-1", metadata=dying)
    ended = pod("ended", requests={"cpu": "1"}, nodeName="node-1", status={"phase": "Failed"})
    found = ends(
        node(), there, ended, pod("small", requests={"cpu": "1"}), pod("p", requests={"cpu": "1"})
    )
    assert found["small"] == "node-1"
    assert found["p"].startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_special_claims_get_names_that_are_not_taken() -> None:
    resource = "example.com/gpu"
    found = planned(
        node(),
        device_class(extendedResourceName=resource),
        slice_of("node-1", 2),
        claim("p-extended-resources-0"),
        pod("p", requests={resource: "1"}),
        pod("q", requests={resource: "1"}),
    )
    assert [each.claims[0].metadata.name for each in found.placed] == [
        "p-extended-resources-1",
        "q-extended-resources-0",
    ]


def test_a_plan_says_who_would_have_to_leave() -> None:
    low = pod("low", requests={"cpu": "4"}, nodeName="node-1")
    (found,) = planned(node(), low, pod("high", requests={"cpu": "1"}, priority=1)).pending
    assert found.preemption is not None
    assert [each.full_name for each in found.preemption.victims] == ["default/low"]


def test_a_plan_gives_devices() -> None:
    found = planned(node(), device_class(), slice_of("node-1"), claim("c"), user("p", "c"))
    after = {each.metadata.name: each for each in found.after.claims}
    assert after["c"].status.allocation is not None


def test_a_claim_that_256_pods_have_reserved_has_no_place_for_another() -> None:
    readers = [f"reader-{number}" for number in range(256)]
    shared = claim("shared", has=[("node-1", "gpu-0")], reserved=readers)
    objects = (node(), device_class(), slice_of("node-1"), shared)
    found = planned(*objects, user("reader-256", "shared"))
    (waiting,) = found.pending
    assert waiting.is_fault
    assert waiting.message == (
        'running PreBind plugin "DynamicResources": add reservation to claim default/shared: '
        'ResourceClaim.resource.k8s.io "shared" is invalid: status.reservedFor: Too many: 257: '
        "must have at most 256 items"
    )
    assert ends(*objects, user("reader-7", "shared")) == {"reader-7": "node-1"}


def test_the_last_place_of_a_claim_is_given_away_once() -> None:
    readers = [f"reader-{number}" for number in range(255)]
    shared = claim("shared", has=[("node-1", "gpu-0")], reserved=readers)
    objects = (node(), device_class(), slice_of("node-1"), shared)
    found = planned(*objects, user("a", "shared"), user("b", "shared"))
    assert [each.pod.metadata.name for each in found.placed] == ["a"]
    assert [each.pod.metadata.name for each in found.pending] == ["b"]
