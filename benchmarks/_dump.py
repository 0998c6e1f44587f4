"""Dumps of large clusters, as `kubectl get -A -o json` and `-o yaml` print them.

Every node has eight GPUs in one slice. Each pod has a claim that was made from a template and
got one, two or four GPUs of one node. Names are of typical length, and all uids differ. Pods and
nodes have what a kubelet and a server put there, with names of their own where real ones have them
(`kube-api-access-x7k2p`), so that texts which are equal here are equal in real dumps as well.
Managed fields are left out, as kubectl does unless it is asked for them.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple, TextIO

Tree = dict[str, Any]

GPUS_PER_NODE = 8
IMAGES_PER_NODE = 10  # A kubelet reports up to 50.
DRIVER = "gpu.nvidia.com"
CLASS = "gpu.nvidia.com"
NAMESPACES = tuple(f"team-{number:02d}" for number in range(20))
SIZES = (1, 1, 1, 2, 4)  # GPUs of pods in turn
MADE = "2026-03-01T08:00:00Z"


class DumpSize(NamedTuple):
    """How many nodes a cluster has, and how many pods with a claim each."""

    nodes: int
    pods: int

    @property
    def devices(self) -> int:
        """The GPUs of all nodes."""
        return self.nodes * GPUS_PER_NODE


def cluster_objects(size: DumpSize) -> Iterator[Tree]:
    """Yield the objects of a cluster in the order in which kubectl prints them."""
    uids = _uids()
    for name in NAMESPACES:
        yield _namespace(name, uids)
    yield from (_node(number, uids) for number in range(size.nodes))
    yield _device_class(uids)
    yield from (_slice(number, uids) for number in range(size.nodes))
    for namespace in NAMESPACES:
        yield from (_template(namespace, gpus, uids) for gpus in sorted(set(SIZES)))
    for each in _workers(size):
        pod_uid = next(uids)
        yield _claim(each, pod_uid, uids)
        yield _pod(each, pod_uid)


_ESCAPES = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"))


def write_json(objects: Iterator[Tree], file: TextIO) -> None:
    """Write one list of objects, indented as kubectl does it."""
    file.write('{\n    "apiVersion": "v1",\n    "items": [')
    comma = ""
    for each in objects:
        lines = json.dumps(each, indent=4, sort_keys=True).replace("\n", "\n        ")
        for sign, escape in _ESCAPES:  # as Go does, for HTML
            lines = lines.replace(sign, escape)
        file.write(f"{comma}\n        {lines}")
        comma = ","
    head = json.dumps({"kind": "List", "metadata": {"resourceVersion": ""}}, indent=4)
    file.write(f"\n    ],{head[1:]}\n")


def write_yaml(objects: Iterator[Tree], file: TextIO) -> None:
    """Write one list of objects, in the block style of kubectl."""
    file.write("apiVersion: v1\nitems:\n")
    for each in objects:
        file.write("- " + "\n  ".join(_yaml_lines(each)) + "\n")
    file.write('kind: List\nmetadata:\n  resourceVersion: ""\n')


# --- objects ------------------------------------------------------------------------------


class _Worker(NamedTuple):
    """A pod with its place."""

    number: int
    namespace: str
    node: int
    first: int  # of its GPUs on the node
    gpus: int

    @property
    def name(self) -> str:
        """The name of the pod."""
        return f"train-{self.number // 50:03d}-worker-{self.number % 50}"

    @property
    def claim(self) -> str:
        """The name of the claim, as the claim controller makes it."""
        return f"{self.name}-gpus-{self.number * 7919 % 0xFFFFF:05x}"

    @property
    def token_volume(self) -> str:
        """The name of the volume that admission adds, which ends at random."""
        return f"kube-api-access-{self.number * 15485863 % 60466176:05x}"[:21]

    @property
    def devices(self) -> list[str]:
        """The names of its GPUs."""
        return [f"gpu-{self.first + offset}" for offset in range(self.gpus)]


def _workers(size: DumpSize) -> Iterator[_Worker]:
    """Yield the pods: nodes are visited in turn, and one that is full is left out."""
    free = [0] * size.nodes  # the first free GPU
    node = 0
    for number in range(size.pods):
        gpus = SIZES[number % len(SIZES)]
        for _ in range(size.nodes):
            node = (node + 1) % size.nodes
            if free[node] + gpus <= GPUS_PER_NODE:
                break
        else:
            return
        yield _Worker(number, NAMESPACES[number // 50 % len(NAMESPACES)], node, free[node], gpus)
        free[node] += gpus


def _uids() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))


def _metadata(name: str, uids: Iterator[str], **more: Any) -> Tree:
    uid = next(uids)
    return {
        "creationTimestamp": MADE,
        "name": name,
        "resourceVersion": str(int(uid[:6], 16)),
        "uid": uid,
        **more,
    }


def _namespace(name: str, uids: Iterator[str]) -> Tree:
    labels = {"kubernetes.io/metadata.name": name}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": _metadata(name, uids, labels=labels),
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"gpu-node-{number:05d}"


def _node(number: int, uids: Iterator[str]) -> Tree:
    name = node_name(number)
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "topology.kubernetes.io/region": "eu-central-1",
        "topology.kubernetes.io/zone": f"eu-central-1{'abc'[number % 3]}",
    }
    room = {"cpu": "192", "ephemeral-storage": "3750732144Ki", "memory": "2113413884Ki"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(
            name,
            uids,
            labels=labels,
            annotations={
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        ),
        "spec": {
            "podCIDR": "10.0.0.0/24",
            "podCIDRs": ["10.0.0.0/24"],
            "providerID": f"x://{name}",
        },
        "status": {
            "addresses": [
                {"address": f"10.{number >> 8}.{number & 255}.10", "type": "InternalIP"},
                {"address": name, "type": "Hostname"},
            ],
            "allocatable": {**room, "pods": "110"},
            "capacity": {**room, "pods": "110"},
            "conditions": [_condition(*each) for each in _CONDITIONS],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": [_image(number, each) for each in range(IMAGES_PER_NODE)],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": next(uids),
                "containerRuntimeVersion": "containerd://2.1.3",
                "kernelVersion": "6.8.0-1031-aws",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.37.0",
                "machineID": next(uids).replace("-", ""),
                "operatingSystem": "linux",
                "osImage": "Ubuntu 24.04.2 LTS",
                "systemUUID": next(uids),
            },
        },
    }


def _image(node: int, index: int) -> Tree:
    """Return an image on a node; the pods' is on all of them, others on some."""
    name = "train" if index == 0 else f"tool-{(node + index) % 50}"
    digest = uuid.uuid5(uuid.NAMESPACE_DNS, name).hex * 2
    return {
        "names": [
            f"registry.example.com/ml/{name}@sha256:{digest}",
            f"registry.example.com/ml/{name}:2026-02-27",
        ],
        "sizeBytes": 9_000_000_000 // (index + 1),
    }


