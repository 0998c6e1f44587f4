"""What a plan says of groups is what a live scheduler does with them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.core.pod import Pod
from tests.insight.plan.test_plan import planned
from tests.scheduler.live.fakeserver import FakeServer
from tests.scheduler.live.harness import Rig
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import claim, composite, device_class, group, slice_of, user

ZONE = "topology.kubernetes.io/zone"
IN_ONE_ZONE: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": ZONE}]}}
IN_SET: dict[str, Any] = {"parentCompositePodGroupName": "set"}
HIGH: dict[str, Any] = {"priority": 9}


def zoned(name: str, zone: str, cpu: str = "2") -> Any:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "9"}
    return node(name, labels={"kubernetes.io/hostname": name, ZONE: zone}, allocatable=room)


def member(name: str, of: str = "gang", **more: Any) -> Pod:
    return pod(name, requests={"cpu": "1"}, schedulingGroup={"podGroupName": of}, **more)


def low(name: str) -> Pod:
    return pod(name, requests={"cpu": "1"}, nodeName="n1", priority=0)


SCENES: dict[str, list[Any]] = {
    "a gang in two zones": [
        zoned("n1", "east"),
        zoned("n2", "west"),
        group(least=3),
        *map(member, ("p", "q", "r")),
    ],
    "a gang that must stay in one zone": [
        zoned("n1", "east", "1"),
        zoned("n2", "west"),
        group(least=2, **IN_ONE_ZONE),
        *map(member, ("p", "q")),
    ],
    "no zone has room": [
        zoned("n1", "east", "1"),
        zoned("n2", "west", "1"),
        group(least=2, **IN_ONE_ZONE),
        *map(member, ("p", "q")),
    ],
    "the zone with the devices": [
        zoned("n1", "east"),
        zoned("n2", "west"),
        device_class(),
        slice_of("n1", 1),
        slice_of("n2", 2),
        claim("c"),
        claim("d"),
        group(least=2, **IN_ONE_ZONE),
        user("p", "c", schedulingGroup={"podGroupName": "gang"}),
        user("q", "d", schedulingGroup={"podGroupName": "gang"}),
    ],
    "two groups together": [
        zoned("n1", "east", "4"),
        composite(),
        group("a", **IN_SET),
        group("b", **IN_SET),
        *(member(f"{of}{n}", of) for of in ("a", "b") for n in (1, 2)),
    ],
    "one of two groups is too many": [
        zoned("n1", "east", "3"),
        composite(),
        group("a", **IN_SET),
        group("b", **IN_SET),
        *(member(f"{of}{n}", of) for of in ("a", "b") for n in (1, 2)),
    ],
    "a group above is missing": [
        zoned("n1", "east"),
        group("a", least=1, **IN_SET),
        member("p", "a"),
    ],
}


def lived(*objects: Any) -> Rig:
    made = FakeServer()
    made.put(*objects)
    rig = Rig(made)
    rig.run()
    return rig


@pytest.mark.parametrize("name", SCENES)
def test_a_plan_and_a_live_scheduler_place_the_same_pods(name: str) -> None:
    objects = SCENES[name]
    plan, rig = planned(*objects), lived(*objects)
    places = {each.pod.metadata.name: each.node for each in plan.placed}
    waits = {each.pod.metadata.name: each.message for each in plan.pending}
    for each in objects:
        if isinstance(each, Pod):
            own = each.metadata.name
            assert rig.node_of(own) == places.get(own, "")
            expected = f"False Unschedulable {waits[own]}" if waits.get(own) else ""
            assert rig.condition(own) == ("True" if own in places else expected)


def test_the_victims_of_a_plan_are_those_that_leave() -> None:
    objects = [
        zoned("n1", "east"),
        low("v1"),
        low("v2"),
        group(least=2, **HIGH),
        *(member(name, **HIGH) for name in ("p", "q")),
    ]
    plan, rig = planned(*objects), lived(*objects)
    victims = {victim.name for each in plan.pending for victim in each.group_victims}
    assert victims == {"v1", "v2"}
    assert not any(rig.server.get(Pod, name) for name in victims)
    rig.run(for_s=3)
    assert rig.node_of("p") == rig.node_of("q") == "n1"
