"""Malformed objects of every kind: valid ones with values of wrong types and odd sizes within them.

No server accepts most of these. They reach a program all the same through a store of an older
version, another API server, or a rule with a bug; whoever meets one must leave all others alone.

    tree = malformed(Random(1), SAMPLES["Pod"])                     # as a store or a request has it
    for value in decodable(Random(1), SAMPLES["Pod"], Pod, 100): …  # as a program receives them
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final, TypeVar

import yaml

from moorage.api.codec import decode_json
from moorage.api.errors import ApiError

# What an exception of Python says, and no message to a user may.
PYTHON_TEXT: Final = re.compile(
    r"Traceback|(Type|Key|Value|Attribute|Index|Assertion|Overflow|Recursion|Runtime)Error"
    r"|object has no|NoneType|not subscriptable|not iterable|invalid literal|could not convert"
)

T = TypeVar("T")
Tree = dict[str, Any]

CHANGES_MAX = 3
TRIES_MAX = 50  # for each decodable object

IDENTITY = ("name", "namespace", "uid", "resourceVersion")

ODD_VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 1, 65536, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 10**30, 1.5,
    1e300, "", " ", "x", "0", "-1", "10Gi", "1e3", "999999999999999999999E", "a/b", "../../etc",
    "a\nb", "\u001b[2J", "\u0000", "x" * 300, "{", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z", "device.", "device.attributes['a'].b.c > 1", "true", "Exists", "In",
    {}, [], {"": None}, {"a": 1}, {"x": {"x": "x"}}, [[]], [None], ["x"], ["x", "x"], [{}],
    [1, "x"], {"name": 7}, {"matchLabels": "x"}, {"operator": "Nor"},
    [{"name": ["x"], "value": {}}],
)  # fmt: skip

# Names of fields that are put where they may not be.
ODD_NAMES: Final = (
    "name", "volumeMounts", "volumes", "env", "envFrom", "valueFrom", "livenessProbe", "lifecycle",
    "securityContext", "resources", "requests", "limits", "affinity", "tolerations", "nodeSelector",
    "state", "waiting", "running", "terminated", "conditions", "labels", "annotations", "selector",
    "template", "spec", "status", "replicas", "devices", "attributes", "capacity", "config",
    "ownerReferences", "finalizers", "deletionTimestamp", "os", "hostAliases", "readinessGates",
    "terminationGracePeriodSeconds", "activeDeadlineSeconds", "priority", "ports", "overhead",
)  # fmt: skip

_SAMPLES = """
- apiVersion: v1
  kind: Pod
  metadata: {labels: {app: web}, annotations: {a: b}}
  spec:
    restartPolicy: Always
    terminationGracePeriodSeconds: 1
    nodeSelector: {zone: a}
    priority: 1
    tolerations: [{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 1}]
    volumes:
    - {name: data, emptyDir: {}}
    - {name: settings, configMap: {name: settings, items: [{key: a, path: b}]}}
    - {name: tokens, projected: {sources: [{serviceAccountToken: {path: token}}]}}
    - {name: down, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}
    initContainers: [{name: init, image: a, restartPolicy: Always, command: [a]}]
    containers:
    - name: main
      image: a
      command: [a]
      args: [$(A)]
      env:
      - {name: A, value: b}
      - {name: B, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
      - {name: C, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
      envFrom: [{configMapRef: {name: settings, optional: true}, prefix: P_}]
      ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]
      volumeMounts: [{name: data, mountPath: /data, subPath: a, readOnly: true}]
      resources: {requests: {cpu: 1m, memory: 1Mi}, limits: {cpu: 1}, claims: [{name: gpu}]}
      livenessProbe: {httpGet: {path: /, port: 80}, periodSeconds: 1, failureThreshold: 1}
      readinessProbe: {exec: {command: [a]}, initialDelaySeconds: 1}
      startupProbe: {tcpSocket: {port: 80}}
      lifecycle: {postStart: {exec: {command: [a]}}, preStop: {sleep: {seconds: 1}}}
      securityContext: {runAsUser: 1, capabilities: {add: [NET_ADMIN]}}
    resourceClaims: [{name: gpu, resourceClaimName: gpu}]
    schedulingGates: []
    topologySpreadConstraints:
    - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule,
       labelSelector: {matchLabels: {app: web}}}
    affinity:
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]
      podAntiAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: zone, labelSelector: {matchLabels: {app: bad}}, namespaces: [bad]}
  status:
    phase: Pending
    qosClass: Burstable
    conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-01-01T00:00:00Z"}]
    containerStatuses:
    - {name: main, restartCount: 1, image: a, imageID: b, state: {waiting: {reason: a}},
       lastState: {terminated: {exitCode: 1, finishedAt: "2026-01-01T00:00:00Z"}}}
    resourceClaimStatuses: [{name: gpu, resourceClaimName: gpu}]
