"""A cause that names what is gone is found anew soon, for each pod that it is said of."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimStatus
from moorage.client.writes import Patch
from moorage.insight.answer.summary import PendingSummary
from moorage.scheduler.live import SchedulerConfig
from moorage.scheduler.live.config import ExplainIn
from tests.scheduler.live.fakeserver import FakeServer
from tests.scheduler.live.harness import Rig
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import claim, device_class, group, only_on, slice_of, user, wanting

SOON_S = 10.0
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
HERE = only_on("node-1")


class Clock:
    """The time of a rig; with steps, each look at it takes some."""

    def __init__(self) -> None:
        self.rig: Rig | None = None
        self.step_s = self._more_s = 0.0

    def __call__(self) -> float:
        self._more_s += self.step_s
        return self._more_s + (0.0 if self.rig is None else self.rig.elapsed_s)


def rig_of(*objects: Any, devices: int = 1, config: SchedulerConfig | None = None) -> Rig:
    made = FakeServer()
    made.put(device_class(), node("node-1"), slice_of("node-1", devices), *objects)
    clock = Clock()
    rig = Rig(made, config, explain=PendingSummary(clock, Gates.parse()))
    rig.clock = clock
    clock.rig = rig
    return rig


def holder(name: str, device: int = 0) -> tuple[Pod, ResourceClaim]:
    """Return a pod on a node, and its claim with a device."""
    held = claim(f"held-{name}", has=[("node-1", f"gpu-{device}")], at=HERE, reserved=[name])
    return user(name, f"held-{name}", nodeName="node-1"), held


def replicas(count: int, **more: Any) -> list[Any]:
    names = [f"r-{number}" for number in range(count)]
    metadata = {"metadata": {"ownerReferences": [OWNER]}, **more}
    return [each for name in names for each in (claim(name), user(name, name, **metadata))]


def leave(rig: Rig, name: str) -> None:
    """Let a pod go, and its claim with it."""
    rig.server.delete(rig.server.get(Pod, name))
    rig.server.drop(rig.claim(f"held-{name}"))


def waiting(rig: Rig) -> dict[str, str]:
    """Return the conditions of the pods without a node, by name."""
    pods = [each for each in rig.server.all(Pod) if not each.spec.node_name]
    return {each.metadata.name: rig.condition(each.metadata.name) for each in pods}


def test_all_replicas_get_a_new_line_when_the_pod_that_it_names_is_gone() -> None:
    rig = rig_of(*holder("notebook"), *replicas(5))
    rig.run(for_s=30)
    assert all("notebook" in each for each in waiting(rig).values())
    leave(rig, "notebook")
    rig.run(for_s=SOON_S)
    left = waiting(rig)
    assert len(left) == 4
    assert not [each for each in left.values() if "notebook" in each]
    assert all("in use by" in each for each in left.values())


@pytest.mark.parametrize("why", ["deallocated", "reserved for another", "finished"])
def test_a_holder_that_has_nothing_more_is_gone_as_well(why: str) -> None:
    rig = rig_of(*holder("notebook"), *replicas(3))
    rig.run(for_s=30)
    held = rig.claim("held-notebook")
    if why == "finished":
        found = rig.server.get(Pod, "notebook")
        rig.server.put(replace(found, status=replace(found.status, phase="Succeeded")))
    if why == "reserved for another":
        rig.server.put(user("other", "held-notebook", nodeName="node-1"))
        other = claim("x", has=[("a", "b")], reserved=["other"]).status.reserved_for
        rig.server.put(replace(held, status=replace(held.status, reserved_for=other)))
    else:
        rig.server.put(replace(held, status=ResourceClaimStatus()))
    rig.run(for_s=SOON_S)
    left = waiting(rig)
    assert len(left) >= 2
    assert not [each for each in left.values() if "of pod notebook" in each]


def test_only_pods_whose_line_names_it_are_looked_at() -> None:
    more = {"priority": -1}
    rig = rig_of(*holder("notebook"), *holder("trainer", 1), *replicas(3), devices=2)
    away = device_class("away", selectors=[{"cel": {"expression": "device.driver == 'x'"}}])
    other = claim("far", wanting(device_class="away"))
    rig.server.put(away, other, user("far", "far", **more))
    rig.run(for_s=30)
    before = len(rig.server.writes)
    leave(rig, "notebook")
    rig.run(for_s=SOON_S)
    patched = [each.target.name for each in rig.server.writes[before:] if isinstance(each, Patch)]
    assert "far" not in patched
    assert len(patched) <= 2, "one for each that waits"


def test_a_group_gets_new_lines() -> None:
    member = {"schedulingGroup": {"podGroupName": "gang"}}
    rig = rig_of(
        group(least=5),
        *holder("notebook"),
        *holder("trainer", 1),
        *replicas(5, **member),
        devices=2,
    )
    rig.run(for_s=30)
    assert all("notebook" in each for each in waiting(rig).values())
    leave(rig, "notebook")
    rig.run(for_s=SOON_S)
    assert len(waiting(rig)) == 5
    assert not [each for each in waiting(rig).values() if "notebook" in each]


def test_a_group_does_not_keep_lines_for_which_there_is_no_time() -> None:
    member = {"schedulingGroup": {"podGroupName": "gang"}}
    rig = rig_of(group(least=5), *holder("notebook"), *replicas(5, **member))
    rig.run(for_s=30)
    assert all("notebook" in each for each in waiting(rig).values())
    assert isinstance(rig.clock, Clock)
    rig.clock.step_s = 0.2
    leave(rig, "notebook")
    rig.run(for_s=SOON_S)
    assert len(waiting(rig)) == 5
    assert not [each for each in waiting(rig).values() if "notebook" in each]


def test_an_event_of_its_own_is_renewed_as_well() -> None:
    config = SchedulerConfig(explain_in=ExplainIn.EVENT)
    rig = rig_of(*holder("notebook"), *replicas(3), config=config)
    rig.run(for_s=30)
    before = len(rig.server.events)
    leave(rig, "notebook")
    rig.run(for_s=SOON_S)
    told = [each for each in rig.server.events[before:] if each.reason == "SchedulingExplained"]
    assert {each.about.metadata.name for each in told} == {"r-1", "r-2"}
    assert not [each for each in told if "notebook" in each.message]


def test_without_time_for_a_new_line_the_old_one_goes() -> None:
    rig = rig_of(*holder("notebook"), *replicas(3))
    rig.run(for_s=30)
    assert isinstance(rig.clock, Clock)
    rig.clock.step_s = 0.2  # no explanation has time then
    leave(rig, "notebook")
    rig.run(for_s=SOON_S)
    left = waiting(rig)
    assert len(left) == 2
    assert not [each for each in left.values() if "notebook" in each]
    assert all("cannot allocate all claims" in each for each in left.values())


def test_a_pod_whose_own_claim_is_gone_is_not_said_to_wait_for_devices() -> None:
    """It is not tried any more, so that Kubernetes' message stays."""
    rig = rig_of(*holder("notebook"), *replicas(2))
    rig.run(for_s=30)
    rig.server.drop(rig.claim("r-1"))
    rig.run(for_s=SOON_S)
    assert "Moorage: claim r-1 does not exist" in rig.condition("r-1")
    assert "in use by" in rig.condition("r-0")


