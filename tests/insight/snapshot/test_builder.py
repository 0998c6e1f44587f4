"""Stored objects are accepted unchanged; new ones are admitted first."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from moorage.api.documents import CORE, expand_lists, read
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.insight.snapshot.builder import SnapshotBuilder
from moorage.insight.snapshot.snapshot import is_new
from moorage.validation.strategy import Context

NOW = Timestamp(datetime(2026, 1, 1, tzinfo=UTC))

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: main
    image: web
    resources: {limits: {cpu: "2"}}
"""
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
"""
HELD = """\
status:
  allocation:
    devices:
      results: [{request: gpu, driver: gpu.example.com, pool: node-1, device: gpu-0}]
"""


def intake(
    text: str, *, gates: str = "", namespace: str = "default", is_cluster: bool = False
) -> SnapshotBuilder:
    context = Context(gates=Gates.parse(gates), now=NOW)
    taken = SnapshotBuilder(context, namespace=namespace, is_cluster=is_cluster)
    for document in read(text.encode(), source="here.yaml", schema=CORE):
        for each in expand_lists(document):
            taken.add_document(each)
    return taken


def facts(taken: SnapshotBuilder) -> list[str]:
    return [str(concern) for concern in taken.concerns()]


def test_a_new_pod_gets_defaults_and_the_namespace() -> None:
    (pod,) = intake(POD, namespace="team").snapshot().pods
    assert pod.metadata.namespace == "team"
    assert str(pod.spec.containers[0].resources.requests["cpu"]) == "2"
    assert pod.status.phase == "Pending"


def test_new_objects_get_a_uid_that_follows_from_their_name() -> None:
    first, again = (intake(POD).snapshot().pods[0] for _ in range(2))
    other = intake(POD, namespace="team").snapshot().pods[0]
    assert first.metadata.uid == again.metadata.uid != other.metadata.uid
    assert is_new(first)


def test_what_a_server_would_refuse_is_left_out_with_its_place() -> None:
    taken = intake(POD.replace("web}", "Web}"))
    assert taken.snapshot().pods == ()
    assert taken.refused[0].startswith("here.yaml:3:")
    assert "Pod default/Web: metadata.name: Invalid value" in taken.refused[0]


def test_what_was_stored_is_taken_with_its_status_and_not_judged() -> None:
    text = POD.replace("name: web}", "name: Web, uid: u1}") + "status: {phase: Running}\n"
    (pod,) = intake(text).snapshot().pods
    assert (pod.metadata.uid, pod.status.phase) == ("u1", "Running")
    assert not is_new(pod)


def test_the_status_of_a_new_claim_is_taken_too() -> None:
    (claim,) = intake(CLAIM + HELD).snapshot().claims
    assert claim.status.allocation is not None


def test_fields_of_features_that_are_off_are_dropped_and_told() -> None:
    text = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s, uid: u1}
spec:
  driver: gpu.example.com
  nodeName: n
  pool: {name: n, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, taints: [{key: k, effect: NoSchedule}]}]
"""
    (kept,) = intake(text).snapshot().slices
    taken = intake(text, gates="DRADeviceTaints=false,DRADeviceTaintRules=false")
    (dropped,) = taken.snapshot().slices
    assert len((kept.spec.devices or ())[0].taints) == 1
    assert len((dropped.spec.devices or ())[0].taints) == 0
    assert facts(taken) == [
        (
            "fields of DRADeviceTaints are dropped in 1 object of kind ResourceSlice: "
            "its feature gate is off"
        )
    ]


def test_unknown_kinds_are_named_with_their_number() -> None:
    text = "\n---\n".join(
        f"apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: r{i}}}"
        for i in range(3)
    )
    assert facts(intake(text)) == [
        (
            "TrainJob (trainer.kubeflow.org/v1alpha1) is not known (3 objects): "
            "left out; pods or devices that come from it are missing from the answer"
        )
    ]


