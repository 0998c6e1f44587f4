"""The node as the cluster sees it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from moorage.api.codec import decode_tree, to_tree
from moorage.api.core import Node
from moorage.api.core.node import NodeSystemInfo
from moorage.api.gates import Gates
from moorage.api.quantity import Quantity
from moorage.api.timestamp import Timestamp
from moorage.node.node_status import (
    MachineInfo,
    NodeDescription,
    PluginResource,
    declared_features,
    kept_free,
    lease_of,
    missing_labels,
    new_node,
    patch_of,
    read_machine,
    status_of,
)

NOW = Timestamp.parse("2026-11-15T12:00:00Z")
MACHINE = MachineInfo(
    {"cpu": Quantity.parse("4"), "memory": Quantity.parse("8Gi")},
    NodeSystemInfo(operating_system="linux", architecture="amd64"),
    "host",
)


def described(**more: Any) -> NodeDescription:
    return NodeDescription("n", MACHINE, "10.0.0.1", "memory://1", Gates.parse(), **more)


def told(node: Node, description: NodeDescription, now: Timestamp = NOW, **more: Any) -> Node:
    given = {"more": {}, "trouble": "", **more}
    return replace(node, status=status_of(node, description, now=now, **given))


def test_a_node_tells_what_it_has_and_how_it_is() -> None:
    reserved = {"memory": Quantity.parse("1Gi"), "cpu": Quantity.parse("9")}
    description = described(reserved=reserved, port=10250)
    node = told(
        new_node(description),
        description,
        more={"example.com/gpu": PluginResource(Quantity.from_int(2), Quantity.from_int(1))},
    )
    status = to_tree(node.status)
    assert status["capacity"] == {
        "cpu": "4",
        "memory": "8Gi",
        "example.com/gpu": "2",
        "pods": "110",
    }
    assert status["allocatable"]["memory"] == "7Gi"
    assert status["allocatable"]["cpu"] == "0"
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert status["nodeInfo"]["containerRuntimeVersion"] == "memory://1"
    ready = status["conditions"][-1]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "True", "KubeletReady")


def test_a_status_is_told_when_it_changed_or_is_old() -> None:
    description = described()
    node = told(new_node(description), description)

    def patch(seconds: float, **more: Any) -> Any:
        now = Timestamp(NOW.instant + timedelta(seconds=seconds))
        return patch_of(node, told(node, description, now, **more).status, now)

    assert patch(10) is None
    assert patch(301) is not None
    not_ready = patch(10, trouble="the runtime is away")
    (condition,) = (
        each for each in not_ready.body["status"]["conditions"] if each["type"] == "Ready"
    )
    assert condition["status"] == "False"
    assert condition["lastTransitionTime"] == "2026-11-15T12:00:10Z"


def test_what_plugins_take_away_is_taken_away() -> None:
    description = described()
    before = told(
        new_node(description),
        description,
        more={"example.com/gpu": PluginResource(Quantity.from_int(2), Quantity.from_int(1))},
    )
    patch = patch_of(before, told(before, description).status, NOW)
    assert patch is not None
    assert patch.body["status"]["capacity"]["example.com/gpu"] is None


def test_conditions_and_labels_of_others_stay() -> None:
    tree = {
        "metadata": {"name": "n", "labels": {"zone": "a"}},
        "status": {"conditions": [{"type": "NetworkUnavailable", "status": "False"}]},
    }
    node = decode_tree(tree, Node).value
    description = described()
    types = [each.type for each in told(node, description).status.conditions]
    assert types[0] == "NetworkUnavailable"
    patch = missing_labels(node, description)
    assert patch is not None
    assert "zone" not in patch.body["metadata"]["labels"]
    assert missing_labels(new_node(description), description) is None


def test_features_are_declared_by_their_gates() -> None:
    assert declared_features(Gates.parse()) == (
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
    )
    off = Gates.parse("DRAOptionalNodeOperations=false")
    assert declared_features(off) == ("DRANodeAllocatableResources",)


def test_a_lease_belongs_to_its_node_and_is_renewed() -> None:
    node = new_node(described())
    lease = lease_of(node, None, NOW)
    assert lease.metadata.namespace == "kube-node-lease"
    later = Timestamp(NOW.instant + timedelta(seconds=10))
    again = lease_of(node, lease, later)
    assert again.spec.renew_time is not None
    assert again.spec.renew_time.instant == later.instant


def test_this_machine_can_be_read(tmp_path: Path) -> None:
    machine = read_machine(tmp_path)
    assert machine.capacity["cpu"].value >= 1
    assert machine.capacity["memory"].value > 1024**2
    assert machine.info.kernel_version
    kept = kept_free(machine.capacity)
    assert kept["ephemeral-storage"].value < machine.capacity["ephemeral-storage"].value


def test_huge_pages_are_read_by_their_size(tmp_path: Path) -> None:
    folder = tmp_path / "sys/kernel/mm/hugepages/hugepages-2048kB"
    folder.mkdir(parents=True)
    (folder / "nr_hugepages").write_text("512\n")
    capacity = read_machine(tmp_path, tmp_path).capacity
    assert str(capacity["hugepages-2Mi"]) == "1Gi"
