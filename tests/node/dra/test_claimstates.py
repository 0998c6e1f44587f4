"""The book of claims, by itself: who uses what, and what is to be done next."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.api.resource.v1 import DeviceRequestAllocationResult as Result
from mooring.claims.refusals import Refused
from mooring.node.dra.claim_info import (
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
from mooring.node.dra.claim_requests import driver_shares

GPU, NIC = "gpu.example.com", "nic.example.com"


def wanted(name: str, *drivers: str, uid: str = "") -> ClaimInfo:
    shares = {driver: DriverShare() for driver in drivers or (GPU,)}
    return ClaimInfo(ClaimKey("default", name), uid or f"uid-{name}", drivers=shares)


def attached(book: ClaimInfoCache, pod: str, *claims: ClaimInfo) -> list[str]:
    todo = book.attach(pod, claims)
    assert not isinstance(todo, Refused)
    return [claim.key.name for claim in todo]


def test_a_claim_is_prepared_for_the_first_and_unprepared_for_the_last() -> None:
    book, claim = ClaimInfoCache(), wanted("c")
    assert attached(book, "p", claim) == ["c"]
    assert attached(book, "q", claim) == ["c"]  # not prepared yet
    book.note_prepared([claim])
    assert attached(book, "r", claim) == []
    assert book.detach("p", [claim.key]) == []
    assert book.detach("p", [claim.key]) == []
    assert book.detach("q", [claim.key]) == []
    (last,) = book.detach("r", [claim.key])
    assert (last.phase, last.pods) == (ClaimPhase.UNPREPARING, frozenset({"r"}))
    book.note_unprepared([last])
    assert list(book) == []


def test_what_a_pod_never_had_it_cannot_give_back() -> None:
    book, claim = ClaimInfoCache(), wanted("c")
    attached(book, "p", claim)
    assert book.detach("q", [claim.key, ClaimKey("default", "other")]) == []
    assert book.of_pod("p") == [claim.key]


def test_a_refused_pod_has_none_of_its_claims() -> None:
    book = ClaimInfoCache()
    attached(book, "p", wanted("old"))
    refused = book.attach("q", [wanted("new"), wanted("old", uid="other")])
    assert isinstance(refused, Refused)
    assert book.of_pod("q") == []
    assert book.get(ClaimKey("default", "new")) is None


def test_what_is_unprepared_too_late_does_not_meet_a_claim_made_anew() -> None:
    book, old = ClaimInfoCache(), wanted("c", uid="old")
    attached(book, "p", old)
    (last,) = book.detach("p", [old.key])
    book.note_unprepared([last])
    new = wanted("c", uid="new")
    attached(book, "q", new)
    book.note_unprepared([last])
    book.note_devices(old, GPU, (PreparedDevice("pool", "d"),))
    book.note_prepared([old])
    state = book.get(new.key)
    assert state is not None
    assert (state.uid, state.phase, list(state.devices)) == ("new", ClaimPhase.WANTED, [])


def test_what_a_driver_says_again_replaces_what_it_said() -> None:
    book, claim = ClaimInfoCache(), wanted("c", GPU, NIC)
    attached(book, "p", claim)
    book.note_devices(claim, GPU, (PreparedDevice("pool", "a"), PreparedDevice("pool", "b")))
    book.note_devices(claim, NIC, (PreparedDevice("pool", "n"),))
    book.note_devices(claim, GPU, (PreparedDevice("pool", "a"),))
    state = book.get(claim.key)
    assert state is not None
    assert [(driver, device.name) for driver, device in state.devices] == [(GPU, "a"), (NIC, "n")]


def test_a_claim_allocated_anew_is_still_unprepared_by_the_driver_it_had() -> None:
    known = ClaimInfo(
        ClaimKey("default", "c"),
        "uid-c",
        pods=frozenset({"p"}),
        drivers={NIC: DriverShare((PreparedDevice("pool", "n"),))},
    )
    book = ClaimInfoCache([known])  # as after a restart
    todo = book.attach("p", [wanted("c", GPU)])
    assert not isinstance(todo, Refused)
    assert todo[0].drivers_to_ask(PREPARE) == [GPU]
    (last,) = book.detach("p", [known.key])
    assert sorted(last.drivers_to_ask(UNPREPARE)) == [GPU, NIC]
    assert list(last.devices) == []


def test_a_claim_allocated_anew_is_for_nobody_until_what_it_had_is_unprepared() -> None:
    book = ClaimInfoCache()
    old = replace(wanted("c"), allocated=frozenset({AllocatedDevice(GPU, "pool", "a")}))
    new = replace(wanted("c"), allocated=frozenset({AllocatedDevice(GPU, "pool", "b")}))
    attached(book, "p", old)
    book.note_prepared([old])
    attached(book, "q", old)
    refused = book.attach("r", [new])
    assert isinstance(refused, Refused)
    assert "allocated anew" in refused.reason
    book.detach("q", [old.key])
    book.note_unprepared(book.detach("p", [old.key]))
    assert attached(book, "r", new) == ["c"]


def test_a_device_is_for_nobody_else_as_long_as_a_claim_is_not_unprepared() -> None:
    book = ClaimInfoCache()
    one = replace(wanted("one"), allocated=frozenset({AllocatedDevice(GPU, "pool", "a")}))
    two = replace(wanted("two"), allocated=frozenset({AllocatedDevice(GPU, "pool", "a")}))
    attached(book, "p", one)
    refused = book.attach("q", [two])
    assert isinstance(refused, Refused)
    assert "device a of driver gpu.example.com is still prepared" in refused.reason
    book.note_unprepared(book.detach("p", [one.key]))
    assert attached(book, "q", two) == ["two"]


def test_claims_in_use_are_counted_by_driver_and_in_all() -> None:
    book = ClaimInfoCache()
    one, two = wanted("one", GPU, NIC), wanted("two", GPU)
    attached(book, "p", one, two, wanted("three"))
    book.note_prepared([one, two])
    assert book.in_use() == {ANY_DRIVER: 2, GPU: 2, NIC: 1}


def test_pods_are_found_by_their_devices() -> None:
    book, claim = ClaimInfoCache(), wanted("c")
    attached(book, "p", claim)
    attached(book, "q", claim)
    book.note_devices(claim, GPU, (PreparedDevice("pool", "d"),))
    assert book.pods_with(GPU, [("pool", "d"), ("pool", "e")]) == {"p", "q"}
    assert book.pods_with(NIC, [("pool", "d")]) == set()


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
