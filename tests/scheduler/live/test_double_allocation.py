"""Claims that were allocated more than there is: the first reported ones keep it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimStatus, ResourceSlice
from moorage.scheduler.live.double_allocation import DoubleAllocations
from tests.scheduler.live.fakeserver import FakeServer
from tests.scheduler.live.harness import Rig
from tests.scheduler.makers import node
from tests.scheduler.scenes import claim, device_class, group, slice_of, user


def sharing(name: str, amount: str) -> ResourceClaim:
    share: dict[str, Any] = {"shareID": f"share-{name}", "consumedCapacity": {"bandwidth": amount}}
    return claim(name, has=[("net", "gpu-0")], results=share)


def rivals(*slices: ResourceSlice) -> DoubleAllocations:
    return DoubleAllocations(
        lambda driver, pool: [each for each in slices if each.spec.pool.name == pool]
    )


def told(made: DoubleAllocations, *claims: ResourceClaim) -> dict[str, str]:
    """Return who of the claims lost to whom, told in this order."""
    for each in claims:
        made.put(each)
    lost = {
        each.metadata.name: made.first_owner(("default", each.metadata.name)) for each in claims
    }
    return {name: first[1] for name, first in lost.items() if first is not None}


def having(name: str, version: int) -> ResourceClaim:
    return claim(name, has=[("net", "gpu-0")], resourceVersion=str(version))


def changed(made: DoubleAllocations, told: ResourceClaim) -> None:
    made.put(told)
    made.end_list()


def listed(made: DoubleAllocations, *claims: ResourceClaim) -> None:
    for each in claims:
        made.put(each, is_listed=True)
    made.end_list()


def losers(made: DoubleAllocations) -> dict[str, str]:
    """Return which of two claims loses to whom."""
    lost = {name: made.first_owner(("default", name)) for name in ("one", "two")}
    return {name: first[1] for name, first in lost.items() if first is not None}


def test_a_device_is_of_the_claim_that_was_told_first() -> None:
    one, two = claim("one", has=[("net", "gpu-0")]), claim("two", has=[("net", "gpu-0")])
    assert told(rivals(), one, two) == {"two": "one"}
    assert told(rivals(), two, one) == {"one": "two"}


def test_a_claim_that_is_told_late_in_its_life_is_later_all_the_same() -> None:
    one = claim("one", has=[("net", "gpu-0")], resourceVersion="78")
    two = claim("two", has=[("net", "gpu-0")], resourceVersion="76")
    assert told(rivals(), one, two) == {"one": "two"}


def test_of_claims_that_come_in_one_list_nobody_knows_who_was_first() -> None:
    """A version tells when a claim was written last, not when it got its devices."""
    made = rivals()
    listed(made, having("one", 76), having("two", 78))
    assert losers(made) == {"one": "two", "two": "one"}


def test_whoever_was_known_before_a_list_was_first() -> None:
    made = rivals()
    changed(made, having("one", 76))
    listed(made, having("one", 80), having("two", 79))
    assert losers(made) == {"one": "two", "two": "one"}, "one may have been given anew"
    made = rivals()
    changed(made, having("one", 76))
    listed(made, having("one", 76), having("two", 79))
    assert losers(made) == {"two": "one"}


def test_whoever_comes_after_a_list_is_later() -> None:
    made = rivals()
    listed(made, having("one", 76))
    changed(made, having("two", 78))
    assert losers(made) == {"two": "one"}


def test_whoever_is_used_on_a_node_was_first() -> None:
    made = DoubleAllocations(is_used=lambda key: key[1] == "two")
    listed(made, having("one", 76), having("two", 78))
    assert losers(made) == {"one": "two"}


def test_what_was_told_of_earlier_devices_says_nothing_of_the_same_ones_given_anew() -> None:
    made = rivals()
    made.put(having("one", 5))
    assert made.has_watched(having("one", 5), 5)
    assert not made.has_watched(having("one", 12), 12)
    made.put(having("one", 12))
    assert made.has_watched(having("one", 12), 12)


def test_shares_fit_as_long_as_there_is_capacity() -> None:
    capacity = {"bandwidth": {"value": "10"}}
    nic = slice_of("net", 1, allowMultipleAllocations=True, capacity=capacity)
    claims = [sharing("one", "4"), sharing("two", "4"), sharing("three", "4")]
    assert told(rivals(nic), *claims[:2]) == {}
    assert told(rivals(nic), *claims) == {"three": "two"}


def test_where_nobody_knows_the_capacity_the_later_share_gives_way() -> None:
    """The pool vanished: a pod that is bound now might have more than there was."""
    one, two = sharing("one", "4"), sharing("two", "4")
    assert told(rivals(), one, two) == {"two": "one"}
    used = DoubleAllocations(is_used=lambda _: True)
    assert told(used, one, two) == {}, "their pods run"


def test_parts_of_one_device_fit_as_long_as_there_are_counters() -> None:
    def part(name: str, amount: str) -> dict[str, Any]:
        consumed = [{"counterSet": "set", "counters": {"memory": {"value": amount}}}]
        return {"name": name, "consumesCounters": consumed}

    tree = {"name": "set", "counters": {"memory": {"value": "4"}}}
    parts = slice_of("net", listed=[part("half-0", "2"), part("half-1", "2"), part("whole", "4")])
    counters = slice_of("net", name="counters", listed=[], where={"sharedCounters": [tree]})
    made = rivals(counters, parts)
    halves = [claim(f"c-{n}", has=[("net", f"half-{n}")]) for n in range(2)]
    assert told(made, *halves) == {}
    assert told(made, *halves, claim("all", has=[("net", "whole")])) == {"all": "c-1"}
    made.remove(("default", "c-0"))
    made.remove(("default", "c-1"))
    assert made.first_owner(("default", "all")) is None


# --- in a scheduler -------------------------------------------------------------------------------


def server(*objects: Any, devices: int = 1) -> FakeServer:
    made = FakeServer()
    made.put(device_class(), node("node-1"), slice_of("node-1", devices), *objects)
    return made


def late(made: FakeServer) -> Rig:
    """Return a scheduler that has heard all that there is, and hears nothing more."""
    rig = Rig(made)
    while rig.hear():
        pass
    made.forget_watchers()
    return rig


def give(made: FakeServer, name: str, *devices: str, reserved: str) -> None:
    """Let another scheduler give devices to a claim."""
    found = claim(name, has=[("node-1", each) for each in devices], reserved=[reserved])
    made.put(replace(made.get(ResourceClaim, name), status=found.status))


def test_nobody_is_bound_in_the_midst_of_a_list() -> None:
    """The claim that was first may come last in it."""
    made = server(claim("mine"), claim("other"), user("p", "mine"), user("q", "other"))
    rig = late(made)
    made.drop(made.get(Pod, "q"))
    give(made, "other", "gpu-0", reserved="q")
    assert rig.decide()
    while rig.write():
        pass
    assert rig.claim("mine").status.allocation is not None
    for name in ("mine", "other"):
        rig.scheduler.put(rig.claim(name), rig.now, is_listed=True)
    while rig.decide() or rig.write():
        pass
    assert rig.node_of("p") == ""
    assert rig.claim("mine").status == ResourceClaimStatus()


def test_two_that_give_way_to_each_other_come_to_terms() -> None:
    made = server(claim("c"), claim("d"), user("p", "c"), user("q", "d"), devices=2)
    give(made, "c", "gpu-0", reserved="p")
    give(made, "d", "gpu-0", reserved="q")
    rig = Rig(made)
    rig.run(for_s=60)
    assert (rig.node_of("p"), rig.node_of("q")) == ("node-1", "node-1")
    rig.check()


def test_pods_that_share_a_claim_which_was_second_give_it_back_together() -> None:
    made = server(claim("c"), claim("d"), user("p", "c"), user("q", "c"), devices=2)
    give(made, "c", "gpu-0", reserved="p")
    both = claim("c", has=[("node-1", "gpu-0")], reserved=["p", "q"]).status
    made.put(replace(made.get(ResourceClaim, "c"), status=both))
    give(made, "d", "gpu-0", reserved="elsewhere")
    rig = Rig(made)
    rig.run(for_s=60)
    assert (rig.node_of("p"), rig.node_of("q")) == ("node-1", "node-1")
    rig.check()


def test_a_group_gives_back_a_claim_that_was_second() -> None:
    entry = {"name": "claim-0", "resourceClaimName": "shared"}
    member = {"schedulingGroup": {"podGroupName": "gang"}}
    made = server(
        group(least=2, resourceClaims=[entry]),
        *(claim("shared"), claim("other")),
        *(user("p", "shared", **member), user("q", "shared", **member)),
    )
    rig = late(made)
    give(made, "other", "gpu-0", reserved="elsewhere")
    assert rig.decide()
    while rig.write():
        pass
    assert rig.claim("shared").status.allocation is not None
    for name in ("other", "shared"):
        rig.scheduler.put(rig.claim(name), rig.now)
    rig.run(for_s=30)
    assert rig.claim("shared").status == ResourceClaimStatus()
    rig.check()
