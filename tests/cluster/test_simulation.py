"""Machines that are not there, and pods on them."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.codec import decode_tree
from mooring.api.coordination import Lease
from mooring.api.core import Namespace, Node, Pod
from mooring.api.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice
from mooring.api.timestamp import Timestamp
from mooring.client.writes import Delete, Target
from mooring.cluster.overview import count
from mooring.cluster.simulation import SIMULATED, Machines, SimulatedPods, fleets_of
from mooring.controllers.controller import Refused
from mooring.controllers.model import Model
from mooring.controllers.settling import Settling
from mooring.node.runtime.durations import End, end_of
from tests.controllers.late import Late

NOW = Timestamp.parse("2026-10-01T12:00:00Z")


def made(struct: type[Any], name: str, namespace: str = "", **fields: Any) -> Any:
    metadata = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
    return decode_tree({"metadata": metadata, **fields}, struct).value


def world(*profiles: str) -> Settling:
    settling = Settling(Model(NOW), [Machines(fleets_of(profiles)), SimulatedPods()])
    settling.model.put(made(Namespace, "kube-node-lease"))
    settling.settle()
    return settling


def pod(name: str, node: str, command: list[str] | None = None, **spec: Any) -> Pod:
    container = {"name": "c", "image": "i", "command": command or []}
    spec = {"containers": [container], "nodeName": node, **spec}
    found: Pod = made(Pod, name, "default", spec=spec, metadata={"uid": name})
    return found


def phase(settling: Settling, name: str) -> str:
    found = settling.model.get(Pod, "default", name)
    return "gone" if found is None else found.status.phase


def test_machines_register_with_their_devices() -> None:
    settling = world("dgx-h100x2", "dgx-h100")
    objects = settling.model.objects
    nodes = sorted(each.metadata.name for each in objects.all(Node))
    assert nodes == ["dgx-h100-0", "dgx-h100-1", "dgx-h100-2"]
    node = objects.find(Node, "", "dgx-h100-1")
    assert node is not None
    assert node.metadata.annotations[SIMULATED] == "true"
    assert {c.type: c.status for c in node.status.conditions}["Ready"] == "True"
    assert str(node.status.allocatable["pods"]) == "110"
    slices = [each for each in objects.all(ResourceSlice) if each.spec.node_name == "dgx-h100-1"]
    assert {each.metadata.owner_references[0].uid for each in slices} == {node.metadata.uid}
    assert objects.find(DeviceClass, "", "gpu.nvidia.com") is not None


@pytest.mark.parametrize(
    "profiles",
    [
        ("dgx-h100", "xe9680-mi300x", "tpu-v6e"),
        ("tpu-v6e", "dgx-h100x2", "gb200-nvl72", "xeon6-snc3"),
    ],
)
def test_machines_that_share_classes_all_bring_theirs(profiles: tuple[str, ...]) -> None:
    fleets = fleets_of(profiles)
    late = Late([Machines(fleets)])  # every machine plans before it sees what others have written
    late.model.put(made(Namespace, "kube-node-lease"))
    late.settle()
    objects = late.model.objects
    assert {each.metadata.name for each in objects.all(DeviceClass)} == {
        each.metadata.name for fleet in fleets for each in fleet.classes
    }
    assert objects.count(ResourceSlice) == sum(len(fleet.slices) for fleet in fleets)
    assert objects.count(Lease) == sum(len(fleet.nodes) for fleet in fleets)


def test_a_class_that_is_refused_keeps_nothing_else_from_a_machine(
    caplog: pytest.LogCaptureFixture,
) -> None:
    late = Late([Machines(fleets_of(["dgx-h100"]))])
    late.model.admits = lambda value: (
        Refused("Forbidden", "no such classes here")
        if isinstance(value, DeviceClass) and value.metadata.name == "dra.cpu"
        else None
    )
    late.model.put(made(Namespace, "kube-node-lease"))
    late.settle()
    objects = late.model.objects
    assert objects.find(DeviceClass, "", "gpu.nvidia.com") is not None
    assert objects.count(ResourceSlice) == 4
    assert objects.find(Lease, "kube-node-lease", "dgx-h100-0") is not None
    assert [each.getMessage() for each in caplog.records] == [
        "simulated-machines: dgx-h100-0: no such classes here"
    ]


def test_a_class_that_somebody_deletes_stays_away() -> None:
    settling = world("dgx-h100x2")
    settling.model.write(Delete(Target(DeviceClass, "", "mig.nvidia.com")))
    settling.advance(60)
    assert settling.model.get(DeviceClass, "", "mig.nvidia.com") is None


def test_a_lease_is_renewed_while_time_passes() -> None:
    settling = world("dgx-h100")
    before = settling.model.get(Lease, "kube-node-lease", "dgx-h100-0").spec.renew_time
    settling.advance(25)
    after = settling.model.get(Lease, "kube-node-lease", "dgx-h100-0").spec.renew_time
    assert 10 <= (after.instant - before.instant).total_seconds() <= 25


def test_a_deleted_node_stays_away_and_a_deleted_slice_comes_back() -> None:
    settling = world("dgx-h100x2")
    objects = settling.model.objects
    published = objects.count(ResourceSlice)
    first = next(each for each in objects.all(ResourceSlice) if "h100-1" in each.metadata.name)
    settling.model.write(Delete(Target.of(first)))
    settling.settle()
    assert objects.count(ResourceSlice) == published
    settling.model.write(Delete(Target(Node, "", "dgx-h100-0")))
    settling.settle()
    assert [each.metadata.name for each in objects.all(Node)] == ["dgx-h100-1"]


def test_a_pod_runs_until_it_is_deleted() -> None:
    settling = world("dgx-h100")
    settling.model.put(pod("web", "dgx-h100-0", restartPolicy="Always"))
    settling.settle()
    found = settling.model.get(Pod, "default", "web")
    assert found.status.phase == "Running"
    assert {c.type: c.status for c in found.status.conditions}["Ready"] == "True"
    assert [each.ready for each in found.status.container_statuses] == [True]
    settling.advance(3600)
    assert phase(settling, "web") == "Running"
    settling.model.write(Delete(Target(Pod, "default", "web")))
    settling.settle()
    assert phase(settling, "web") == "gone"


def test_a_pod_of_a_job_ends_when_its_program_does() -> None:
    settling = world("dgx-h100")
    settling.model.put(pod("good", "dgx-h100-0", ["sleep", "30"], restartPolicy="Never"))
    settling.model.put(pod("bad", "dgx-h100-0", ["false"], restartPolicy="Never"))
    settling.settle()
    assert (phase(settling, "good"), phase(settling, "bad")) == ("Running", "Failed")
    settling.advance(31)
    assert phase(settling, "good") == "Succeeded"


def test_a_stopped_pod_whose_finalizer_is_another_s_has_failed() -> None:
    settling = world("dgx-h100")
    value = made(
        Pod,
        "held",
        "default",
        metadata={"finalizers": ["example.com/x"]},
        spec={"containers": [{"name": "c"}], "nodeName": "dgx-h100-0"},
    )
    settling.model.put(value)
    settling.settle()
    settling.model.write(Delete(Target(Pod, "default", "held")))
    settling.settle()
    assert phase(settling, "held") == "Failed"


def test_pods_of_other_nodes_are_left_alone() -> None:
    settling = world("dgx-h100")
    settling.model.put(made(Node, "real"), pod("web", "real"))
    settling.settle()
    assert phase(settling, "web") == ""


def test_devices_of_claims_are_prepared() -> None:
    settling = world("dgx-h100")
    result = {"request": "r", "driver": "gpu.nvidia.com", "pool": "dgx-h100-0", "device": "gpu-0"}
    allocation = {"devices": {"results": [result]}}
    settling.model.put(
        made(ResourceClaim, "gpu", "default", status={"allocation": allocation}),
        pod("web", "dgx-h100-0", resourceClaims=[{"name": "g", "resourceClaimName": "gpu"}]),
    )
    settling.settle()
    (device,) = settling.model.get(ResourceClaim, "default", "gpu").status.devices
    assert (device.driver, device.device) == ("gpu.nvidia.com", "gpu-0")
    assert [(each.type, each.status) for each in device.conditions] == [("Ready", "True")]
    objects = settling.model.objects
    kinds: Any = (Node, Pod, ResourceSlice, ResourceClaim)
    overview = count(*map(objects.all, kinds))
    assert (overview.nodes_ready, overview.pods, overview.devices_in_use) == (1, {"Running": 1}, 1)


@pytest.mark.parametrize(
    ("command", "policy", "end"),
    [
        (["sleep", "30"], "Never", End(30)),
        (["sleep", "2m"], "OnFailure", End(120)),
        (["sleep", "infinity"], "Never", None),
        (["sleep", "30"], "Always", None),
        (["true"], "Never", End(0)),
        (["false"], "Never", End(0, 1)),
        (["false"], "OnFailure", None),
        (["/bin/sh", "-c", "echo hi; sleep 5 && sleep 1\nexit 3"], "Never", End(6, 3)),
        (["bash", "-c", "while true; do sleep 1; done"], "Never", None),
        (["bash", "-c", 'echo "unfinished'], "Never", End(5)),
        (["python", "train.py"], "Never", End(5)),
        (["tail", "-f", "/dev/null"], "Never", None),
        ([], "Never", End(5)),
    ],
)
def test_how_long_a_program_runs(command: list[str], policy: str, end: End | None) -> None:
    assert end_of(pod("p", "n", command, restartPolicy=policy)) == end


def test_an_annotation_says_how_long_and_how_it_ends() -> None:
    notes = {"mooring.dev/runs-for": "90s", "mooring.dev/exits-with": "7"}
    spec = {"containers": [{"name": "c"}], "restartPolicy": "Never"}
    value = made(Pod, "p", "default", metadata={"annotations": notes}, spec=spec)
    assert end_of(value) == End(90, 7)
