"""Which claims a pod uses, and the reasons why one is not to be had."""

from __future__ import annotations

import pytest

from moorage.api.core import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.claims import (
    ALL_FEATURES,
    ClaimFeatures,
    ClaimRejection,
    ClaimUse,
    Named,
    NotCreated,
    NotNeeded,
    Unsupported,
    check_made_for_group,
    claim_names,
    claims_to_release,
    reference_of,
    uses_of,
)
from tests.claims.parts import BY_NAME, BY_TEMPLATE, NOW, claim, group, owned_by, pod

NO_FEATURES = ClaimFeatures()
GENERATED = pod(claims=[BY_TEMPLATE], made={"r": "p-r-x"})
IN_GROUP = pod(claims=[BY_TEMPLATE], made={"r": "p-r-x"}, group="g")
MADE_FOR_POD = claim("p-r-x", ownerReferences=owned_by("p"))
MADE_FOR_GROUP = claim("p-r-x", ownerReferences=owned_by("g", "PodGroup"))


def uses(
    user: Pod, *claims: ResourceClaim, features: ClaimFeatures = ALL_FEATURES
) -> tuple[ClaimUse, ...] | ClaimRejection:
    found = {("ns", each.metadata.name): each for each in claims}
    return uses_of(user, lambda namespace, name: found.get((namespace, name)), features)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (pod(claims=[BY_NAME]), Named("shared", is_generated=False)),
        (GENERATED, Named("p-r-x", is_generated=True)),
        (pod(claims=[BY_TEMPLATE], made={"r": None}), NotNeeded()),
        (pod(claims=[BY_TEMPLATE]), NotCreated('pod "ns/p": ResourceClaim not created yet')),
        (
            pod(claims=[BY_TEMPLATE], made={"other": "x"}),
            NotCreated('pod "ns/p": ResourceClaim not created yet'),
        ),
        (
            pod(claims=[{"name": "r"}]),
            Unsupported('pod "ns/p", spec.resourceClaim "r": none of the supported fields are set'),
        ),
        (group(claims=[BY_NAME]), Named("shared", is_generated=False)),
        (group(claims=[BY_TEMPLATE], made={"r": "x"}), Named("x", is_generated=True)),
        (group(claims=[BY_TEMPLATE]), NotCreated("PodGroup ns/g: ResourceClaim not created yet")),
        (
            group(claims=[{"name": "r"}]),
            Unsupported(
                "PodGroup ns/g, spec.resourceClaim r: none of the supported fields are set"
            ),
        ),
    ],
)
def test_an_entry_means_one_claim_or_says_why_not(user: Pod, expected: object) -> None:
    assert reference_of(user, user.spec.resource_claims[0]) == expected


def test_claims_of_a_pod_are_found_in_order() -> None:
    user = pod(claims=[{**BY_TEMPLATE, "name": "a"}, BY_NAME], made={"a": "p-r-x"})
    shared = claim()
    found = uses(user, shared, MADE_FOR_POD)
    assert isinstance(found, tuple)
    assert [(use.entry.name, use.claim) for use in found] == [("a", MADE_FOR_POD), ("r", shared)]


def test_an_entry_that_needs_no_claim_is_passed_over() -> None:
    assert uses(pod(claims=[BY_TEMPLATE], made={"r": None})) == ()


