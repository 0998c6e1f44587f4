"""Claims that have more together than there is: those that were told first have it."""

from __future__ import annotations

from typing import Any

from mooring.api.resource.v1 import ResourceClaim, ResourceSlice
from mooring.scheduler.live.rivals import Rivals
from tests.scheduler.scenes import claim, slice_of


def sharing(name: str, amount: str) -> ResourceClaim:
    share: dict[str, Any] = {"shareID": f"share-{name}", "consumedCapacity": {"bandwidth": amount}}
    return claim(name, has=[("net", "gpu-0")], results=share)


def rivals(*slices: ResourceSlice) -> Rivals:
    return Rivals(lambda driver, pool: [each for each in slices if each.spec.pool.name == pool])


def told(made: Rivals, *claims: ResourceClaim) -> dict[str, str]:
    """Return who of the claims lost to whom, told in this order."""
    for each in claims:
        made.told(each)
    lost = {each.metadata.name: made.first(("default", each.metadata.name)) for each in claims}
    return {name: first[1] for name, first in lost.items() if first is not None}


def test_a_device_is_of_the_claim_that_was_told_first() -> None:
    one, two = claim("one", has=[("net", "gpu-0")]), claim("two", has=[("net", "gpu-0")])
    assert told(rivals(), one, two) == {"two": "one"}
    assert told(rivals(), two, one) == {"one": "two"}


def test_of_claims_that_come_in_one_list_the_older_version_was_first() -> None:
    """After a watch was forgotten, a list tells all claims at once, in any order."""
    one = claim("one", has=[("net", "gpu-0")], resourceVersion="78")
    two = claim("two", has=[("net", "gpu-0")], resourceVersion="76")
    assert told(rivals(), one, two) == {"one": "two"}


def test_shares_fit_as_long_as_there_is_capacity() -> None:
    capacity = {"bandwidth": {"value": "10"}}
    nic = slice_of("net", 1, allowMultipleAllocations=True, capacity=capacity)
    claims = [sharing("one", "4"), sharing("two", "4"), sharing("three", "4")]
    assert told(rivals(nic), *claims[:2]) == {}
    assert told(rivals(nic), *claims) == {"three": "two"}


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
    made.gone(("default", "c-0"))
    made.gone(("default", "c-1"))
    assert made.first(("default", "all")) is None
