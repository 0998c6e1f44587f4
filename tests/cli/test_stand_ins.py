"""Claims and templates that no pod uses answer for themselves alone, in every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import moorage
from moorage.cli.main import moor

PROFILE = ("--profile", "dgx-h100")  # one node with 8 GPUs
NOW = "2026-01-01T00:00:00Z"


def template(name: str, count: int, namespace: str = "default") -> str:
    return f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  spec:
    devices:
      requests:
      - name: gpus
        exactly: {{deviceClassName: gpu.nvidia.com, count: {count}}}
"""


def deployment(replicas: int, of: str = "two", name: str = "train") -> str:
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - {{name: c, image: x, resources: {{claims: [{{name: d}}]}}}}
      resourceClaims:
      - {{name: d, resourceClaimTemplateName: {of}}}
"""


def joined(*documents: str) -> str:
    return "---\n".join(documents)


# The template of 8 comes first in the file, and nobody uses it.
UNUSED = joined(template("eight", 8), template("two", 2), deployment(2))


def run(command: str, *arguments: str, text: str) -> Result:
    result = CliRunner().invoke(moor, [command, *arguments, "-f", "-"], input=text)
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def planned(text: str, *arguments: str, status: int = 0) -> dict[str, Any]:
    result = run("plan", *PROFILE, *arguments, "-o", "json", text=text)
    assert result.exit_code == status, result.output
    tree: dict[str, Any] = json.loads(result.stdout)
    return tree


def nodes(trees: list[dict[str, Any]]) -> dict[str, str | None]:
    return {tree.get("standsFor", tree["pod"]): tree.get("node") for tree in trees}


def test_a_template_that_no_pod_uses_takes_nothing_from_a_deployment() -> None:
    tree = planned(UNUSED)
    placed = {"default/train-0": "dgx-h100-0", "default/train-1": "dgx-h100-0"}
    assert nodes(tree["pods"]) == placed
    assert nodes(tree["standIns"]) == {"template/eight": None}
    assert tree["summary"] == {"placed": 2, "pending": 0, "nodes": 1}


def test_the_table_says_that_no_pod_uses_it() -> None:
    result = run("plan", *PROFILE, text=UNUSED)
    assert result.exit_code == 0
    assert result.stdout == (
        "POD               NODE         REQUEST   DEVICES\n"
        "default/train-0   dgx-h100-0   gpus      gpu.nvidia.com/dgx-h100-0/gpu-0,gpu-1\n"
        "default/train-1   dgx-h100-0   gpus      gpu.nvidia.com/dgx-h100-0/gpu-2,gpu-3\n"
        "\n"
        "2 pods of 2 placed on 1 of 1 node\n"
        "\n"
        "NO POD USES      NODE     REQUEST   DEVICES\n"
        "template/eight   <none>   -         -\n"
        "\n"
        "template/eight would get no node: 0/1 nodes are available: 1 cannot allocate all claims. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.\n"
        "\n"
        "0 of 1 template that no pod uses would get a node on what the pods leave; "
        "moor explain template/eight tells why it would not\n"
    )


def test_names_are_those_of_templates() -> None:
    result = run("plan", *PROFILE, "-o", "name", text=UNUSED)
    assert result.stdout.splitlines() == [
        "pod/train-0",
        "pod/train-1",
        "resourceclaimtemplate.resource.k8s.io/eight",
    ]


def test_each_is_tried_alone() -> None:
    tree = planned(joined(template("eight", 8), template("seven", 7)))
    found = {"template/eight": "dgx-h100-0", "template/seven": "dgx-h100-0"}
    assert (tree["pods"], nodes(tree["standIns"])) == ([], found)
    assert tree["summary"]["placed"] == 0


def test_without_pods_the_exit_status_is_theirs() -> None:
    assert nodes(planned(template("nine", 9), status=1)["standIns"]) == {"template/nine": None}
    assert run("explain", *PROFILE, text=template("nine", 9)).exit_code == 1


def test_a_template_that_is_used_in_another_namespace_only_is_unused() -> None:
    text = joined(template("two", 2, "team"), template("two", 2), deployment(1))
    tree = planned(text)
    assert nodes(tree["pods"]) == {"default/train-0": "dgx-h100-0"}
    (stand_in,) = tree["standIns"]
    assert stand_in["pod"].partition("/")[0] == "team"


BOUND = """\
apiVersion: v1
kind: Pod
metadata: {name: notebook, uid: u-1}
spec:
  nodeName: dgx-h100-0
  containers:
  - {name: c, image: x, resources: {claims: [{name: d}]}}
  resourceClaims: [{name: d, resourceClaimName: held}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: held, uid: u-2}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com}}]}}
status:
  reservedFor: [{resource: pods, name: notebook, uid: u-1}]
  allocation:
    devices:
      results: [{request: gpus, driver: gpu.nvidia.com, pool: dgx-h100-0, device: gpu-0}]