- apiVersion: v1
  kind: Node
  metadata: {labels: {zone: a, kubernetes.io/hostname: bad}}
  spec: {taints: [{key: a, value: b, effect: NoSchedule}], podCIDR: 10.0.0.0/24}
  status:
    capacity: {cpu: "8", memory: 8Gi, pods: "10"}
    allocatable: {cpu: "8", memory: 8Gi, pods: "10"}
    conditions: [{type: Ready, status: "True", lastHeartbeatTime: "2026-01-01T00:00:00Z"}]
    addresses: [{type: InternalIP, address: 10.0.0.1}]
    images: [{names: [a], sizeBytes: 1}]
- apiVersion: resource.k8s.io/v1
  kind: ResourceSlice
  spec:
    driver: gpu.example.com
    nodeName: bad
    pool: {name: bad, generation: 1, resourceSliceCount: 1}
    devices:
    - name: gpu-0
      attributes: {model: {string: a}, memory: {int: 1}, v: {version: 1.0.0}}
      capacity: {memory: {value: 1Gi}}
      taints: [{key: a, effect: NoSchedule, timeAdded: "2026-01-01T00:00:00Z"}]
- apiVersion: resource.k8s.io/v1
  kind: DeviceClass
  spec:
    selectors: [{cel: {expression: device.driver == "bad"}}]
    config: [{opaque: {driver: bad, parameters: {a: 1}}}]
    extendedResourceName: example.com/bad
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaim
  metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: b, controller: true}]}
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: bad
          allocationMode: ExactCount
          count: 1
          selectors: [{cel: {expression: device.driver == "bad"}}]
      constraints: [{requests: [gpu], matchAttribute: gpu.example.com/model}]
  status:
    reservedFor: [{resource: pods, name: a, uid: b}]
    allocation:
      devices:
        results: [{request: gpu, driver: bad, pool: bad, device: gpu-0}]
        config: [{source: FromClaim, opaque: {driver: bad, parameters: {}}}]
      nodeSelector:
        nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [bad]}]}]
- apiVersion: resource.k8s.io/v1beta2
  kind: DeviceTaintRule
  spec:
    deviceSelector: {driver: bad, pool: bad, device: gpu-0}
    taint: {key: a, value: b, effect: NoExecute, timeAdded: "2026-01-01T00:00:00Z"}
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaimTemplate
  spec:
    metadata: {labels: {a: b}}
    spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: bad}}]}}
- apiVersion: apps/v1
  kind: ReplicaSet
  spec:
    replicas: 1
    selector: {matchLabels: {app: bad}, matchExpressions: [{key: a, operator: Exists}]}
    template:
      metadata: {labels: {app: bad, a: b}}
      spec: {containers: [{name: main, image: a}]}
  status: {replicas: 1, readyReplicas: 1, observedGeneration: 1}
- apiVersion: apps/v1
  kind: Deployment
  spec:
    replicas: 1
    selector: {matchLabels: {app: bad}}
    strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}
    template: {metadata: {labels: {app: bad}}, spec: {containers: [{name: main, image: a}]}}
  status: {conditions: [{type: Progressing, status: "True"}], observedGeneration: 1}
- apiVersion: apps/v1
  kind: DaemonSet
  spec:
    selector: {matchLabels: {app: bad}}
    updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 10%}}
    template: {metadata: {labels: {app: bad}}, spec: {containers: [{name: main, image: a}]}}
- apiVersion: batch/v1
  kind: Job
  spec:
    parallelism: 1
    completions: 1
    backoffLimit: 1
    completionMode: Indexed
    podFailurePolicy:
      rules: [{action: FailJob, onExitCodes: {operator: In, values: [1]}}]
    template:
      spec: {restartPolicy: Never, containers: [{name: main, image: a}]}
  status: {startTime: "2026-01-01T00:00:00Z", uncountedTerminatedPods: {succeeded: [a]}}
