"""Groups of groups: enough of them together, or none."""

from __future__ import annotations

from typing import Any

from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.api.scheduling import CompositePodGroup, PodGroup
from moorage.claims.pod_claims import group_name
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.features import Features
from moorage.scheduler.group_forest import COMPOSITE, GROUP, GroupKey
from moorage.scheduler.pod_groups import Gang, UnitDecision, decide, unit_of
from moorage.scheduler.reservation import Reservation
from moorage.scheduler.scheduling_cycle import Pending
from tests.scheduler.makers import HOST, node, pod
from tests.scheduler.scenes import cluster, composite, group, new_names

ZONE = "topology.kubernetes.io/zone"
IN_SET: dict[str, Any] = {"parentCompositePodGroupName": "set"}
SET: GroupKey = (COMPOSITE, "default", "set")
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"
SHORT = (
    "pod group is unschedulable, 0/1 placements are available, first placement status: "
    "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
)


def member(name: str, of: str, cpu: str = "1", **more: Any) -> Pod:
    return pod(name, requests={"cpu": cpu}, schedulingGroup={"podGroupName": of}, **more)


def run(made: Cluster, *pods: Pod, nodes: dict[str, tuple[str, ...]] | None = None) -> UnitDecision:
    def gang(found: PodGroup) -> Gang:
        name = found.metadata.name
        own = tuple(each for each in pods if group_name(each) == name)
        there = (nodes or {}).get(name, ())
        count = len(own) + len(there)
        placed = tuple(member(f"{name}-{number}", name) for number, _ in enumerate(there))
        return Gang(found, own, len(there), count, nodes=there, placed=placed)

    unit = unit_of(made, SET, gang)
    assert unit is not None
    return decide(made, unit, new_names())


def nodes_of(found: UnitDecision) -> dict[str, str]:
    return {
        each.pod.metadata.name: each.node if isinstance(each, Reservation) else ""
        for each in found.results
    }


def texts_of(found: UnitDecision) -> dict[str, str]:
    results = (each for each in found.results if isinstance(each, Pending))
    return {each.pod.metadata.name: each.message for each in results}


def twice(name: str) -> tuple[Pod, Pod]:
    return member(f"{name}1", name), member(f"{name}2", name)


def test_groups_get_their_nodes_together() -> None:
    made = cluster(node("node-1"), composite(), group("a", **IN_SET), group("b", **IN_SET))
    found = run(made, *twice("a"), *twice("b"))
    assert set(nodes_of(found).values()) == {"node-1"}
    assert [each.message for each in found.groups] == ["", ""]


def test_nothing_is_kept_if_too_few_groups_fit() -> None:
    small = {"cpu": "3", "memory": "8Gi", "pods": "9"}
    made = cluster(
        node("node-1", allocatable=small), composite(), group("a", **IN_SET), group("b", **IN_SET)
    )
    found = run(made, *twice("a"), *twice("b"))
    assert set(nodes_of(found).values()) == {""}
    assert not made.snapshot.nodes["node-1"].pods
    first, second = found.groups
    assert first.message == f"{SHORT}, {NO_VICTIMS}, {NO_VICTIMS}", "it shares its parent's"
    assert second.message == f"{SHORT}, {NO_VICTIMS}"
    assert texts_of(found) == {
        "a1": SHORT,
        "a2": SHORT,
        "b1": f"pod group is unschedulable, {SHORT}, {NO_VICTIMS}",
        "b2": "0/1 nodes are available: 1 Insufficient cpu.",
    }


def test_a_group_that_does_not_fit_stays_behind_if_enough_others_do() -> None:
    small = {"cpu": "3", "memory": "8Gi", "pods": "9"}
    groups = (composite(least=1), group("a", **IN_SET), group("b", **IN_SET))
    made = cluster(node("node-1", allocatable=small), *groups)
    found = run(made, *twice("a"), *twice("b"))
    assert nodes_of(found) == {"a1": "node-1", "a2": "node-1", "b1": "", "b2": ""}
    assert [each.message for each in found.groups] == ["", SHORT]
    again = run(made, *twice("b"), nodes={"a": ("node-1", "node-1")})
    assert again.groups[1].message == f"{SHORT}, {NO_VICTIMS}"


def test_groups_wait_in_silence_until_enough_of_them_have_their_pods() -> None:
    made = cluster(node("node-1"), composite(), group("a", **IN_SET), group("b", **IN_SET))
    found = run(made, *twice("a"), member("b1", "b"))
    assert found.message is None
    assert set(texts_of(found).values()) == {""}


def test_a_constraint_of_the_parent_holds_for_all_groups() -> None:
    def zoned(name: str, zone: str, cpu: str) -> Any:
        room = {"cpu": cpu, "memory": "8Gi", "pods": "9"}
        return node(name, labels={HOST: name, ZONE: zone}, allocatable=room)

    zones = (zoned("n1", "east", "3"), zoned("n2", "west", "2"), zoned("n3", "west", "2"))
    constraints: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": ZONE}]}}
    groups = (composite(**constraints), group("a", **IN_SET), group("b", **IN_SET))
    found = run(cluster(*zones, *groups), *twice("a"), *twice("b"))
    assert set(nodes_of(found).values()) == {"n2", "n3"}


def test_a_composite_group_may_have_composite_groups() -> None:
    inner = composite("inner", least=1, **IN_SET)
    groups = (group("a", parentCompositePodGroupName="inner"), group("b", **IN_SET))
    made = cluster(node("node-1"), composite(), inner, *groups)
    assert made.forest.root_of((GROUP, "default", "a")) == SET
    found = run(made, *twice("a"), *twice("b"))
    assert set(nodes_of(found).values()) == {"node-1"}


def test_a_missing_parent_is_waited_for() -> None:
    made = cluster(node("node-1"), group("a", **IN_SET))
    assert unit_of(made, SET, lambda found: Gang(found, ())) is None
    assert made.forest.root_of((GROUP, "default", "a")) == SET
    made.put_group(composite())
    assert unit_of(made, SET, lambda found: Gang(found, ())) is not None


def test_without_the_gate_groups_stand_alone() -> None:
    features = Features.of(Gates.parse("CompositePodGroup=false"))
    made = cluster(composite(), group("a", **IN_SET), features=features)
    assert made.forest.root_of((GROUP, "default", "a")) == (GROUP, "default", "a")


def test_groups_that_contain_each_other_come_to_an_end() -> None:
    made = cluster(
        composite("set", parentCompositePodGroupName="other"),
        composite("other", parentCompositePodGroupName="set"),
        group("a", **IN_SET),
    )
    root = made.forest.root_of((GROUP, "default", "a"))
    assert not made.forest.is_complete(root)
    assert [*made.forest.leaves(root)]


def chain(depth: int) -> list[CompositePodGroup]:
    """Return composite groups, each in the one before it."""
    names = ["set", *(f"set-{number}" for number in range(1, depth))]
    above = dict(zip(names[1:], names, strict=False))
    parents = {name: {"parentCompositePodGroupName": above[name]} for name in above}
    return [composite(name, least=1, **parents.get(name, {})) for name in names]


def test_four_composite_groups_may_be_above_a_group() -> None:
    lowest = group("a", parentCompositePodGroupName="set-3")
    found = run(cluster(node("node-1"), lowest, *chain(4)), *twice("a"))
    assert set(nodes_of(found).values()) == {"node-1"}


def test_below_five_composite_groups_a_group_waits() -> None:
    lowest = group("a", parentCompositePodGroupName="set-4")
    assert not run(cluster(node("node-1"), lowest, *chain(5)), *twice("a")).results
