"""Redaction takes texts away and leaves every answer as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import encode_json
from moorage.api.core import Container, Pod, PodSpec
from moorage.api.go_types import message_named
from moorage.api.meta import ObjectMeta
from moorage.insight.snapshot.completion import complete
from moorage.insight.snapshot.redaction import redact, redacted
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.scheduler.pod_signature import PodSignature, sign
from moorage.validation.registry import before_create
from tests.insight.snapshot.test_archive import FILES, taken
from tests.insight.snapshot.test_builder import intake
from tests.insight.snapshot.test_workloads import CONTEXT

SECRET = "s3cr3t"

POD_SPEC = f"""\
  nodeSelector: {{pool: gpu}}
  imagePullSecrets: [{{name: {SECRET}}}]
  hostAliases: [{{ip: 1.2.3.4, hostnames: [{SECRET}]}}]
  volumes:
  - {{name: data, persistentVolumeClaim: {{claimName: data}}}}
  - {{name: share, nfs: {{server: {SECRET}, path: /{SECRET}}}}}
  - {{name: model, image: {{reference: example.com/model}}}}
  - {{name: settings, configMap: {{name: {SECRET}}}}}
  unknownField: {SECRET}
  containers:
  - name: main
    image: example.com/web
    command: [{SECRET}]
    args: [{SECRET}]
    workingDir: /{SECRET}
    env: [{{name: PASSWORD, value: {SECRET}}}]
    envFrom: [{{secretRef: {{name: {SECRET}}}}}]
    volumeMounts:
    - {{name: data, mountPath: /data/{SECRET}}}
    - {{name: settings, mountPath: /{SECRET}, bindMountOptions: [noexec]}}
    livenessProbe: {{exec: {{command: [{SECRET}]}}}}
    lifecycle: {{preStop: {{exec: {{command: [{SECRET}]}}}}}}
    ports: [{{containerPort: 80, hostPort: 80}}]
    resources: {{limits: {{cpu: 2}}}}
"""
METADATA = f"""\
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: {SECRET}
    example.com/note: {SECRET}
  managedFields: [{{manager: {SECRET}, operation: Update, apiVersion: v1}}]
"""
POD = f"""\
apiVersion: v1
kind: Pod
metadata:
  name: web
  uid: u
{METADATA}spec:
{POD_SPEC}status:
  phase: Running
  message: {SECRET}
  podIP: 10.9.8.7
  conditions: [{{type: PodScheduled, status: "True", message: {SECRET}}}]
  containerStatuses:
  - name: main
    allocatedResources: {{cpu: 3}}
    lastState: {{terminated: {{exitCode: 1, message: {SECRET}}}}}
"""
DEPLOYMENT = f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
{METADATA}spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{annotations: {{note: {SECRET}}}, labels: {{app: web}}}}
    spec:
{"".join(f"    {line}" for line in POD_SPEC.splitlines(keepends=True))}"""
CLAIM = f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: gpu
  uid: c
{METADATA}spec:
  devices:
    requests: [{{name: gpu, exactly: {{deviceClassName: gpu.example.com}}}}]
    config: [{{opaque: {{driver: gpu.example.com, parameters: {{token: {SECRET}}}}}}}]
status:
  allocation:
    devices:
      results: [{{request: gpu, driver: gpu.example.com, pool: node-1, device: gpu-0}}]
      config:
      - {{source: FromClaim, opaque: {{driver: gpu.example.com, parameters: {{t: {SECRET}}}}}}}
  devices:
  - driver: gpu.example.com
    pool: node-1
    device: gpu-0
    data: {{token: {SECRET}}}
    networkData: {{interfaceName: {SECRET}}}
    conditions:
    - {{type: Ready, status: "True", reason: Ok, message: {SECRET},
        lastTransitionTime: 2026-01-01T00:00:00Z}}
