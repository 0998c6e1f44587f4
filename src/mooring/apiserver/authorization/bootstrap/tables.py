"""How the tables of roles are written: words with blanks between them.

rule(VERBS, GROUPS, RESOURCES)      the core group is written "core"
paths(VERBS, PATHS)
role(NAME, …rules)
"""

from __future__ import annotations

from typing import NamedTuple

from mooring.api.gates import Gate, Gates
from mooring.api.rbac import PolicyRule

READ = "get list watch"
WRITE = "create delete deletecollection patch update"
READ_WRITE = f"{READ} {WRITE}"


class Rule(NamedTuple):
    """A rule, and the features without which it is not there."""

    rule: PolicyRule
    gates: tuple[Gate, ...] = ()


class RoleRow(NamedTuple):
    """A role, and the features without which it is not there."""

    name: str
    rules: tuple[Rule, ...]
    labels: tuple[str, ...] = ()  # what it is a part of
    made_of: str = ""  # the label of its parts
    gates: tuple[Gate, ...] = ()
    namespace: str = ""

    def rules_with(self, gates: Gates) -> tuple[PolicyRule, ...]:
        """Return the rules that the features give."""
        return tuple(r.rule for r in self.rules if all(map(gates.enabled, r.gates)))


def rule(verbs: str, groups: str, resources: str, *gates: Gate, names: str = "") -> Rule:
    """Return a rule for resources."""
    return Rule(
        PolicyRule(
            verbs=tuple(sorted(verbs.split())),
            api_groups=tuple("" if group == "core" else group for group in groups.split()),
            resources=tuple(sorted(resources.split())),
            resource_names=tuple(names.split()),
        ),
        gates,
    )


def paths(verbs: str, urls: str) -> Rule:
    """Return a rule for paths."""
    return Rule(
        PolicyRule(verbs=tuple(verbs.split()), non_resource_urls=tuple(sorted(urls.split())))
    )


def role(name: str, *rules: Rule, namespace: str = "") -> RoleRow:
    """Return a role."""
    return RoleRow(name, rules, namespace=namespace)


EVENTS = rule("create patch update", "core events.k8s.io", "events")
