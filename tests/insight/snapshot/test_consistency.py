"""Incomplete and contradictory objects are reported, with the consequence for answers."""

from __future__ import annotations

from moorage.insight.snapshot.consistency import check_consistency
from tests.insight.snapshot.test_builder import intake

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {capacity: {cpu: 8}}
"""
CLASS = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
"""
SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1-gpu}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}]
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, uid: pod-uid, namespace: default}
spec:
  nodeName: node-1
  containers: [{name: main, image: web}]
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
"""
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
status:
  allocation:
    devices:
      results: [{request: gpu, driver: gpu.example.com, pool: node-1, device: gpu-0}]
  reservedFor: [{resource: pods, name: web, uid: pod-uid}]
"""
PENDING = CLAIM[: CLAIM.index("status:")]


def concerns(*texts: str) -> list[str]:
    taken = intake("---\n".join(texts))
    assert not taken.refused
    return [str(each) for each in check_consistency(taken.snapshot())]


def test_a_whole_cluster_gives_no_concern() -> None:
    assert concerns(NODE, CLASS, SLICE, POD, CLAIM) == []


def test_claims_without_slices_are_named_with_their_devices() -> None:
    assert concerns(NODE, CLASS, POD, CLAIM) == [
        (
            "1 device held by claims that no slice has: default/gpu holds gpu-0 of pool node-1 "
            "(gpu.example.com): they count neither as free nor as taken; are all slices there?"
        )
    ]


def test_without_nodes_the_nodes_of_slices_are_named() -> None:
    assert concerns(CLASS, SLICE, PENDING) == [
        (
            "there are no Node objects, though slices are of 1 node (node-1): "
            "pods have nowhere to go; add the nodes"
        )
    ]


def test_slices_by_themselves_are_whole() -> None:
    assert concerns(SLICE) == []


def test_nodes_without_slices_have_no_devices() -> None:
    assert concerns(NODE, CLASS, PENDING) == [
        (
            "there are no ResourceSlice objects, though devices are asked for by "
            "ResourceClaim default/gpu: no device can be found; add the slices"
        )
    ]
    assert concerns(NODE, CLASS) == []


def test_some_nodes_missing() -> None:
    other = NODE.replace("node-1", "node-2")
    assert concerns(other, CLASS, SLICE) == [
        "slices are of 1 node (node-1) not among the objects: nothing is placed there"
    ]


def test_a_node_without_capacity() -> None:
    bare = NODE.replace("status: {capacity: {cpu: 8}}\n", "")
    (found,) = concerns(bare)
    assert found.startswith("1 node (node-1) without capacity and allocatable: no pod fits there")


def test_a_pod_on_a_node_that_is_not_there() -> None:
    pod = POD.replace("resourceClaims", "x-resourceClaims")
    assert concerns(pod) == [
        (
            "1 pod on nodes that are not among the objects: default/web on node-1: "
            "what they use counts on no node"
        )
    ]


def test_a_missing_class_is_named_with_who_asks_for_it() -> None:
    assert concerns(PENDING) == [
        (
            "DeviceClass gpu.example.com is not among the objects, but asked for by "
            "ResourceClaim default/gpu: no device can be found for it; "
            "--profile example-gpu has machines with such devices"
        )
    ]


def test_a_pool_without_all_its_slices() -> None:
    part = SLICE.replace("Count: 1", "Count: 3")
    assert concerns(NODE, CLASS, part) == [
        (
            "1 pool without all slices: node-1 (gpu.example.com) has 1 of 3: "
            "no device of theirs is allocated"
        )
    ]


def test_a_device_that_two_claims_hold() -> None:
    other = CLAIM.replace("name: gpu, namespace", "name: other, namespace")
    (found,) = concerns(NODE, CLASS, SLICE, POD, CLAIM, other)
    assert found.startswith(
        "1 device held twice: gpu-0 of pool node-1 (gpu.example.com) "
        "by default/gpu and default/other: "
    )


def test_shares_and_admin_access_may_be_together() -> None:
    other = CLAIM.replace("name: gpu, namespace", "name: other, namespace")
    admin = other.replace("device: gpu-0}", "device: gpu-0, adminAccess: true}")
    assert concerns(NODE, CLASS, SLICE, POD, CLAIM, admin) == []


def test_a_reservation_for_a_pod_that_is_not_there() -> None:
    (found,) = concerns(NODE, CLASS, SLICE, CLAIM)
    assert "1 reservation for what is not among the objects: default/gpu for pods web" in found


def test_a_pod_of_the_same_name_but_another_uid_is_another() -> None:
    (found,) = concerns(NODE, CLASS, SLICE, CLAIM, POD.replace("pod-uid", "new-uid"))
    assert "default/gpu for pods web" in found


def test_a_missing_claim_and_a_missing_template() -> None:
    assert concerns(NODE, POD)[0].startswith(
        "ResourceClaim default/gpu is not among the objects, but used by Pod default/web"
    )
    pod = POD.replace("resourceClaimName: gpu", "resourceClaimTemplateName: gpus")
    assert concerns(NODE, pod)[0].startswith(
        "ResourceClaimTemplate default/gpus is not among the objects, but used by Pod default/web"
    )


def test_of_many_alike_the_first_are_named() -> None:
    pods = [
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p{i}, uid: u{i}}}\nspec: {{nodeName: n}}\n"
        for i in range(10)
    ]
    (found,) = concerns(*pods)
    assert "10 pods" in found
    assert "default/p2 on n and 7 more" in found