def test_who_can_be_placed_by_now_is_tried() -> None:
    rig = rig_of(*holder("notebook"), pod("plain", nodeName="node-1"), *replicas(1))
    rig.run(for_s=30)
    leave(rig, "notebook")
    rig.run(for_s=SOON_S)
    assert waiting(rig) == {}


def test_a_condition_says_how_devices_become_free_that_are_reserved_for_nobody() -> None:
    left = claim("left", has=[("node-1", "gpu-0")], at=HERE)
    rig = rig_of(left, *replicas(2))
    rig.run(for_s=30)
    text = (
        "free claim left, which is reserved for nobody: delete it, or clear its status.allocation"
    )
    assert [text in each for each in waiting(rig).values()] == [True, True]
    rig.server.put(replace(rig.claim("left"), status=ResourceClaimStatus()))
    rig.run(for_s=SOON_S)
    assert not [each for each in waiting(rig).values() if "claim left" in each]


def test_waiting_is_advised_where_each_of_two_full_nodes_has_a_holder() -> None:
    there = only_on("node-2")
    held = claim("held-there", has=[("node-2", "gpu-0")], at=there, reserved=["there"])
    rig = rig_of(
        *holder("here"),
        *(node("node-2"), slice_of("node-2", 1), held),
        user("there", "held-there", nodeName="node-2"),
        *replicas(1),
    )
    rig.run(for_s=SOON_S)
    said = waiting(rig)["r-0"]
    assert "claim held-here of pod here, claim held-there of pod there" in said
    assert "wait until claim held-here of pod here frees its devices" in said
