"""The chart: accepted by helm, strict about its values, careful with rights, and the base is it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import dev
from moorage import __version__
from moorage.cli.main import moor
from reference.chart import BASE, CHART, KUBE_VERSION, kustomize_files, readme, rendered
from tests.deploy.manifests import Tree, base, of_kind, trees_of

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
EVERYTHING = (
    *("page.enabled=true", "metrics.serviceMonitor.enabled=true", "metrics.rules.enabled=true"),
    *("metrics.dashboard.enabled=true", "metrics.scrapeAnnotations=true", "tls.secretName=certs"),
    *("metrics.readers[0].name=prometheus", "metrics.readers[0].namespace=monitoring"),
    *("featureGates.GenericWorkload=true", "featureGates.CompositePodGroup=true"),
)
needs_helm = pytest.mark.skipif(not dev.HELM.exists(), reason="there is no helm")


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(dev.HELM), *arguments], capture_output=True, text=True)


def with_values(*values: str) -> list[Tree]:
    return trees_of(rendered(*(part for value in values for part in ("--set", value))))


# --- helm -----------------------------------------------------------------------------------------


@needs_helm
def test_helm_finds_nothing_wrong() -> None:
    done = helm("lint", str(CHART), "--strict", "--kube-version", KUBE_VERSION)
    assert done.returncode == 0, done.stdout
    assert "WARNING" not in done.stdout
    assert "ERROR" not in done.stdout


@needs_helm
def test_the_kustomize_base_is_the_chart_with_default_values() -> None:
    for path, text in kustomize_files().items():
        assert (BASE / path).read_text() == text, f"{path} is stale: python3 dev.py docs"


@needs_helm
def test_everything_that_can_be_switched_on_is_rendered() -> None:
    trees = with_values(*EVERYTHING)
    kinds = {tree["kind"] for tree in trees}
    assert {"ServiceMonitor", "PrometheusRule", "NetworkPolicy", "PodDisruptionBudget"} <= kinds
    (rule,) = of_kind(trees, "PrometheusRule").values()
    assert rule["spec"] == yaml.safe_load((CHART / "files" / "rules.yaml").read_text())
    board = of_kind(trees, "ConfigMap")["moorage-dashboard"]["data"]["moorage.json"]
    assert json.loads(board) == json.loads((CHART / "files" / "moorage.json").read_text())
    roles = of_kind(trees, "ClusterRole")
    for name in ("moorage-scheduler", "moorage-metrics", "moorage-controllers"):
        resources = {each for rule in roles[name]["rules"] for each in rule["resources"]}
        assert {"podgroups", "compositepodgroups"} <= resources
    page = of_kind(trees, "Deployment")["moorage-page"]
    (container,) = page["spec"]["template"]["spec"]["containers"]
    assert container["command"][:3] == ["moor", "ui", "--live"]


@needs_helm
@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("scheduler.replcas=2", "Additional property replcas is not allowed"),
        ("scheduler.replicas=-1", "scheduler.replicas"),
        ("scheduler.name=Not_A_Name", "scheduler.name"),
        ("controllers.names={deployment-controller}", "controllers.names"),
        ("metrics.interval=soon", "metrics.interval"),
        ("image.pullPolicy=Sometimes", "image.pullPolicy"),
        ("image.digest=sha256:1", "image.digest"),
        ("metrics.shapes.BAD.kind=x", "metrics.shapes"),
        ("unknown=1", "Additional property unknown is not allowed"),
        ("nameOverride=Upper", "nameOverride"),
        ("fullnameOverride=Upper", "fullnameOverride"),
        ("tls.secretName=Not_A_Name", "tls.secretName"),
        ("scheduler.name=default-scheduler", "two must not place the same pods"),
        ("scheduler.config.profiles[0].schedulerName=default-scheduler", "the same pods"),
        ("scheduler.config.profiles[0].percentageOfNodesToScore=5", "the same pods"),
        ("scheduler.config.profiles=x", "scheduler.config.profiles: expected a list"),
        ("scheduler.config.kind=KubeSchedulerConfiguration", "leave out apiVersion and kind"),
    ],
)
def test_a_wrong_value_is_refused(value: str, fault: str) -> None:
    done = helm("template", "m", str(CHART), "--kube-version", KUBE_VERSION, "--set", value)
    assert done.returncode != 0
    assert fault in done.stderr


@needs_helm
def test_what_is_switched_off_leaves_nothing_behind() -> None:
    off = [f"{name}.enabled=false" for name in ("scheduler", "controllers", "metrics")]
    assert with_values(*off) == []


@needs_helm
def test_the_exporter_knows_the_schedulers_of_a_configuration() -> None:
    trees = with_values("scheduler.config.profiles[0].schedulerName=packing")
    maps = of_kind(trees, "ConfigMap")
    names = {
        program: [
            each["schedulerName"]
            for each in yaml.safe_load(maps[f"moorage-{program}"]["data"]["scheduler.yaml"])[
                "profiles"
            ]
        ]
        for program in ("scheduler", "metrics")
    }
    assert names == {"scheduler": ["packing"], "metrics": ["default-scheduler", "packing"]}


@needs_helm
def test_shapes_reach_the_exporter_as_files(tmp_path: Path) -> None:
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "worker"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "g"}}]}},
    }
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"metrics": {"shapes": {"worker": claim}}}))
    trees = trees_of(rendered("--values", str(values)))
    data = of_kind(trees, "ConfigMap")["moorage-metrics"]["data"]
    assert yaml.safe_load(data["shape-worker.yaml"]) == claim
    (container,) = of_kind(trees, "Deployment")["moorage-metrics"]["spec"]["template"]["spec"][
        "containers"
    ]
    assert "--shape=worker=/etc/moorage/shape-worker.yaml" in container["command"]


def test_the_version_of_the_image_is_ours() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__.partition(".dev")[0]


# --- values ---------------------------------------------------------------------------------------


def leaves(schema: Any, values: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    for name, value in values.items():
        part = schema.get("properties", {}).get(name)
        yield f"{path}{name}", part, value
        if part is not None and "properties" in part:
            yield from leaves(part, value, f"{path}{name}.")


@pytest.mark.parametrize(("path", "part", "value"), list(leaves(SCHEMA, VALUES)))
def test_every_value_is_described(path: str, part: Any, value: Any) -> None:
    assert part is not None, path
    assert part["description"].endswith(".")
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    assert isinstance(value, kinds[part["type"]])
    if "properties" in part:
        assert part["additionalProperties"] is False


def test_every_value_that_the_templates_use_is_there() -> None:
    known = {path for path, *_ in leaves(SCHEMA, VALUES)}
    text = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    used = set(re.findall(r"\.Values\.((?:\w+\.?)+)", text))
    assert {each.rstrip(".") for each in used} <= known


def test_the_readme_has_the_values() -> None:
    assert (CHART / "README.md").read_text() == readme()


# --- the manifests --------------------------------------------------------------------------------


@pytest.mark.parametrize("deployment", of_kind(base(), "Deployment").values(), ids=str)
def test_pods_have_no_rights_that_they_do_not_need(deployment: Tree) -> None:
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["resources"].keys() == {"limits", "requests"}


def test_every_program_has_a_policy_and_several_replicas_a_budget() -> None:
    trees = base()
    deployments = of_kind(trees, "Deployment")
    assert of_kind(trees, "NetworkPolicy").keys() == deployments.keys()
    several = {name for name, each in deployments.items() if each["spec"]["replicas"] > 1}
    assert of_kind(trees, "PodDisruptionBudget").keys() == several


def test_no_rule_is_a_wildcard_or_reads_secrets() -> None:
    trees = base()
    for role in (*of_kind(trees, "ClusterRole").values(), *of_kind(trees, "Role").values()):
        for rule in role["rules"]:
            assert "*" not in (*rule["verbs"], *rule["resources"], *rule["apiGroups"])
            assert not {"secrets", "configmaps"} & set(rule["resources"])


@pytest.mark.parametrize("deployment", of_kind(base(), "Deployment").values(), ids=str)
def test_commands_and_options_exist(deployment: Tree) -> None:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    program, name, *options = container["command"]
    command: Any = moor.get_command(None, name)  # type: ignore[arg-type]
    known = {option for parameter in command.params for option in parameter.opts}
    assert program == "moor"
    assert {option.partition("=")[0] for option in options} <= known


def test_kubectl_takes_the_kustomizations() -> None:
    kubectl = dev.kubectl_of("sid")
    program = str(kubectl) if kubectl.exists() else shutil.which("kubectl")
    if program is None:
        pytest.skip("there is no kubectl")
    for folder in ("base", "moor-up"):
        done = subprocess.run(
            [program, "kustomize", str(BASE / folder)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        names = {(tree["kind"], tree["metadata"]["name"]) for tree in trees_of(done.stdout)}
        assert names == {(tree["kind"], tree["metadata"]["name"]) for tree in base()}
