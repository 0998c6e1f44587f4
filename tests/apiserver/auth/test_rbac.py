from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.api.rbac import (
    GROUP,
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from moorage.apiserver.auth.access import (
    Allowed,
    NoOpinion,
    PathAccess,
    PrivilegedGroup,
    ResourceAccess,
    UnionAuthorizer,
    access_forbidden,
    forbidden_message,
    require,
)
from moorage.apiserver.auth.bootstrap_policy import AUTOUPDATE, bootstrap_objects, reconciled
from moorage.apiserver.auth.policy_rules import aggregated, allows, missing, stale
from moorage.apiserver.auth.rbac import RBACPolicy
from moorage.apiserver.auth.users import User
from moorage.apiserver.http.status import StatusError
from tests.apiserver.cast import GATES, MASTER, TEAM, USERS, binding, cluster, known

ANN = known("ann")
LIST_PODS = ResourceAccess(ANN, "list", "", "pods", namespace=TEAM)


def role(*rules: PolicyRule, name: str = "reader", namespace: str = TEAM) -> Role:
    return Role(metadata=ObjectMeta(name=name, namespace=namespace), rules=rules)


def bound(role_name: str, *subjects: Subject, namespace: str = TEAM) -> RoleBinding:
    return RoleBinding(
        metadata=ObjectMeta(name="readers", namespace=namespace),
        subjects=subjects,
        role_ref=RoleRef(api_group=GROUP, kind="Role", name=role_name),
    )


def subject(kind: str, name: str, namespace: str = "") -> Subject:
    return Subject(kind=kind, name=name, namespace=namespace)


READ_PODS = PolicyRule(verbs=("get", "list"), api_groups=("",), resources=("pods",))


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resources", "combined", "expected"),
    [
        (("pods",), "pods", True),
        (("pods",), "pods/status", False),
        (("pods/status",), "pods/status", True),
        (("pods/status",), "pods", False),
        (("*",), "pods/status", True),
        (("*/scale",), "deployments/scale", True),
        (("*/scale",), "deployments", False),
        (("*/scale",), "deployments/status", False),
    ],
)
def test_subresources_are_resources_of_their_own(
    resources: tuple[str, ...], combined: str, expected: bool
) -> None:
    rule = PolicyRule(verbs=("get",), api_groups=("*",), resources=resources)
    resource, _, part = combined.partition("/")
    assert allows(rule, ResourceAccess(ANN, "get", "apps", resource, part)) is expected


def test_names_narrow_a_rule_and_lists_have_no_name() -> None:
    rule = PolicyRule(
        verbs=("*",), api_groups=("",), resources=("secrets",), resource_names=("mine",)
    )
    access = ResourceAccess(ANN, "get", "", "secrets", namespace=TEAM)
    assert allows(rule, replace(access, name="mine"))
    assert not allows(rule, replace(access, name="yours"))
    assert not allows(rule, replace(access, verb="list"))


@pytest.mark.parametrize(
    ("url", "path", "expected"),
    [
        ("*", "/anything", True),
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/etcd", False),
        ("/healthz/*", "/healthz/etcd", True),
        ("/healthz/*", "/healthz", False),
    ],
)
def test_paths_may_end_with_a_star(url: str, path: str, expected: bool) -> None:
    rule = PolicyRule(verbs=("get",), non_resource_urls=(url,))
    assert allows(rule, PathAccess(ANN, "get", path)) is expected


WORDS = st.sampled_from(["*", "a", "b", "a/x", "*/x"])
RULES = st.lists(
    st.builds(
        lambda verbs, groups, resources, names: PolicyRule(
            verbs=tuple(verbs),
            api_groups=tuple(groups),
            resources=tuple(resources),
            resource_names=tuple(names),
        ),
        st.lists(st.sampled_from(["*", "get", "list"]), max_size=2),
        st.lists(st.sampled_from(["*", "", "apps"]), max_size=2),
        st.lists(WORDS, max_size=2),
        st.lists(st.sampled_from(["n", "m"]), max_size=1),
    ),
    max_size=4,
)


@given(RULES)
def test_rules_hold_what_they_are(rules: list[PolicyRule]) -> None:
    assert missing(rules, rules) == []


