"""The RBAC authorizer: cached roles and bindings, decisions, and the escalation check.

`RBACPolicy` finds the bindings of a user by name and groups, so that a decision costs what the user
has, not what the cluster has. The rules for a verb on a resource are cached until a role or binding
changes; names of objects are compared each time.

Escalation: nobody grants more than they have. Members of system:masters may write anything; a user
with the verb `escalate` on a role may give it any rule, with `bind` may grant it to anybody.

# grant: a rule that a user has, and the binding that grants it
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from moorage.api.labels import joined
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
from moorage.apiserver.auth.access import (
    Access,
    Allowed,
    Authorizer,
    Decision,
    NoOpinion,
    ResourceAccess,
)
from moorage.apiserver.auth.policy_rules import (
    ATOMS_MAX,
    EVERYTHING,
    aggregated,
    allows,
    allows_some,
    described,
    missing,
    names,
    size_of,
)
from moorage.apiserver.auth.users import MASTERS, User, service_account_name
from moorage.apiserver.http.messages import Target
from moorage.kit.go_quote import go_quote, go_quote_list

CHOICES_MAX = 4096
CHOICE_LENGTH_MAX = 1024  # of the texts of an access whose rules are cached

Binding = RoleBinding | ClusterRoleBinding
Stored = Role | ClusterRole | RoleBinding | ClusterRoleBinding
RBAC_KINDS = (Role, ClusterRole, RoleBinding, ClusterRoleBinding)


class Grant(NamedTuple):
    """A rule that a user has, and the binding that grants it."""

    rule: PolicyRule
    binding: Binding
    subject: Subject

    def __str__(self) -> str:
        return _described(self.binding, self.subject)


class MissingRole(NamedTuple):
    """The error of a binding whose role does not exist."""

    text: str


class RuleSelection(NamedTuple):
    """A user's rules for a verb on a resource, and the decision if none applies."""

    rules: tuple[tuple[PolicyRule, Allowed], ...]
    otherwise: NoOpinion


class HeldRules(NamedTuple):
    """All rules of a user in a namespace, and errors that may hide more."""

    rules: tuple[PolicyRule, ...]
    faults: tuple[str, ...] = ()


class RBACPolicy:
    """All roles and bindings of a cluster."""

    def __init__(self, stored: Iterable[Stored] = ()) -> None:
        self._roles: dict[tuple[str, str], Role] = {}
        self._cluster_roles: dict[str, ClusterRole] = {}
        self._bindings: dict[tuple[str, str], Binding] = {}  # of the cluster: namespace ""
        self._by_subject: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._rules: dict[str, tuple[PolicyRule, ...]] = {}
        self._choices: dict[tuple[Any, ...], RuleSelection] = {}
        for value in stored:
            self.put(value)

    def put(self, value: Stored) -> None:
        """Add or update a role or binding."""
        self._choices.clear()
        namespace, name = value.metadata.namespace, value.metadata.name
        match value:
            case Role():
                self._roles[namespace, name] = value
            case ClusterRole():
                self._cluster_roles[name] = value
                self._rules.clear()
            case _:
                self._forget(namespace, name)
                self._bindings[namespace, name] = value
                for key in _keys_of(value):
                    self._by_subject[namespace, key].add(name)

    def remove(self, value: Stored) -> None:
        """Remove a role or binding."""
        self._choices.clear()
        namespace, name = value.metadata.namespace, value.metadata.name
        match value:
            case Role():
                self._roles.pop((namespace, name), None)
            case ClusterRole():
                self._cluster_roles.pop(name, None)
                self._rules.clear()
            case _:
                self._forget(namespace, name)

    def _forget(self, namespace: str, name: str) -> None:
        binding = self._bindings.pop((namespace, name), None)
        for key in () if binding is None else _keys_of(binding):
            names = self._by_subject[namespace, key]
            names.discard(name)
            if not names:
                del self._by_subject[namespace, key]

    # --- decisions ----------------------------------------------------------------------------

    def authorize(self, access: Access) -> Decision:
        """Return the decision on an access, with the binding that grants it."""
        if isinstance(access, ResourceAccess):
            choice = self._choice(access)
            for rule, allowed in choice.rules:
                if names(rule, access.name):
                    return allowed
            return choice.otherwise
        faults = []
        for grant in self.grants(access.user, ""):
            if isinstance(grant, MissingRole):
                faults.append(grant.text)
            elif allows(grant.rule, access):
                return _allowed(grant)
        return _no_opinion(faults)

    def _choice(self, access: ResourceAccess) -> RuleSelection:
        """Return the cached rules for an access, whatever the name of the object."""
        user, what = access.user, (access.verb, access.group, access.resource)
        key = (user.name, user.groups, what, access.subresource, access.namespace)
        choice = self._choices.get(key)
        if choice is not None:
            return choice
        grants = list(self.grants(user, access.namespace))
        faults = [grant.text for grant in grants if isinstance(grant, MissingRole)]
        rules = tuple(
            (grant.rule, _allowed(grant))
            for grant in grants
            if isinstance(grant, Grant) and allows_some(grant.rule, access)
        )
        choice = RuleSelection(rules, _no_opinion(faults))
        texts = (user.name, *user.groups, *what, access.subresource, access.namespace)
        if sum(map(len, texts)) <= CHOICE_LENGTH_MAX:  # Paths may name any group and namespace.
            if len(self._choices) >= CHOICES_MAX:
                self._choices.clear()
            self._choices[key] = choice
        return choice

    def held(self, user: User, namespace: str) -> HeldRules:
        """Return the rules of a user in a namespace, with cluster-wide ones."""
        rules, faults = [], []
        for grant in self.grants(user, namespace):
            if isinstance(grant, MissingRole):
                faults.append(grant.text)
            else:
                rules.append(grant.rule)
        return HeldRules(tuple(rules), tuple(faults))

    def grants(self, user: User, namespace: str) -> Iterator[Grant | MissingRole]:
        """Yield the rules of a user: first cluster-wide ones, then those in the namespace."""
        for place in ("", namespace) if namespace else ("",):
            for binding, subject in self._bindings_of(user, place):
                rules = self.rules_of(binding.role_ref, place)
                if isinstance(rules, MissingRole):
                    yield rules
                    continue
                for rule in rules:
                    yield Grant(rule, binding, subject)

    def rules_of(self, reference: RoleRef, namespace: str) -> tuple[PolicyRule, ...] | MissingRole:
        """Return the rules of the role that a binding in the namespace names."""
        name = reference.name
        match reference.kind:
            case "Role":
                role = self._roles.get((namespace, name))
                if role is not None:
                    return role.rules or ()
            case "ClusterRole":
                if name in self._cluster_roles:
                    return self._cluster_rules(name)
            case other:
                return MissingRole(f"unsupported role reference kind: {go_quote(other)}")
        return MissingRole(f"{reference.kind.lower()}.{GROUP} {go_quote(name)} not found")

    def _cluster_rules(self, name: str) -> tuple[PolicyRule, ...]:
        if name not in self._rules:
            self._rules[name] = aggregated(self._cluster_roles[name], self._cluster_roles)
        return self._rules[name]

    def _bindings_of(self, user: User, namespace: str) -> Iterator[tuple[Binding, Subject]]:
        keys = (f"User {user.name}", *(f"Group {group}" for group in user.groups))
        found = [self._by_subject[namespace, k] for k in keys if (namespace, k) in self._by_subject]
        for name in sorted(set().union(*found)):
            binding = self._bindings[namespace, name]
            subject = next(s for s in binding.subjects if _key_of(s, namespace) in keys)
            yield binding, subject


