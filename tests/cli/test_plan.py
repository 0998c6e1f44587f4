"""`moor plan`: nodes and devices of pods, from files and profiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.plan import command

SEEDS = Path(__file__).parents[2] / "examples" / "seeds"

TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus-and-nic}
spec:
  spec:
    devices:
      requests:
      - name: gpus
        exactly: {deviceClassName: gpu.nvidia.com, count: 4}
      - name: nic
        exactly: {deviceClassName: dra.net}
      constraints:
      - matchAttribute: resource.kubernetes.io/numaNode
"""

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec:
  replicas: %d
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      containers:
      - {name: c, image: x, resources: {claims: [{name: d}]}}
      resourceClaims:
      - {name: d, resourceClaimTemplateName: gpus-and-nic}
"""

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - {name: c, image: x}
"""


def plan(*arguments: str, text: str | None = None) -> Result:
    given = ["-f", "-"] if text is not None else []
    return CliRunner().invoke(command, [*given, *arguments], input=text)


def manifests(replicas: int) -> str:
    return f"{TEMPLATE}---\n{DEPLOYMENT % replicas}"


def test_every_pod_of_a_deployment_gets_a_node_and_devices() -> None:
    result = plan("--profile", "dgx-h100", text=manifests(2))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "POD               NODE         REQUEST   DEVICES",
        (
            "default/train-0   dgx-h100-0   gpus      "
            "gpu.nvidia.com/dgx-h100-0/gpu-0,gpu-1,gpu-2,gpu-3"
        ),
        "                               nic       dra.net/dgx-h100-0/pci-0000-18-00-0",
        (
            "default/train-1   dgx-h100-0   gpus      "
            "gpu.nvidia.com/dgx-h100-0/gpu-4,gpu-5,gpu-6,gpu-7"
        ),
        "                               nic       dra.net/dgx-h100-0/pci-0000-9a-00-0",
        "",
        "2 pods of 2 placed on 1 of 1 node",
    ]


def test_a_pod_without_a_node_has_kubernetes_message_and_is_status_1() -> None:
    result = plan("--profile", "dgx-h100", text=manifests(3))
    assert result.exit_code == 1
    assert "default/train-2   <none>       -         -\n" in result.stdout
    assert (
        "default/train-2 gets no node: 0/1 nodes are available: 1 cannot allocate all claims. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.\n"
    ) in result.stdout
    assert result.stdout.endswith(
        "2 pods of 3 placed on 1 of 1 node; moor explain tells why the others are not\n"
    )


def test_wide_has_a_line_for_each_device() -> None:
    result = plan("--profile", "dgx-h100", "-o", "wide", text=manifests(1))
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["POD", "NODE", "CLAIM", "REQUEST", "DEVICE", "SHARE", "CONSUMES"]
    assert len([line for line in lines if "gpu.nvidia.com/dgx-h100-0/gpu-" in line]) == 4


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_trees_have_everything(output: str) -> None:
    result = plan("--profile", "dgx-h100", "-o", output, text=manifests(3))
    assert result.exit_code == 1
    if output == "yaml":
        yaml = pytest.importorskip("yaml")
        tree = yaml.safe_load(result.stdout)
    else:
        tree = json.loads(result.stdout)
    assert tree["summary"] == {"placed": 2, "pending": 1, "nodes": 1}
    first, _, last = tree["pods"]
    assert first["node"] == "dgx-h100-0"
    assert [granted["request"] for granted in first["requests"]] == ["gpus", "nic"]
    assert first["requests"][0]["devices"][0] == {
        "driver": "gpu.nvidia.com",
        "pool": "dgx-h100-0",
        "device": "gpu-0",
    }
    assert "node" not in last
    assert last["message"].startswith("0/1 nodes are available")


def test_names_are_those_of_kubectl() -> None:
    result = plan("--profile", "dgx-h100", "-o", "name", text=f"{manifests(1)}---\n{TEMPLATE}")
    assert result.stdout == "pod/train-0\n"
    unused = plan("--profile", "dgx-h100", "-o", "name", text=TEMPLATE)
    assert unused.stdout == "resourceclaimtemplate.resource.k8s.io/gpus-and-nic\n"


