"""Nobody gives more than they have: what is checked when roles and bindings are written.

Members of system:masters may write anything; who may `escalate` a role may give it any rule, who
may `bind` a role may give it to anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from mooring.api.rbac import (
    GROUP,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
)
from mooring.apiserver.authorization.access import (
    MASTERS,
    Allowed,
    Authorizer,
    ResourceAccess,
    quoted,
    quoted_list,
)
from mooring.apiserver.authorization.rbac import MissingRole, Policy, Stored
from mooring.apiserver.authorization.rules import (
    ATOMS_MAX,
    EVERYTHING,
    described,
    missing,
    size_of,
)
from mooring.apiserver.calls import User
from mooring.apiserver.paths import Target

AGGREGATION = "must have cluster-admin privileges to use the aggregationRule"


class Writing(NamedTuple):
    """Somebody who writes a role or binding; there is no old one when it is created."""

    user: User
    target: Target
    new: Stored
    old: Stored | None = None


def refuse_writing(writing: Writing, *, policy: Policy, authorizer: Authorizer) -> str | None:
    """Return why a role or binding may not be written; None if it may."""
    if MASTERS in writing.user.groups or _is_upkeep(writing):
        return None
    match writing.new:
        case Role() | ClusterRole():
            return _refuse_role(writing, writing.new, policy, authorizer)
        case RoleBinding() | ClusterRoleBinding():
            reference = writing.new.role_ref
            return _refuse_binding(writing, reference, policy, authorizer)


def _refuse_role(
    writing: Writing, new: Role | ClusterRole, policy: Policy, authorizer: Authorizer
) -> str | None:
    user, target = writing.user, writing.target
    escalate = ResourceAccess(
        user,
        "escalate",
        target.group,
        target.resource,
        namespace=target.namespace,
        name=target.name,
    )
    if isinstance(authorizer.authorize(escalate), Allowed):
        return None
    if reason := _not_held(user, target.namespace, new.rules or (), policy):
        return reason
    if not (_is_aggregated(new) or _is_aggregated(writing.old)):
        return None
    return AGGREGATION if _not_held(user, target.namespace, EVERYTHING, policy) else None


def _refuse_binding(
    writing: Writing, reference: RoleRef, policy: Policy, authorizer: Authorizer
) -> str | None:
    user, namespace = writing.user, writing.target.namespace
    plural = {"ClusterRole": "clusterroles", "Role": "roles"}.get(reference.kind)
    if plural is not None:
        bind = ResourceAccess(
            user,
            "bind",
            reference.api_group or GROUP,
            plural,
            namespace=namespace,
            name=reference.name,
        )
        if isinstance(authorizer.authorize(bind), Allowed):
            return None
    rules = policy.rules_of(reference, namespace)
    if isinstance(rules, MissingRole):
        return rules.text
    return _not_held(user, namespace, rules, policy)


def _not_held(
    user: User, namespace: str, wanted: Sequence[PolicyRule], policy: Policy
) -> str | None:
    """Return that a user gives what they do not have themselves; None if they have it."""
    size = sum(map(size_of, wanted))
    if size > ATOMS_MAX:
        return f"the rules mean {size} permissions, more than {ATOMS_MAX} cannot be checked"
    held = policy.held(user, namespace)
    lacking = missing(held.rules, wanted)
    if not lacking:
        return None
    text = (
        f"user {quoted(user.name)} (groups={quoted_list(user.groups)}) is attempting to grant "
        f"RBAC permissions not currently held:\n{described(lacking)}"
    )
    return f"{text}; resolution errors: [{' '.join(held.faults)}]" if held.faults else text


def _is_aggregated(value: Stored | None) -> bool:
    rule = value.aggregation_rule if isinstance(value, ClusterRole) else None
    return rule is not None and bool(rule.cluster_role_selectors)


def _is_upkeep(writing: Writing) -> bool:
    """Return whether only what garbage collection writes has changed."""
    new, old = writing.new, writing.old
    if old is None:
        return False
    metadata = replace(
        new.metadata,
        owner_references=old.metadata.owner_references,
        finalizers=old.metadata.finalizers,
        self_link=old.metadata.self_link,
        managed_fields=old.metadata.managed_fields,
    )
    return replace(new, metadata=metadata) == old
