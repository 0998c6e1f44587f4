"""The ledger: allocated devices depend only on its claims, however these were added."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.allocator.ledger import Ledger, consumed_by_shares
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import DeviceRequestAllocationResult, ResourceClaim
from tests.allocator.problems.parts import allocated, held, share

DRIVER, POOL = "gpu.example.com", "node-1"
GPUS = (DRIVER, POOL)

law = settings(max_examples=50)

RESULTS = st.builds(
    DeviceRequestAllocationResult,
    request=st.just("r"),
    driver=st.sampled_from(["a", "b"]),
    pool=st.sampled_from(["p", "q"]),
    device=st.sampled_from(["0", "1", "2"]),
    admin_access=st.sampled_from([None, False, True]),
    share_id=st.one_of(st.none(), st.integers(0, 3).map(share)),
    consumed_capacity=st.one_of(
        st.none(),
        st.dictionaries(
            st.sampled_from(["x", "y"]), st.integers(0, 5).map(Quantity.from_int), max_size=2
        ),
    ),
)
CLAIMS = st.builds(
    allocated, st.sampled_from(["one", "two", "three"]), st.lists(RESULTS, max_size=3)
)
REMOVALS = st.sampled_from(["one", "two", "three", "unknown"])


def contents(ledger: Ledger) -> dict[Any, Any]:
    """Return all that can be asked of a ledger, in whatever order it was entered."""
    pools = [(driver, pool) for driver in ("a", "b", DRIVER) for pool in ("p", "q", POOL)]
    found: dict[Any, Any] = {}
    for pool in pools:
        for device, entries in ledger.taken(pool).items():
            found[*pool, device] = (
                Counter((entry.claim, repr(entry.result)) for entry in entries),
                ledger.has_owner(entries),
                ledger.has_shares(entries),
                consumed_by_shares(entries),
            )
            # Sums are kept from one question to the next.
            kept = {name: amount for name, amount in entries.consumed.items() if amount}
            assert kept == {
                n: amount for n, amount in consumed_by_shares(entries).items() if amount
            }
    assert sorted(ledger) == sorted(found)
    assert ledger.is_clean == (not found)
    return found


# --- laws -------------------------------------------------------------------------------------


@law
@given(before=st.lists(CLAIMS, max_size=4), claim=CLAIMS, whole=st.booleans())
def test_remove_undoes_exactly_one_put(
    before: list[ResourceClaim], claim: ResourceClaim, whole: bool
) -> None:
    ledger = Ledger(shares_are_whole=whole)
    for other in before:
        if other.metadata.name != claim.metadata.name:
            ledger.put(other)
    at_first = contents(ledger)
    ledger.put(claim)
    ledger.remove("default", claim.metadata.name)
    assert contents(ledger) == at_first


@law
@given(steps=st.lists(st.one_of(CLAIMS, REMOVALS), max_size=8))
def test_what_is_taken_is_what_the_claims_of_now_have(steps: list[ResourceClaim | str]) -> None:
    ledger = Ledger()
    claims: dict[str, ResourceClaim] = {}
    for step in steps:
        if isinstance(step, str):
            ledger.remove("default", step)
            claims.pop(step, None)
        else:
            ledger.put(step)
            claims[step.metadata.name] = step
        contents(ledger)
    fresh = Ledger()
    for claim in claims.values():
        fresh.put(claim)
    assert contents(ledger) == contents(fresh)


@law
@given(claims=st.lists(CLAIMS, max_size=5))
def test_when_all_claims_are_gone_nothing_is_taken(claims: list[ResourceClaim]) -> None:
    ledger = Ledger()
    for claim in claims:
        ledger.put(claim)
    for name in ("one", "two", "three"):
        ledger.remove("default", name)
    assert ledger.is_clean
    assert contents(ledger) == {}


@law
@given(before=st.lists(CLAIMS, max_size=3), change=st.one_of(CLAIMS, REMOVALS))
def test_the_version_of_a_pool_changes_whenever_what_is_taken_of_it_does(
    before: list[ResourceClaim], change: ResourceClaim | str
) -> None:
    ledger = Ledger()
    for claim in before:
        ledger.put(claim)
    pools = [(driver, pool) for driver in "ab" for pool in "pq"]
    versions = {pool: ledger.version(pool) for pool in pools}
    taken, changes = contents(ledger), ledger.changes
    if isinstance(change, str):
        ledger.remove("default", change)
    else:
        ledger.put(change)
    after = contents(ledger)
    for pool in pools:
        if _of_pool(after, pool) != _of_pool(taken, pool):
            assert ledger.version(pool) != versions[pool]
            assert ledger.changes != changes


def _of_pool(taken: dict[Any, Any], pool: tuple[str, str]) -> dict[Any, Any]:
    return {key: value for key, value in taken.items() if key[:2] == pool}


# --- cases ------------------------------------------------------------------------------------


def test_admin_access_takes_nothing() -> None:
    ledger = Ledger()
    ledger.put(allocated("watcher", [held(DRIVER, "gpu-0", admin_access=True)]))
    assert ledger.is_clean
    assert ledger.version(GPUS) == 0
    ledger.remove("default", "watcher")
    assert ledger.is_clean


def test_a_claim_that_is_put_again_has_only_what_it_has_now() -> None:
    ledger = Ledger()
    ledger.put(allocated("claim", [held(DRIVER, "gpu-0")]))
    ledger.put(allocated("claim", [held(DRIVER, "gpu-1")]))
    assert list(ledger) == [(DRIVER, POOL, "gpu-1")]


def test_a_claim_that_is_put_without_an_allocation_has_nothing() -> None:
    ledger = Ledger()
    ledger.put(allocated("claim", [held(DRIVER, "gpu-0")]))
    ledger.put(ResourceClaim(metadata=ObjectMeta(name="claim", namespace="default")))
    assert ledger.is_clean


def test_claims_of_one_name_in_two_namespaces_are_two_claims() -> None:
    ledger = Ledger()
    mine = allocated("claim", [held(DRIVER, "gpu-0")])
    ledger.put(mine)
    ledger.remove("elsewhere", "claim")
    assert list(ledger) == [(DRIVER, POOL, "gpu-0")]


def test_a_device_with_two_shares_is_taken_until_both_are_given_back() -> None:
    ledger = Ledger()
    for number, name in enumerate(("one", "two")):
        amounts = {"memory": Quantity.parse(f"{number + 1}Gi")}
        result = held(DRIVER, "gpu-0", share_id=share(number), consumed_capacity=amounts)
        ledger.put(allocated(name, [result]))
    entries = ledger.taken(GPUS)["gpu-0"]
    assert not ledger.has_owner(entries)
    assert ledger.has_shares(entries)
    assert consumed_by_shares(entries) == {"memory": Quantity.parse("3Gi").nano}
    ledger.remove("default", "one")
    assert consumed_by_shares(ledger.taken(GPUS)["gpu-0"]) == {"memory": Quantity.parse("2Gi").nano}
    ledger.remove("default", "two")
    assert ledger.is_clean


def test_without_consumable_capacity_a_share_is_the_whole_device() -> None:
    ledger = Ledger(shares_are_whole=True)
    ledger.put(allocated("claim", [held(DRIVER, "gpu-0", share_id=share(0))]))
    entries = ledger.taken(GPUS)["gpu-0"]
    assert ledger.has_owner(entries)
    assert not ledger.has_shares(entries)


def test_what_an_owner_consumes_is_not_counted_as_shares() -> None:
    amounts = {"memory": Quantity.parse("1Gi")}
    ledger = Ledger()
    ledger.put(allocated("claim", [held(DRIVER, "gpu-0", consumed_capacity=amounts)]))
    assert consumed_by_shares(ledger.taken(GPUS)["gpu-0"]) == {}


def test_two_claims_may_have_the_same_device_and_give_back_their_own() -> None:
    ledger = Ledger()
    ledger.put(allocated("one", [held(DRIVER, "gpu-0")]))
    ledger.put(allocated("two", [held(DRIVER, "gpu-0")]))
    ledger.remove("default", "one")
    assert [entry.claim for entry in ledger.taken(GPUS)["gpu-0"]] == [("default", "two")]


def test_a_claim_may_have_the_same_device_twice() -> None:
    ledger = Ledger()
    ledger.put(allocated("claim", [held(DRIVER, "gpu-0"), held(DRIVER, "gpu-0")]))
    ledger.remove("default", "claim")
    assert ledger.is_clean
