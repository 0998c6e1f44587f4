"""When a claim is no longer used."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.core import Pod
from moorage.api.resource.v1 import FINALIZER, ResourceClaim, ResourceClaimConsumerReference
from moorage.claims import (
    ALL_FEATURES,
    Absent,
    AskServer,
    ClaimFeatures,
    DeleteClaim,
    Present,
    RemoveFinalizer,
    Reservations,
    Unknown,
    WriteStatus,
    is_pod_done,
    release_steps,
    review,
    seen_group,
    seen_pod,
)
from moorage.claims.reservations import ConsumerState, ReleaseStep
from tests.claims.parts import NOW, Tree, claim, for_group, for_pod, group, owned_by, pod

ALLOCATION: Tree = {"devices": {"results": [{"request": "d", "driver": "x", "device": "d0"}]}}
REPORT: Tree = {"driver": "x", "pool": "n", "device": "d0"}
UNKNOWN_KIND: Tree = {"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "j-uid"}

DELETED: Tree = {"deletionTimestamp": NOW}


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (pod(), False),
        (pod(status={"phase": "Running"}), False),
        (pod(status={"phase": "Succeeded"}), True),
        (pod(status={"phase": "Failed"}, nodeName="n"), True),
        (pod(metadata=DELETED), True),
        (pod(metadata=DELETED, nodeName="n"), False),
    ],
)
def test_a_pod_is_done_when_nothing_of_it_runs_or_will(user: Pod, expected: bool) -> None:
    assert is_pod_done(user) is expected
    assert seen_pod(user) == Present("p-uid", is_done=expected)


# --- reservations -----------------------------------------------------------------------------


def reviewed(
    consumers: list[Tree], known: dict[str, ConsumerState], features: ClaimFeatures = ALL_FEATURES
) -> tuple[list[str], list[str]] | list[str]:
    """Return the names of consumers that remain and that are stale, or of those to ask for."""

    def know(consumer: ResourceClaimConsumerReference) -> ConsumerState:
        return known[consumer.name]

    found = review(claim(status={"reservedFor": consumers}), know, features)
    if isinstance(found, AskServer):
        return [consumer.name for consumer in found.consumers]
    return [each.name for each in found.remaining], [each.name for each in found.stale]


@pytest.mark.parametrize(
    ("known", "is_stale"),
    [
        (seen_pod(pod()), False),
        (seen_pod(pod(status={"phase": "Succeeded"})), True),
        (Present("of a newer pod"), True),
        (Absent(), True),
    ],
)
def test_a_reservation_of_a_pod_is_stale_once_the_pod_is_gone_or_done(
    known: ConsumerState, is_stale: bool
) -> None:
    expected = ([], ["p"]) if is_stale else (["p"], [])
    assert reviewed([for_pod("p")], {"p": known}) == expected


@pytest.mark.parametrize(
    ("known", "is_stale"),
    [(seen_group(group()), False), (Present("of a newer group"), True), (Absent(), True)],
)
def test_a_reservation_of_a_group_is_stale_once_the_group_is_gone(
    known: ConsumerState, is_stale: bool
) -> None:
    expected = ([], ["g"]) if is_stale else (["g"], [])
    assert reviewed([for_group("g")], {"g": known}) == expected
    assert reviewed([for_group("g")], {"g": known}, ClaimFeatures()) == (["g"], [])


def test_consumers_of_unknown_kinds_are_kept() -> None:
    assert reviewed([UNKNOWN_KIND, for_pod("p")], {"p": Absent()}) == (["j"], ["p"])


def test_the_server_is_asked_before_an_unknown_consumer_is_judged() -> None:
    known: dict[str, ConsumerState] = {"p": Absent(), "q": Unknown(), "g": Unknown()}
    assert reviewed([for_pod("p"), for_pod("q"), for_group("g")], known) == ["q", "g"]


# --- steps ------------------------------------------------------------------------------------


def steps(
    held: ResourceClaim, *gone: str, owner: ConsumerState | None = None
) -> tuple[ReleaseStep, ...]:
    """Return the steps for a claim some consumers of which are gone."""
    consumers = held.status.reserved_for
    reservations = Reservations(
        remaining=tuple(each for each in consumers if each.name not in gone),
        stale=tuple(each for each in consumers if each.name in gone),
    )
    return release_steps(held, reservations, owner or Unknown())


def held_by(*names: str, protect: bool = True, **metadata: Any) -> ResourceClaim:
    """Return an allocated claim."""
    finalizers = [FINALIZER] if protect else []
    consumers = [for_pod(name) for name in names]
    status = {"allocation": ALLOCATION, "reservedFor": consumers, "devices": [REPORT]}
    return claim(status=status, finalizers=finalizers, **metadata)


def test_nothing_is_done_while_all_consumers_remain() -> None:
    assert steps(held_by("p")) == ()


def test_an_allocation_that_was_never_reserved_is_kept() -> None:
    assert steps(held_by()) == ()


def test_the_allocation_stays_while_a_consumer_remains() -> None:
    assert steps(held_by("p", "q"), "p") == (WriteStatus(held_by("q").status),)


def test_with_its_last_consumer_a_claim_loses_allocation_and_finalizer() -> None:
    assert steps(held_by("p"), "p") == (WriteStatus(claim().status), RemoveFinalizer())


def test_an_allocation_without_the_finalizer_is_somebody_elses() -> None:
    assert steps(held_by("p", protect=False), "p") == (WriteStatus(held_by().status),)


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (held_by(**DELETED), (WriteStatus(claim().status), RemoveFinalizer())),
        (claim(finalizers=[FINALIZER], **DELETED), (RemoveFinalizer(),)),
        (held_by("p", **DELETED), ()),
        (claim(**DELETED), ()),
    ],
)
def test_a_claim_that_is_to_be_deleted_is_let_go_once_nobody_uses_it(
    held: ResourceClaim, expected: tuple[ReleaseStep, ...]
) -> None:
    assert steps(held) == expected


@pytest.mark.parametrize(
    ("owner", "is_deleted"),
    [
        (Present("p-uid"), False),
        (Present("p-uid", is_done=True), True),
        (Present("of a newer pod"), True),
        (Absent(), False),
        (Unknown(), False),
    ],
)
def test_a_generated_claim_goes_with_its_pod(owner: ConsumerState, is_deleted: bool) -> None:
    made = claim(ownerReferences=owned_by("p"))
    assert steps(made, owner=owner) == ((DeleteClaim(),) if is_deleted else ())


def test_a_generated_claim_is_released_before_it_is_deleted() -> None:
    made = held_by("p", ownerReferences=owned_by("p"))
    done = Present("p-uid", is_done=True)
    assert steps(made, "p", owner=done) == (
        WriteStatus(claim().status),
        RemoveFinalizer(),
        DeleteClaim(),
    )


@pytest.mark.parametrize(
    "kept",
    [
        claim(),
        claim(ownerReferences=owned_by("g", "PodGroup")),
        claim(ownerReferences=owned_by("p", controller=False)),
        held_by("q", ownerReferences=owned_by("p")),
        claim(ownerReferences=owned_by("p"), **DELETED),
    ],
)
def test_other_claims_are_not_deleted(kept: ResourceClaim) -> None:
    assert steps(kept, owner=Present("p-uid", is_done=True)) == ()