def test_a_template_that_no_pod_uses_is_planned_by_itself() -> None:
    result = plan("--profile", "dgx-h100", text=TEMPLATE)
    assert result.exit_code == 0
    assert "template/gpus-and-nic   dgx-h100-0   gpus" in result.stdout


def test_devices_and_device_plugins_serve_extended_resources() -> None:
    names = ["004-33-deployment", "004-34-device-class", "004-35-gpu-slice", "004-36-node-with-dra"]
    files = [option for name in names for option in ("-f", str(SEEDS / f"{name}.yaml"))]
    by_devices = plan(*files)
    assert by_devices.exit_code == 0
    assert "example.com/gpu   gpu.example.com/" in by_devices.stdout
    plugin = str(SEEDS / "004-37-node-with-device-plugin.yaml")
    by_plugin = plan(*files[:-2], "-f", plugin)
    assert by_plugin.exit_code == 0
    assert "example.com/gpu   1 from the node's device plugin" in by_plugin.stdout


def test_pending_pods_of_the_cluster_are_planned_along_and_shown_if_wanted(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(POD.replace("name: p}", "name: waiting, uid: u}"))
    arguments = ("--profile", "dgx-h100", "--on", str(cluster), "-o", "name")
    assert plan(*arguments, text=POD).stdout == "pod/p\n"
    assert plan(*arguments, "--all", text=POD).stdout == "pod/waiting\npod/p\n"


def test_without_pods_there_is_nothing_to_plan() -> None:
    result = plan("--profile", "dgx-h100")
    assert result.exit_code == 0
    assert result.stdout == "Nothing to plan: there are no pods, and nothing that makes any.\n"


def test_of_a_file_that_cannot_be_read_nothing_is_said() -> None:
    result = CliRunner().invoke(command, ["-f", "nowhere.yaml"])
    assert result.exit_code == 3
    assert result.output == "error: nowhere.yaml: no such file or directory\n"


def test_an_address_is_not_taken_for_a_file() -> None:
    result = CliRunner().invoke(command, ["-f", "https://example.com/pods.yaml"])
    assert result.exit_code == 3
    assert result.output == (
        "error: https://example.com/pods.yaml: addresses are not fetched: "
        "curl -sL ADDRESS | moor … -f - reads one\n"
    )


def test_without_nodes_that_is_what_is_said() -> None:
    result = plan(text=POD)
    assert result.exit_code == 1
    assert "default/p gets no node: no nodes available to schedule pods" in result.stdout
    assert "no nodes are given; --profile adds machines, --on or --live a cluster" in result.stdout


def test_what_an_api_server_would_not_take_is_refused_with_its_place() -> None:
    result = plan("--profile", "dgx-h100", text=POD.replace("image: x", "image: x, ports: [{}]"))
    assert result.exit_code == 1
    assert "<stdin>:6:33: Pod default/p: spec.containers[0].ports" in result.stderr


def test_a_file_that_is_not_there_is_status_3() -> None:
    result = plan("-f", "nowhere.yaml", "--profile", "dgx-h100")
    assert result.exit_code == 3
    assert "nowhere.yaml: no such file or directory" in result.stderr


def test_nothing_given_is_a_usage_error() -> None:
    assert plan().exit_code == 2


EXTENDED = """\
apiVersion: v1
kind: Pod
metadata: {name: extended}
spec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 2}}}]}
"""
EXAMPLE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: single-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
"""


def test_pods_with_the_extended_resource_of_nvidia_get_gpus_of_profiles() -> None:
    result = plan("--profile", "dgx-h100", text=EXTENDED)
    assert "nvidia.com/gpu   gpu.nvidia.com/dgx-h100-0/gpu-0,gpu-1" in result.stdout
    assert result.exit_code == 0


def test_a_class_that_a_profile_has_is_told_with_the_profile() -> None:
    result = plan("--profile", "dgx-h100", text=EXAMPLE)
    assert result.exit_code == 1
    assert "--profile example-gpu has machines with such devices" in result.stderr
    result = plan("--profile", "example-gpu", text=EXAMPLE)
    assert "gpu.example.com/example-gpu-0/gpu-0" in result.stdout
    assert result.exit_code == 0


@pytest.mark.parametrize("seed", ["002-16-extended-resource-class", "004-34-device-class"])
def test_the_classes_of_the_documents_select_the_devices_of_the_example_profile(seed: str) -> None:
    files = [option for name in ("004-33-deployment", seed) for option in ("-f", f"{name}.yaml")]
    paths = [str(SEEDS / each) if each.endswith("yaml") else each for each in files]
    result = plan(*paths, "--profile", "example-gpu", "-o", "csv")
    assert [row.split(",")[:2] for row in result.stdout.splitlines()[1:]] == [
        ["default/demo-0", "example-gpu-0"]
    ]


CLASS_OF_ONE = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: %s, creationTimestamp: %s}
spec:
  extendedResourceName: example.com/gpu
  selectors:
  - cel:
      expression: >-
        device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].index == %d
---
"""


@pytest.mark.parametrize(
    ("first", "second", "device"),
    [
        ('"2026-01-01T00:00:00Z"', '"2026-02-01T00:00:00Z"', 2),
        ('"2026-02-01T00:00:00Z"', '"2026-01-01T00:00:00Z"', 1),
        ('"2026-01-01T00:00:00Z"', '"2026-01-01T00:00:00Z"', 1),
        ("null", '"2026-01-01T00:00:00Z"', 2),
        ("null", "null", 1),
    ],
)
@pytest.mark.parametrize("place", ["-f", "--on"])
def test_of_two_classes_with_one_extended_resource_the_newer_counts(
    first: str, second: str, device: int, place: str, tmp_path: Path
) -> None:
    classes = tmp_path / "classes.yaml"
    classes.write_text(CLASS_OF_ONE % ("a", first, 1) + CLASS_OF_ONE % ("b", second, 2))
    asking = EXTENDED.replace("nvidia.com/gpu: 2", "example.com/gpu: 1")
    result = plan(place, str(classes), "--profile", "example-gpu", text=asking)
    assert f"gpu.example.com/example-gpu-0/gpu-{device}\n" in result.stdout


TRAINING = ["-f", str(SEEDS.parent / "training"), "--profile", "dgx-h100"]


def test_an_order_of_arrival_that_places_more_is_told() -> None:
    result = plan(*TRAINING)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == (
        "the order of arrival decides: all 4 pods would get a node in the order "
        "default/training-0, default/training-1, default/notebook-0, default/notebook-1"
    )
    tree = json.loads(plan(*TRAINING, "-o", "json").stdout)
    assert tree["betterOrder"]["placed"] == 4
    assert tree["betterOrder"]["pods"][:2] == ["default/training-0", "default/training-1"]


def test_pods_of_one_owner_are_told_together_in_an_order() -> None:
    three, one = (TEMPLATE.replace("count: 4", f"count: {count}") for count in (3, 1))
    small = "".join(f"---\n{POD_WITH_CLAIM % number}" for number in range(3))
    text = f"{three}---\n{one.replace('gpus-and-nic', 'one')}{small}---\n{DEPLOYMENT % 4}"
    result = plan("--profile", "dgx-h100x2", text=text)
    assert result.stdout.splitlines()[-1] == (
        "the order of arrival decides: all 7 pods would get a node in the order "
        "default/train-0 to default/train-3 (4 pods), default/small-0, default/small-1, "
        "default/small-2"
    )


def test_no_order_is_told_where_none_helps() -> None:
    result = plan("--profile", "dgx-h100", text=f"{TEMPLATE}---\n{DEPLOYMENT % 3}")
    assert result.exit_code == 1
    assert "order of arrival" not in result.stdout
    result = plan("--profile", "dgx-h100", "-o", "json", text=f"{TEMPLATE}---\n{DEPLOYMENT % 3}")
    assert "betterOrder" not in json.loads(result.stdout)


POD_WITH_CLAIM = """\
apiVersion: v1
kind: Pod
metadata: {name: small-%d}
spec:
  containers:
  - {name: c, image: x, resources: {claims: [{name: d}]}}
  resourceClaims:
  - {name: d, resourceClaimTemplateName: one}
"""
