"""Who a claim is reserved for."""

from __future__ import annotations

import pytest

from moorage.api.core import Pod
from moorage.api.resource.v1 import FINALIZER
from moorage.api.scheduling import PodGroup
from moorage.claims import (
    ALL_FEATURES,
    ClaimFeatures,
    ClaimRejection,
    consumer_of,
    deallocated,
    group_consumer,
    is_at_most_for,
    is_reserved_for,
    pod_consumer,
    protected,
    reserved,
    unprotected,
)
from tests.claims.parts import BY_NAME, BY_TEMPLATE, Tree, claim, for_group, for_pod, group, pod

ALLOCATION: Tree = {"devices": {"results": [{"request": "d", "driver": "x", "device": "d0"}]}}


@pytest.mark.parametrize(
    ("entry", "group_entry", "expected"),
    [
        (BY_TEMPLATE, BY_TEMPLATE, "group"),
        (BY_NAME, BY_NAME, "group"),
        (BY_TEMPLATE, {**BY_TEMPLATE, "name": "s"}, "pod"),
        (BY_TEMPLATE, {**BY_TEMPLATE, "resourceClaimTemplateName": "u"}, "pod"),
        (BY_NAME, {**BY_NAME, "resourceClaimName": "other"}, "pod"),
        (BY_NAME, BY_TEMPLATE, "pod"),
    ],
)
def test_the_group_is_the_consumer_of_entries_that_it_has_as_well(
    entry: Tree, group_entry: Tree, expected: str
) -> None:
    user, shared = pod(claims=[entry], group="g"), group(claims=[group_entry])
    wanted = group_consumer(shared) if expected == "group" else pod_consumer(user)
    assert consumer_of(user, user.spec.resource_claims[0], shared) == wanted
    assert consumer_of(user, user.spec.resource_claims[0], None) == pod_consumer(user)


@pytest.mark.parametrize(
    ("user", "shared", "reason"),
    [
        (
            pod(claims=[{"name": "r"}]),
            None,
            "Pod ns/p claim r: none of the supported fields are set",
        ),
        (
            pod(claims=[BY_NAME], group="g"),
            group(claims=[{"name": "s"}, BY_NAME]),
            "PodGroup ns/g claim s: none of the supported fields are set",
        ),
        (pod(claims=[BY_NAME]), group(), "Pod ns/p does not belong to a PodGroup"),
        (
            pod(claims=[BY_NAME], group="h"),
            group(),
            "Pod ns/p belongs to PodGroup ns/h, not PodGroup ns/g",
        ),
    ],
)
def test_what_cannot_be_reserved_is_refused(
    user: Pod, shared: PodGroup | None, reason: str
) -> None:
    assert consumer_of(user, user.spec.resource_claims[0], shared) == ClaimRejection(reason)


@pytest.mark.parametrize(
    ("consumers", "user", "features", "expected"),
    [
        ([], pod(), ALL_FEATURES, False),
        ([for_pod("p")], pod(), ClaimFeatures(), True),
        ([for_pod("q"), for_pod("p")], pod(), ClaimFeatures(), True),
        ([for_pod("q")], pod(), ALL_FEATURES, False),
        ([{**for_pod("p"), "uid": "earlier"}], pod(), ALL_FEATURES, False),
        ([for_group("g")], pod(group="g"), ALL_FEATURES, True),
        ([for_group("g")], pod(group="g"), ClaimFeatures(), False),
        ([for_group("g")], pod(group="h"), ALL_FEATURES, False),
        ([for_group("g")], pod(), ALL_FEATURES, False),
        ([{**for_group("g"), "resource": "others"}], pod(group="g"), ALL_FEATURES, False),
    ],
)
def test_a_reservation_is_for_the_pod_or_its_group(
    consumers: list[Tree], user: Pod, features: ClaimFeatures, expected: bool
) -> None:
    held = claim(status={"reservedFor": consumers})
    assert is_reserved_for(held, user, features) is expected


def test_one_consumer_more_is_appended() -> None:
    held = claim(status={"allocation": ALLOCATION, "reservedFor": [for_pod("p")]})
    both = reserved(held, pod_consumer(pod("q")))
    assert both == claim(
        status={"allocation": ALLOCATION, "reservedFor": [for_pod("p"), for_pod("q")]}
    )


@pytest.mark.parametrize(
    ("consumers", "expected"),
    [
        ([], True),
        ([for_pod("p")], True),
        ([for_pod("q")], False),
        ([for_pod("p"), for_pod("q")], False),
    ],
)
def test_an_allocation_may_be_cleared_if_nobody_else_holds_it(
    consumers: list[Tree], expected: bool
) -> None:
    held = claim(status={"allocation": ALLOCATION, "reservedFor": consumers})
    assert is_at_most_for(held, "p-uid") is expected
    assert deallocated(held) == claim()


def test_the_finalizer_is_there_once() -> None:
    plain = claim(finalizers=["other"])
    assert protected(plain).metadata.finalizers == ("other", FINALIZER)
    assert protected(protected(plain)) == protected(plain)
    assert unprotected(protected(plain)) == plain
