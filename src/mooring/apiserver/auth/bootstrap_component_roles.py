"""Bootstrap roles of the cluster's own programs: scheduler, controllers, nodes, drivers.

The role of a controller is bound to the service account of its name in kube-system.
"""

from __future__ import annotations

from mooring.api.gates import Gate
from mooring.apiserver.auth.policy_rules import (
    EVENTS,
    READ,
    READ_WRITE,
    GatedRule,
    RoleRow,
    role,
    rule,
)

_RESOURCE = "resource.k8s.io"
_SCHEDULING = "scheduling.k8s.io"
_TOKEN_REVIEWS = rule("create", "authentication.k8s.io", "tokenreviews")
_ACCESS_REVIEWS = rule("create", "authorization.k8s.io", "subjectaccessreviews")

_SCHEDULER = role(
    "system:kube-scheduler",
    EVENTS,
    rule("create", "coordination.k8s.io", "leases"),
    rule("get list update watch", "coordination.k8s.io", "leases", names="kube-scheduler"),
    rule(READ_WRITE, "coordination.k8s.io", "leasecandidates"),
    rule(READ, "core", "nodes"),
    rule(f"{READ} delete", "core", "pods"),
    rule("create", "core", "bindings pods/binding"),
    rule("patch update", "core", "pods/status"),
    rule(READ, "core", "replicationcontrollers services"),
    rule(READ, "apps extensions", "replicasets"),
    rule(READ, "apps", "statefulsets"),
    rule(READ, "policy", "poddisruptionbudgets"),
    rule(READ, "core", "persistentvolumeclaims persistentvolumes"),
    _TOKEN_REVIEWS,
    _ACCESS_REVIEWS,
    rule(READ, "storage.k8s.io", "csinodes"),
    rule(READ, "storage.k8s.io", "volumeattachments"),
    rule(READ, "core", "namespaces"),
    rule(READ, "storage.k8s.io", "csidrivers"),
    rule(READ, "storage.k8s.io", "csistoragecapacities"),
    rule(READ, _RESOURCE, "deviceclasses"),
    rule(f"{READ} patch update", _RESOURCE, "resourceclaims"),
    rule(f"{READ} patch update", _RESOURCE, "resourceclaims/status"),
    rule("update", "core", "pods/finalizers"),
    rule(READ, _RESOURCE, "resourceslices"),
    rule("create delete", _RESOURCE, "resourceclaims", Gate.DRA_EXTENDED_RESOURCE),
    rule(READ, _RESOURCE, "devicetaintrules", Gate.DRA_DEVICE_TAINT_RULES),
    rule(
        "patch update",
        _RESOURCE,
        "resourceclaims/binding",
        Gate.DRA_RESOURCE_CLAIM_GRANULAR_STATUS_AUTHORIZATION,
    ),
    rule(READ, _SCHEDULING, "podgroups", Gate.GENERIC_WORKLOAD),
    rule("patch update", _SCHEDULING, "podgroups/status", Gate.GENERIC_WORKLOAD),
    rule(READ, _SCHEDULING, "compositepodgroups", Gate.COMPOSITE_POD_GROUP),
    rule("patch update", _SCHEDULING, "compositepodgroups/status", Gate.COMPOSITE_POD_GROUP),
)

_CONTROLLER_MANAGER = role(
    "system:kube-controller-manager",
    EVENTS,
    rule("create", "coordination.k8s.io", "leases"),
    rule("get update", "coordination.k8s.io", "leases", names="kube-controller-manager"),
    rule("create", "core", "secrets serviceaccounts"),
    rule("delete", "core", "secrets"),
    rule("get", "core", "configmaps namespaces secrets serviceaccounts"),
    rule("update", "core", "secrets serviceaccounts"),
    _TOKEN_REVIEWS,
    _ACCESS_REVIEWS,
    rule("list watch", "*", "*"),
    rule("create", "core", "serviceaccounts/token"),
)

