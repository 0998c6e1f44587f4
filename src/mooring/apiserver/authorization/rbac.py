"""Roles and bindings as they are stored, and what follows from them.

`Policy` takes roles and bindings one by one. It finds the bindings of a user by name and groups,
so that a decision costs what the user has, not what the cluster has. The rules for a verb on a
resource are remembered until a role or binding changes; names of objects are looked at each time.

# grant: a rule that a user has, and the binding it has it from
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mooring.api.labels import joined
from mooring.api.rbac import (
    GROUP,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from mooring.apiserver.authentication.users import service_account_name
from mooring.apiserver.authorization.access import (
    Access,
    Allowed,
    Decision,
    NoOpinion,
    ResourceAccess,
    quoted,
)
from mooring.apiserver.authorization.aggregation import aggregated
from mooring.apiserver.authorization.rules import allows, allows_some, names
from mooring.apiserver.calls import User

CHOICES_MAX = 4096

Binding = RoleBinding | ClusterRoleBinding
Stored = Role | ClusterRole | RoleBinding | ClusterRoleBinding


class Grant(NamedTuple):
    """A rule that a user has, and where from."""

    rule: PolicyRule
    binding: Binding
    subject: Subject

    def __str__(self) -> str:
        return _described(self.binding, self.subject)


class MissingRole(NamedTuple):
    """A role that a binding names and that is not there."""

    text: str


class Choice(NamedTuple):
    """The rules that a user has for a verb on a resource, and the decision where none is for it."""

    rules: tuple[tuple[PolicyRule, Allowed], ...]
    otherwise: NoOpinion


class Held(NamedTuple):
    """All rules that a user has in a namespace, and why there may be more."""

    rules: tuple[PolicyRule, ...]
    faults: tuple[str, ...] = ()


class Policy:
    """All roles and bindings of a cluster."""

    def __init__(self, stored: Iterable[Stored] = ()) -> None:
        self._roles: dict[tuple[str, str], Role] = {}
        self._cluster_roles: dict[str, ClusterRole] = {}
        self._bindings: dict[tuple[str, str], Binding] = {}  # of the cluster: namespace ""
        self._by_subject: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._rules: dict[str, tuple[PolicyRule, ...]] = {}
        self._choices: dict[tuple[Any, ...], Choice] = {}
        for value in stored:
            self.put(value)

    def put(self, value: Stored) -> None:
        """Take a role or binding, new or changed."""
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
        """Forget a role or binding."""
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

    @property
    def cluster_roles(self) -> dict[str, ClusterRole]:
        """All roles of the cluster, by name."""
        return self._cluster_roles

    # --- what follows -----------------------------------------------------------------------------

    def authorize(self, access: Access) -> Decision:
        """Return whether a rule of the user allows it, and which binding gives it."""
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

    def _choice(self, access: ResourceAccess) -> Choice:
        """Return what there is to choose from, whatever the name of the object."""
        user = access.user
        key = (user.name, user.groups, *access[1:6])  # up to the namespace
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
        if len(self._choices) >= CHOICES_MAX:
            self._choices.clear()
        self._choices[key] = choice = Choice(rules, _no_opinion(faults))
        return choice

    def held(self, user: User, namespace: str) -> Held:
        """Return all that a user has in a namespace, and everywhere."""
        rules, faults = [], []
        for grant in self.grants(user, namespace):
            if isinstance(grant, MissingRole):
                faults.append(grant.text)
            else:
                rules.append(grant.rule)
        return Held(tuple(rules), tuple(faults))

    def grants(self, user: User, namespace: str) -> Iterator[Grant | MissingRole]:
        """Yield the rules of a user: first those everywhere, then those in the namespace."""
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
                return MissingRole(f"unsupported role reference kind: {quoted(other)}")
        return MissingRole(f"{reference.kind.lower()}.{GROUP} {quoted(name)} not found")

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
    """Return by what a subject is found; a service account is a user. "" is nobody."""
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
        f"{binding.kind} {quoted(title)} of {role.kind} {quoted(role.name)} "
        f"to {subject.kind} {quoted(who)}"
    )
