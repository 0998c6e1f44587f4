"""Who has which role from the start."""

from __future__ import annotations

from typing import NamedTuple

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
    Subject,
)
from mooring.apiserver.auth import bootstrap_component_roles, bootstrap_policy, bootstrap_user_roles
from mooring.apiserver.auth.policy_rules import RoleRow, missing
from mooring.apiserver.auth.rbac import Stored
from mooring.apiserver.auth.users import AUTHENTICATED, MASTERS, SERVICE_ACCOUNTS, UNAUTHENTICATED

SCHEDULER = "system:kube-scheduler"
CONTROLLER_MANAGER = "system:kube-controller-manager"
SYSTEM = "kube-system"


class BindingRow(NamedTuple):
    """A role, and who has it; in a namespace it is a role of that namespace."""

    role: str
    subjects: tuple[Subject, ...]
    namespace: str = ""


def _user(name: str) -> Subject:
    return Subject(kind="User", api_group=GROUP, name=name)


def _group(name: str) -> Subject:
    return Subject(kind="Group", api_group=GROUP, name=name)


def _account(name: str) -> Subject:
    return Subject(kind="ServiceAccount", name=name, namespace=SYSTEM)


BINDINGS: tuple[BindingRow, ...] = (
    BindingRow("cluster-admin", (_group(MASTERS),)),
    BindingRow("system:basic-user", (_group(AUTHENTICATED),)),
    BindingRow("system:discovery", (_group(AUTHENTICATED),)),
    BindingRow("system:public-info-viewer", (_group(AUTHENTICATED), _group(UNAUTHENTICATED))),
    BindingRow("system:monitoring", (_group("system:monitoring"),)),
    BindingRow("system:service-account-issuer-discovery", (_group(SERVICE_ACCOUNTS),)),
    BindingRow("system:kube-scheduler", (_user(SCHEDULER),)),
    BindingRow("system:kube-controller-manager", (_user(CONTROLLER_MANAGER),)),
    BindingRow("system:node", ()),  # nodes have it through the node authorizer
)

CONTROLLER_BINDINGS: tuple[BindingRow, ...] = tuple(
    BindingRow(
        row.name, (_account(row.name.removeprefix(bootstrap_component_roles.CONTROLLER_PREFIX)),)
    )
    for row in bootstrap_component_roles.CONTROLLER_ROLES
)

NAMESPACED: tuple[BindingRow, ...] = (
    BindingRow(
        "system::leader-locking-kube-controller-manager",
        (
            _user(CONTROLLER_MANAGER),
            _account("kube-controller-manager"),
            _account("leader-election-controller"),
        ),
        SYSTEM,
    ),
    BindingRow(
        "system::leader-locking-kube-scheduler",
        (_user(SCHEDULER), _account("kube-scheduler")),
        SYSTEM,
    ),
    BindingRow("system:controller:token-cleaner", (_account("token-cleaner"),), SYSTEM),
)


# ---- from mooring.apiserver.authorization.bootstrap.objects: The roles and bindings of the tables, as objects to store.

BOOTSTRAPPING = "kubernetes.io/bootstrapping"
DEFAULTS = "rbac-defaults"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
PART_OF = f"{GROUP}/aggregate-to-"


def bootstrap_objects(gates: Gates) -> list[Stored]:
    """Return all roles and bindings that a cluster starts with."""
    rows = [
        row
        for row in (
            *bootstrap_user_roles.ROLES,
            *bootstrap_component_roles.ROLES,
            *bootstrap_component_roles.CONTROLLER_ROLES,
            *bootstrap_component_roles.NAMESPACED,
        )
        if all(map(gates.enabled, row.gates))
    ]
    there = {row.name for row in rows}
    given = (
        *bootstrap_policy.BINDINGS,
        *bootstrap_policy.CONTROLLER_BINDINGS,
        *bootstrap_policy.NAMESPACED,
    )
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
    return bootstrap_component_roles.NODE.rules_with(gates)


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
