"""Silent nodes are marked and their pods leave; marks go when nodes are well again."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.coordination import Lease
from moorage.api.core import Node, Pod
from moorage.controllers.controller import WriteRefused
from moorage.controllers.node_lifecycle import (
    LEASES,
    NodeLifecycleController,
    TaintEvictionController,
)
from moorage.controllers.pod_control import is_true
from tests.controllers.things import NOW, World, later, thing

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def node(name: str = "a", ready: str = "True", **spec: Any) -> Node:
    conditions = [
        {"type": "Ready", "status": ready, "lastHeartbeatTime": None, "lastTransitionTime": None}
    ]
    made: Node = thing("v1", "Node", name, spec=spec, status={"conditions": conditions})
    return made


def lease(name: str = "a", *, after_s: float = 0) -> Lease:
    made: Lease = thing(
        "coordination.k8s.io/v1",
        "Lease",
        name,
        metadata={"name": name, "namespace": LEASES},
        spec={"holderIdentity": name, "renewTime": f"{str(later(after_s))[:-1]}.000000Z"},
    )
    return made


def pod(name: str = "p", *tolerations: dict[str, Any]) -> Pod:
    made: Pod = thing(
        "v1",
        "Pod",
        name,
        spec={"containers": [{"name": "main"}], "nodeName": "a", "tolerations": tolerations},
        status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    )
    return made


def world_of(*values: Any) -> World:
    world = World(NodeLifecycleController(), TaintEvictionController())
    world.put(*values)
    return world


def taints(world: World) -> list[tuple[str, str]]:
    return [(each.key, each.effect) for each in world.get(Node, "a", "").spec.taints]


def silent(world: World) -> None:
    for _ in range(7):
        world.advance(10)


def test_a_node_whose_agent_is_silent_becomes_unknown_and_is_tainted() -> None:
    world = world_of(node(), lease(), pod())
    silent(world)
    (ready, *_) = (c for c in world.get(Node, "a", "").status.conditions if c.type == "Ready")
    assert (ready.status, ready.reason) == ("Unknown", "NodeStatusUnknown")
    assert ready.message == "Kubelet stopped posting node status."
    assert taints(world) == [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]
    (told,) = world.get(Pod, "p").status.conditions
    assert (told.type, told.status) == ("Ready", "False")


def test_a_pod_that_cannot_be_changed_keeps_neither_others_nor_the_node_from_it() -> None:
    world = world_of(node(), lease(), pod("a"), pod("b"), pod("c"))
    world.model.allows = lambda old, _: (
        WriteRefused("Forbidden", "hands off") if old.metadata.name == "b" else None
    )
    silent(world)
    assert taints(world) == [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]
    ready = [is_true(world.get(Pod, name).status.conditions, "Ready") for name in "abc"]
    assert ready == [False, True, False]


def test_pods_that_come_to_be_ready_on_a_lost_node_are_not() -> None:
    world = world_of(node(), lease(), pod())
    silent(world)
    late = world.get(Pod, "p")
    world.report(late, "Running", ready=True)
    world.advance(10)
    assert not is_true(world.get(Pod, "p").status.conditions, "Ready")


def test_a_node_whose_lease_is_renewed_stays_ready() -> None:
    world = world_of(node(), lease())
    for seconds in range(10, 200, 10):
        world.change(
            world.get(Lease, "a", LEASES), renew_time=lease(after_s=seconds).spec.renew_time
        )
        world.advance(10)
    assert taints(world) == []


def test_a_node_that_never_had_a_lease_is_left_alone() -> None:
    world = world_of(node())
    silent(world)
    assert taints(world) == []


def test_a_clock_that_jumps_is_no_silence() -> None:
    controller = NodeLifecycleController()
    world = World(controller)
    world.put(node(), lease())
    for hours in (1, 2, 3, 4):
        steps = list(controller.reconcile(world.model.objects, ("", "a"), later(hours * 3600), {}))
        assert [type(each).__name__ for each in steps] == ["RequeueAfter"]


def test_a_node_that_is_well_again_loses_our_taints_and_keeps_others() -> None:
    marked = [
        {"key": NOT_READY, "effect": "NoSchedule"},
        {"key": "mine", "effect": "NoSchedule"},
        {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": str(NOW)},
    ]
    world = world_of(node(taints=marked))
    world.settle()
    assert taints(world) == [("mine", "NoSchedule")]


@pytest.mark.parametrize(
    ("kind", "status", "wanted"),
    [
        ("Ready", "False", [(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]),
        ("DiskPressure", "True", [("node.kubernetes.io/disk-pressure", "NoSchedule")]),
        ("DiskPressure", "False", []),
    ],
)
def test_conditions_become_taints(kind: str, status: str, wanted: list[tuple[str, str]]) -> None:
    conditions = [
        {"type": kind, "status": status, "lastHeartbeatTime": None, "lastTransitionTime": None}
    ]
    world = world_of(thing("v1", "Node", "a", status={"conditions": conditions}))
    world.settle()
    assert taints(world) == wanted


def test_a_cordoned_node_is_tainted_until_it_is_not() -> None:
    world = world_of(node(unschedulable=True))
    world.settle()
    assert taints(world) == [("node.kubernetes.io/unschedulable", "NoSchedule")]
    world.change(world.get(Node, "a", ""), unschedulable=False)
    world.settle()
    assert taints(world) == []


def test_pods_leave_an_unreachable_node_after_five_minutes() -> None:
    world = world_of(node(), lease(), pod())
    silent(world)
    world.advance(270)
    assert world.get(Pod, "p").metadata.deletion_timestamp is None
    world.advance(20)
    left = world.get(Pod, "p")
    assert left is None or left.metadata.deletion_timestamp is not None
    assert world.told("TaintManagerEviction") == ["Marking for deletion Pod default/p"]


def test_pods_stay_as_long_as_they_tolerate() -> None:
    forever = {"key": "k", "operator": "Exists", "effect": "NoExecute"}
    short = {**forever, "tolerationSeconds": 10}
    world = world_of(
        node(taints=[{"key": "k", "effect": "NoExecute", "timeAdded": str(NOW)}]),
        pod("at-once"),
        pod("for-ever", forever),
        pod("short", short, forever),
    )
    world.settle()

    def there() -> set[str]:
        return {
            each.metadata.name
            for each in world.all(Pod)
            if each.metadata.deletion_timestamp is None
        }

    assert there() == {"for-ever", "short"}
    world.advance(11)
    assert there() == {"for-ever"}
