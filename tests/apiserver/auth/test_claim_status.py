from __future__ import annotations

import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.rbac import ClusterRole, PolicyRule
from moorage.apiserver.auth.access import ClaimStatusAuthorizer, is_associated
from moorage.apiserver.auth.users import NODE_NAME, User
from tests.apiserver.cast import DRIVER, TEAM, USERS, binding, cluster, cluster_binding, known


def asked(user: User, verb: str = "update") -> ClaimStatusAuthorizer:
    return ClaimStatusAuthorizer(cluster().authorizer, user, verb=verb, namespace=TEAM)


@pytest.mark.parametrize("verb", ["update", "patch"])
def test_the_scheduler_binds_claims_and_a_driver_does_not(verb: str) -> None:
    assert asked(USERS["scheduler"], verb).refuse_binding() is None
    assert asked(DRIVER, verb).refuse_binding() == (
        'resourceclaims.resource.k8s.io is forbidden: User "system:serviceaccount:drivers:gpu" '
        f'cannot {verb} resource "resourceclaims/binding" in API group "resource.k8s.io" at the '
        "cluster scope"
    )


def test_a_permission_in_the_claims_namespace_is_not_enough_to_bind() -> None:
    world = cluster()
    rule = PolicyRule(verbs=("*",), api_groups=("*",), resources=("*",))
    world.policy.put(ClusterRole(metadata=ObjectMeta(name="all"), rules=(rule,)))
    user = known("local-admin")
    world.policy.put(binding("all", user))
    authorizer = ClaimStatusAuthorizer(world.authorizer, user, verb="update", namespace=TEAM)
    assert authorizer.refuse_binding() is not None
    assert authorizer.refuse_driver("d", node=None) is None


def test_a_driver_reports_on_its_own_node_only() -> None:
    assert asked(DRIVER).refuse_driver("gpu.example.com", node="node-a") is None
    refused = asked(DRIVER).refuse_driver("gpu.example.com", node="node-b")
    assert refused is not None
    assert refused.verbs == ("arbitrary-node:update",)
    assert refused.reason == (
        'resourceclaims.resource.k8s.io "gpu.example.com" is forbidden: User '
        '"system:serviceaccount:drivers:gpu" cannot arbitrary-node:update resource '
        '"resourceclaims/driver" in API group "resource.k8s.io" in the namespace "team"'
    )
    assert asked(DRIVER).refuse_driver("gpu.example.com", node=None) is not None


def test_a_refusal_on_the_own_node_names_both_verbs() -> None:
    bot = DRIVER._replace(name="system:serviceaccount:drivers:other")
    refused = asked(bot).refuse_driver("d", node="node-a")
    assert refused is not None
    assert refused.verbs == ("associated-node:update", "arbitrary-node:update")
    assert "cannot associated-node:update" in refused.reason


def test_a_permission_may_be_for_one_driver() -> None:
    world = cluster()
    rule = PolicyRule(
        verbs=("arbitrary-node:patch",),
        api_groups=("resource.k8s.io",),
        resources=("resourceclaims/driver",),
        resource_names=("gpu.example.com",),
    )
    world.policy.put(ClusterRole(metadata=ObjectMeta(name="gpu"), rules=(rule,)))
    user = known("controller")
    world.policy.put(cluster_binding("gpu", user))
    authorizer = ClaimStatusAuthorizer(world.authorizer, user, verb="patch", namespace=TEAM)
    assert authorizer.refuse_driver("gpu.example.com", node="node-b") is None
    assert authorizer.refuse_driver("nic.example.com", node="node-b") is not None


@pytest.mark.parametrize(
    ("user", "node", "expected"),
    [
        (DRIVER, "node-a", True),
        (DRIVER, "node-b", False),
        (DRIVER, None, False),
        (DRIVER._replace(extra={}), "node-a", False),
        (DRIVER._replace(extra={NODE_NAME: ("node-a", "node-b")}), "node-a", False),
        (DRIVER._replace(name="driver"), "node-a", False),
        (DRIVER._replace(name="system:serviceaccount:BAD:x"), "node-a", False),
    ],
)
def test_only_a_service_account_bound_to_one_node_is_on_it(
    user: User, node: str | None, expected: bool
) -> None:
    assert is_associated(user, node) is expected
