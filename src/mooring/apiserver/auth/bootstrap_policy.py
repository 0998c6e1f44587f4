"""Bootstrap policy: user roles, bindings, and all bootstrap roles as objects to store."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from mooring.api.gates import Gate, Gates
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
from mooring.apiserver.auth.bootstrap_component_roles import (
    COMPONENT_ROLES,
    CONTROLLER_PREFIX,
    CONTROLLER_ROLES,
    NAMESPACED_ROLES,
    NODE,
)
from mooring.apiserver.auth.policy_rules import (
    READ,
    READ_WRITE,
    WRITE,
    RoleRow,
    missing,
    paths,
    role,
    rule,
)
from mooring.apiserver.auth.rbac import Stored
from mooring.apiserver.auth.users import AUTHENTICATED, MASTERS, SERVICE_ACCOUNTS, UNAUTHENTICATED

HEALTH = "/healthz /livez /readyz"
VERSION = "/version /version/"
MONITORED = (
    f"{HEALTH} /healthz/* /livez/* /readyz/* /metrics /metrics/slis /flagz /statusz"  # no secrets
)

_APPS_SCALED = "deployments/scale replicasets/scale"
_OLD_APPS = "daemonsets deployments deployments/scale replicasets replicasets/scale"

_VIEW = (
    rule(
        READ,
        "core",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
        "replicationcontrollers replicationcontrollers/scale serviceaccounts services "
        "services/status",
    ),
    rule(
        READ,
        "core",
        "bindings limitranges namespaces/status pods/log pods/status "
        "replicationcontrollers/status resourcequotas resourcequotas/status",
    ),
    rule(READ, "core", "namespaces"),
    rule(READ, "core events.k8s.io", "events"),
    rule(READ, "discovery.k8s.io", "endpointslices"),
    rule(
        READ,
        "apps",
        f"controllerrevisions daemonsets daemonsets/status deployments deployments/status "
        f"replicasets replicasets/status statefulsets statefulsets/scale statefulsets/status "
        f"{_APPS_SCALED}",
    ),
    rule(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    rule(READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    rule(
        READ,
        "extensions",
        f"{_OLD_APPS} daemonsets/status deployments/status replicasets/status ingresses "
        "ingresses/status networkpolicies replicationcontrollers/scale",
    ),
    rule(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    rule(READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
    rule(READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
    rule(READ, "scheduling.k8s.io", "podgroups podgroups/status workloads", Gate.GENERIC_WORKLOAD),
    rule(
        READ,
        "scheduling.k8s.io",
        "compositepodgroups compositepodgroups/status",
        Gate.COMPOSITE_POD_GROUP,
    ),
)

_POD_CONNECTIONS = "pods/attach pods/exec pods/portforward pods/proxy"

_EDIT = (
    rule(READ, "core", f"{_POD_CONNECTIONS} secrets services/proxy"),
    rule("impersonate", "core", "serviceaccounts"),
    rule(WRITE, "core", f"pods {_POD_CONNECTIONS}"),
    rule("create", "core", "pods/eviction"),
    rule(
        WRITE,
        "core",
        "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale "
        "secrets serviceaccounts services services/proxy",
    ),
    rule("create", "core", "serviceaccounts/token"),
    rule(WRITE, "core events.k8s.io", "events"),
    rule(
        WRITE,
        "apps",
        f"daemonsets deployments deployments/rollback replicasets statefulsets "
        f"statefulsets/scale {_APPS_SCALED}",
    ),
    rule(WRITE, "autoscaling", "horizontalpodautoscalers"),
    rule(WRITE, "batch", "cronjobs jobs"),
    rule(
        WRITE,
        "extensions",
        f"{_OLD_APPS} deployments/rollback ingresses networkpolicies replicationcontrollers/scale",
    ),
    rule(WRITE, "policy", "poddisruptionbudgets"),
    rule(WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    rule(READ_WRITE, "coordination.k8s.io", "leases"),
    rule(WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
    rule(WRITE, "scheduling.k8s.io", "podgroups workloads", Gate.GENERIC_WORKLOAD),
    rule(WRITE, "scheduling.k8s.io", "compositepodgroups", Gate.COMPOSITE_POD_GROUP),
)

_ADMIN = (
    rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    rule(READ_WRITE, "rbac.authorization.k8s.io", "rolebindings roles"),
)

USER_ROLES: tuple[RoleRow, ...] = (
    role("cluster-admin", rule("*", "*", "*"), paths("*", "*")),
    RoleRow("admin", (), made_of="admin"),
    RoleRow("edit", (), labels=("admin",), made_of="edit"),
    RoleRow("view", (), labels=("edit",), made_of="view"),
    RoleRow("system:aggregate-to-admin", _ADMIN, labels=("admin",)),
    RoleRow("system:aggregate-to-edit", _EDIT, labels=("edit",)),
    RoleRow("system:aggregate-to-view", _VIEW, labels=("view",)),
    role(
        "system:basic-user",
        rule(
            "create",
            "authorization.k8s.io",
            "selfsubjectaccessreviews selfsubjectrulesreviews",
        ),
        rule("create", "authentication.k8s.io", "selfsubjectreviews"),
    ),
    role(
        "system:discovery",
        paths("get", f"/api /api/* /apis /apis/* /openapi /openapi/* {HEALTH} {VERSION}"),
    ),
    role("system:public-info-viewer", paths("get", f"{HEALTH} {VERSION}")),
    role("system:monitoring", paths("get", MONITORED), rule("get", "core", "nodes/metrics")),
    role(
        "system:auth-delegator",
        rule("create", "authentication.k8s.io", "tokenreviews"),
        rule("create", "authorization.k8s.io", "subjectaccessreviews"),
    ),
    role(
        "system:service-account-issuer-discovery",
        paths(
            "get",
            "/.well-known/openid-configuration /.well-known/openid-configuration/ "
            "/openid/v1/jwks /openid/v1/jwks/",
        ),
    ),
)


# --- bindings -------------------------------------------------------------------------------------

SCHEDULER = "system:kube-scheduler"
CONTROLLER_MANAGER = "system:kube-controller-manager"
SYSTEM = "kube-system"


class BindingRow(NamedTuple):
    """A role and its subjects; with a namespace, it is a role of that namespace."""

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
    BindingRow("system:node", ()),  # the node authorizer grants it
)

CONTROLLER_BINDINGS: tuple[BindingRow, ...] = tuple(
    BindingRow(row.name, (_account(row.name.removeprefix(CONTROLLER_PREFIX)),))
    for row in CONTROLLER_ROLES
)

NAMESPACED_BINDINGS: tuple[BindingRow, ...] = (
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


# --- objects --------------------------------------------------------------------------------------

BOOTSTRAPPING = "kubernetes.io/bootstrapping"
DEFAULTS = "rbac-defaults"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
PART_OF = f"{GROUP}/aggregate-to-"


def bootstrap_objects(gates: Gates) -> list[Stored]:
    """Return all roles and bindings of the bootstrap policy."""
    rows = [
        row
        for row in (
            *USER_ROLES,
            *COMPONENT_ROLES,
            *CONTROLLER_ROLES,
            *NAMESPACED_ROLES,
        )
        if all(map(gates.enabled, row.gates))
    ]
    there = {row.name for row in rows}
    given = (
        *BINDINGS,
        *CONTROLLER_BINDINGS,
        *NAMESPACED_BINDINGS,
    )
    return [
        *(_role(row, gates) for row in rows),
        *(_binding(row) for row in given if row.role in there),
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
    return NODE.rules_with(gates)


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
