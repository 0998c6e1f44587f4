from __future__ import annotations

import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.rbac import GROUP, PolicyRule, Role
from moorage.apiserver.admission.node_restriction import AdmissionAttributes, Operation
from moorage.apiserver.admission.write_access import check_write
from moorage.apiserver.auth.access import Allowed, ResourceAccess
from moorage.apiserver.auth.authorizer import WATCHED_RESOURCES, ClusterAuthorizer
from moorage.apiserver.auth.bootstrap_policy import bootstrap_objects
from moorage.apiserver.http.messages import Target
from moorage.apiserver.http.status import StatusError
from moorage.apiserver.resources import Resources
from tests.apiserver.cast import GATES, NODE, TEAM, USERS, binding, pod_on, slice_of

SECRET = ResourceAccess(NODE, "get", "", "secrets", namespace=TEAM, name="one")
ROLES = Target(GROUP, "v1", "roles", TEAM)


@pytest.fixture
def guard() -> ClusterAuthorizer:
    return ClusterAuthorizer(GATES, [*bootstrap_objects(GATES), binding("admin", USERS["admin"])])


def allows(guard: ClusterAuthorizer, access: ResourceAccess) -> bool:
    return isinstance(guard.authorizer.authorize(access), Allowed)


def test_it_follows_what_is_stored(guard: ClusterAuthorizer) -> None:
    pod = pod_on("node-a", "p", "one")
    assert not allows(guard, SECRET)
    guard.on_update(pod)
    assert allows(guard, SECRET)
    guard.on_delete(pod)
    assert not allows(guard, SECRET)


def test_slices_and_bindings_come_and_go(guard: ClusterAuthorizer) -> None:
    own = ResourceAccess(NODE, "update", "resource.k8s.io", "resourceslices", name="s")
    listing = ResourceAccess(USERS["admin"], "list", "", "pods", namespace=TEAM)
    guard.on_update(slice_of("node-a", "s"))
    assert allows(guard, own)
    assert allows(guard, listing)
    guard.on_delete(slice_of("node-a", "s"))
    guard.on_delete(binding("admin", USERS["admin"]))
    assert not allows(guard, own)
    assert not allows(guard, listing)


def test_everything_that_it_follows_is_served() -> None:
    served = {(resource.group, resource.plural) for resource in Resources()}
    assert set(WATCHED_RESOURCES) <= served


def test_nobody_gives_more_than_they_have(guard: ClusterAuthorizer) -> None:
    rule = PolicyRule(verbs=("get",), api_groups=("",), resources=("nodes",))
    role = Role(metadata=ObjectMeta(name="r", namespace=TEAM), rules=(rule,))
    with pytest.raises(StatusError) as caught:
        check_write(guard, USERS["admin"], AdmissionAttributes(Operation.CREATE, ROLES, new=role))
    assert caught.value.status.code == 403
    assert caught.value.status.message.startswith(
        'roles.rbac.authorization.k8s.io "r" is forbidden: user "team-admin" (groups='
    )
    check_write(guard, USERS["admin"], AdmissionAttributes(Operation.DELETE, ROLES, old=role))
    check_write(
        guard,
        USERS["admin"],
        AdmissionAttributes(Operation.CREATE, ROLES, new=Role(metadata=role.metadata)),
    )


def test_nodes_write_their_own_only(guard: ClusterAuthorizer) -> None:
    target = Target("resource.k8s.io", "v1", "resourceslices")
    check_write(
        guard, NODE, AdmissionAttributes(Operation.CREATE, target, new=slice_of("node-a", "s"))
    )
    with pytest.raises(StatusError, match="can only create ResourceSlice"):
        check_write(
            guard, NODE, AdmissionAttributes(Operation.CREATE, target, new=slice_of("node-b", "s"))
        )


def test_it_answers_for_the_status_of_claims(guard: ClusterAuthorizer) -> None:
    ask = guard.claim_status(USERS["scheduler"], verb="update", namespace=TEAM)
    assert ask.refuse_binding() is None
    assert ask.refuse_driver("gpu.example.com", node="node-a") is not None
