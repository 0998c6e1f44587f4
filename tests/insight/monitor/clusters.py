"""A cluster in which something of everything happens, for metrics."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import yaml

from moorage.api.catalogue import KINDS
from moorage.api.codec import decode_tree
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.hardware import Catalogue
from moorage.insight.snapshot.snapshot import Snapshot, identified
from moorage.kit.clock import EPOCH
from moorage.validation.registry import defaulted_hub
from moorage.validation.strategy import Context

CONTEXT = Context(gates=Gates.parse(), now=Timestamp(EPOCH))

# Of the eight GPUs of dgx-h100-0, one is taken and one is tainted; three are what a worker that
# waits would get. The claim `lost` has a device that nobody publishes.
OBJECTS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: held, namespace: team, creationTimestamp: HOUR}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
status:
  reservedFor: [{resource: pods, name: holder, uid: holder}]
  allocation:
    devices:
      results: [{request: gpu, driver: gpu.nvidia.com, pool: dgx-h100-0, device: gpu-0}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: lost, namespace: team, creationTimestamp: HOUR}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
status:
  allocation:
    devices:
      results: [{request: gpu, driver: gpu.nvidia.com, pool: dgx-h100-0, device: gpu-99}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: leaving
  namespace: team
  creationTimestamp: HOUR
  deletionTimestamp: MINUTE
  finalizers: [example.com/stays]
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
---
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: broken}
spec:
  deviceSelector: {driver: gpu.nvidia.com, pool: dgx-h100-0, device: gpu-1}
  taint: {key: example.com/broken, effect: NoSchedule}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: half}
spec:
  driver: half.example.com
  nodeName: dgx-h100-0
  pool: {name: half, generation: 1, resourceSliceCount: 2}
  devices: [{name: half-0}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: worker, namespace: team}
spec:
  spec:
    devices:
      requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 3}}]
      constraints: [{requests: [gpus], matchAttribute: resource.kubernetes.io/numaNode}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: huge, namespace: team}
spec:
  spec:
    devices:
      requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 9}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: mistyped, namespace: other}
spec:
  spec:
    devices:
      requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.con}}]
---
apiVersion: v1
kind: Pod
metadata: {name: worker-0, namespace: team, creationTimestamp: HOUR}
spec:
  resourceClaims: [{name: gpus, resourceClaimTemplateName: worker}]
  containers: [{name: c, image: i, resources: {claims: [{name: gpus}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: huge, namespace: team, creationTimestamp: MINUTE}
spec:
  resourceClaims: [{name: gpus, resourceClaimTemplateName: huge}]
  containers: [{name: c, image: i, resources: {claims: [{name: gpus}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: mistyped, namespace: other, creationTimestamp: MINUTE}
spec:
  resourceClaims: [{name: gpus, resourceClaimTemplateName: mistyped}]
  containers: [{name: c, image: i, resources: {claims: [{name: gpus}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: large, namespace: other, creationTimestamp: MINUTE}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: 1000}}}]
"""


def objects_of(text: str) -> list[Any]:
    """Return the objects of manifests, as an API server has them."""
    return [identified(_object(tree)) for tree in yaml.safe_load_all(text)]


def _object(tree: dict[str, Any]) -> Any:
    wanted = (tree["apiVersion"], tree["kind"])
    kind = next(kind for kind in KINDS if (kind.api_version, kind.name) == wanted)
    return defaulted_hub(decode_tree(tree, kind.struct).value, kind, CONTEXT)


def busy_objects(now: datetime) -> list[Any]:
    """Return the objects of a cluster at a time."""
    text = OBJECTS
    for word, seconds in (("HOUR", 3600), ("MINUTE", 60)):
        text = text.replace(word, str(Timestamp(now - timedelta(seconds=seconds))))
    fleet = Catalogue().fleet("dgx-h100")
    return [*map(identified, (*fleet.nodes, *fleet.classes, *fleet.slices)), *objects_of(text)]


def busy_cluster(now: datetime) -> Snapshot:
    """Return a cluster at a time."""
    return Snapshot.of(busy_objects(now))
