"""Roles that are made of others: which rules they then have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from mooring.api.labels import Selector, read_selector
from mooring.api.rbac import ClusterRole, PolicyRule

Roles = Mapping[str, ClusterRole]  # by name


def aggregated(role: ClusterRole, roles: Roles) -> tuple[PolicyRule, ...]:
    """Return the rules of a role: its own, or those of all roles it is made of.

    Roles that it is made of may be made of others in turn, even in a circle.
    """
    rules = {_content(rule): rule for rule in _Gathering(roles).rules_of(role)}
    return tuple(rules.values())


def stale(roles: Roles) -> list[ClusterRole]:
    """Return the roles whose stored rules are not what they are made of, with the right ones."""
    found = []
    for _, role in sorted(roles.items()):
        if role.aggregation_rule is None:
            continue
        rules = aggregated(role, roles)
        if rules != (role.rules or ()):
            found.append(replace(role, rules=rules))
    return found


class _Gathering:
    """One walk from a role to all that it is made of; no role is gathered twice."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._seen: set[str] = set()

    def rules_of(self, role: ClusterRole) -> Iterable[PolicyRule]:
        self._seen.add(role.metadata.name)
        if role.aggregation_rule is None:
            yield from role.rules or ()
            return
        for part in self._parts(role):
            if part.metadata.name not in self._seen:
                yield from self.rules_of(part)

    def _parts(self, role: ClusterRole) -> list[ClusterRole]:
        rule = role.aggregation_rule
        read = () if rule is None else map(read_selector, rule.cluster_role_selectors)
        selectors = [selector for selector in read if isinstance(selector, Selector)]
        return [
            part
            for _, part in sorted(self._roles.items())
            if any(selector.matches(part.metadata.labels) for selector in selectors)
        ]


def _content(rule: PolicyRule) -> tuple[object, ...]:
    return (
        rule.verbs,
        rule.api_groups,
        rule.resources,
        rule.resource_names,
        rule.non_resource_urls,
    )