@given(RULES, RULES)
def test_what_is_not_missing_is_allowed_by_who_holds_it(
    held: list[PolicyRule], wanted: list[PolicyRule]
) -> None:
    if missing(held, wanted):
        return
    for verb in ("get", "list"):
        for group in ("", "apps"):
            for resource, part in (("a", ""), ("b", ""), ("a", "x"), ("b", "x")):
                for name in ("", "n", "m"):
                    access = ResourceAccess(ANN, verb, group, resource, part, TEAM, name)
                    if any(allows(rule, access) for rule in wanted):
                        assert any(allows(rule, access) for rule in held)


# --- bindings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "user"),
    [
        (subject("User", "ann"), ANN),
        (subject("Group", "readers"), User("bob", ("readers",))),
        (subject("ServiceAccount", "bot"), User(f"system:serviceaccount:{TEAM}:bot")),
        (subject("ServiceAccount", "bot", "ci"), User("system:serviceaccount:ci:bot")),
    ],
)
def test_users_groups_and_service_accounts_can_be_bound(who: Subject, user: User) -> None:
    policy = RBACPolicy([role(READ_PODS), bound("reader", who)])
    assert isinstance(policy.authorize(replace(LIST_PODS, user=user)), Allowed)
    assert isinstance(policy.authorize(LIST_PODS), Allowed) is (user == ANN)


def test_a_decision_names_the_binding() -> None:
    policy = RBACPolicy([role(READ_PODS), bound("reader", subject("User", "ann"))])
    assert policy.authorize(LIST_PODS) == Allowed(
        'RBAC: allowed by RoleBinding "readers/team" of Role "reader" to User "ann"'
    )


def test_a_decision_names_the_binding_of_the_cluster() -> None:
    decision = cluster().policy.authorize(PathAccess(ANN, "get", "/version"))
    assert decision == Allowed(
        'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole '
        '"system:discovery" to Group "system:authenticated"'
    )


def test_a_missing_role_is_a_reason() -> None:
    policy = RBACPolicy([bound("reader", subject("User", "ann"))])
    expected = NoOpinion('RBAC: role.rbac.authorization.k8s.io "reader" not found')
    assert policy.authorize(LIST_PODS) == expected


def test_what_is_removed_gives_nothing_any_more() -> None:
    given_role, given_binding = role(READ_PODS), bound("reader", subject("User", "ann"))
    policy = RBACPolicy([given_role, given_binding])
    policy.remove(given_binding)
    assert policy.authorize(LIST_PODS) == NoOpinion()
    policy.put(given_binding)
    policy.put(bound("reader", subject("User", "bob")))
    assert policy.authorize(LIST_PODS) == NoOpinion()
    policy.put(given_binding)
    policy.remove(given_role)
    assert isinstance(policy.authorize(LIST_PODS), NoOpinion)


def test_a_role_of_the_cluster_bound_in_a_namespace_is_good_there_only() -> None:
    policy = RBACPolicy([*bootstrap_objects(GATES), binding("view", ANN)])
    assert isinstance(policy.authorize(LIST_PODS), Allowed)
    assert policy.authorize(replace(LIST_PODS, namespace="other")) == NoOpinion()
    assert policy.authorize(replace(LIST_PODS, namespace="")) == NoOpinion()


def test_masters_may_do_everything_whatever_is_stored() -> None:
    chain = UnionAuthorizer(PrivilegedGroup(), RBACPolicy())
    assert chain.authorize(ResourceAccess(MASTER, "delete", "", "nodes", name="n")) == Allowed()
    assert chain.authorize(LIST_PODS) == NoOpinion()


# --- aggregation ----------------------------------------------------------------------------------


def part(name: str, *into: str, rules: tuple[PolicyRule, ...] = (), of: str = "") -> ClusterRole:
    labels = {f"into-{label}": "true" for label in into}
    selector = LabelSelector(match_labels={f"into-{of}": "true"})
    rule = AggregationRule(cluster_role_selectors=(selector,)) if of else None
    metadata = ObjectMeta(name=name, labels=labels)
    return ClusterRole(metadata=metadata, rules=rules, aggregation_rule=rule)


def by_name(*roles: ClusterRole) -> dict[str, ClusterRole]:
    return {each.metadata.name: each for each in roles}


def test_a_role_has_the_rules_of_its_parts_and_of_their_parts() -> None:
    other = PolicyRule(verbs=("get",), api_groups=("",), resources=("secrets",))
    roles = by_name(
        part("top", of="top"),
        part("middle", "top", of="middle"),
        part("leaf", "middle", rules=(READ_PODS,)),
        part("twin", "middle", rules=(READ_PODS, other)),
    )
    assert aggregated(roles["top"], roles) == (READ_PODS, other)


