"""Undoing: the scheduler reverts its own writes at once, and none of a bound pod."""

from __future__ import annotations

from msgspec.structs import replace

from moorage.api.core.pod import Pod, PodResourceClaimStatus
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimStatus
from moorage.client.writes import Create, Patch, RecordEvent, Update, Write
from tests.scheduler.live.fakeserver import FakeServer, ServerError
from tests.scheduler.live.harness import Rig, check_devices
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import claim, device_class, only_on, slice_of, user

RESOURCE = "example.com/gpu"
OWNED = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "default/p", "controller": True}


def server(*objects: object) -> FakeServer:
    made = FakeServer()
    made.put(device_class(extendedResourceName=RESOURCE), node("node-1"), slice_of("node-1", 3))
    made.put(*objects)
    return made


def refuse_binding(write: Write) -> tuple[ServerError, bool] | None:
    if isinstance(write, Create):
        return ServerError(403, "Forbidden", "you may not"), False
    return None


def devices_written(made: FakeServer, name: str) -> list[bool]:
    """Return whether the claim had devices after each write of its status."""
    return [
        write.value.status.allocation is not None
        for write in made.writes
        if isinstance(write, Update)
        and isinstance(write.value, ResourceClaim)
        and write.value.metadata.name == name
        and write.subresource == "status"
    ]


def test_devices_go_in_the_write_that_takes_the_last_reservation_back() -> None:
    """Else a scheduler that dies between two writes leaves them to nobody."""
    made = server(claim("c"), user("p", "c"), user("q", "c"))
    rig = Rig(made)
    rig.trouble = refuse_binding
    for _ in range(200):
        rig.hear() or rig.decide() or rig.write()
        found = rig.claim("c").status
        assert bool(found.reserved_for) == (found.allocation is not None), found
    assert False in devices_written(made, "c"), "it was taken back"


def test_a_claim_that_another_scheduler_reserved_is_left_alone() -> None:
    made = server(claim("c"), user("p", "c"), node("node-2"), slice_of("node-2"))
    one, two = Rig(made), Rig(made)
    while one.hear() or two.hear():
        pass
    two.scheduler.put(node("node-1", unschedulable=True), two.now)  # so that it takes node-2
    one.scheduler.put(node("node-2", unschedulable=True), one.now)
    assert one.decide()
    assert two.decide()
    one.run(for_s=30)
    assert one.node_of("p") == "node-1"
    while two.write():
        pass
    two.run(for_s=30)
    found = one.claim("c").status
    assert found.allocation is not None
    assert [each.name for each in found.reserved_for] == ["p"]


def test_a_pod_is_not_tried_again_before_all_is_taken_back() -> None:
    """Else what is taken back late is taken from the next try."""
    made = server(claim("c"), user("p", "c"), user("q", "c"))
    rig = Rig(made)
    rig.trouble = refuse_binding
    for number in range(300):
        if number % 7 == 0:
            found = made.get(Pod, "p")
            metadata = replace(found.metadata, labels={"number": str(number)})
            made.put(replace(found, metadata=metadata))
        rig.elapsed_s += 0.05
        rig.hear() or rig.decide() or rig.write()
        trying = rig.scheduler.cache.in_flight.keys() & rig.scheduler.cache.being_undone
        assert not trying


def test_claims_of_a_pod_that_another_scheduler_works_at_are_left_as_they_are() -> None:
    """It may bind the pod with what we gave, as soon as it sees it."""
    made = server(claim("c"), claim("d"), user("p", "c", "d"))
    one = Rig(made)
    while not devices_written(made, "c"):
        one.hear() or one.decide() or one.write()
    other = claim("d", has=[("node-1", "gpu-2")], reserved=["p"]).status
    made.put(replace(one.claim("d"), status=other))
    while one.write():
        pass
    assert "allocated elsewhere" in one.told("FailedScheduling")[0]
    for name in ("c", "d"):
        assert one.claim(name).status.allocation is not None
        assert [each.name for each in one.claim(name).status.reserved_for] == ["p"]
    one.run(for_s=30)
    assert one.node_of("p") == "node-1"


def test_the_same_device_for_another_node_is_another_allocation() -> None:
    """A pool was published anew for another node, and another scheduler gave the device there."""
    made = server(claim("c"), user("p", "c"))
    rig = Rig(made)
    while rig.hear() or rig.decide():
        pass
    other = claim("c", has=[("node-1", "gpu-0")], reserved=["p"], at=only_on("node-9")).status
    assert other.allocation is not None
    made.put(replace(made.get(ResourceClaim, "c"), status=other))
    rig.run(for_s=30)
    assert "allocated elsewhere" in rig.told("FailedScheduling")[0]
    assert rig.node_of("p") == "node-1"
    found = rig.claim("c").status.allocation
    assert found is not None
    assert found.node_selector != other.allocation.node_selector