_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
)


def _condition(type_: str, status: str, reason: str) -> Tree:
    return {
        "lastHeartbeatTime": "2026-03-02T08:00:00Z",
        "lastTransitionTime": MADE,
        "message": f"kubelet reports {reason}",
        "reason": reason,
        "status": status,
        "type": type_,
    }


def _device_class(uids: Iterator[str]) -> Tree:
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": _metadata(CLASS, uids, generation=1),
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def _slice(number: int, uids: Iterator[str]) -> Tree:
    name = node_name(number)
    owner = {
        "apiVersion": "v1",
        "controller": True,
        "kind": "Node",
        "name": name,
        "uid": next(uids),
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": _metadata(
            f"{name}-{DRIVER}-{number * 7919 % 0xFFFFF:05x}",
            uids,
            generateName=f"{name}-{DRIVER}-",
            generation=1,
            ownerReferences=[owner],
        ),
        "spec": {
            "devices": [_device(number, index, next(uids)) for index in range(GPUS_PER_NODE)],
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"generation": 1, "name": name, "resourceSliceCount": 1},
        },
    }


def _device(number: int, index: int, uid: str) -> Tree:
    bus = f"0000:{(index * 16 + number) % 256:02x}:00.0"
    return {
        "attributes": {
            "architecture": {"string": "Hopper"},
            "brand": {"string": "Nvidia"},
            "cudaComputeCapability": {"version": "9.0.0"},
            "cudaDriverVersion": {"version": "12.8.0"},
            "driverVersion": {"version": "570.86.15"},
            "index": {"int": index},
            "minor": {"int": index},
            "productName": {"string": "NVIDIA H100 80GB HBM3"},
            "resource.kubernetes.io/pciBusID": {"string": bus},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index // 2 * 32:02x}"},
            "type": {"string": "gpu"},
            "uuid": {"string": f"GPU-{uid}"},
        },
        "capacity": {"memory": {"value": "81559Mi"}},
        "name": f"gpu-{index}",
    }