def test_roles_made_of_each_other_end() -> None:
    roles = by_name(
        part("a", "b", of="a"),
        part("b", "a", of="b"),
        part("leaf", "b", rules=(READ_PODS,)),
    )
    assert aggregated(roles["a"], roles) == aggregated(roles["b"], roles) == (READ_PODS,)


def test_stored_rules_are_brought_up_to_date() -> None:
    roles = by_name(part("top", of="top"), part("leaf", "top", rules=(READ_PODS,)))
    changed = stale(roles)
    assert [each.rules for each in changed] == [(READ_PODS,)]
    assert stale({**roles, "top": changed[0]}) == []


def test_a_new_part_counts_at_once() -> None:
    world = cluster()
    access = ResourceAccess(USERS["view"], "list", "example.com", "things", namespace=TEAM)
    assert world.policy.authorize(access) == NoOpinion()
    label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    rule = PolicyRule(verbs=("list",), api_groups=("example.com",), resources=("things",))
    world.policy.put(ClusterRole(metadata=ObjectMeta(name="x", labels=label), rules=(rule,)))
    assert isinstance(world.policy.authorize(access), Allowed)


# --- what a cluster starts with -------------------------------------------------------------------


def test_what_is_there_already_is_left_alone() -> None:
    for wanted in bootstrap_objects(GATES):
        assert reconciled(wanted, None) is wanted
        assert reconciled(wanted, wanted) is None


def test_what_was_taken_away_comes_back_unless_somebody_said_no() -> None:
    wanted = next(o for o in bootstrap_objects(GATES) if o.metadata.name == "system:basic-user")
    assert isinstance(wanted, ClusterRole)
    less = ClusterRole(metadata=wanted.metadata, rules=())
    back = reconciled(wanted, less)
    assert isinstance(back, ClusterRole)
    assert missing(back.rules or (), wanted.rules or ()) == []
    kept = ObjectMeta(name="system:basic-user", annotations={AUTOUPDATE: "false"})
    assert reconciled(wanted, ClusterRole(metadata=kept)) is None


def test_every_binding_names_a_role_that_is_there() -> None:
    objects = bootstrap_objects(GATES)
    roles = {(o.kind, o.metadata.namespace, o.metadata.name) for o in objects}
    for each in objects:
        if isinstance(each, RoleBinding | ClusterRoleBinding):
            kind = each.role_ref.kind
            assert (kind, each.metadata.namespace, each.role_ref.name) in roles


def test_only_health_and_version_are_open_to_nobody() -> None:
    held = cluster().policy.held(USERS["anonymous"], TEAM)
    assert [rule.resources for rule in held.rules] == [()]
    assert set(held.rules[0].non_resource_urls) == {
        "/healthz", "/livez", "/readyz", "/version", "/version/",
    }  # fmt: skip


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("access", "expected"),
    [
        (
            ResourceAccess(known("x"), "list", "resource.k8s.io", "deviceclasses"),
            (
                'deviceclasses.resource.k8s.io is forbidden: User "x" cannot list resource '
                '"deviceclasses" in API group "resource.k8s.io" at the cluster scope'
            ),
        ),
        (
            ResourceAccess(known("x"), "update", "", "pods", "status", "ns", "p"),
            (
                'pods "p" is forbidden: User "x" cannot update resource "pods/status" in API '
                'group "" in the namespace "ns"'
            ),
        ),
        (
            PathAccess(known("x"), "get", "/metrics"),
            'forbidden: User "x" cannot get path "/metrics"',
        ),
    ],
)
def test_a_refusal_reads_as_that_of_kubernetes(
    access: ResourceAccess | PathAccess, expected: str
) -> None:
    with pytest.raises(StatusError) as caught:
        require(RBACPolicy(), access)
    assert caught.value.status.message == expected
    assert caught.value.status.code == 403


def test_a_reason_follows_the_refusal() -> None:
    assert str(access_forbidden(PathAccess(ANN, "get", "/"), "why")).endswith('path "/": why')


def test_names_cannot_forge_lines_or_markup() -> None:
    text = forbidden_message(PathAccess(User('a"\n<b>\x00\u2028'), "get", "/"))
    assert text == 'User "a\\"\\n&lt;b&gt;\\x00\\u2028" cannot get path "/"'
