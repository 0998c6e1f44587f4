"""Faults at any write: nothing is leaked, nothing is given twice, and the pods get there."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.client.writes import Write
from tests.scheduler.live.fakeserver import FakeServer, ServerError
from tests.scheduler.live.harness import Rig, check_devices
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import claim, device_class, group, slice_of, user

RESOURCE = "example.com/gpu"
REFUSED = ServerError(403, "Forbidden", "you may not")
CONFLICT = ServerError(409, "Conflict", "the object has been modified")
UNAVAILABLE = ServerError(503, "ServiceUnavailable", "no answer")
FAULTS = {
    "refused": (REFUSED, False),
    "conflict": (CONFLICT, False),
    "not carried out, not answered": (UNAVAILABLE, False),
    "carried out, not answered": (UNAVAILABLE, True),
}


def one_pod() -> list[Any]:
    return [claim("c"), user("p", "c")]


def two_claims() -> list[Any]:
    return [claim("c-1"), claim("c-2"), user("p", "c-1", "c-2")]


def shared() -> list[Any]:
    return [claim("c"), user("p", "c"), user("q", "c")]


def extended() -> list[Any]:
    return [pod("p", requests={RESOURCE: "1"}), pod("q", requests={RESOURCE: "1"})]


def gang() -> list[Any]:
    entry = {"name": "claim-0", "resourceClaimName": "c"}
    member: dict[str, Any] = {"schedulingGroup": {"podGroupName": "gang"}}
    return [
        claim("c"),
        group(resourceClaims=[entry]),
        user("p", "c", **member),
        user("q", "c", **member),
    ]


def with_node_resources() -> list[Any]:
    mapping: dict[str, Any] = {
        "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}}
    }
    return [slice_of("node-1", 2, **mapping), claim("c"), user("p", "c")]


SCENES = {
    "one pod": one_pod,
    "two claims": two_claims,
    "shared claim": shared,
    "extended resources": extended,
    "gang": gang,
    "node resources": with_node_resources,
}


class NthWrite:
    """Makes one write fail."""

    def __init__(self, number: int, trouble: tuple[ServerError, bool]) -> None:
        self._left = number
        self._trouble = trouble

    def __call__(self, write: Write) -> tuple[ServerError, bool] | None:
        self._left -= 1
        return self._trouble if self._left == 0 else None

    @property
    def has_struck(self) -> bool:
        return self._left <= 0


def server(*objects: Any) -> FakeServer:
    made = FakeServer()
    status = {"declaredFeatures": ["DRANodeAllocatableResources"]}
    allocatable = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    made.put(device_class(extendedResourceName=RESOURCE))
    made.put(node("node-1", allocatable=allocatable, status=status), slice_of("node-1", 2))
    made.put(*objects)
    return made


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_any_write_is_overcome(scene: str, fault: str) -> None:
    for number in range(1, 60):
        made = server(*SCENES[scene]())
        rig = Rig(made)
        trouble = rig.trouble = NthWrite(number, FAULTS[fault])
        rig.run(for_s=60)
        check_devices(made)
        rig.check()
        pods = list(made.all(Pod))
        assert all(each.spec.node_name == "node-1" for each in pods), (number, rig.told(""))
        uids = {each.metadata.uid for each in pods}
        for each in made.all(ResourceClaim):
            assert each.status.allocation is not None, f"write {number}: nothing is left over"
            consumers = {consumer.uid for consumer in each.status.reserved_for}
            assert consumers <= uids | {"group-gang"}
        if not trouble.has_struck:
            return
    raise AssertionError("there is no end of writes")


@pytest.mark.parametrize("scene", SCENES)
def test_pods_deleted_at_any_write_leave_nothing_behind(scene: str) -> None:
    for number in range(1, 60):
        made = server(*SCENES[scene]())
        rig = Rig(made)
        counter = NthWrite(number, (REFUSED, False))

        def delete_all(write: Write, counter: NthWrite = counter, made: FakeServer = made) -> None:
            if counter(write) is not None:
                made.delete(*[each for each in made.all(Pod) if not each.spec.node_name])

        rig.trouble = delete_all
        rig.run(for_s=60)
        rig.check()
        bound = {each.metadata.uid for each in made.all(Pod) if each.spec.node_name}
        for each in made.all(ResourceClaim):
            pods = {c.uid for c in each.status.reserved_for if c.resource == "pods"}
            assert pods <= bound, f"write {number}: {pods}"
        assert not rig.scheduler.queue.counts()["active"]
        if not counter.has_struck:
            return
    raise AssertionError("there is no end of writes")


def test_two_schedulers_never_give_a_claim_twice() -> None:
    for late in range(12):
        made = server(*one_pod(), *[claim("d"), user("q", "d", "c")])
        one, two = Rig(made), Rig(made)
        while one.hear() or two.hear():
            pass
        for _ in range(late):
            one.decide() or one.write()
        for _ in range(40):
            two.decide() or two.write()
        one.run(for_s=60)
        two.run(for_s=60)
        one.run(for_s=60)
        assert {one.node_of("p"), one.node_of("q")} == {"node-1"}
        one.check()
        two.check()
        found = one.claim("c")
        assert len(found.status.reserved_for) == 2


def test_two_schedulers_never_give_a_device_twice() -> None:
    """Whoever is told first has it, and both see that alike."""
    fought = 0
    for late in range(16):
        made = FakeServer()
        made.put(device_class(), node("node-1"), slice_of("node-1", 1))
        made.put(claim("c"), claim("d"), user("p", "c"), user("q", "d"))
        one, two = Rig(made), Rig(made)
        while one.hear() or two.hear():
            pass
        one.server.put(user("p", "c", priority=5))
        one.hear()  # so that each begins with another pod
        two.scheduler.queue.discard(("pod", "default/p"), "default/p", 0.0)
        for number in range(40):
            one.decide() or one.write()
            if number >= late:
                two.decide() or two.write()
        claims = [one.claim(name) for name in "cd"]
        fought += all(each.status.allocation is not None for each in claims)
        for _ in range(3):
            one.run(for_s=30)
            two.run(for_s=30)
        check_devices(made)
        assert sorted((one.node_of("p"), one.node_of("q"))) == ["", "node-1"]
        one.check()
        two.check()
    assert fought, "both had written at once"