def _requests(gpus: int) -> list[Tree]:
    expression = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"
    return [
        {
            "exactly": {
                "allocationMode": "ExactCount",
                "count": gpus,
                "deviceClassName": CLASS,
                "selectors": [{"cel": {"expression": expression}}],
            },
            "name": "gpus",
        }
    ]


def template_name(gpus: int) -> str:
    """Return the name of the template for so many GPUs."""
    return f"gpus-{gpus}"


def _template(namespace: str, gpus: int, uids: Iterator[str]) -> Tree:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": _metadata(template_name(gpus), uids, namespace=namespace),
        "spec": {"metadata": {}, "spec": {"devices": {"requests": _requests(gpus)}}},
    }


def _claim(worker: _Worker, pod_uid: str, uids: Iterator[str]) -> Tree:
    node = node_name(worker.node)
    owner = {
        "apiVersion": "v1",
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": "Pod",
        "name": worker.name,
        "uid": pod_uid,
    }
    results = [
        {"device": device, "driver": DRIVER, "pool": node, "request": "gpus"}
        for device in worker.devices
    ]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": _metadata(
            worker.claim,
            uids,
            annotations={"resource.kubernetes.io/pod-claim-name": "gpus"},
            finalizers=["resource.kubernetes.io/delete-protection"],
            generateName=f"{worker.name}-gpus-",
            namespace=worker.namespace,
            ownerReferences=[owner],
        ),
        "spec": {"devices": {"requests": _requests(worker.gpus)}},
        "status": {
            "allocation": {
                "allocationTimestamp": "2026-03-01T09:00:00Z",
                "devices": {"results": results},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
            },
            "reservedFor": [{"name": worker.name, "resource": "pods", "uid": pod_uid}],
        },
    }


def _owner_of(worker: _Worker) -> Tree:
    """Return the reference to a controller that the dump does not have, as is common."""
    job = worker.number // 50
    return {
        "apiVersion": "training.example.com/v1",
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": "TrainJob",
        "name": f"train-{job:03d}",
        "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, str(job))),
    }


_POD_CONDITIONS = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)