def test_an_unsupported_version_is_told_with_those_that_are() -> None:
    (fact,) = facts(intake(CLAIM.replace("io/v1\n", "io/v1alpha1\n")))
    assert "ResourceClaim exists in resource.k8s.io/v1" in fact


@pytest.mark.parametrize(
    ("version", "kind", "hint"),
    [
        ("v1", "Deployment", "; Deployment exists in apps/v1"),
        ("extensions/v1beta1", "Deployment", "; Deployment exists in apps/v1"),
        ("v1", "Pods", "; did you mean Pod?"),
    ],
)
def test_a_kind_that_no_server_has_is_told_with_what_was_meant(
    version: str, kind: str, hint: str
) -> None:
    (fact,) = facts(intake(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n"))
    start = f'no matches for kind "{kind}" in version "{version}"'
    assert fact.startswith(f"{start}{hint} (1 object): left out; ")


def test_kinds_that_decide_nothing_are_left_out_in_silence() -> None:
    kinds = ("ConfigMap", "Service", "PersistentVolumeClaim", "Event")
    taken = intake(
        "---\n".join(f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: c}}\n" for kind in kinds)
    )
    assert facts(taken) == []
    assert taken.unreadable == []


def test_what_is_no_object_is_unreadable_with_its_place() -> None:
    taken = intake(f"{POD}---\nname: web\n")
    assert taken.unreadable == ["here.yaml:10:1: not a Kubernetes object: apiVersion is not set"]
    assert len(taken.snapshot().pods) == 1


def test_the_same_object_twice_is_told_if_it_differs() -> None:
    assert facts(intake(f"{POD}---\n{POD}")) == []
    taken = intake(f"{POD}---\n{POD.replace('image: web', 'image: other')}")
    assert facts(taken) == [
        (
            "Pod default/web is there twice, at here.yaml:1 and at here.yaml:10, and differs: "
            "the latter counts"
        )
    ]
    assert taken.snapshot().pods[0].spec.containers[0].image == "other"


def test_generated_names_are_numbered() -> None:
    text = POD.replace("name: web}", "generateName: web-}")
    pods = intake(f"{text}---\n{text}").snapshot().pods
    assert [pod.metadata.name for pod in pods] == ["web-0", "web-1"]


def test_admin_access_in_a_namespace_that_is_not_given_is_taken_with_a_warning() -> None:
    text = CLAIM.replace("gpu.example.com}", "gpu.example.com, adminAccess: true}")
    taken = intake(text)
    assert len(taken.snapshot().claims) == 1
    assert "admin access to devices requires" in facts(taken)[0]
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, uid: u}\n"
    assert len(intake(f"{namespace}---\n{text}").refused) == 1


def test_lists_are_taken_apart() -> None:
    import json

    item = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u"}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [item]})
    assert [node.metadata.name for node in intake(text).snapshot().nodes] == ["n"]


# --- lists without their gate -------------------------------------------------------------


SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: s
  ownerReferences: [{apiVersion: v1, kind: Node, name: node-1, controller: true}]
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {near: {ints: [0, 1]}, model: {string: a}}
"""


def test_attributes_that_lose_their_value_with_their_gate_are_gone() -> None:
    text = SLICE.replace("name: s\n", "name: s\n  uid: u1\n")
    taken = intake(text, gates="DRAListTypeAttributes=false")
    (found,) = taken.snapshot().slices
    assert list((found.spec.devices or ())[0].attributes) == ["model"]
    assert "fields of DRAListTypeAttributes are dropped in 1 object" in facts(taken)[0]


# --- dumps that were scrubbed -------------------------------------------------------------


NODE = """\
---
apiVersion: v1
kind: Node
metadata: {name: node-1, uid: n1}
"""


def test_a_scrubbed_dump_is_read_with_a_note() -> None:
    taken = intake(SLICE + NODE, is_cluster=True)
    (found,) = taken.snapshot().slices
    assert taken.refused == []
    assert found.metadata.owner_references[0].uid == "n1"
    assert facts(taken) == [
        (
            "uids of references are missing in 1 object of kind ResourceSlice: "
            "what they refer to is found by kind and name"
        )
    ]


def test_without_any_uid_a_claim_is_still_its_pods() -> None:
    consumer = "  reservedFor: [{resource: pods, name: web}]\n"
    owner = "namespace: default, ownerReferences: [{apiVersion: v1, kind: Pod, name: web}]}"
    claim = CLAIM.replace("namespace: default}", owner) + HELD + consumer
    taken = intake(f"{claim}---\n{POD}", is_cluster=True)
    (found,), (pod,) = taken.snapshot().claims, taken.snapshot().pods
    assert found.metadata.owner_references[0].uid == pod.metadata.uid
    assert found.status.reserved_for[0].uid == pod.metadata.uid


def test_what_is_to_be_created_must_have_the_uids_of_its_owners() -> None:
    taken = intake(SLICE)
    assert taken.snapshot().slices == ()
    assert "metadata.ownerReferences[0].uid" in taken.refused[0]


def test_a_scrubbed_dump_that_is_wrong_otherwise_is_refused() -> None:
    taken = intake(SLICE.replace("gpu-0", "GPU"), is_cluster=True)
    assert taken.snapshot().slices == ()
    assert len(taken.refused) == 2


# --- the order of documents ---------------------------------------------------------------


ADMIN_CLAIM = CLAIM.replace("deviceClassName", "adminAccess: true, deviceClassName")
NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata: {name: default, labels: {resource.kubernetes.io/admin-access: "true"}}
"""


def test_a_namespace_decides_about_admin_access_before_and_after_the_claim() -> None:
    for texts in ((NAMESPACE, ADMIN_CLAIM), (ADMIN_CLAIM, NAMESPACE)):
        taken = intake("---\n".join(texts))
        assert len(taken.snapshot().claims) == 1
        assert facts(taken) == []
    unlabelled = NAMESPACE.replace('"true"', '"false"')
    for texts in ((unlabelled, ADMIN_CLAIM), (ADMIN_CLAIM, unlabelled)):
        taken = intake("---\n".join(texts))
        assert taken.snapshot().claims == ()
        assert "admin access to devices requires" in taken.refused[0]


def test_a_claim_whose_namespace_never_comes_is_taken_with_a_warning() -> None:
    taken = intake(ADMIN_CLAIM)
    assert len(taken.snapshot().claims) == 1
    assert "admin access to devices requires" in facts(taken)[0]


def test_of_services_and_replication_controllers_only_the_selector_is_read() -> None:
    taken = intake(
        """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec: {selector: {app: old}, replicas: 2}
""",
        namespace="team",
    )
    (service,), (controller,) = taken.snapshot().services, taken.snapshot().replication_controllers
    assert (service.metadata.namespace, service.spec.selector) == ("team", {"app": "web"})
    assert controller.spec.selector == {"app": "old"}
    (fact,) = facts(taken)
    assert fact.startswith("ReplicationController (v1) makes no pods here (1 object): left out; ")


def test_a_service_that_is_none_is_said_with_its_place() -> None:
    taken = intake("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: no service\n")
    assert taken.unreadable == ["here.yaml:4:1: spec: expected a ServiceSpec (a map), got a string"]


def test_devices_share_equal_attributes() -> None:
    slices = "\n---\n".join(
        f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: slice-{number}, uid: uid-{number}}}
spec:
  driver: gpu.example.com
  nodeName: node-{number}
  pool: {{name: node-{number}, generation: 1, resourceSliceCount: 1}}
  devices:
  - name: gpu-0
    attributes: {{model: {{string: H100}}, index: {{int: {number}}}, cores: {{int: 1}}}}
"""
        for number in range(3)
    )
    taken = intake(slices, is_cluster=True).snapshot()
    first, second, third = ((s.spec.devices or ())[0].attributes for s in taken.slices)

    assert first["model"] is second["model"] is third["model"]
    assert second["index"] is second["cores"] is first["cores"]
    assert [each["index"].int_value for each in (first, second, third)] == [0, 1, 2]
