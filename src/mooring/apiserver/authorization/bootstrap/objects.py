"""The roles and bindings of the tables, as objects to store."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.gates import Gates
from mooring.api.meta import LabelSelector, ObjectMeta
from mooring.api.rbac import (
    GROUP,
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
)
from mooring.apiserver.authorization.bootstrap import bindings, components, controllers, users
from mooring.apiserver.authorization.bootstrap.bindings import BindingRow
from mooring.apiserver.authorization.bootstrap.tables import RoleRow
from mooring.apiserver.authorization.rbac import Stored
from mooring.apiserver.authorization.rules import missing

BOOTSTRAPPING = "kubernetes.io/bootstrapping"
DEFAULTS = "rbac-defaults"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
PART_OF = f"{GROUP}/aggregate-to-"


def bootstrap_objects(gates: Gates) -> list[Stored]:
    """Return all roles and bindings that a cluster starts with."""
    rows = [
        row
        for row in (*users.ROLES, *components.ROLES, *controllers.ROLES, *components.NAMESPACED)
        if all(map(gates.enabled, row.gates))
    ]
    there = {row.name for row in rows}
    given = (*bindings.BINDINGS, *bindings.CONTROLLER_BINDINGS, *bindings.NAMESPACED)
    return [
        *(_role(row, gates) for row in rows),
        *(_binding(row) for row in given if row.role in there),
    ]


def reconciled(wanted: Stored, stored: Stored | None) -> Stored | None:
    """Return what to write so that a role or binding has at least what it starts with.

    None is nothing: it is there, with more maybe, or somebody turned the update of it off.
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
    """Return what every node may, where the node authorizer does not look closer."""
    return components.NODE.rules_with(gates)


def _role(row: RoleRow, gates: Gates) -> Role | ClusterRole:
    labels = {BOOTSTRAPPING: DEFAULTS, **{f"{PART_OF}{name}": "true" for name in row.labels}}
    metadata = _metadata(row.name, row.namespace, labels)
    if row.namespace:
        return Role(metadata=metadata, rules=row.rules_with(gates))
    if not row.made_of:
        return ClusterRole(metadata=metadata, rules=row.rules_with(gates))
    selector = LabelSelector(match_labels={f"{PART_OF}{row.made_of}": "true"})
    rule = AggregationRule(cluster_role_selectors=(selector,))
    return ClusterRole(metadata=metadata, aggregation_rule=rule)


def _binding(row: BindingRow) -> RoleBinding | ClusterRoleBinding:
    metadata = _metadata(row.role, row.namespace, {BOOTSTRAPPING: DEFAULTS})
    kind = "Role" if row.namespace else "ClusterRole"
    reference = RoleRef(api_group=GROUP, kind=kind, name=row.role)
    if row.namespace:
        return RoleBinding(metadata=metadata, subjects=row.subjects, role_ref=reference)
    return ClusterRoleBinding(metadata=metadata, subjects=row.subjects, role_ref=reference)


def _metadata(name: str, namespace: str, labels: dict[str, str]) -> ObjectMeta:
    annotations = {AUTOUPDATE: "true"}
    return ObjectMeta(name=name, namespace=namespace, labels=labels, annotations=annotations)
