from __future__ import annotations

import pytest

from moorage.api.meta import LabelSelector, ObjectMeta, OwnerReference
from moorage.api.rbac import (
    GROUP,
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
)
from moorage.apiserver.auth.rbac import AGGREGATION, RoleWrite, Stored, refuse_escalation
from moorage.apiserver.auth.users import User
from moorage.apiserver.http.messages import Target
from tests.apiserver.cast import MASTER, TEAM, USERS, Cluster, binding, cluster, known

ADMIN = USERS["admin"]
PLURALS = {
    "Role": "roles",
    "ClusterRole": "clusterroles",
    "RoleBinding": "rolebindings",
    "ClusterRoleBinding": "clusterrolebindings",
}


def refused(
    user: User, new: Stored, old: Stored | None = None, world: Cluster | None = None
) -> str | None:
    world = world or cluster()
    name = "" if old is None else new.metadata.name
    target = Target(GROUP, "v1", PLURALS[new.kind], new.metadata.namespace, name)
    writing = RoleWrite(user, target, new, old)
    return refuse_escalation(writing, policy=world.policy, authorizer=world.authorizer)


def role(*rules: PolicyRule) -> Role:
    return Role(metadata=ObjectMeta(name="mine", namespace=TEAM), rules=rules)


def rule(verbs: str, group: str, resources: str) -> PolicyRule:
    return PolicyRule(
        verbs=tuple(verbs.split()), api_groups=(group,), resources=tuple(resources.split())
    )


def bound(name: str, kind: str = "ClusterRole") -> RoleBinding:
    return RoleBinding(
        metadata=ObjectMeta(name="b", namespace=TEAM),
        role_ref=RoleRef(api_group=GROUP, kind=kind, name=name),
    )


def test_what_one_has_can_be_given() -> None:
    assert refused(ADMIN, role(rule("get list", "", "pods secrets"))) is None
    assert refused(ADMIN, bound("edit")) is None


def test_what_one_has_not_cannot_be_given_and_is_listed() -> None:
    text = refused(ADMIN, role(rule("get delete list", "", "pods nodes"), rule("*", "x", "y")))
    assert text == (
        'user "team-admin" (groups=["system:authenticated"]) is attempting to grant RBAC '
        "permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "delete" "list"]}\n'
        '{APIGroups:["x"], Resources:["y"], Verbs:["*"]}'
    )


def test_a_binding_gives_no_more_than_its_maker_has() -> None:
    assert "not currently held" in str(refused(ADMIN, bound("cluster-admin")))
    assert refused(MASTER, bound("cluster-admin")) is None


def test_a_binding_to_a_role_that_is_not_there_is_refused() -> None:
    assert refused(ADMIN, bound("none")) == (
        'clusterrole.rbac.authorization.k8s.io "none" not found'
    )


@pytest.mark.parametrize(("verb", "plural"), [("escalate", "roles"), ("bind", "clusterroles")])
def test_escalate_and_bind_are_permissions_of_their_own(verb: str, plural: str) -> None:
    world = cluster()
    extra = Role(
        metadata=ObjectMeta(name="extra", namespace=TEAM), rules=(rule(verb, GROUP, plural),)
    )
    world.policy.put(extra)
    given = binding("extra", ADMIN)
    world.policy.put(
        RoleBinding(
            metadata=given.metadata,
            subjects=given.subjects,
            role_ref=RoleRef(api_group=GROUP, kind="Role", name="extra"),
        )
    )
    greedy = role(rule("*", "*", "*"))
    assert (refused(ADMIN, greedy, world=world) is None) is (verb == "escalate")
    assert (refused(ADMIN, bound("cluster-admin"), world=world) is None) is (verb == "bind")


def test_rules_for_roles_made_of_others_take_a_cluster_admin() -> None:
    selector = LabelSelector(match_labels={"a": "b"})
    made = ClusterRole(
        metadata=ObjectMeta(name="made"),
        aggregation_rule=AggregationRule(cluster_role_selectors=(selector,)),
    )
    assert refused(known("nobody"), made) == AGGREGATION
    assert refused(USERS["cluster-admin"], made) is None


def test_what_garbage_collection_changes_is_no_escalation() -> None:
    old = bound("cluster-admin")
    owners = (OwnerReference(name="x"),)
    new = RoleBinding(
        metadata=ObjectMeta(name="b", namespace=TEAM, owner_references=owners, finalizers=("f",)),
        role_ref=old.role_ref,
    )
    assert refused(ADMIN, new, old) is None
    assert refused(ADMIN, old, bound("edit")) is not None


def test_paths_cannot_be_given_by_who_has_them_not() -> None:
    wanted = ClusterRole(
        metadata=ObjectMeta(name="m"),
        rules=(PolicyRule(verbs=("get",), non_resource_urls=("/metrics", "/healthz")),),
    )
    text = refused(known("nobody"), wanted)
    assert text is not None
    assert text.endswith('held:\n{NonResourceURLs:["/metrics"], Verbs:["get"]}')


def test_a_rule_that_means_billions_is_refused_without_counting_them() -> None:
    many = tuple(str(number) for number in range(3000))
    huge = role(PolicyRule(verbs=many, api_groups=many, resources=many))
    assert "cannot be checked" in str(refused(ADMIN, huge))


def test_a_cluster_binding_needs_permissions_everywhere() -> None:
    everywhere = ClusterRoleBinding(
        metadata=ObjectMeta(name="b"),
        role_ref=RoleRef(api_group=GROUP, kind="ClusterRole", name="view"),
    )
    assert "not currently held" in str(refused(ADMIN, everywhere))
    assert refused(USERS["cluster-admin"], everywhere) is None
