"""Pseudonyms: each name is replaced consistently; everything else is unchanged."""

from __future__ import annotations

from moorage.api.codec import encode_json
from moorage.insight.plan.planner import plan
from moorage.insight.snapshot.completion import complete
from moorage.insight.snapshot.consistency import check_consistency
from moorage.insight.snapshot.pseudonyms import anonymised
from moorage.insight.snapshot.redaction import redacted
from moorage.insight.snapshot.snapshot import Snapshot, is_new
from tests.insight.snapshot.test_builder import intake
from tests.insight.snapshot.test_workloads import CONTEXT, DEPLOYMENT, pod

CLUSTER = """\
apiVersion: v1
kind: Namespace
metadata: {name: acme, labels: {kubernetes.io/metadata.name: acme, team: red}}
---
apiVersion: v1
kind: Node
metadata: {name: acme-node-b, labels: {kubernetes.io/hostname: acme-node-b, pool: gpu}}
status: {capacity: {cpu: 8, pods: 110}}
---
apiVersion: v1
kind: Node
metadata: {name: acme-node-a, labels: {kubernetes.io/hostname: acme-node-a}}
status: {capacity: {cpu: 8, pods: 110}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
---
apiVersion: v1
kind: Service
metadata: {name: acme-web, namespace: acme}
spec: {selector: {namespace: red, kubernetes.io/metadata.name: acme}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: acme-node-a-gpus}
spec:
  driver: gpu.example.com
  nodeName: acme-node-a
  pool: {name: acme-node-a, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, attributes: {pool: {string: x}}, capacity: {pool: {value: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: acme-web, namespace: acme, uid: p}
spec:
  nodeName: acme-node-a
  nodeSelector: {kubernetes.io/hostname: acme-node-a, pool: gpu}
  containers: [{name: main, image: i}]
  resourceClaims: [{name: gpu, resourceClaimName: acme-claim}]
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: kubernetes.io/hostname, namespaces: [acme], labelSelector: {}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: acme-volume, uid: v}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  claimRef: {kind: PersistentVolumeClaim, namespace: acme, name: acme-data, uid: d}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [acme-node-b]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: acme-data, namespace: acme, uid: d}
spec: {accessModes: [ReadWriteOnce], volumeName: acme-volume}
status: {phase: Bound}
---
apiVersion: v1
kind: Pod
metadata: {name: acme-reader, namespace: acme, uid: r}
spec:
  containers: [{name: main, image: i}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: acme-data}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: acme-claim, namespace: acme, uid: c}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
status:
  reservedFor: [{resource: pods, name: acme-web, uid: p}]
  allocation:
    nodeSelector:
      nodeSelectorTerms:
      - matchFields: [{key: metadata.name, operator: In, values: [acme-node-a]}]
    devices:
      results: [{request: gpu, driver: gpu.example.com, pool: acme-node-a, device: gpu-0}]
"""


def given(*more: str) -> Snapshot:
    found = intake("---\n".join((CLUSTER, *more)))
    assert not found.refused
    return redacted(found.snapshot())


def test_no_name_is_left() -> None:
    text = b"".join(map(encode_json, anonymised(given()).objects()))
    assert b"acme" not in text
    assert b'"pool":"gpu"' in text
    assert b'"team":"red"' in text


def test_all_references_still_hold() -> None:
    assert check_consistency(given()) == []
    assert check_consistency(anonymised(given())) == []


def test_names_keep_their_order() -> None:
    names = [node.metadata.name for node in anonymised(given()).nodes]
    assert names == ["site-2", "site-1"]


def test_a_name_is_the_same_wherever_it_stands() -> None:
    after = anonymised(given())
    (slice_,) = after.slices
    found = after.pods[0]
    assert slice_.spec.node_name == slice_.spec.pool.name == found.spec.node_name == "site-1"
    assert found.spec.node_selector == {"kubernetes.io/hostname": "site-1", "pool": "gpu"}
    assert found.metadata.namespace == after.namespaces[0].metadata.name == "space-1"


def test_volumes_hold_pods_where_they_did() -> None:
    for snapshot, node in ((given(), "acme-node-b"), (anonymised(given()), "site-2")):
        (placed,) = plan(snapshot, CONTEXT).placed
        assert placed.node == node


def test_what_is_new_is_still_new() -> None:
    after = anonymised(given())
    assert [is_new(node) for node in after.nodes] == [True, True]
    assert not is_new(after.pods[0])


def test_controllers_still_know_their_pods() -> None:
    owner = "apiVersion: apps/v1, kind: ReplicaSet, name: web-5d9c, uid: x"
    before = given(DEPLOYMENT, pod("web-5d9c-a", owner))
    after = anonymised(before)
    completed = [complete(each, CONTEXT).snapshot for each in (before, after)]
    counts = [len(each.pods) - len(before.pods) for each in completed]
    assert counts == [2, 2]


def test_the_same_names_twice_give_the_same() -> None:
    assert anonymised(given()) == anonymised(given())


def test_what_a_service_selects_is_renamed_as_labels_are() -> None:
    (service,) = anonymised(intake(CLUSTER).snapshot()).services
    assert (service.metadata.name, service.metadata.namespace) == ("service-1", "space-1")
    assert service.spec.selector == {"namespace": "red", "kubernetes.io/metadata.name": "space-1"}
