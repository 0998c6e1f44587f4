from __future__ import annotations

import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.rbac import ClusterRole, PolicyRule
from moorage.apiserver.auth.access import Authorizer
from moorage.apiserver.auth.authenticator import IMPERSONATED_VALUES_MAX, impersonated
from moorage.apiserver.auth.users import User
from moorage.apiserver.http.status import StatusError
from tests.apiserver.cast import MASTER, TEAM, USERS, cluster, cluster_binding, known


def acting(user: User, *headers: tuple[str, str], authorizer: Authorizer | None = None) -> User:
    return impersonated(user, headers, authorizer or cluster().authorizer)


def test_without_headers_one_is_oneself() -> None:
    assert acting(USERS["view"], ("accept", "*/*")) is USERS["view"]


def test_all_that_headers_name_is_taken() -> None:
    found = acting(
        MASTER,
        ("impersonate-user", "ann"),
        ("impersonate-group", "dev"),
        ("impersonate-group", "ops"),
        ("impersonate-uid", "7"),
        ("impersonate-extra-scopes", "a"),
        ("impersonate-extra-scopes", "b"),
        ("impersonate-extra-example.com%2froom", "c"),
    )
    assert found == User(
        "ann",
        ("dev", "ops", "system:authenticated"),
        "7",
        {"scopes": ("a", "b"), "example.com/room": ("c",)},
    )


@pytest.mark.parametrize(
    ("headers", "groups"),
    [
        ([("impersonate-user", "ann")], ("system:authenticated",)),
        ([("impersonate-user", "system:anonymous")], ("system:unauthenticated",)),
        (
            [("impersonate-user", "x"), ("impersonate-group", "system:unauthenticated")],
            ("system:unauthenticated",),
        ),
        (
            [("impersonate-user", "system:serviceaccount:ci:bot")],
            ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"),
        ),
    ],
)
def test_groups_follow_from_the_user_where_none_are_named(
    headers: list[tuple[str, str]], groups: tuple[str, ...]
) -> None:
    assert acting(MASTER, *headers).groups == groups


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("impersonate-group", "system:masters"),
        ("impersonate-uid", "7"),
        ("impersonate-extra-a", "b"),
    ],
)
def test_each_part_must_be_allowed(header: str, value: str) -> None:
    world = cluster()
    rule = PolicyRule(verbs=("impersonate",), api_groups=("",), resources=("users",))
    world.policy.put(ClusterRole(metadata=ObjectMeta(name="act"), rules=(rule,)))
    bob = known("bob")
    world.policy.put(cluster_binding("act", bob))
    assert acting(bob, ("impersonate-user", "ann"), authorizer=world.authorizer).name == "ann"
    with pytest.raises(StatusError) as caught:
        acting(bob, ("impersonate-user", "ann"), (header, value), authorizer=world.authorizer)
    assert caught.value.status.code == 403


def test_the_refusal_names_the_user_to_be() -> None:
    with pytest.raises(StatusError) as caught:
        acting(USERS["view"], ("impersonate-user", "ann"))
    assert caught.value.status.message == (
        'users "ann" is forbidden: User "viewer" cannot impersonate resource "users" in API '
        'group "" at the cluster scope'
    )


def test_an_editor_may_act_as_service_accounts_of_the_namespace() -> None:
    own, other = f"system:serviceaccount:{TEAM}:bot", "system:serviceaccount:other:bot"
    assert acting(USERS["edit"], ("impersonate-user", own)).name == own
    with pytest.raises(StatusError):
        acting(USERS["edit"], ("impersonate-user", other))


def test_who_names_no_user_names_nobody() -> None:
    with pytest.raises(StatusError, match="without impersonating a user"):
        acting(MASTER, ("impersonate-group", "dev"))


def test_there_is_a_bound() -> None:
    many = [("impersonate-group", str(number)) for number in range(IMPERSONATED_VALUES_MAX + 1)]
    with pytest.raises(StatusError) as caught:
        acting(MASTER, ("impersonate-user", "x"), *many)
    assert caught.value.status.code == 400