- apiVersion: v1
  kind: Namespace
  metadata: {labels: {a: b}}
  spec: {finalizers: [kubernetes]}
  status: {phase: Active}
- apiVersion: v1
  kind: ResourceQuota
  spec: {hard: {pods: "5", requests.cpu: 1m}, scopes: [NotTerminating],
         scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}}
  status: {hard: {pods: "5"}, used: {pods: "1"}}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {labels: {aggregate: "true"}}
  aggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregate: "true"}}]}
  rules: [{apiGroups: [""], resources: [pods], verbs: [get], resourceNames: [a]}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  subjects: [{kind: User, name: nobody, apiGroup: rbac.authorization.k8s.io}]
  roleRef: {kind: ClusterRole, name: bad, apiGroup: rbac.authorization.k8s.io}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  subjects: [{kind: ServiceAccount, name: nobody, namespace: bad}]
  roleRef: {kind: Role, name: bad, apiGroup: rbac.authorization.k8s.io}
- apiVersion: scheduling.k8s.io/v1beta1
  kind: PodGroup
  spec: {schedulingPolicy: {gang: {minCount: 1}}, priority: 1}
- apiVersion: v1
  kind: ServiceAccount
  secrets: [{name: a}]
  imagePullSecrets: [{name: a}]
- apiVersion: v1
  kind: ConfigMap
  data: {a: b}
  binaryData: {b: AA==}
- apiVersion: v1
  kind: Secret
  type: Opaque
  data: {a: AA==}
- apiVersion: scheduling.k8s.io/v1
  kind: PriorityClass
  value: 1
  globalDefault: false
- apiVersion: node.k8s.io/v1
  kind: RuntimeClass
  handler: bad
  overhead: {podFixed: {cpu: 1m}}
  scheduling: {nodeSelector: {a: b}}
- apiVersion: coordination.k8s.io/v1
  kind: Lease
  spec: {holderIdentity: a, leaseDurationSeconds: 1, renewTime: "2026-01-01T00:00:00.000000Z"}
- apiVersion: v1
  kind: Event
  involvedObject: {kind: Pod, name: a, namespace: bad}
  reason: a
  message: b
  count: 1
"""

SAMPLES: Final[Mapping[str, Tree]] = {each["kind"]: each for each in yaml.safe_load(_SAMPLES)}


def malformed(random: Random, tree: Tree) -> Tree:
    """Return a copy of an object with odd values at random places; its identity stays."""
    changed: Tree = copy.deepcopy(tree)
    for _ in range(random.randint(1, CHANGES_MAX)):
        holder, key = random.choice(_spots(changed))
        if isinstance(holder, dict) and random.random() < 0.25:
            key = random.choice(ODD_NAMES)
        holder[key] = copy.deepcopy(random.choice(ODD_VALUES))
    return _identified(changed, tree)


def decodable(
    random: Random, tree: Tree, struct: type[T], number: int, **metadata: Any
) -> Iterator[T]:
    """Yield malformed objects that a decoder lets pass, each with a name of its own."""
    for index in range(number):
        name = f"bad-{index}"
        own = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(index + 1), **metadata}
        named = {**tree, "metadata": {**tree.get("metadata", {}), **own}}
        for _ in range(TRIES_MAX):
            try:
                yield decode_json(json.dumps(malformed(random, named)).encode(), struct).value
                break
            except ApiError:
                continue


def _identified(changed: Tree, tree: Tree) -> Tree:
    """Return an object under the name that it had."""
    before = tree.get("metadata") or {}
    kept = {key: before[key] for key in IDENTITY if key in before}
    metadata = changed.get("metadata")
    own = metadata if isinstance(metadata, dict) else {}
    return {**changed, **{k: tree[k] for k in ("apiVersion", "kind")}, "metadata": {**own, **kept}}


def _spots(tree: Tree) -> list[tuple[Any, Any]]:
    """Return all places in a tree, but not those of its kind and name."""
    found: list[tuple[Any, Any]] = []
    waiting: list[Any] = [tree]
    while waiting:
        holder = waiting.pop()
        keys = range(len(holder)) if isinstance(holder, list) else list(holder)
        found += [(holder, key) for key in keys if key not in ("apiVersion", "kind", "metadata")]
        waiting += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
    return found