def test_a_pod_that_got_another_claim_meanwhile_is_bound_with_that_one() -> None:
    """Controllers that overlap may both create a claim for a pod; the last one named counts."""
    made = server(claim("first", ownerReferences=[OWNED]), claim("second", ownerReferences=[OWNED]))
    entry = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    made.put(naming(pod("p", resourceClaims=entry), "first"))
    rig = Rig(made)
    while rig.hear() or rig.decide():
        pass
    made.put(naming(made.get(Pod, "p"), "second"))
    rig.hear()
    rig.run(for_s=30)
    assert rig.node_of("p") == "node-1"
    assert rig.claim("second").status.allocation is not None
    assert "other claims in the meantime" in rig.told("FailedScheduling")[0]


def naming(found: Pod, name: str) -> Pod:
    names = (PodResourceClaimStatus(name="gpu", resource_claim_name=name),)
    return replace(found, status=replace(found.status, resource_claim_statuses=names))


def test_a_pod_that_got_a_node_meanwhile_keeps_its_claims() -> None:
    """The binding of a scheduler that is dead by now can arrive late."""
    made = server(claim("c"), user("p", "c"))
    rig = Rig(made)
    rig.trouble = refuse_binding
    while not any(isinstance(write, Update) for write in made.writes[1:]):
        rig.hear() or rig.decide() or rig.write()
    found = made.get(Pod, "p")
    made.put(replace(found, spec=replace(found.spec, node_name="node-1")))
    rig.run(for_s=30)
    status = rig.claim("c").status
    assert status.allocation is not None
    assert [each.name for each in status.reserved_for] == ["p"]


def test_a_special_claim_that_is_refused_again_and_again_is_complained_of_once() -> None:
    """Its name is another in every try; a condition that named it would be written for ever."""
    made = server(claim("c"), user("p", "c", requests={RESOURCE: "1"}))
    rig = Rig(made)
    rig.trouble = lambda write: (
        (ServerError(403, "Forbidden", f"{write.value.metadata.name!r} exceeds the quota"), False)
        if isinstance(write, Create)
        else None
    )
    rig.run(for_s=60)
    text = "create claim for extended resources default/p-extended-resources-: "
    text += "'p-extended-resources-' exceeds the quota"
    assert rig.condition("p").endswith(text)
    (only,) = [write for write in made.writes if not isinstance(write, RecordEvent)]
    assert isinstance(only, Patch), "nothing else is written to be taken back"
    rig.trouble = lambda write: None
    rig.run(for_s=30)
    assert rig.node_of("p") == "node-1"


def test_the_special_claim_of_a_pod_that_got_a_node_meanwhile_is_not_deleted() -> None:
    made = server(pod("p", requests={RESOURCE: "1"}))
    first = Rig(made)
    first.trouble = lambda write: (
        (ServerError(503, "", "no answer"), False)
        if isinstance(write, Create) and write.value.kind == "Binding"
        else None
    )
    first.run(for_s=1)
    (special,) = made.all(ResourceClaim)
    assert special.status.allocation is not None
    made.forget_watchers()
    second = Rig(made)  # it sees the pod without a node, for the last time
    found = made.get(Pod, "p")
    while second.hear():
        pass
    made.forget_watchers()  # and is late from here on
    made.put(replace(found, spec=replace(found.spec, node_name="node-1")))
    second.run(for_s=10)
    assert made.get(ResourceClaim, special.metadata.name) is not None
    assert made.get(ResourceClaim, special.metadata.name).status != ResourceClaimStatus()


def test_a_refusal_after_a_lost_answer_says_nothing() -> None:
    """What was written and not answered counts, even if the same write is forbidden afterwards."""
    for number in range(1, 12):
        made = server(pod("p", requests={RESOURCE: "3"}), pod("q", requests={RESOURCE: "3"}))
        rig = Rig(made)
        rig.trouble = LostThenForbidden(number)
        while rig.hear():
            pass
        for _ in range(300):  # changes are told late
            rig.elapsed_s += 0.01
            rig.decide() or rig.write() or rig.hear()
            check_devices(made)
        rig.trouble = lambda write: None
        rig.run(for_s=60)
        check_devices(made)
        assert sorted((rig.node_of("p"), rig.node_of("q"))) == ["", "node-1"], number


class LostThenForbidden:
    """Has one write carried out and not answered, and the same one refused when it is repeated."""

    def __init__(self, number: int) -> None:
        self._left = number
        self._again: Write | None = None

    def __call__(self, write: Write) -> tuple[ServerError, bool] | None:
        self._left -= 1
        if self._left == 0:
            self._again = write
            return ServerError(503, "", "no answer"), True
        if self._again is not None and write == self._again:
            return ServerError(403, "Forbidden", "you may not"), False
        return None
