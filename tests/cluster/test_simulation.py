"""Machines that are not there, and pods on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.codec import decode_tree, to_tree
from moorage.api.coordination import Lease
from moorage.api.core import Namespace, Node, Pod
from moorage.api.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.timestamp import Timestamp
from moorage.client.writes import Delete, RecordEvent, Target, Update
from moorage.cluster.overview import count_objects
from moorage.cluster.simulation import SIMULATED, SimulatedMachines, SimulatedPods, fleets_of
from moorage.controllers.controller import Lookup, WriteRefused
from moorage.node.runtime.sim import End, end_of
from tests.controllers.late import Late
from tests.controllers.model import Model
from tests.controllers.settling import Settling
from tests.node.world import World, container, make_pod, play

NOW = Timestamp.parse("2026-10-01T12:00:00Z")


def made(struct: type[Any], name: str, namespace: str = "", **fields: Any) -> Any:
    metadata = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
    return decode_tree({"metadata": metadata, **fields}, struct).value


def world(*profiles: str) -> Settling:
    settling = Settling(Model(NOW), [SimulatedMachines(fleets_of(profiles)), SimulatedPods()])
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
    nodes = sorted(each.metadata.name for each in objects.list(Node))
    assert nodes == ["dgx-h100-0", "dgx-h100-1", "dgx-h100-2"]
    node = objects.get(Node, "", "dgx-h100-1")
    assert node is not None
    assert node.metadata.annotations[SIMULATED] == "true"
    assert {c.type: c.status for c in node.status.conditions}["Ready"] == "True"
    assert str(node.status.allocatable["pods"]) == "110"
    slices = [each for each in objects.list(ResourceSlice) if each.spec.node_name == "dgx-h100-1"]
    assert {each.metadata.owner_references[0].uid for each in slices} == {node.metadata.uid}
    assert objects.get(DeviceClass, "", "gpu.nvidia.com") is not None


@pytest.mark.parametrize(
    "profiles",
    [
        ("dgx-h100", "xe9680-mi300x", "tpu-v6e"),
        ("tpu-v6e", "dgx-h100x2", "gb200-nvl72", "xeon6-snc3"),
    ],
)
def test_machines_that_share_classes_all_bring_theirs(profiles: tuple[str, ...]) -> None:
    fleets = fleets_of(profiles)
    late = Late(
        [SimulatedMachines(fleets)]
    )  # every machine plans before it sees what others have written
    late.model.put(made(Namespace, "kube-node-lease"))
    late.settle()
    objects = late.model.objects
    assert {each.metadata.name for each in objects.list(DeviceClass)} == {
        each.metadata.name for fleet in fleets for each in fleet.classes
    }
    assert objects.count(ResourceSlice) == sum(len(fleet.slices) for fleet in fleets)
    assert objects.count(Lease) == sum(len(fleet.nodes) for fleet in fleets)


def test_a_class_that_is_refused_keeps_nothing_else_from_a_machine(
    caplog: pytest.LogCaptureFixture,
) -> None:
    late = Late([SimulatedMachines(fleets_of(["dgx-h100"]))])
    late.model.admits = lambda value: (
        WriteRefused("Forbidden", "no such classes here")
        if isinstance(value, DeviceClass) and value.metadata.name == "dra.cpu"
        else None
    )
    late.model.put(made(Namespace, "kube-node-lease"))
    late.settle()
    objects = late.model.objects
    assert objects.get(DeviceClass, "", "gpu.nvidia.com") is not None
    assert objects.count(ResourceSlice) == 4
    assert objects.get(Lease, "kube-node-lease", "dgx-h100-0") is not None
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
    first = next(each for each in objects.list(ResourceSlice) if "h100-1" in each.metadata.name)
    settling.model.write(Delete(Target.of(first)))
    settling.settle()
    assert objects.count(ResourceSlice) == published
    settling.model.write(Delete(Target(Node, "", "dgx-h100-0")))
    settling.settle()
    assert [each.metadata.name for each in objects.list(Node)] == ["dgx-h100-1"]


def test_a_pod_runs_until_it_is_deleted() -> None:
    settling = world("dgx-h100")
    settling.model.put(pod("web", "dgx-h100-0", restartPolicy="Always"))
    settling.settle()
    found = settling.model.get(Pod, "default", "web")
    assert found.status.phase == "Running"
    conditions = {c.type: c.status for c in found.status.conditions}
    assert conditions["Ready"] == "True"
    assert conditions["PodScheduled"] == "True"  # though no scheduler chose the node
    assert [each.ready for each in found.status.container_statuses] == [True]
    settling.advance(3600)
    assert phase(settling, "web") == "Running"
    settling.model.write(Delete(Target(Pod, "default", "web")))
    settling.settle()
    assert phase(settling, "web") == "gone"


def test_a_pod_in_the_network_of_its_host_has_its_address() -> None:
    settling = world("dgx-h100")
    settling.model.put(pod("own", "dgx-h100-0"))
    settling.model.put(pod("host", "dgx-h100-0", hostNetwork=True))
    settling.settle()
    own, host = (settling.model.get(Pod, "default", name).status for name in ("own", "host"))
    assert host.pod_ip == host.host_ip == host.pod_ips[0].ip
    assert own.pod_ip != own.host_ip


def test_a_pod_of_a_job_ends_when_its_program_does() -> None:
    settling = world("dgx-h100")
    settling.model.put(pod("good", "dgx-h100-0", ["sleep", "30"], restartPolicy="Never"))
    settling.model.put(pod("bad", "dgx-h100-0", ["false"], restartPolicy="Never"))
    settling.settle()
    assert (phase(settling, "good"), phase(settling, "bad")) == ("Running", "Failed")
    settling.advance(31)
    assert phase(settling, "good") == "Succeeded"


def test_ephemeral_containers_run_and_end_by_their_commands() -> None:
    def states(name: str = "web") -> dict[str, str]:
        listed = settling.model.get(Pod, "default", name).status.ephemeral_container_statuses
        return {
            each.name: next(kind for kind in ("running", "terminated") if getattr(each.state, kind))
            for each in listed
        }

    settling = world("dgx-h100")
    settling.model.put(pod("web", "dgx-h100-0", restartPolicy="Always"))
    settling.settle()
    assert states() == {}
    shell = {"name": "shell", "image": "i", "command": ["sleep", "infinity"]}
    short = {"name": "short", "image": "i", "command": ["sleep", "30"]}
    debug(settling, "web", [shell, short])
    assert states() == {"shell": "running", "short": "running"}
    settling.advance(31)
    assert states() == {"shell": "running", "short": "terminated"}
    debug(settling, "web", [shell, short, {**short, "name": "more"}])
    assert states() == {"shell": "running", "short": "terminated", "more": "running"}
    found = settling.model.get(Pod, "default", "web").status
    assert found.phase == "Running"
    assert [each.ready for each in found.ephemeral_container_statuses] == [False] * 3


def test_ephemeral_containers_end_with_their_pod() -> None:
    settling = world("dgx-h100")
    settling.model.put(pod("job", "dgx-h100-0", ["sleep", "30"], restartPolicy="Never"))
    settling.settle()
    debug(settling, "job", [{"name": "shell", "image": "i", "command": ["sleep", "infinity"]}])
    settling.advance(31)
    assert phase(settling, "job") == "Succeeded"
    found = settling.model.get(Pod, "default", "job").status
    (status,) = found.ephemeral_container_statuses
    assert status.state.terminated.exit_code == 143


def debug(settling: Settling, name: str, containers: list[dict[str, Any]]) -> None:
    """Add ephemeral containers, as their subresource does."""
    tree = to_tree(settling.model.get(Pod, "default", name))
    tree["spec"]["ephemeralContainers"] = containers
    settling.model.write(Update(decode_tree(tree, Pod).value))
    settling.settle()


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
    status = {"allocation": allocation, "reservedFor": [reserved("web")]}
    settling.model.put(
        made(ResourceClaim, "gpu", "default", status=status),
        pod("web", "dgx-h100-0", resourceClaims=[{"name": "g", "resourceClaimName": "gpu"}]),
    )
    settling.settle()
    (device,) = settling.model.get(ResourceClaim, "default", "gpu").status.devices
    assert (device.driver, device.device) == ("gpu.nvidia.com", "gpu-0")
    assert [(each.type, each.status) for each in device.conditions] == [("Ready", "True")]
    objects = settling.model.objects
    kinds: Any = (Node, Pod, ResourceSlice, ResourceClaim)
    overview = count_objects(*map(objects.list, kinds))
    assert (overview.nodes_ready, overview.pods, overview.devices_in_use) == (1, {"Running": 1}, 1)


# --- what a node does not run -------------------------------------------------------------------

GPU = {"name": "g", "resourceClaimName": "gpu"}
ALLOCATION = {
    "devices": {
        "results": [
            {"request": "r", "driver": "gpu.nvidia.com", "pool": "dgx-h100-0", "device": "gpu-0"}
        ]
    }
}


def reserved(name: str) -> dict[str, str]:
    return {"resource": "pods", "name": name, "uid": name}


def claim(**status: Any) -> ResourceClaim:
    found: ResourceClaim = made(
        ResourceClaim, "gpu", "default", status=status, metadata={"uid": "u"}
    )
    return found


def told(settling: Settling) -> list[tuple[str, str]]:
    warnings = [each for each in settling.model.told if each.is_warning]
    return [(each.reason, each.message) for each in warnings]


@pytest.mark.parametrize(
    ("given", "entry", "fact"),
    [
        (
            None,
            GPU,
            'fetch ResourceClaim gpu: resourceclaims.resource.k8s.io "gpu" not found',
        ),
        (claim(), GPU, "pod web (web) is not allowed to use ResourceClaim gpu (u)"),
        (
            claim(reservedFor=[reserved("web")]),
            GPU,
            "ResourceClaim gpu: not allocated",
        ),
        (
            claim(allocation=ALLOCATION, reservedFor=[reserved("other")]),
            GPU,
            "pod web (web) is not allowed to use ResourceClaim gpu (u)",
        ),
        (
            None,
            {"name": "g", "resourceClaimTemplateName": "t"},
            "ResourceClaim not created yet",
        ),
    ],
    ids=["missing", "not reserved", "not allocated", "of another", "of a template"],
)
def test_a_pod_without_its_claims_waits_as_on_a_real_node(
    given: ResourceClaim | None, entry: dict[str, str], fact: str, tmp_path: Path
) -> None:
    settling = world("dgx-h100")
    if given is not None:
        settling.model.put(given)
    settling.model.put(pod("web", "dgx-h100-0", resourceClaims=[entry]))
    settling.settle()
    ((reason, message),) = told(settling)
    assert reason == "FailedPrepareDynamicResources"
    assert message.startswith("Failed to prepare dynamic resources: prepare dynamic resources: ")
    assert message.endswith(fact)
    refusal = message.removeprefix("Failed to prepare dynamic resources: ")
    assert status_tree(settling) == real_status_tree(tmp_path, refusal)
    settling.advance(200)
    assert phase(settling, "web") == "Pending"
    assert 4 <= len(told(settling)) <= 10  # again and again, later each time
    assert set(told(settling)) == {(reason, message)}


def status_tree(settling: Settling) -> dict[str, Any]:
    found: dict[str, Any] = to_tree(settling.model.get(Pod, "default", "web").status)
    return without_places(found)


def real_status_tree(folder: Path, refusal: str) -> dict[str, Any]:
    """Return what the agent of a real node says of a pod whose devices are refused."""

    async def story(it: World) -> None:
        it.devices.refusal = refusal
        it.cluster.put(make_pod(container("c"), name="web", status={}))
        await it.clock.advance(1.5)
        assert it.told[0].reason == "FailedPrepareDynamicResources"
        assert it.told[0].message == f"Failed to prepare dynamic resources: {refusal}"

    return without_places(to_tree(play(folder, story).pod("web").status))


def without_places(status: dict[str, Any]) -> dict[str, Any]:
    for name in ("hostIP", "hostIPs", "startTime"):
        assert status.pop(name)
    for condition in status["conditions"]:
        condition.pop("lastTransitionTime")
    return status


def test_a_pod_runs_as_soon_as_its_claim_is_its_own() -> None:
    settling = world("dgx-h100")
    settling.model.put(claim(), pod("web", "dgx-h100-0", resourceClaims=[GPU]))
    settling.settle()
    assert phase(settling, "web") == "Pending"
    value = settling.model.get(ResourceClaim, "default", "gpu")
    status = claim(allocation=ALLOCATION, reservedFor=[reserved("web")]).status
    settling.model.write(Update(replace(value, status=status), "status"))
    settling.settle()
    assert phase(settling, "web") == "Running"
    assert len(told(settling)) == 1


def test_a_claim_that_the_copy_does_not_have_yet_is_looked_for_at_the_server() -> None:
    """Pods and claims are followed one by one: a pod may be seen before what it was given."""
    settling = world("dgx-h100")
    web = pod("web", "dgx-h100-0", resourceClaims=[GPU])
    settling.model.put(web)
    controller = SimulatedPods()
    answer = claim(allocation=ALLOCATION, reservedFor=[reserved("web")])
    asked = list(controller.reconcile(settling.model.objects, ("default", "web"), NOW, {}))
    ask = Lookup(ResourceClaim, "default", "gpu")
    assert asked == [ask]
    steps = list(
        controller.reconcile(settling.model.objects, ("default", "web"), NOW, {ask: answer})
    )
    assert any(isinstance(each, RecordEvent) and each.reason == "Started" for each in steps)


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        (
            {"requests": {"cpu": "1000"}},
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 1000000, used: 0, capacity: 224000",
        ),
        ({"nodeSelector": {"a": "b"}}, "NodeAffinity", "Predicate NodeAffinity failed"),
        (
            {"os": {"name": "windows"}},
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
        ),
    ],
)
def test_a_pod_that_a_node_cannot_take_fails(
    spec: dict[str, Any], reason: str, message: str
) -> None:
    settling = world("dgx-h100")
    requests = spec.pop("requests", {})
    value = {"name": "c", "image": "i", "resources": {"requests": requests}}
    settling.model.put(pod("web", "dgx-h100-0", containers=[value], **spec))
    settling.settle()
    assert told(settling) == [(reason, message)]
    status = settling.model.get(Pod, "default", "web").status
    assert (status.phase, status.reason) == ("Failed", reason)
    assert status.message == f"Pod was rejected: {message}"
    assert status.container_statuses == ()


def test_a_simulated_node_has_the_handlers_of_all_runtime_classes() -> None:
    settling = world("dgx-h100")
    settling.model.put(pod("web", "dgx-h100-0", runtimeClassName="nvidia"))
    settling.settle()
    assert phase(settling, "web") == "Running"


def test_pods_that_end_make_room_for_others() -> None:
    settling = world("dgx-h100")
    big = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "200"}}}
    for name in ("one", "two"):
        settling.model.put(pod(name, "dgx-h100-0", containers=[big]))
        settling.settle()
    assert [phase(settling, name) for name in ("one", "two")] == ["Running", "Failed"]
    settling.model.write(Delete(Target(Pod, "default", "one")))
    settling.model.put(pod("three", "dgx-h100-0", containers=[big]))
    settling.settle()
    assert phase(settling, "three") == "Running"


def test_a_program_that_starts_again_counts_the_pods_that_run() -> None:
    settling = world("dgx-h100")
    big = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "200"}}}
    settling.model.put(pod("one", "dgx-h100-0", containers=[big]))
    settling.settle()
    again = Settling(settling.model, [SimulatedPods()])
    settling.model.put(pod("two", "dgx-h100-0", containers=[big]))
    again.settle()
    assert phase(again, "one") == "Running"
    assert phase(again, "two") == "Failed"


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
    notes = {"moorage.dev/runs-for": "90s", "moorage.dev/exits-with": "7"}
    spec = {"containers": [{"name": "c"}], "restartPolicy": "Never"}
    value = made(Pod, "p", "default", metadata={"annotations": notes}, spec=spec)
    assert end_of(value) == End(90, 7)