"""
NODE = f"""\
apiVersion: v1
kind: Node
metadata:
  name: node-1
{METADATA}spec: {{providerID: {SECRET}}}
status:
  capacity: {{cpu: 4}}
  addresses: [{{type: Hostname, address: {SECRET}}}]
  images: [{{names: [example.com/web], sizeBytes: 5}}]
"""
CLASS = f"""\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: gpu.example.com}}
spec:
  config: [{{opaque: {{driver: gpu.example.com, parameters: {{token: {SECRET}}}}}}}]
"""
VOLUME = f"""\
apiVersion: v1
kind: PersistentVolume
metadata: {{name: data, annotations: {{token: {SECRET}}}}}
spec:
  capacity: {{storage: 1Gi}}
  accessModes: [ReadWriteOnce]
  storageClassName: disks
  mountOptions: [{SECRET}]
  csi: {{driver: {SECRET}.example.com, volumeHandle: {SECRET}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data, annotations: {{token: {SECRET}}}}}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: disks
  resources: {{requests: {{storage: 1Gi}}}}
  dataSource: {{kind: PersistentVolumeClaim, name: {SECRET}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: disks, annotations: {{storageclass.kubernetes.io/is-default-class: "true"}}}}
provisioner: disks.example.com
parameters: {{key: {SECRET}}}
mountOptions: [{SECRET}]
"""


def everything() -> Snapshot:
    found = intake("---\n".join((POD, DEPLOYMENT, CLAIM, NODE, CLASS, VOLUME)))
    assert not found.refused
    return found.snapshot()


def facts(shape: PodSignature) -> dict[str, object]:
    """Return what a shape says; shapes themselves are equal only to themselves."""
    return {field: getattr(shape, field) for field in shape.__struct_fields__}


def test_no_secret_is_left() -> None:
    before = b"".join(map(encode_json, everything().objects()))
    after = b"".join(map(encode_json, redacted(everything()).objects()))
    assert before.count(SECRET.encode()) > 30
    assert SECRET.encode() not in after
    assert b"10.9.8.7" not in after


def test_what_decides_about_volumes_is_left() -> None:
    after = redacted(everything())
    (volume,), (claim,), (found,) = after.volumes, after.volume_claims, after.storage_classes
    assert volume.spec.access_modes == claim.spec.access_modes == ("ReadWriteOnce",)
    assert volume.spec.capacity == claim.spec.resources.requests
    assert found.is_default
    assert after.pods[0].spec.volumes[0] == {
        "name": "data",
        "persistentVolumeClaim": {"claimName": "data"},
    }


def test_the_shapes_of_pods_are_as_before() -> None:
    (pod,) = everything().pods
    shape = sign(pod)
    assert facts(sign(redact(pod))) == facts(shape)
    assert shape.pre_filter_status is not None  # the volume claim
    assert "example.com/model:latest" in shape.images


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_redaction_never_decides(path: Path) -> None:
    before = taken(path)
    after = redacted(before)
    assert redacted(after) == after
    shapes = [
        [facts(sign(pod)) for pod in complete(each, CONTEXT).snapshot.pods]
        for each in (before, after)
    ]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("source", sorted(message_named("core/v1.VolumeSource").fields))
def test_pods_of_redacted_templates_are_still_valid(source: str) -> None:
    volume = {"name": "v", source: {}}
    container = Container(name="c", image="i", volume_mounts=({"name": "v", "mountPath": "/v"},))
    spec = PodSpec(volumes=(volume,), containers=(container,))
    made = redact(Pod(metadata=ObjectMeta(name="p"), spec=spec))
    assert list(made.spec.volumes[0]) == ["name", source]
    assert before_create(made, CATALOGUE.find("v1", "Pod"), CONTEXT).errors == ()


def test_what_was_allocated_stays() -> None:
    (claim,) = redacted(everything()).claims
    assert claim.status.allocation is not None
    assert claim.status.allocation.devices.results[0].device == "gpu-0"
    (condition,) = claim.status.devices[0].conditions or ()
    assert (condition.type, condition.message) == ("Ready", "")
