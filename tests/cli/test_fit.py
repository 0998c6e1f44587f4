"""`moor fit`: how many replicas, from files and profiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.fit import command

TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec:
  spec:
    devices:
      requests:
      - name: gpus
        exactly: {deviceClassName: gpu.nvidia.com, count: 3}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec:
  replicas: 2
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      containers:
      - {name: c, image: x, resources: {claims: [{name: d}], requests: {cpu: "100"}}}
      resourceClaims:
      - {name: d, resourceClaimTemplateName: gpus}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: c, image: x}]
"""
DAEMONS = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: x}]}
"""


def fit(*arguments: str, text: str = f"{TEMPLATE}---\n{DEPLOYMENT}") -> Result:
    return CliRunner().invoke(command, ["-f", "-", *arguments], input=text)


def test_the_only_thing_that_runs_is_what_should_fit() -> None:
    result = fit("--profile", "dgx-h100x2")
    assert result.exit_code == 0
    assert (
        result.stdout
        == """\
Deployment default/train: 4 replicas fit (2 wanted): 2 more, on 2 of 2 nodes

REPLICAS           NODES                    WHY NO MORE
2 each, 4 in all   dgx-h100-0, dgx-h100-1   Insufficient cpu (cpu: 100 asked for, 24 of 224 free)

request gpus: 3 wanted by each replica, 16 of 16 devices free
  enough for 5 replicas if nothing but their number mattered

left over for request gpus: 4 devices, 25 % of 16, free and of no use to a replica
  4 on 2 nodes: Insufficient cpu
together they would do for 1 more replica, if they could be combined

no more would fit, each was tried:
  with more cpu on the nodes: 4 replicas, then request gpus: 2 free of 8, 3 wanted
  ask for 24 of cpu at most: 4 replicas, then request gpus: 2 free of 8, 3 wanted
