from __future__ import annotations

import pytest

from moorage.api.authorization import (
    FieldSelectorAttributes,
    FieldSelectorRequirement,
    LocalSubjectAccessReview,
    NonResourceAttributes,
    ResourceAttributes,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
)
from moorage.api.codec import to_tree
from moorage.api.meta import ObjectMeta
from moorage.apiserver.auth.reviews import answer_access, answer_rules
from moorage.apiserver.http.status import StatusError
from tests.apiserver.cast import NODE, TEAM, USERS, Cluster, cluster

READ = ResourceAttributes(verb="list", resource="pods", namespace=TEAM)


@pytest.fixture
def world() -> Cluster:
    return cluster()


def test_one_may_ask_for_oneself(world: Cluster) -> None:
    review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resource_attributes=READ))
    answer = answer_access(review, user=USERS["view"], authorizer=world.authorizer)
    assert answer.status.allowed
    assert answer.status.reason.startswith("RBAC: allowed by RoleBinding")
    answer = answer_access(review, user=USERS["driver"], authorizer=world.authorizer)
    assert to_tree(answer)["status"] == {"allowed": False}


def test_one_may_ask_for_others_and_for_paths(world: Cluster) -> None:
    path = NonResourceAttributes(path="/metrics", verb="get")
    spec = SubjectAccessReviewSpec(non_resource_attributes=path, groups=("system:monitoring",))
    review = SubjectAccessReview(spec=spec)
    answer = answer_access(review, user=USERS["scheduler"], authorizer=world.authorizer)
    assert answer.status.allowed


def test_field_selectors_of_a_review_count(world: Cluster) -> None:
    requirement = FieldSelectorRequirement(key="spec.nodeName", operator="In", values=("node-a",))
    selector = FieldSelectorAttributes(requirements=(requirement,))
    for fields, expected in ((selector, True), (None, False)):
        attributes = ResourceAttributes(verb="list", resource="pods", field_selector=fields)
        spec = SelfSubjectAccessReviewSpec(resource_attributes=attributes)
        review = SelfSubjectAccessReview(spec=spec)
        answer = answer_access(review, user=NODE, authorizer=world.authorizer)
        assert answer.status.allowed is expected


@pytest.mark.parametrize(
    ("review", "part"),
    [
        (SelfSubjectAccessReview(), "exactly one of nonResourceAttributes or resourceAttributes"),
        (
            SubjectAccessReview(spec=SubjectAccessReviewSpec(resource_attributes=READ)),
            "spec.user: Invalid value",
        ),
        (
            SelfSubjectAccessReview(
                metadata=ObjectMeta(name="x"),
                spec=SelfSubjectAccessReviewSpec(resource_attributes=READ),
            ),
            "must be empty",
        ),
        (
            LocalSubjectAccessReview(
                metadata=ObjectMeta(namespace="other"),
                spec=SubjectAccessReviewSpec(resource_attributes=READ, user="x"),
            ),
            "must match metadata.namespace",
        ),
        (
            LocalSubjectAccessReview(
                metadata=ObjectMeta(namespace=TEAM),
                spec=SubjectAccessReviewSpec(
                    non_resource_attributes=NonResourceAttributes(path="/"), user="x"
                ),
            ),
            "disallowed on this kind of request",
        ),
    ],
)
def test_a_question_that_is_none_is_refused(
    world: Cluster, review: SubjectAccessReview, part: str
) -> None:
    with pytest.raises(StatusError, match="is invalid") as caught:
        answer_access(review, user=NODE, authorizer=world.authorizer, namespace=TEAM)
    assert part in caught.value.status.message
    assert caught.value.status.code == 422


def test_a_local_question_is_about_its_namespace(world: Cluster) -> None:
    review = LocalSubjectAccessReview(
        metadata=ObjectMeta(namespace=TEAM),
        spec=SubjectAccessReviewSpec(resource_attributes=READ, user="viewer"),
    )
    asked = {"user": USERS["admin"], "authorizer": world.authorizer}
    assert answer_access(review, **asked, namespace=TEAM).status.allowed  # type: ignore[arg-type]
    with pytest.raises(StatusError, match="must match namespace: other"):
        answer_access(review, **asked, namespace="other")  # type: ignore[arg-type]


def test_all_rules_of_a_user_are_told(world: Cluster) -> None:
    review = SelfSubjectRulesReview(spec=SelfSubjectRulesReviewSpec(namespace=TEAM))
    answer = answer_rules(review, user=USERS["cluster-admin"], policy=world.policy)
    tree = to_tree(answer)["status"]
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in tree["resourceRules"]
    assert {"verbs": ["*"], "nonResourceURLs": ["*"]} in tree["nonResourceRules"]
    assert tree["incomplete"] is False


def test_of_a_node_not_all_can_be_told(world: Cluster) -> None:
    review = SelfSubjectRulesReview(spec=SelfSubjectRulesReviewSpec(namespace=TEAM))
    answer = answer_rules(review, user=NODE, policy=world.policy)
    assert answer.status.incomplete
    assert "node authorizer" in answer.status.evaluation_error


def test_rules_are_told_of_a_namespace(world: Cluster) -> None:
    with pytest.raises(StatusError, match="no namespace on request"):
        answer_rules(SelfSubjectRulesReview(), user=NODE, policy=world.policy)
