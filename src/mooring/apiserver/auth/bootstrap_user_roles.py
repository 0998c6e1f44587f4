"""The roles of users: admin, edit, view, and what everybody may."""

from __future__ import annotations

from mooring.api.gates import Gate
from mooring.apiserver.auth.policy_rules import READ, READ_WRITE, WRITE, RoleRow, paths, role, rule

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

_POD_DOORS = "pods/attach pods/exec pods/portforward pods/proxy"

_EDIT = (
    rule(READ, "core", f"{_POD_DOORS} secrets services/proxy"),
    rule("impersonate", "core", "serviceaccounts"),
    rule(WRITE, "core", f"pods {_POD_DOORS}"),
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

ROLES: tuple[RoleRow, ...] = (
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