"""


def test_beside_bound_pods_it_gets_what_they_leave(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(BOUND)
    text = joined(template("seven", 7), template("eight", 8))
    tree = planned(text, "--on", str(cluster), status=1)
    assert nodes(tree["standIns"]) == {"template/seven": "dgx-h100-0", "template/eight": None}
    said = run("explain", "template/eight", *PROFILE, "--on", str(cluster), text=text)
    assert said.exit_code == 1
    assert "template/eight (no pod uses it): request gpus wants 8 devices" in said.stdout
    assert "wait until claim held of pod notebook" in said.stdout
    assert "seven" not in said.stdout


def test_nobody_is_told_to_wait_for_one() -> None:
    text = joined(template("four", 4), template("three", 3), deployment(3, "three"))
    assert planned(text, status=1)["summary"] == {"placed": 2, "pending": 1, "nodes": 1}
    for subject in ((), ("deployment/train",), ("pod/train-2",)):
        said = run("explain", *subject, *PROFILE, "-o", "json", text=text)
        assert said.exit_code == 1
        (pod,) = (each for each in json.loads(said.stdout)["pending"] if not each["standsFor"])
        assert pod["pods"] == ["default/train-2"]
        assert "four" not in json.dumps(pod)


def test_of_pods_that_fit_the_explanation_is_good() -> None:
    whole = run("explain", *PROFILE, text=UNUSED)
    assert whole.exit_code == 0
    assert whole.stdout.startswith("template/eight (no pod uses it): request gpus wants 8 devices")
    assert run("explain", "deployment/train", *PROFILE, text=UNUSED).exit_code == 0
    assert run("explain", "template/eight", *PROFILE, text=UNUSED).exit_code == 1


def test_in_reports_it_is_a_warning_beside_pods() -> None:
    github = run("plan", *PROFILE, "-o", "github", text=UNUSED)
    assert github.exit_code == 0
    assert "::error" not in github.stdout
    assert "no pod uses it, and one that does would get no node: " in github.stdout
    assert github.stdout.endswith("2 pods of 2 placed\n")
    sarif = json.loads(run("plan", *PROFILE, "-o", "sarif", text=UNUSED).stdout)
    assert [each["level"] for each in sarif["runs"][0]["results"]] == ["warning"]
    junit = run("plan", *PROFILE, "-o", "junit", text=UNUSED).stdout
    assert 'failures="0"' in junit


def test_alone_it_is_an_error_of_reports() -> None:
    github = run("plan", *PROFILE, "-o", "github", text=template("nine", 9))
    assert github.exit_code == 1
    assert "::error" in github.stdout
    assert github.stdout.endswith("0 of 1 template that no pod uses would get a node\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "deployment/train", "-o", "json"),
        ("whatif", "--cordon", "dgx-h100-0", "-o", "json"),
        ("claims", "-o", "json"),
        ("devices", "-o", "json"),
        ("lint",),
        ("simulate", "--arrivals", "deployment/train=1/h:1m", "--until", "2h", "-o", "json"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_other_commands_know_none(arguments: tuple[str, ...]) -> None:
    result = run(*arguments, *PROFILE, text=UNUSED)
    assert result.exit_code in (0, 1), result.output
    assert "template-eight" not in result.output


def test_a_page_of_the_files_has_none(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    assert run("snapshot", *PROFILE, "--html", str(file), text=UNUSED).exit_code == 0
    assert "template-eight" not in file.read_text()


@pytest.mark.parametrize("ending", ["svg", "html"])
def test_a_picture_shows_what_the_pods_get(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"plan.{ending}"
    result = run("plan", *PROFILE, "--picture", str(file), text=UNUSED)
    assert result.exit_code == 0
    assert "template-eight" not in file.read_text()


def test_without_pods_a_picture_shows_those_that_go_together(tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    text = joined(template("six", 6), template("four", 4))
    assert run("plan", *PROFILE, "--picture", str(file), text=text).exit_code == 0
    assert "template-six" in file.read_text()
    assert "template-four" not in file.read_text()


QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: limits}
spec: {hard: {count/resourceclaims.resource.k8s.io: "2", requests.cpu: "0"}}
"""


def test_a_quota_is_not_charged_for_it() -> None:
    unused = joined(template("eight", 8), template("one", 1), template("two", 2))
    with_claims = joined(QUOTA.replace(', requests.cpu: "0"', ""), unused, deployment(2))
    assert planned(with_claims)["summary"]["placed"] == 2
    quota = joined(QUOTA.replace('"2"', '"1"'), template("one", 1), template("two", 2))
    assert nodes(planned(quota)["standIns"]) == {
        "template/one": "dgx-h100-0",
        "template/two": "dgx-h100-0",
    }


POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: template-eight
  annotations: {moorage.dev/stands-in-for: template/other}
spec:
  containers: [{name: c, image: x}]
"""


def test_a_pod_of_the_same_name_and_annotation_stays_a_pod() -> None:
    tree = planned(joined(POD, template("eight", 8)))
    assert nodes(tree["pods"]) == {"default/template-eight": "dgx-h100-0"}
    assert nodes(tree["standIns"]) == {"template/eight": "dgx-h100-0"}


PRIORITY = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: usual}
value: 1000
globalDefault: true
"""


def test_priority_puts_it_before_no_pod() -> None:
    text = joined(
        PRIORITY, UNUSED.replace("    spec:\n      con", "    spec:\n      priority: 0\n      con")
    )
    assert planned(text)["summary"] == {"placed": 2, "pending": 0, "nodes": 1}


def test_the_library_has_them_beside_the_pods(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(UNUSED)
    world = moorage.load(file, profile="dgx-h100")
    plan = world.plan()
    assert plan.fits
    assert [pod.name for pod in plan.pods] == ["train-0", "train-1"]
    (stand_in,) = plan.stand_ins
    assert isinstance(stand_in, moorage.PendingPod)
    (told,) = plan.explain()
    assert told.title == "template/eight (no pod uses it)"
    assert stand_in.explain().cause == told.cause
    assert [pod.partition("/")[2] for pod in plan.after.pods] == ["train-0", "train-1"]
    assert sum(device.claims != () for device in plan.after.devices()) == 4
    assert plan.to_dict() == planned(UNUSED)
    assert ">No pod uses</th>" in plan._repr_html_()
