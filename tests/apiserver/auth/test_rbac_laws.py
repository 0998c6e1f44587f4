"""Laws of RBAC: the index finds what a plain walk over all bindings finds."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from conformance.runner import main
from moorage.api.meta import ObjectMeta
from moorage.api.rbac import (
    GROUP,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from moorage.apiserver.auth.access import Allowed, ResourceAccess
from moorage.apiserver.auth.policy_rules import allows
from moorage.apiserver.auth.rbac import RBACPolicy, Stored
from moorage.apiserver.auth.users import User

NAMES = st.sampled_from(["a", "b", "c"])
SPACES = st.sampled_from(["one", "two"])
KINDS = st.sampled_from(["User", "Group", "ServiceAccount", "Other"])


@st.composite
def rules(draw: st.DrawFn) -> tuple[PolicyRule, ...]:
    verbs = draw(st.lists(st.sampled_from(["get", "list", "*"]), max_size=2))
    resources = draw(st.lists(st.sampled_from(["pods", "secrets"]), max_size=2))
    names = draw(st.sampled_from([(), (), ("x",)]))
    return (
        PolicyRule(
            verbs=tuple(verbs), api_groups=("",), resources=tuple(resources), resource_names=names
        ),
    )


@st.composite
def stored(draw: st.DrawFn) -> Stored:
    name, namespace = draw(NAMES), draw(SPACES)
    subjects = tuple(
        Subject(kind=kind, name=subject, namespace=where)
        for kind, subject, where in draw(
            st.lists(st.tuples(KINDS, NAMES, st.sampled_from(["", "one"])), max_size=3)
        )
    )
    match draw(st.integers(0, 3)):
        case 0:
            return Role(metadata=ObjectMeta(name=name, namespace=namespace), rules=draw(rules()))
        case 1:
            return ClusterRole(metadata=ObjectMeta(name=name), rules=draw(rules()))
        case 2:
            kind = draw(st.sampled_from(["Role", "ClusterRole"]))
            return RoleBinding(
                metadata=ObjectMeta(name=name, namespace=namespace),
                subjects=subjects,
                role_ref=RoleRef(api_group=GROUP, kind=kind, name=draw(NAMES)),
            )
    return ClusterRoleBinding(
        metadata=ObjectMeta(name=name),
        subjects=subjects,
        role_ref=RoleRef(api_group=GROUP, kind="ClusterRole", name=draw(NAMES)),
    )


Key = tuple[str, str, str]


def key_of(value: Stored) -> Key:
    return (value.kind, value.metadata.namespace, value.metadata.name)


def is_meant(subject: Subject, user: User, namespace: str) -> bool:
    match subject.kind:
        case "User":
            return subject.name == user.name
        case "Group":
            return subject.name in user.groups
        case "ServiceAccount":
            where = subject.namespace or namespace
            return bool(where) and user.name == f"system:serviceaccount:{where}:{subject.name}"
    return False


def plainly_allowed(objects: dict[Key, Stored], access: ResourceAccess) -> bool:
    for value in objects.values():
        if not isinstance(value, RoleBinding | ClusterRoleBinding):
            continue
        namespace = value.metadata.namespace
        if namespace not in ("", access.namespace):
            continue
        if not any(is_meant(subject, access.user, namespace) for subject in value.subjects):
            continue
        reference = value.role_ref
        where = namespace if reference.kind == "Role" else ""
        role = objects.get((reference.kind, where, reference.name))
        if isinstance(role, Role | ClusterRole) and any(
            allows(r, access) for r in role.rules or ()
        ):
            return True
    return False


USERS = st.sampled_from(
    [User("a", ("b",)), User("b", ("a", "c")), User("system:serviceaccount:one:a", ("c",))]
)


@given(st.lists(st.tuples(st.booleans(), stored()), max_size=25), USERS)
def test_a_policy_decides_as_a_plain_walk_does(
    steps: list[tuple[bool, Stored]], user: User
) -> None:
    policy = RBACPolicy()
    objects: dict[Key, Stored] = {}
    for is_put, value in steps:
        if is_put:
            policy.put(value)
            objects[key_of(value)] = value
        else:
            policy.remove(value)
            objects.pop(key_of(value), None)
        # After each step: what was decided before must not be remembered for too long.
        for namespace, name in product(("", "one", "two"), ("x", "y")):
            access = ResourceAccess(user, "get", "", "pods", namespace=namespace, name=name)
            decision = policy.authorize(access)
            assert isinstance(decision, Allowed) is plainly_allowed(objects, access)


def test_roles_can_be_compared_with_lists_of_them(tmp_path: Path) -> None:
    role = {
        "kind": "ClusterRole",
        "metadata": {
            "name": "system:public-info-viewer",
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
        "rules": [
            {
                "verbs": ["get"],
                "nonResourceURLs": ["/version", "/version/", "/livez", "/readyz", "/healthz"],
            }
        ],
    }
    file = tmp_path / "cluster-roles.yaml"
    file.write_text(json.dumps({"items": [role, {**role, "metadata": {"name": "other"}}]}))
    assert main(["roles", str(tmp_path)]) == 0
    file.write_text(json.dumps({"items": [{**role, "rules": []}]}))
    assert main(["roles", str(tmp_path)]) == 1
    file.write_text("nonsense")
    assert main(["roles", str(tmp_path)]) == 3