def _allowed(grant: Grant) -> Allowed:
    return Allowed(f"RBAC: allowed by {grant}")


def _no_opinion(faults: list[str]) -> NoOpinion:
    return NoOpinion(f"RBAC: {joined(faults)}" if faults else "")


def _keys_of(binding: Binding) -> set[str]:
    keys = (_key_of(subject, binding.metadata.namespace) for subject in binding.subjects)
    return {key for key in keys if key}


def _key_of(subject: Subject, namespace: str) -> str:
    """Return the index key of a subject; a service account is a user. "" matches nobody."""
    match subject.kind:
        case "User" | "Group":
            return f"{subject.kind} {subject.name}"
        case "ServiceAccount":
            namespace = subject.namespace or namespace
            return f"User {service_account_name(namespace, subject.name)}" if namespace else ""
    return ""


def _described(binding: Binding, subject: Subject) -> str:
    namespace = binding.metadata.namespace
    who = subject.name
    if subject.kind == "ServiceAccount":
        who = f"{subject.name}/{subject.namespace or namespace}"
    title = binding.metadata.name
    if isinstance(binding, RoleBinding):
        title = f"{title}/{namespace}"
    role = binding.role_ref
    return (
        f"{binding.kind} {go_quote(title)} of {role.kind} {go_quote(role.name)} "
        f"to {subject.kind} {go_quote(who)}"
    )


# --- escalation -----------------------------------------------------------------------------------

AGGREGATION = "must have cluster-admin privileges to use the aggregationRule"


class RoleWrite(NamedTuple):
    """A write of a role or binding by a user."""

    user: User
    target: Target
    new: Stored
    old: Stored | None = None


def refuse_escalation(
    writing: RoleWrite, *, policy: RBACPolicy, authorizer: Authorizer
) -> str | None:
    """Return why a write of a role or binding would escalate privileges; None if it would not."""
    if MASTERS in writing.user.groups or _is_upkeep(writing):
        return None
    match writing.new:
        case Role() | ClusterRole():
            return _refuse_role(writing, writing.new, policy, authorizer)
        case RoleBinding() | ClusterRoleBinding():
            reference = writing.new.role_ref
            return _refuse_binding(writing, reference, policy, authorizer)


def _refuse_role(
    writing: RoleWrite, new: Role | ClusterRole, policy: RBACPolicy, authorizer: Authorizer
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
    writing: RoleWrite, reference: RoleRef, policy: RBACPolicy, authorizer: Authorizer
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
    user: User, namespace: str, wanted: Sequence[PolicyRule], policy: RBACPolicy
) -> str | None:
    """Return the error of rules that a user does not hold; None if the user holds them."""
    size = sum(map(size_of, wanted))
    if size > ATOMS_MAX:
        return f"the rules mean {size} permissions, more than {ATOMS_MAX} cannot be checked"
    held = policy.held(user, namespace)
    lacking = missing(held.rules, wanted)
    if not lacking:
        return None
    text = (
        f"user {go_quote(user.name)} (groups={go_quote_list(user.groups)}) is attempting to grant "
        f"RBAC permissions not currently held:\n{described(lacking)}"
    )
    return f"{text}; resolution errors: [{' '.join(held.faults)}]" if held.faults else text


def _is_aggregated(value: Stored | None) -> bool:
    rule = value.aggregation_rule if isinstance(value, ClusterRole) else None
    return rule is not None and bool(rule.cluster_role_selectors)


def _is_upkeep(writing: RoleWrite) -> bool:
    """Return whether only metadata that the garbage collector writes has changed."""
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