# Rules of nodes for resources that the node authorizer does not restrict.
NODE = role(
    "system:node",
    _TOKEN_REVIEWS,
    rule("create", "authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews"),
    rule(READ, "core", "services"),
    rule(f"{READ} create", "core", "nodes"),
    rule("patch update", "core", "nodes/status"),
    rule("patch update", "core", "nodes"),
    EVENTS,
    rule(READ, "core", "pods"),
    rule("create delete", "core", "pods"),
    rule("patch update", "core", "pods/status"),
    rule("create", "core", "pods/eviction"),
    rule(READ, "core", "configmaps secrets"),
    rule("get", "core", "persistentvolumeclaims persistentvolumes"),
    rule("get", "core", "endpoints"),
    rule(f"{READ} create", "certificates.k8s.io", "certificatesigningrequests"),
    rule("create delete get patch update", "coordination.k8s.io", "leases"),
    rule("get", "storage.k8s.io", "volumeattachments"),
    rule("create", "core", "serviceaccounts/token"),
    rule("get patch update", "core", "persistentvolumeclaims/status"),
    rule(READ, "storage.k8s.io", "csidrivers"),
    rule("create delete get patch update", "storage.k8s.io", "csinodes"),
    rule(READ, "node.k8s.io", "runtimeclasses"),
    rule("get", _RESOURCE, "resourceclaims"),
    rule("deletecollection", _RESOURCE, "resourceslices"),
    rule(READ, "certificates.k8s.io", "clustertrustbundles"),
    rule("get", "core", "serviceaccounts"),
    rule(f"{READ} create", "certificates.k8s.io", "podcertificaterequests"),
)

# Kubernetes leaves the roles of drivers to drivers. This one fits those that come with Mooring:
# slices, the claims of the node's pods, and reports about devices on the driver's own node.
DRIVER = role(
    "mooring:dra-driver",
    rule("get", "core", "nodes"),
    rule(f"{READ} create delete patch update", _RESOURCE, "resourceslices"),
    rule("get", _RESOURCE, "resourceclaims"),
    rule("patch update", _RESOURCE, "resourceclaims/status"),
    rule("associated-node:patch associated-node:update", _RESOURCE, "resourceclaims/driver"),
    EVENTS,
)

_LEADERS = "create get list update watch"

NAMESPACED_ROLES: tuple[RoleRow, ...] = (
    role(
        "system::leader-locking-kube-controller-manager",
        rule(_LEADERS, "coordination.k8s.io", "leases"),
        rule(_LEADERS, "coordination.k8s.io", "leasecandidates"),
        namespace="kube-system",
    ),
    role(
        "system::leader-locking-kube-scheduler",
        rule(_LEADERS, "coordination.k8s.io", "leases"),
        rule(_LEADERS, "coordination.k8s.io", "leasecandidates"),
        namespace="kube-system",
    ),
    role(
        "system:controller:token-cleaner",
        rule(f"{READ} delete", "core", "secrets"),
        EVENTS,
        namespace="kube-system",
    ),
)

COMPONENT_ROLES: tuple[RoleRow, ...] = (_SCHEDULER, _CONTROLLER_MANAGER, NODE, DRIVER)


# --- controllers ----------------------------------------------------------------------------------

CONTROLLER_PREFIX = "system:controller:"

_CLAIM_BINDING = rule(
    "patch update",
    _RESOURCE,
    "resourceclaims/binding",
    Gate.DRA_RESOURCE_CLAIM_GRANULAR_STATUS_AUTHORIZATION,
)


def _controller(name: str, *rules: GatedRule, gates: tuple[Gate, ...] = ()) -> RoleRow:
    return RoleRow(f"{CONTROLLER_PREFIX}{name}", rules, gates=gates)


_DEVICES = (
    _controller(
        "resource-claim-controller",
        rule(READ, "core", "pods"),
        rule("update", "core", "pods/finalizers"),
        rule(f"{READ} create delete", _RESOURCE, "resourceclaims"),
        rule("patch update", _RESOURCE, "resourceclaims resourceclaims/status"),
        rule("patch update", "core", "pods/status"),
        EVENTS,
        rule(READ, _SCHEDULING, "podgroups", Gate.DRA_WORKLOAD_RESOURCE_CLAIMS),
        rule("patch update", _SCHEDULING, "podgroups/status", Gate.DRA_WORKLOAD_RESOURCE_CLAIMS),
        _CLAIM_BINDING,
    ),
    _controller(
        "device-taint-eviction-controller",
        rule(f"{READ} delete", "core", "pods"),
        rule("patch update", "core", "pods/status"),
        rule(READ, _RESOURCE, "resourceclaims"),
        rule(READ, _RESOURCE, "resourceslices"),
        rule(READ, _RESOURCE, "deviceclasses"),
        EVENTS,
        rule("patch update", _RESOURCE, "devicetaintrules/status", Gate.DRA_DEVICE_TAINT_RULES),
        rule(READ, _RESOURCE, "devicetaintrules", Gate.DRA_DEVICE_TAINT_RULES),
        gates=(Gate.DRA_DEVICE_TAINTS,),
    ),
    _controller(
        "resourcepoolstatusrequest-controller",
        rule(f"{READ} delete", _RESOURCE, "resourcepoolstatusrequests"),
        rule("patch update", _RESOURCE, "resourcepoolstatusrequests/status"),
        rule(READ, _RESOURCE, "resourceslices"),
        rule(READ, _RESOURCE, "resourceclaims"),
        rule(READ, _RESOURCE, "devicetaintrules"),
        EVENTS,
        gates=(Gate.DRA_RESOURCE_POOL_STATUS,),
    ),
)

_WORKLOADS = (
    _controller(
        "daemon-set-controller",
        rule(READ, "apps extensions", "daemonsets"),
        rule("update", "apps extensions", "daemonsets/status"),
        rule("update", "apps extensions", "daemonsets/finalizers"),
        rule("list watch", "core", "nodes"),
        rule("create delete list patch watch", "core", "pods"),
        rule("create", "core", "pods/binding"),
        rule(f"{READ} create delete patch update", "apps", "controllerrevisions"),
        EVENTS,
    ),
    _controller(
        "deployment-controller",
        rule(f"{READ} update", "apps extensions", "deployments"),
        rule("update", "apps extensions", "deployments/status"),
        rule("update", "apps extensions", "deployments/finalizers"),
        rule(f"{READ} create delete patch update", "apps extensions", "replicasets"),
        rule(f"{READ} update", "core", "pods"),
        EVENTS,
    ),
    _controller(
        "replicaset-controller",
        rule(f"{READ} update", "apps extensions", "replicasets"),
        rule("update", "apps extensions", "replicasets/status"),
        rule("update", "apps extensions", "replicasets/finalizers"),
        rule("create delete list patch watch", "core", "pods"),
        EVENTS,
    ),
    _controller(
        "job-controller",
        rule(f"{READ} patch update", "batch", "jobs"),
        rule("update", "batch", "jobs/status"),
        rule("update", "batch", "jobs/finalizers"),
        rule("create delete list patch watch", "core", "pods"),
        EVENTS,
        rule(
            f"{READ} create patch update",
            _SCHEDULING,
            "podgroups workloads",
            Gate.WORKLOAD_WITH_JOB,
        ),
    ),
    _controller(
        "podgroup-protection-controller",
        rule(f"{READ} update", _SCHEDULING, "podgroups"),
        rule(READ, "core", "pods"),
        gates=(Gate.GENERIC_WORKLOAD,),
    ),
)

_UPKEEP = (
    _controller(
        "clusterrole-aggregation-controller",
        rule(f"{READ} escalate patch update", "rbac.authorization.k8s.io", "clusterroles"),
    ),
    _controller(
        "generic-garbage-collector",
        rule(f"{READ} delete patch update", "*", "*"),
        EVENTS,
    ),
    _controller(
        "namespace-controller",
        rule(f"{READ} delete", "core", "namespaces"),
        rule("update", "core", "namespaces/finalize namespaces/status"),
        rule(f"{READ} delete deletecollection", "*", "*"),
    ),
    _controller(
        "node-controller",
        rule(f"{READ} delete patch update", "core", "nodes"),
        rule("patch update", "core", "nodes/status"),
        rule("patch update", "core", "pods/status"),
        rule(f"{READ} delete", "core", "pods"),
        rule(READ, "coordination.k8s.io", "leases"),
        EVENTS,
    ),
    _controller(
        "pod-garbage-collector",
        rule("delete list watch", "core", "pods"),
        rule(READ, "core", "nodes"),
        rule("patch", "core", "pods/status"),
    ),
    _controller(
        "resourcequota-controller",
        rule("list watch", "*", "*"),
        rule("update", "core", "resourcequotas/status"),
        EVENTS,
    ),
    _controller("root-ca-cert-publisher", rule("create update", "core", "configmaps"), EVENTS),
    _controller("service-account-controller", rule("create", "core", "serviceaccounts"), EVENTS),
    _controller("ttl-after-finished-controller", rule(f"{READ} delete", "batch", "jobs"), EVENTS),
)

CONTROLLER_ROLES: tuple[RoleRow, ...] = (*_DEVICES, *_WORKLOADS, *_UPKEEP)
