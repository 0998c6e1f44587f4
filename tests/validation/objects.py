"""Objects of other groups to try rules on: one that is valid for each kind, and changes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree, to_tree
from moorage.api.gates import Gates
from moorage.api.object_reader import read_parts
from moorage.api.timestamp import Timestamp
from moorage.validation.registry import (
    RegistryResult,
    before_create,
    before_status_update,
    before_update,
    with_resource_version,
)
from moorage.validation.strategy import Context

Tree = dict[str, Any]

NOW = Timestamp(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
CONTEXT = Context(gates=Gates.parse(), now=NOW, extensions=False)

RBAC = "rbac.authorization.k8s.io"
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
USER = {"kind": "User", "apiGroup": RBAC, "name": "jane"}
POD = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
ENDING_POD = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
KEPT = {"selector": {"matchLabels": {"app": "a"}}, "template": POD}

VALID: dict[str, Tree] = {
    "ClusterRole": {"apiVersion": f"{RBAC}/v1", "rules": [RULE]},
    "ClusterRoleBinding": {
        "apiVersion": f"{RBAC}/v1",
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "ci", "name": "bot"}, USER],
    },
    "ControllerRevision": {"apiVersion": "apps/v1", "data": {"a": 1}, "revision": 1},
    "ConfigMap": {"apiVersion": "v1", "data": {"a.txt": "1"}, "binaryData": {"b": "AAEC"}},
    "DaemonSet": {"apiVersion": "apps/v1", "spec": KEPT},
    "Deployment": {"apiVersion": "apps/v1", "spec": {**KEPT, "replicas": 2}},
    "EndpointSlice": {
        "apiVersion": "discovery.k8s.io/v1",
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    },
    "Event": {"apiVersion": "v1", "involvedObject": {"kind": "Pod", "namespace": "default"}},
    "HorizontalPodAutoscaler": {
        "apiVersion": "autoscaling/v2",
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        },
    },
    "Ingress": {
        "apiVersion": "networking.k8s.io/v1",
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
    },
    "Job": {"apiVersion": "batch/v1", "spec": {"template": ENDING_POD}},
    "Lease": {
        "apiVersion": "coordination.k8s.io/v1",
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15},
    },
    "LimitRange": {
        "apiVersion": "v1",
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]},
    },
    "Namespace": {"apiVersion": "v1"},
    "NetworkPolicy": {"apiVersion": "networking.k8s.io/v1", "spec": {"podSelector": {}}},
    "NewEvent": {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "regarding": {"kind": "Pod", "namespace": "default"},
        "reportingController": "example.com/c",
        "reportingInstance": "c-0",
        "action": "Run",
        "reason": "Ran",
        "type": "Normal",
    },
    "Node": {
        "apiVersion": "v1",
        "spec": {
            "podCIDRs": ["10.1.0.0/24", "2001:db8::/64"],
            "providerID": "cloud://1",
            "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
        },
        "status": {
            "capacity": {"cpu": "4", "pods": "10", "example.org/gpu": "2"},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "declaredFeatures": ["Alpha", "Beta/gamma"],
        },
    },
    "PersistentVolume": {
        "apiVersion": "v1",
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/data"},
        },
    },
    "PersistentVolumeClaim": {
        "apiVersion": "v1",
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    },
    "Pod": {"apiVersion": "v1", "spec": POD["spec"]},
    "PodDisruptionBudget": {"apiVersion": "policy/v1", "spec": {"minAvailable": 1}},
    "PodTemplate": {"apiVersion": "v1", "template": POD},
    "PriorityClass": {"apiVersion": "scheduling.k8s.io/v1", "value": 1000},
    "ReplicaSet": {"apiVersion": "apps/v1", "spec": KEPT},
    "ResourceQuota": {
        "apiVersion": "v1",
        "spec": {
            "hard": {
                "pods": "3",
                "requests.cpu": "500m",
                "hugepages-2Mi": "4Mi",
                "requests.example.com/gpu": "1",
                "count/jobs.batch": "2",
                "gpu.deviceclass.resource.k8s.io/devices": "4",
            }
        },
    },
    "Role": {"apiVersion": f"{RBAC}/v1", "rules": [RULE]},
    "RoleBinding": {
        "apiVersion": f"{RBAC}/v1",
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "r"},
        "subjects": [USER],
    },
    "RuntimeClass": {
        "apiVersion": "node.k8s.io/v1",
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]},
    },
    "Secret": {"apiVersion": "v1", "data": {"a": "MQ=="}},
    "Service": {
        "apiVersion": "v1",
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30001}]},
    },
    "ServiceAccount": {"apiVersion": "v1"},
    "StorageClass": {"apiVersion": "storage.k8s.io/v1", "provisioner": "a.b/c"},
    "ValidatingAdmissionPolicyBinding": {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    },
    "StatefulSet": {"apiVersion": "apps/v1", "spec": {**KEPT, "serviceName": "s"}},
}


def create(kind: str, change: Tree | None = None) -> RegistryResult:
    """Admit a valid object, changed as a merge patch says."""
    return _admit(_tree(kind, change or {}), None)


def update(kind: str, before: Tree, change: Tree, **server: Any) -> RegistryResult:
    """Admit a change of a valid object that differs by `before`, and by what the server set."""
    made = _admit(_merged(_tree(kind, before), {"metadata": {"uid": "u"}}), None)
    assert not made.errors, made.errors
    old = _with(with_resource_version(made.stored, "1"), {"metadata": {"uid": "u"}} | server)
    return _admit(_merged(_tree_of(old), change), old)


def update_status(
    kind: str,
    status: Tree,
    before: Tree | None = None,
    *,
    spec_before: Tree | None = None,
    **others: Tree,
) -> RegistryResult:
    """Admit a status of a valid object, and with it changes of other fields."""
    made = create(kind, {} if spec_before is None else {"spec": spec_before})
    old = with_resource_version(made.stored, "1")
    old = _with(old, {"status": before or {}})
    found = _kind(_tree_of(old))
    changed = _merged(_tree_of(old), {"status": status, **others})
    new = decode_tree(changed, found.struct).value
    new, _ = read_parts(new, found.api_version, found.name)
    return before_status_update(new, old, found, CONTEXT)


def causes(admission: RegistryResult) -> list[str]:
    """Return what is wrong as the causes of a Status have it: type, place and message."""
    assert admission.refused is None
    return [f"{error.type.removeprefix('FieldValue')} {error}" for error in admission.errors]


def _admit(tree: Tree, old: Any | None) -> RegistryResult:
    kind = _kind(tree)
    value, _ = read_parts(decode_tree(tree, kind.struct).value, kind.api_version, kind.name)
    if old is None:
        return before_create(value, kind, CONTEXT)
    return before_update(value, old, kind, CONTEXT)


def _kind(tree: Tree) -> Any:
    return CATALOGUE.find(tree["apiVersion"], tree["kind"])


def _tree(kind: str, change: Tree) -> Tree:
    tree: Tree = _merged({"kind": kind, "metadata": {"name": "a"}, **VALID[kind]}, change)
    return tree


def _tree_of(value: Any) -> Tree:
    tree: Tree = to_tree(value)
    return tree


def _with(value: Any, change: Tree) -> Any:
    tree = _merged(_tree_of(value), change)
    return decode_tree(tree, type(value)).value


def _merged(tree: Any, change: Any) -> Any:
    if not isinstance(change, dict):
        return change
    merged = dict(tree) if isinstance(tree, dict) else {}
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged
