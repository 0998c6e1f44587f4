"""Bootstrap policy: the roles and bindings that a cluster starts with, as objects to store.

`bootstrap_policy.txt` is the table of them; its first lines are its grammar.
"""

from __future__ import annotations

from functools import cache
from pkgutil import get_data
from typing import NamedTuple

from msgspec.structs import replace

from moorage.api.gates import Gate, Gates
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
from moorage.apiserver.auth.policy_rules import missing
from moorage.apiserver.auth.rbac import Stored

CONTROLLER_PREFIX = "system:controller:"
NODE = "system:node"
SYSTEM = "kube-system"

BOOTSTRAPPING = "kubernetes.io/bootstrapping"
DEFAULTS = "rbac-defaults"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
PART_OF = f"{GROUP}/aggregate-to-"


# --- the table ------------------------------------------------------------------------------------


class RoleRow(NamedTuple):
    """A role with its subjects, and the feature gates that it and its rules need."""

    name: str
    rules: tuple[tuple[PolicyRule, Gate | None], ...]
    namespace: str
    part_of: str  # the aggregated role that it is part of
    made_of: str  # the label of its parts
    gate: Gate | None
    subjects: tuple[Subject, ...] | None  # None: not bound
    binding: str = ""  # the name of its binding, if it is not the role's

    def rules_with(self, gates: Gates) -> tuple[PolicyRule, ...]:
        """Return the rules whose gates are enabled."""
        return tuple(rule for rule, gate in self.rules if gate is None or gates.enabled(gate))


@cache
def bootstrap_roles() -> dict[str, RoleRow]:
    """Return the rows of the table by name."""
    data = get_data("moorage.apiserver.auth", "bootstrap_policy.txt")
    assert data is not None
    lines = (line for line in data.decode().splitlines() if not line.startswith("#"))
    blocks = filter(None, "\n".join(lines).split("\n\n"))
    return {row.name: row for row in map(_row, blocks)}


def _row(block: str) -> RoleRow:
    head, *rules = block.strip("\n").splitlines()
    name, *words = head.split()
    options = _options(words)
    if name.startswith(CONTROLLER_PREFIX):
        options["to"] = f"account:{name.removeprefix(CONTROLLER_PREFIX)}"
    return RoleRow(
        name,
        tuple(map(_rule, rules)),
        namespace=options.get("in", ""),
        part_of=options.get("part-of", ""),
        made_of=options.get("made-of", ""),
        gate=_gate(options),
        subjects=tuple(map(_subject, _names(options["to"]))) if "to" in options else None,
        binding=options.get("binding", ""),
    )


_VERBS = {"read": "get,list,watch", "write": "create,delete,deletecollection,patch,update"}


def _rule(line: str) -> tuple[PolicyRule, Gate | None]:
    verbs, groups, names, *words = line.split()
    options = _options(words)
    every_verb = tuple(
        sorted(v for verb in verbs.split(",") for v in _names(_VERBS.get(verb, verb)))
    )
    if groups == "paths":
        return PolicyRule(verbs=every_verb, non_resource_urls=_names(names)), _gate(options)
    rule = PolicyRule(
        verbs=every_verb,
        api_groups=tuple("" if group == "core" else group for group in groups.split(",")),
        resources=_names(names),
        resource_names=_names(options.get("names", "")),
    )
    return rule, _gate(options)


def _subject(text: str) -> Subject:
    kind, _, name = text.partition(":")
    if kind == "account":
        return Subject(kind="ServiceAccount", name=name, namespace=SYSTEM)
    return Subject(kind=kind.capitalize(), api_group=GROUP, name=name)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _options(words: list[str]) -> dict[str, str]:
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def _gate(options: dict[str, str]) -> Gate | None:
    return Gate(options["gate"]) if "gate" in options else None


# --- objects --------------------------------------------------------------------------------------


def bootstrap_objects(gates: Gates) -> list[Stored]:
    """Return all roles and bindings of the bootstrap policy."""
    all_rows = bootstrap_roles().values()
    rows = [row for row in all_rows if row.gate is None or gates.enabled(row.gate)]
    return [
        *(_role(row, gates) for row in rows),
        *(_binding(row, row.subjects) for row in rows if row.subjects is not None),
    ]


def reconciled(wanted: Stored, stored: Stored | None) -> Stored | None:
    """Return what to store so that a role or binding has at least its bootstrap content.

    None: it has, or its autoupdate annotation is false.
    """
    if stored is None:
        return wanted
    if stored.metadata.annotations.get(AUTOUPDATE) == "false":
        return None
    if isinstance(wanted, Role | ClusterRole) and isinstance(stored, Role | ClusterRole):
        lacking = missing(stored.rules or (), wanted.rules or ())
        return replace(stored, rules=(*(stored.rules or ()), *lacking)) if lacking else None
    if isinstance(wanted, Role | ClusterRole) or isinstance(stored, Role | ClusterRole):
        return None
    absent = tuple(s for s in wanted.subjects if s not in stored.subjects)
    return replace(stored, subjects=(*stored.subjects, *absent)) if absent else None


def node_rules(gates: Gates) -> tuple[PolicyRule, ...]:
    """Return the rules of nodes for resources that the node authorizer does not restrict."""
    return bootstrap_roles()[NODE].rules_with(gates)


def _role(row: RoleRow, gates: Gates) -> Role | ClusterRole:
    labels = {BOOTSTRAPPING: DEFAULTS}
    if row.part_of:
        labels[f"{PART_OF}{row.part_of}"] = "true"
    metadata = _metadata(row.name, row.namespace, labels)
    if row.namespace:
        return Role(metadata=metadata, rules=row.rules_with(gates))
    if not row.made_of:
        return ClusterRole(metadata=metadata, rules=row.rules_with(gates))
    selector = LabelSelector(match_labels={f"{PART_OF}{row.made_of}": "true"})
    rule = AggregationRule(cluster_role_selectors=(selector,))
    return ClusterRole(metadata=metadata, aggregation_rule=rule)


def _binding(row: RoleRow, subjects: tuple[Subject, ...]) -> RoleBinding | ClusterRoleBinding:
    metadata = _metadata(row.binding or row.name, row.namespace, {BOOTSTRAPPING: DEFAULTS})
    kind = "Role" if row.namespace else "ClusterRole"
    reference = RoleRef(api_group=GROUP, kind=kind, name=row.name)
    if row.namespace:
        return RoleBinding(metadata=metadata, subjects=subjects, role_ref=reference)
    return ClusterRoleBinding(metadata=metadata, subjects=subjects, role_ref=reference)


def _metadata(name: str, namespace: str, labels: dict[str, str]) -> ObjectMeta:
    annotations = {AUTOUPDATE: "true"}
    return ObjectMeta(name=name, namespace=namespace, labels=labels, annotations=annotations)
