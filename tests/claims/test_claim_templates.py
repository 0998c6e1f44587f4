"""Claims made from templates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.core import PodResourceClaimStatus
from moorage.api.gates import Gates
from moorage.api.meta import OwnerReference
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.scheduling import PodGroupResourceClaimStatus
from moorage.claims import (
    ALL_FEATURES,
    ClaimFeatures,
    ClaimRejection,
    claim_from_template,
    find_generated,
    generate_name,
    group_claim_statuses,
    pod_claim_statuses,
)
from tests.claims.parts import Tree, claim, group, owned_by, pod, template

ANNOTATION = "resource.kubernetes.io/pod-claim-name"
PLAIN: Tree = {"name": "d", "exactly": {"deviceClassName": "c"}}
ADMIN: Tree = {"name": "d", "exactly": {"deviceClassName": "c", "adminAccess": True}}
NOT_ADMIN: Tree = {"name": "d", "exactly": {"deviceClassName": "c", "adminAccess": False}}
LIST: Tree = {"name": "d", "firstAvailable": [{"name": "a", "deviceClassName": "c"}]}


def test_a_claim_has_the_metadata_and_spec_of_its_template() -> None:
    source = template(
        PLAIN,
        labels={"app": "x"},
        annotations={"note": "y", ANNOTATION: "wrong"},
        finalizers=["not/copied"],
    )
    made = claim_from_template(pod(), "r", source, ALL_FEATURES)
    assert isinstance(made, ResourceClaim)
    assert made.spec == source.spec.spec
    assert made.metadata.labels == {"app": "x"}
    assert made.metadata.annotations == {"note": "y", ANNOTATION: "r"}
    assert made.metadata.finalizers == ()
    assert (made.metadata.namespace, made.metadata.name) == ("ns", "")
    assert made.metadata.generate_name == "p-r-"
    assert made.metadata.owner_references == (
        OwnerReference(api_version="v1", kind="Pod", name="p", uid="p-uid", controller=True),
    )
    assert source.spec.metadata.annotations[ANNOTATION] == "wrong"


def test_a_claim_of_a_group_is_owned_by_the_group() -> None:
    made = claim_from_template(group(), "r", template(PLAIN), ALL_FEATURES)
    assert isinstance(made, ResourceClaim)
    assert made.metadata.generate_name == "g-r-"
    assert made.metadata.owner_references == (
        OwnerReference(
            api_version="scheduling.k8s.io/v1beta1",
            kind="PodGroup",
            name="g",
            uid="g-uid",
            controller=True,
        ),
    )


@pytest.mark.parametrize(
    ("request_", "features", "reason"),
    [
        (PLAIN, ClaimFeatures(), None),
        (NOT_ADMIN, ClaimFeatures(), None),
        (ADMIN, ALL_FEATURES, None),
        (ADMIN, ClaimFeatures(), "admin access is requested, but the feature is disabled"),
        (LIST, ALL_FEATURES, None),
        (
            LIST,
            ClaimFeatures(),
            "template includes a prioritized list of subrequests, but the feature is disabled",
        ),
    ],
)
def test_what_a_disabled_feature_is_needed_for_is_refused(
    request_: Tree, features: ClaimFeatures, reason: str | None
) -> None:
    for owner in (pod(), group()):
        made = claim_from_template(owner, "r", template(request_), features)
        assert (made == ClaimRejection(reason)) if reason else isinstance(made, ResourceClaim)


def test_features_follow_the_gates() -> None:
    assert ClaimFeatures.of(Gates.parse()) == ALL_FEATURES
    assert ClaimFeatures.of(Gates(frozenset())) == ClaimFeatures()


@pytest.mark.parametrize(
    ("owner", "entry", "expected"),
    [
        ("p", "r", "p-r-"),
        ("p" * 50, "r" * 5, "p" * 50 + "-" + "r" * 5 + "-"),
        ("p" * 50, "r" * 6, "p" * 49 + "-" + "r" * 5),
        ("p" * 253, "r", "p" * 56 + "-"),
        ("p" * 63, "r" * 63, "p" * 28 + "-" + "r" * 28),
        ("p" * 10, "r" * 63, "p" * 7 + "-" + "r" * 47),
    ],
)
def test_a_long_name_is_cut_on_both_sides_of_the_hyphen(
    owner: str, entry: str, expected: str
) -> None:
    assert generate_name(owner, entry) == expected


@given(st.integers(1, 253), st.integers(1, 63))
def test_a_name_leaves_room_for_what_the_server_appends(owner: int, entry: int) -> None:
    made = generate_name("p" * owner, "r" * entry)
    assert len(made) + 5 <= 63
    assert "-" in made


def made_before(name: str, owner: list[Tree], entry: str | None = "r") -> ResourceClaim:
    annotations = {} if entry is None else {ANNOTATION: entry}
    return claim(name, ownerReferences=owner, annotations=annotations)


def test_a_claim_that_was_made_before_is_found_by_owner_and_annotation() -> None:
    others = [
        made_before("of another pod", owned_by("q")),
        made_before("of an earlier pod", owned_by("p", uid="earlier")),
        made_before("of another entry", owned_by("p"), "s"),
        made_before("not generated", owned_by("p"), None),
        made_before("not controlled", owned_by("p", controller=False)),
        made_before("of a group", owned_by("g", "PodGroup", uid="p-uid")),
    ]
    assert find_generated(pod(), "r", others) is None
    late, early = made_before("p-r-b", owned_by("p")), made_before("p-r-a", owned_by("p"))
    assert find_generated(pod(), "r", [*others, late, early]) == early
    of_group = made_before("g-r-x", owned_by("g", "PodGroup"))
    assert find_generated(group(), "r", [*others, late, of_group]) == of_group


def test_the_status_keeps_the_claims_it_named_and_is_sorted() -> None:
    made = {"b": "new-b", "c": "new-c"}
    before = {"z": "old-z", "b": "old-b", "a": None}
    expected = [("b", "new-b"), ("c", "new-c"), ("z", "old-z")]
    assert pod_claim_statuses(pod(made=before), made) == tuple(
        PodResourceClaimStatus(name=name, resource_claim_name=claim) for name, claim in expected
    )
    assert group_claim_statuses(group(made=before), made) == tuple(
        PodGroupResourceClaimStatus(name=name, resource_claim_name=claim)
        for name, claim in expected
    )