@pytest.mark.parametrize(
    ("user", "claims", "reason"),
    [
        (pod(claims=[BY_TEMPLATE]), [], 'pod "ns/p": ResourceClaim not created yet'),
        (pod(claims=[BY_NAME]), [], 'could not find ResourceClaim "ns/shared"'),
        (
            pod(claims=[BY_NAME]),
            [claim(deletionTimestamp=NOW)],
            'resourceclaim "shared" is being deleted',
        ),
        (
            GENERATED,
            [claim("p-r-x")],
            "ResourceClaim ns/p-r-x was not created for Pod ns/p (Pod is not owner)",
        ),
        (
            GENERATED,
            [claim("p-r-x", ownerReferences=owned_by("p", uid="of an earlier pod"))],
            "ResourceClaim ns/p-r-x was not created for Pod ns/p (Pod is not owner)",
        ),
        (
            GENERATED,
            [claim("p-r-x", ownerReferences=owned_by("p", controller=False))],
            "ResourceClaim ns/p-r-x was not created for Pod ns/p (Pod is not owner)",
        ),
        (
            IN_GROUP,
            [claim("p-r-x", ownerReferences=owned_by("other", "PodGroup"))],
            (
                "ResourceClaim ns/p-r-x was not created for Pod ns/p (neither Pod nor PodGroup g is"
                " the owner)"
            ),
        ),
        (
            GENERATED,
            [claim("p-r-x", namespace="elsewhere", ownerReferences=owned_by("p"))],
            "ResourceClaim elsewhere/p-r-x is not in the same namespace as Pod ns/p",
        ),
    ],
)
def test_a_claim_that_is_not_to_be_had_is_refused_with_its_reason(
    user: Pod, claims: list[ResourceClaim], reason: str
) -> None:
    assert uses(user, *claims) == ClaimRejection(reason)


def test_a_claim_of_the_group_counts_for_its_pods_if_groups_may_have_claims() -> None:
    assert not isinstance(uses(IN_GROUP, MADE_FOR_GROUP), ClaimRejection)
    assert isinstance(uses(IN_GROUP, MADE_FOR_GROUP, features=NO_FEATURES), ClaimRejection)
    assert isinstance(uses(GENERATED, MADE_FOR_GROUP), ClaimRejection)


def test_a_claim_that_is_named_may_be_anybodys() -> None:
    assert not isinstance(
        uses(pod(claims=[BY_NAME]), claim(ownerReferences=owned_by("q"))), ClaimRejection
    )


def test_a_claim_of_a_group_is_checked_against_the_group() -> None:
    assert check_made_for_group(MADE_FOR_GROUP, group()) is None
    assert check_made_for_group(MADE_FOR_POD, group()) == ClaimRejection(
        "ResourceClaim ns/p-r-x was not created for PodGroup ns/g (PodGroup is not owner)"
    )
    assert check_made_for_group(claim(namespace="elsewhere"), group()) == ClaimRejection(
        "ResourceClaim elsewhere/shared is not in the same namespace as PodGroup ns/g"
    )


def test_claims_are_named_once_and_only_where_there_is_one() -> None:
    entries = [BY_NAME, {**BY_NAME, "name": "s"}, {**BY_TEMPLATE, "name": "a"}, {"name": "b"}]
    assert claim_names(pod(claims=entries)) == ("shared",)
    assert claim_names(pod(claims=entries, made={"a": "made"})) == ("made", "shared")
    assert claim_names(group(claims=entries, made={"a": None})) == ("shared",)


def test_the_special_claim_is_released_with_the_others() -> None:
    special = {"resourceClaimName": "p-extended-resources-x", "requestMappings": []}
    done = pod(claims=[BY_NAME], status={"extendedResourceClaimStatus": special})
    assert claims_to_release(done) == ("shared", "p-extended-resources-x")
    assert claims_to_release(pod(claims=[BY_NAME])) == ("shared",)


NAMES = (None, "one", "two")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("template", NAMES)
@pytest.mark.parametrize("made", [{}, {"e": "one"}, {"e": None}, {"f": "one"}])
def test_names_are_those_of_references(
    name: str | None, template: str | None, made: dict[str, str | None]
) -> None:
    entry: dict[str, str] = {"name": "e"}
    if name is not None:
        entry["resourceClaimName"] = name
    if template is not None:
        entry["resourceClaimTemplateName"] = template
    user = pod(claims=[entry, {"name": "g", "resourceClaimName": "two"}], made=made)
    found = [reference_of(user, each) for each in user.spec.resource_claims]
    names = {each.name for each in found if isinstance(each, Named)}
    assert claim_names(user) == tuple(sorted(names))