"""
    )


def test_a_template_is_named_and_the_deployment_is_planned_first() -> None:
    result = fit("template/gpus", "--profile", "dgx-h100x2", "-o", "name")
    assert result.stdout.splitlines() == ["node/dgx-h100-0", "node/dgx-h100-1"]
    rows = fit("template/gpus", "--profile", "dgx-h100x2", "-o", "csv").stdout.splitlines()
    assert [row.split(",")[:2] for row in rows[1:]] == [["dgx-h100-0", "1"], ["dgx-h100-1", "1"]]


def test_per_node_has_the_devices_of_each_replica() -> None:
    result = fit("--profile", "dgx-h100", "--per-node")
    lines = result.stdout.splitlines()
    assert lines[2].split() == ["NODE", "REPLICAS", "DEVICES", "WHY", "NO", "MORE"]
    assert "gpu-0,gpu-1,gpu-2 | gpu-3,gpu-4,gpu-5" in lines[3]


def test_wide_has_whole_names() -> None:
    result = fit("--profile", "dgx-h100", "--per-node", "-o", "wide")
    assert "gpu.nvidia.com/dgx-h100-0/gpu-0,gpu.nvidia.com/dgx-h100-0/gpu-1" in result.stdout


@pytest.mark.parametrize(("replicas", "status"), [(4, 0), (5, 1)])
def test_replicas_asks_whether_so_many_fit(replicas: int, status: int) -> None:
    result = fit("--profile", "dgx-h100x2", "--replicas", str(replicas))
    assert result.exit_code == status
    said = "4 replicas fit" if status == 0 else "4 of 5 replicas fit"
    assert result.stdout.startswith(f"Deployment default/train: {said}, on 2 of 2 nodes\n")


def test_one_replica_fits() -> None:
    assert ": 1 replica fits, on " in fit("--profile", "dgx-h100", "--replicas", "1").stdout


def test_none_that_fits_is_status_1() -> None:
    result = fit("--profile", "r760xa")
    assert result.exit_code == 1
    assert result.stdout.startswith("Deployment default/train: no replica fits\n")


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_trees_have_everything(output: str) -> None:
    result = fit("--profile", "dgx-h100", "-o", output)
    if output == "yaml":
        yaml = pytest.importorskip("yaml")
        tree = yaml.safe_load(result.stdout)
    else:
        tree = json.loads(result.stdout)
    assert tree["total"] == 2
    assert tree["places"][0]["node"] == "dgx-h100-0"
    assert tree["limits"][0]["reasons"] == ["Insufficient cpu"]
    assert tree["leftovers"][0]["percent"] == 25.0


def test_max_stops_and_says_so() -> None:
    result = fit("--profile", "dgx-h100", "--max", "1")
    assert result.stdout.startswith(
        "Deployment default/train: 1 replica fits (2 wanted), on 1 of 1 node, "
        "and maybe more: --max\n"
    )


@pytest.mark.parametrize(
    ("replicas", "nodes", "said"),
    [
        (1, 1, "2 replicas fit (1 wanted): 1 more, on 1 of 1 node"),
        (2, 1, "2 replicas fit (2 wanted): no more, on 1 of 1 node"),
        (5, 1, "2 replicas fit (5 wanted): 3 too few, on 1 of 1 node"),
        (0, 2, "4 more replicas fit, on 2 of 2 nodes"),
    ],
)
def test_what_the_files_want_is_told_from_what_is_more(
    replicas: int, nodes: int, said: str
) -> None:
    text = f"{TEMPLATE}---\n{DEPLOYMENT.replace('replicas: 2', f'replicas: {replicas}')}"
    found = fit("--profile", f"dgx-h100x{nodes}", text=text)
    assert found.stdout.startswith(f"Deployment default/train: {said}\n")
    tree = json.loads(fit("--profile", f"dgx-h100x{nodes}", "-o", "json", text=text).stdout)
    assert (tree["wanted"], tree["running"]) == (replicas, 0)
    assert tree["total"] == 2 * nodes


def test_a_claim_that_no_pod_has_is_wanted_itself_and_a_template_is_not() -> None:
    claim = TEMPLATE.replace("ResourceClaimTemplate", "ResourceClaim").replace(
        "  spec:\n    devices:", "  devices:"
    )
    found = fit("--profile", "dgx-h100x2", text=claim)
    assert found.stdout.startswith("ResourceClaim default/gpus: 4 replicas fit (1 wanted): 3 more")
    found = fit("--profile", "dgx-h100x2", text=TEMPLATE)
    assert found.stdout.startswith("ResourceClaimTemplate default/gpus: 4 more replicas fit")


@pytest.mark.parametrize(
    ("arguments", "text", "said"),
    [
        ([], f"{POD}---\n{DEPLOYMENT}", "there is deployment/train, pod/web"),
        (
            [],
            "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n",
            "name what should fit, KIND/NAME: there is no pod or claim\n",
        ),
        (["deployment/trian"], DEPLOYMENT, "did you mean default/train?"),
        (["pod/train-1"], DEPLOYMENT, "no Pod default/train-1; did you mean deployment/train?"),
        (["daemonset/agent"], DAEMONS, "has one pod on each node"),
        (["podgroup/x"], POD, "not of groups"),
        (["--max", "0"], POD, "Invalid value for '--max'"),
    ],
)
def test_a_wrong_command_line_is_status_2(arguments: list[str], text: str, said: str) -> None:
    result = fit("--profile", "dgx-h100", *arguments, text=text)
    assert result.exit_code == 2
    assert said in result.stderr


def test_without_a_name_what_the_cluster_has_is_listed(tmp_path: Path) -> None:
    dump = tmp_path / "cluster.yaml"
    dump.write_text(DEPLOYMENT)
    result = CliRunner().invoke(command, ["--on", str(dump), "--profile", "dgx-h100"])
    assert result.exit_code == 2
    assert "name what should fit, KIND/NAME: there is deployment/train\n" in result.stderr


def test_an_object_that_may_be_in_what_was_not_read_is_no_mistake_of_the_caller() -> None:
    result = fit("deployment/other", "--profile", "dgx-h100", "--on", "missing.yaml")
    assert result.exit_code == 3
    assert "missing.yaml: no such file or directory" in result.stderr
    assert "error: there is no Deployment default/other; " in result.stderr
    assert "Usage:" not in result.stderr
