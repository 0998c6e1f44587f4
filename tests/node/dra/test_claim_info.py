"""The claim info cache alone: which pods use which claims, and the next operation."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from moorage.api.resource.v1 import DeviceRequestAllocationResult as Result
from moorage.claims.pod_claims import ClaimRejection
from moorage.node.dra.claim_info import (
    ANY_DRIVER,
    PREPARE,
    UNPREPARE,
    AllocatedDevice,
    ClaimInfo,
    ClaimInfoCache,
    ClaimKey,
    ClaimPhase,
    DriverShare,
    PreparedDevice,
)
from moorage.node.dra.claim_requests import driver_shares

GPU, NIC = "gpu.example.com", "nic.example.com"


def wanted(name: str, *drivers: str, uid: str = "") -> ClaimInfo:
    shares = {driver: DriverShare() for driver in drivers or (GPU,)}
    return ClaimInfo(ClaimKey("default", name), uid or f"uid-{name}", drivers=shares)


def attached(cache: ClaimInfoCache, pod: str, *claims: ClaimInfo) -> list[str]:
    todo = cache.attach(pod, claims)
    assert not isinstance(todo, ClaimRejection)
    return [claim.key.name for claim in todo]


def test_a_claim_is_prepared_for_the_first_and_unprepared_for_the_last() -> None:
    cache, claim = ClaimInfoCache(), wanted("c")
    assert attached(cache, "p", claim) == ["c"]
    assert attached(cache, "q", claim) == ["c"]  # not prepared yet
    cache.note_prepared([claim])
    assert attached(cache, "r", claim) == []
    assert cache.detach("p", [claim.key]) == []
    assert cache.detach("p", [claim.key]) == []
    assert cache.detach("q", [claim.key]) == []
    (last,) = cache.detach("r", [claim.key])
    assert (last.phase, last.pods) == (ClaimPhase.UNPREPARING, frozenset({"r"}))
    cache.note_unprepared([last])
    assert list(cache) == []


def test_what_a_pod_never_had_it_cannot_give_back() -> None:
    cache, claim = ClaimInfoCache(), wanted("c")
    attached(cache, "p", claim)
    assert cache.detach("q", [claim.key, ClaimKey("default", "other")]) == []
    assert cache.of_pod("p") == [claim.key]


def test_a_refused_pod_has_none_of_its_claims() -> None:
    cache = ClaimInfoCache()
    attached(cache, "p", wanted("old"))
    refused = cache.attach("q", [wanted("new"), wanted("old", uid="other")])
    assert isinstance(refused, ClaimRejection)
    assert cache.of_pod("q") == []
    assert cache.get(ClaimKey("default", "new")) is None


def test_what_is_unprepared_too_late_does_not_meet_a_claim_made_anew() -> None:
    cache, old = ClaimInfoCache(), wanted("c", uid="old")
    attached(cache, "p", old)
    (last,) = cache.detach("p", [old.key])
    cache.note_unprepared([last])
    new = wanted("c", uid="new")
    attached(cache, "q", new)
    cache.note_unprepared([last])
    cache.note_devices(old, GPU, (PreparedDevice("pool", "d"),))
    cache.note_prepared([old])
    state = cache.get(new.key)
    assert state is not None
    assert (state.uid, state.phase, list(state.devices)) == ("new", ClaimPhase.WANTED, [])


def test_what_a_driver_says_again_replaces_what_it_said() -> None:
    cache, claim = ClaimInfoCache(), wanted("c", GPU, NIC)
    attached(cache, "p", claim)
    cache.note_devices(claim, GPU, (PreparedDevice("pool", "a"), PreparedDevice("pool", "b")))
    cache.note_devices(claim, NIC, (PreparedDevice("pool", "n"),))
    cache.note_devices(claim, GPU, (PreparedDevice("pool", "a"),))
    state = cache.get(claim.key)
    assert state is not None
    assert [(driver, device.name) for driver, device in state.devices] == [(GPU, "a"), (NIC, "n")]


def test_a_claim_allocated_anew_is_still_unprepared_by_the_driver_it_had() -> None:
    known = ClaimInfo(
        ClaimKey("default", "c"),
        "uid-c",
        pods=frozenset({"p"}),
        drivers={NIC: DriverShare((PreparedDevice("pool", "n"),))},
    )
    cache = ClaimInfoCache([known])  # as after a restart
    todo = cache.attach("p", [wanted("c", GPU)])
    assert not isinstance(todo, ClaimRejection)
    assert todo[0].drivers_to_ask(PREPARE) == [GPU]
    (last,) = cache.detach("p", [known.key])
    assert sorted(last.drivers_to_ask(UNPREPARE)) == [GPU, NIC]
    assert list(last.devices) == []


def test_a_claim_allocated_anew_is_for_nobody_until_what_it_had_is_unprepared() -> None:
    cache = ClaimInfoCache()
    old = replace(wanted("c"), allocated=frozenset({AllocatedDevice(GPU, "pool", "a")}))
    new = replace(wanted("c"), allocated=frozenset({AllocatedDevice(GPU, "pool", "b")}))
    attached(cache, "p", old)
    cache.note_prepared([old])
    attached(cache, "q", old)
    refused = cache.attach("r", [new])
    assert isinstance(refused, ClaimRejection)
    assert "allocated anew" in refused.reason
    cache.detach("q", [old.key])
    cache.note_unprepared(cache.detach("p", [old.key]))
    assert attached(cache, "r", new) == ["c"]


def test_a_device_is_for_nobody_else_as_long_as_a_claim_is_not_unprepared() -> None:
    cache = ClaimInfoCache()
    one = replace(wanted("one"), allocated=frozenset({AllocatedDevice(GPU, "pool", "a")}))
    two = replace(wanted("two"), allocated=frozenset({AllocatedDevice(GPU, "pool", "a")}))
    attached(cache, "p", one)
    refused = cache.attach("q", [two])
    assert isinstance(refused, ClaimRejection)
    assert "device a of driver gpu.example.com is still prepared" in refused.reason
    cache.note_unprepared(cache.detach("p", [one.key]))
    assert attached(cache, "q", two) == ["two"]


def test_claims_in_use_are_counted_by_driver_and_in_all() -> None:
    cache = ClaimInfoCache()
    one, two = wanted("one", GPU, NIC), wanted("two", GPU)
    attached(cache, "p", one, two, wanted("three"))
    cache.note_prepared([one, two])
    assert cache.in_use() == {ANY_DRIVER: 2, GPU: 2, NIC: 1}


def test_pods_are_found_by_their_devices() -> None:
    cache, claim = ClaimInfoCache(), wanted("c")
    attached(cache, "p", claim)
    attached(cache, "q", claim)
    cache.note_devices(claim, GPU, (PreparedDevice("pool", "d"),))
    assert cache.pods_with(GPU, [("pool", "d"), ("pool", "e")]) == {"p", "q"}
    assert cache.pods_with(NIC, [("pool", "d")]) == set()


@pytest.mark.parametrize(
    ("skips", "wanted_skips"),
    [
        ([()], ()),
        ([("*",), ("*",)], ("*",)),
        ([("*",), (UNPREPARE,)], (UNPREPARE,)),
        ([(UNPREPARE,), ("*",)], (UNPREPARE,)),
        ([(PREPARE,), (UNPREPARE,)], ()),
        ([(UNPREPARE, PREPARE), ("*",), (PREPARE, UNPREPARE)], (PREPARE, UNPREPARE)),
        ([("*",), ()], ()),
        ([("*", PREPARE), ("*",)], ("*",)),
    ],
)
def test_an_operation_is_skipped_if_all_results_of_the_driver_skip_it(
    skips: list[tuple[str, ...]], wanted_skips: tuple[str, ...]
) -> None:
    results = tuple(Result(driver=GPU, skip_node_operations=each) for each in skips)
    assert driver_shares((*results, Result(driver=NIC))) == {
        GPU: DriverShare(skips=wanted_skips),
        NIC: DriverShare(),
    }