def _pod(worker: _Worker, uid: str) -> Tree:
    host = f"10.{worker.node >> 8}.{worker.node & 255}.10"
    own = f"10.{128 + (worker.node >> 8)}.{worker.node & 255}.{worker.first + 2}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "creationTimestamp": "2026-03-01T09:00:00Z",
            "generateName": f"train-{worker.number // 50:03d}-worker-",
            "generation": 1,
            "labels": {
                "app.kubernetes.io/name": "train",
                "training.example.com/job-name": f"train-{worker.number // 50:03d}",
                "training.example.com/replica-index": str(worker.number % 50),
            },
            "name": worker.name,
            "namespace": worker.namespace,
            "ownerReferences": [_owner_of(worker)],
            "resourceVersion": str(int(uid[:6], 16)),
            "uid": uid,
        },
        "spec": _pod_spec(worker),
        "status": {
            "conditions": [
                {
                    "lastProbeTime": None,
                    "lastTransitionTime": MADE,
                    "observedGeneration": 1,
                    "status": "True",
                    "type": type_,
                }
                for type_ in _POD_CONDITIONS
            ],
            "containerStatuses": [_container_status(worker, uid)],
            "hostIP": host,
            "hostIPs": [{"ip": host}],
            "observedGeneration": 1,
            "phase": "Running",
            "podIP": own,
            "podIPs": [{"ip": own}],
            "qosClass": "Burstable",
            "resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": worker.claim}],
            "startTime": "2026-03-01T09:00:00Z",
        },
    }


ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SOURCES = (
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
    {
        "downwardAPI": {
            "items": [
                {
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                    "path": "namespace",
                }
            ]
        }
    },
)
_ROOM = {"cpu": "8", "memory": "64Gi"}


def _pod_spec(worker: _Worker) -> Tree:
    return {
        "containers": [
            {
                "command": ["python", "-m", "train", "--config", "/etc/train/config.yaml"],
                "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
                "image": "registry.example.com/ml/train:2026-02-27",
                "imagePullPolicy": "IfNotPresent",
                "name": "worker",
                "resources": {
                    "claims": [{"name": "gpus"}],
                    "requests": _ROOM,
                },
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "volumeMounts": [
                    {
                        "mountPath": ACCOUNT_PATH,
                        "name": worker.token_volume,
                        "readOnly": True,
                    }
                ],
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "nodeName": node_name(worker.node),
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "resourceClaims": [
            {"name": "gpus", "resourceClaimTemplateName": template_name(worker.gpus)}
        ],
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {
                "effect": "NoExecute",
                "key": f"node.kubernetes.io/{why}",
                "operator": "Exists",
                "tolerationSeconds": 300,
            }
            for why in ("not-ready", "unreachable")
        ],
        "volumes": [
            {
                "name": worker.token_volume,
                "projected": {"defaultMode": 420, "sources": list(_TOKEN_SOURCES)},
            }
        ],
    }


def _container_status(worker: _Worker, uid: str) -> Tree:
    digest = uid.replace("-", "") * 2
    mount = {
        "mountPath": ACCOUNT_PATH,
        "name": worker.token_volume,
        "readOnly": True,
        "recursiveReadOnly": "Disabled",
    }
    return {
        "allocatedResources": _ROOM,
        "containerID": f"containerd://{digest}",
        "image": "registry.example.com/ml/train:2026-02-27",
        "imageID": f"registry.example.com/ml/train@sha256:{'ab' * 32}",
        "lastState": {},
        "name": "worker",
        "ready": True,
        "resources": {"claims": [{"name": "gpus"}], "requests": _ROOM},
        "restartCount": 0,
        "started": True,
        "state": {"running": {"startedAt": "2026-03-01T09:00:10Z"}},
        "user": {"linux": {"gid": 0, "supplementalGroups": [0], "uid": 0}},
        "volumeMounts": [mount],
    }


# --- YAML ---------------------------------------------------------------------------------

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./@-]*(?::(?!\s|$)[A-Za-z0-9_./@-]*)*")
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))


def _yaml_lines(tree: Any) -> Iterator[str]:
    """Yield the lines of a mapping or list; keys are in order."""
    if isinstance(tree, dict):
        for key, value in sorted(tree.items()):
            yield from _entry(f"{_scalar(key)}:", value)
    else:
        for value in tree:
            lines = _yaml_lines(value) if _is_block(value) else iter((_scalar(value),))
            yield f"- {next(lines)}"
            yield from (f"  {line}" for line in lines)


def _entry(key: str, value: Any) -> Iterator[str]:
    if not _is_block(value):
        yield f"{key} {_scalar(value)}"
        return
    yield key
    indent = "" if isinstance(value, list) else "  "
    yield from (f"{indent}{line}" for line in _yaml_lines(value))


def _is_block(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)
