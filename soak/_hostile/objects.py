"""A good object of each kind that is served, as mutations start from."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from moorage.api.kinds import Kind
from soak._requests import SERVED, trees_of

Tree = dict[str, Any]

LABELS = {"app": "x"}
SELECTOR = {"matchLabels": LABELS}
CONTAINER: Tree = {
    "name": "main",
    "image": "none",
    "command": ["sleep", "0.05"],
    "args": ["1"],
    "env": [
        {"name": "X", "value": "y"},
        {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {
            "name": "C",
            "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k", "optional": True}},
        },
        {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ],
    "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}, "limits": {"memory": "64Mi"}},
    "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "c", "mountPath": "/c"}],
    "ports": [{"containerPort": 80, "protocol": "TCP"}],
    "securityContext": {"readOnlyRootFilesystem": False},
}
POD_SPEC: Tree = {
    "containers": [CONTAINER],
    "restartPolicy": "Never",
    "terminationGracePeriodSeconds": 1,
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
    "volumes": [
        {"name": "v", "emptyDir": {}},
        {
            "name": "c",
            "configMap": {"name": "a", "optional": True, "items": [{"key": "k", "path": "p"}]},
        },
        {
            "name": "d",
            "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.name"}}]},
        },
        {"name": "s", "secret": {"secretName": "a", "optional": True}},
    ],
}
CLAIM_SPEC: Tree = {
    "devices": {
        "requests": [{"name": "r", "exactly": {"deviceClassName": "a", "count": 1}}],
        "config": [
            {"requests": ["r"], "opaque": {"driver": "x.example.com", "parameters": {"a": 1}}}
        ],
    }
}
FLAT_SPEC: Tree = {"devices": {"requests": [{"name": "r", "deviceClassName": "a", "count": 1}]}}
JOB_POD = {**POD_SPEC, "restartPolicy": "Never"}
SERVICE_POD = {
    **POD_SPEC,
    "containers": [{**CONTAINER, "command": ["sleep", "60"]}],
    "restartPolicy": "Always",
}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": SERVICE_POD}
RULES = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
NEW_EVENT: Tree = {
    "reason": "R",
    "action": "A",
    "type": "Normal",
    "reportingController": "x.io/y",
    "reportingInstance": "i",
    "regarding": {"kind": "Pod", "name": "a"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
}
CONTENT: dict[str, Tree] = {
    "Binding": {"target": {"kind": "Node", "name": "evil"}},
    "ConfigMap": {"data": {"k": "v"}, "binaryData": {"b": "eA=="}},
    "Event": {
        "involvedObject": {"kind": "Pod", "name": "a"},
        "reason": "R",
        "message": "m",
        "type": "Normal",
    },
    "Namespace": {},
    "Node": {"spec": {"taints": [TAINT]}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}},
    "Pod": {"spec": POD_SPEC},
    "ResourceQuota": {
        "spec": {"hard": {"pods": "10", "requests.cpu": "4"}, "scopes": ["NotTerminating"]}
    },
    "Secret": {"type": "Opaque", "stringData": {"k": "v"}, "data": {"d": "eA=="}},
    "ServiceAccount": {"secrets": [{"name": "a"}], "automountServiceAccountToken": True},
    "DaemonSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "Deployment": {"spec": {"replicas": 1, "selector": SELECTOR, "template": TEMPLATE}},
    "ReplicaSet": {"spec": {"replicas": 1, "selector": SELECTOR, "template": TEMPLATE}},
    "StatefulSet": {
        "spec": {"replicas": 1, "serviceName": "s", "selector": SELECTOR, "template": TEMPLATE}
    },
    "Job": {"spec": {"completions": 1, "template": {"spec": JOB_POD}}},
    "PriorityClass": {"value": 1000, "description": "x"},
    "PodGroup": {"spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}},
    "Workload": {
        "spec": {
            "podGroupTemplates": [{"name": "g", "schedulingPolicy": {"gang": {"minCount": 1}}}]
        }
    },
    "CompositePodGroup": {
        "spec": {
            "workloadRef": {"workloadName": "a", "templateName": "g"},
            "schedulingPolicy": {"gang": {"minGroupCount": 1}},
        }
    },
    "Lease": {"spec": {"holderIdentity": "x", "leaseDurationSeconds": 15}},
    "ClusterRole": {"rules": RULES},
    "Role": {"rules": RULES},
    "RoleBinding": {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}],
    },
    "ClusterRoleBinding": {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}],
    },
    "RuntimeClass": {"handler": "process", "scheduling": {"nodeSelector": {"a": "b"}}},
    "ResourceClaim": {"spec": CLAIM_SPEC},
    "ResourceClaimTemplate": {"spec": {"spec": CLAIM_SPEC}},
    "DeviceClass": {"spec": {"selectors": [{"cel": {"expression": "device.driver == 'x'"}}]}},
    "ResourceSlice": {
        "spec": {
            "driver": "x.example.com",
            "nodeName": "evil",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": "d",
                    "attributes": {"x": {"int": 1}},
                    "capacity": {"m": {"value": "1Gi"}},
                }
            ],
        }
    },
    "DeviceTaintRule": {"spec": {"deviceSelector": {"driver": "x.example.com"}, "taint": TAINT}},
    "ResourcePoolStatusRequest": {"spec": {"driver": "x.example.com"}},
    "CSIDriver": {"spec": {"attachRequired": False}},
    "CSINode": {"spec": {"drivers": [{"name": "x.example.com", "nodeID": "n"}]}},
    "CSIStorageCapacity": {"storageClassName": "a", "capacity": "1Gi"},
    "ControllerRevision": {"revision": 1, "data": {"a": 1}},
    "CronJob": {
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": JOB_POD}}}}
    },
    "EndpointSlice": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"port": 80}],
    },
    "Endpoints": {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
    "FlowSchema": {"spec": {"priorityLevelConfiguration": {"name": "exempt"}}},
    "HorizontalPodAutoscaler": {
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
        }
    },
    "Ingress": {"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}},
    "IngressClass": {"spec": {"controller": "x.io/y"}},
    "LimitRange": {"spec": {"limits": [{"type": "Container", "max": {"cpu": "4"}}]}},
    "NetworkPolicy": {"spec": {"podSelector": {}}},
    "PersistentVolume": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "nfs": {"server": "a", "path": "/"},
        }
    },
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": SELECTOR}},
    "PodTemplate": {"template": TEMPLATE},
    "PriorityLevelConfiguration": {"spec": {"type": "Exempt"}},
    "ReplicationController": {"spec": {"replicas": 1, "selector": LABELS, "template": TEMPLATE}},
    "Service": {"spec": {"selector": LABELS, "ports": [{"port": 80}]}},
    "ServiceCIDR": {"spec": {"cidrs": ["10.9.0.0/24"]}},
    "StorageClass": {"provisioner": "x.io/y"},
    "StorageVersionMigration": {"spec": {"resource": {"group": "apps", "resource": "deployments"}}},
    "VolumeAttachment": {
        "spec": {"attacher": "x.io", "nodeName": "evil", "source": {"persistentVolumeName": "a"}}
    },
    "VolumeAttributesClass": {"driverName": "x.example.com", "parameters": {"a": "b"}},
}


@cache
def good_objects(kind: Kind) -> tuple[str, ...]:
    """Return good objects of a kind, as JSON; the first is ours, the others are examples."""
    content = dict(CONTENT[kind.name])
    if kind.group == "events.k8s.io":
        content = NEW_EVENT
    if kind.version == "v1beta1" and "Claim" in kind.name:
        content = {"spec": FLAT_SPEC if kind.name == "ResourceClaim" else {"spec": FLAT_SPEC}}
    head = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"labels": LABELS}}
    ours = json.dumps({**head, **content})
    return (ours, ours, *(text for text in trees_of(kind) if _is_harmless(text)))


def _is_harmless(text: str) -> bool:
    """Return whether an example can run here: hostile pods may get its commands."""
    return "hostPath" not in text and '"command"' not in text and '"args"' not in text


# Whoever may write objects of these groups has power over everybody, on purpose; certificates need
# requests that are signed, and IP addresses names of their own.
LEFT_OUT = (
    *("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"),
    "certificates.k8s.io",
)
KINDS = tuple(k for k in SERVED if k.group not in LEFT_OUT and k.name != "IPAddress")
NAMESPACED = tuple(kind for kind in KINDS if kind.namespaced)
CLUSTER_SCOPED = tuple(kind for kind in KINDS if not kind.namespaced)
