"""The roles of controllers: each is bound to the service account of its name in kube-system."""

from __future__ import annotations

from mooring.api.gates import Gate
from mooring.apiserver.authorization.bootstrap.tables import EVENTS, READ, RoleRow, Rule, rule

PREFIX = "system:controller:"

_RESOURCE = "resource.k8s.io"
_SCHEDULING = "scheduling.k8s.io"
_CLAIM_BINDING = rule(
    "patch update",
    _RESOURCE,
    "resourceclaims/binding",
    Gate.DRA_RESOURCE_CLAIM_GRANULAR_STATUS_AUTHORIZATION,
)


def _controller(name: str, *rules: Rule, gates: tuple[Gate, ...] = ()) -> RoleRow:
    return RoleRow(f"{PREFIX}{name}", rules, gates=gates)


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

ROLES: tuple[RoleRow, ...] = (*_DEVICES, *_WORKLOADS, *_UPKEEP)
