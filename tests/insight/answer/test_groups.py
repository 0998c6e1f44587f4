"""Pods that wait for the same reason are told together, and none is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from moorage.cli.explain import command as explain
from moorage.cli.plan import command as plan

MACHINE = ("--profile", "dgx-h100")
TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus, namespace: %(namespace)s}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {
  deviceClassName: gpu.nvidia.com, count: %(count)d}}]}}}
---
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: %(name)s, namespace: %(namespace)s}
spec:
  replicas: %(replicas)d
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers: [{name: c, image: x, resources: {claims: [{name: g}]}}]
      resourceClaims: [{name: g, resourceClaimTemplateName: gpus}]
---
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: %(name)s, namespace: %(namespace)s}
spec:
  nodeSelector: %(selector)s
  containers: [{name: c, image: x}]
---
"""


def template(count: int = 9, namespace: str = "default") -> str:
    return TEMPLATE % {"count": count, "namespace": namespace}


def deployment(name: str = "train", *, replicas: int = 3, namespace: str = "default") -> str:
    return DEPLOYMENT % {"name": name, "replicas": replicas, "namespace": namespace}


def pod(name: str, selector: str = "{zone: a}", namespace: str = "default") -> str:
    return POD % {"name": name, "selector": selector, "namespace": namespace}


def run(text: str, *arguments: str, machine: tuple[str, ...] = MACHINE) -> Result:
    result = CliRunner().invoke(explain, [*arguments, *machine, "-f", "-"], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def pending(text: str, *arguments: str, machine: tuple[str, ...] = MACHINE) -> list[Any]:
    result = run(text, *arguments, "-o", "json", machine=machine)
    found: list[Any] = json.loads(result.stdout)["pending"]
    return found


def test_pods_of_a_workload_are_told_together() -> None:
    (only,) = pending(template() + deployment(replicas=97))
    assert only["title"] == "97 pods of deployment train"
    assert len(set(only["pods"])) == 97
    lines = run(template() + deployment(replicas=97)).stdout.splitlines()
    assert lines[0].startswith("97 pods of deployment train: request gpu asks for 9 devices")
    assert lines[1].startswith("  pods default/train-0, default/train-1, ")
    assert lines[1].endswith(" and 91 more")
    assert lines[2].startswith("  fix 1: ask for 8 instead of 9 in request gpu")
    assert lines[2].endswith(" → train-0 gets node dgx-h100-0")
    assert sum("node dgx-h100-0: cannot allocate all claims" in line for line in lines) == 1


def test_every_name_is_shown_to_who_asks() -> None:
    lines = run(template() + deployment(replicas=97), "--verbose").stdout.splitlines()
    assert lines[1].count("default/train-") == 97


def test_the_namespace_of_a_workload_is_named_unless_it_is_the_one_asked_about() -> None:
    text = template(namespace="team") + deployment(namespace="team")
    assert run(text).stdout.startswith("3 pods of deployment train in namespace team: ")
    assert run(text, "-n", "team").stdout.startswith("3 pods of deployment train: ")


def test_pods_with_the_same_cause_and_the_same_fixes_are_told_together() -> None:
    text = pod("a") + pod("b") + pod("c", namespace="other")
    (only,) = pending(text)
    assert (only["title"], only["pods"]) == ("3 pods", ["default/a", "default/b", "other/c"])
    lines = run(text).stdout.splitlines()
    assert lines[0] == "3 pods: the node selector wants zone=a, a label that no node has"
    assert lines[1] == "  pods default/a, default/b, other/c"


def test_a_fix_of_pods_that_share_nothing_changes_each_of_them() -> None:
    large = "image: x, resources: {requests: {cpu: 1k}}"
    text = (pod("a", "{}") + pod("b", "{}")).replace("image: x", large)
    machines = ("--profile", "dgx-h100=2")
    ((fix, *_),) = (each["fixes"] for each in pending(text, machine=machines))
    assert [(each["kind"], each["name"]) for each in fix["changes"]] == [("Pod", "a"), ("Pod", "b")]
    written = run(text, "--write-fix", "1", machine=machines).stdout
    result = CliRunner().invoke(plan, [*machines, "-f", "-", "-o", "json"], input=written)
    assert all(each["node"] for each in json.loads(result.stdout)["pods"])


def test_pods_with_another_cause_are_told_apart() -> None:
    text = pod("a") + pod("b", "{zone: b}") + template() + deployment()
    assert [each["title"] for each in pending(text)] == [
        "pod default/a",
        "pod default/b",
        "3 pods of deployment train",
    ]


def test_two_workloads_with_the_same_mistake_are_told_together() -> None:
    text = template() + deployment("one") + deployment("two")
    (only,) = pending(text, machine=("--profile", "dgx-h100=6"))
    assert (only["title"], len(only["pods"])) == ("6 pods", 6)
    # They share the template in which the mistake is, so it is changed once.
    assert [len(fix["changes"]) for fix in only["fixes"] if fix["kind"] == "change"] == [1]


def replica_set(pods: int) -> str:
    """Return a deployment as it is in a cluster, with its replica set and pods."""
    (claims, made) = yaml.safe_load_all((template() + deployment()).removesuffix("---\n"))
    made["metadata"]["uid"] = "d"
    spec = made["spec"]["template"]["spec"]
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "train", "uid": "d"}
    between = {
        **made,
        "kind": "ReplicaSet",
        "metadata": _owned("train-7f", "r", owner),
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "train-7f", "uid": "r"}
    of_set = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**_owned(f"train-7f-{i}", f"p{i}", owner), "labels": {"app": "a"}},
            "spec": spec,
        }
        for i in range(pods)
    ]
    return str(yaml.safe_dump_all([claims, made, between, *of_set]))


def _owned(name: str, uid: str, owner: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": "default",
        "uid": uid,
        "ownerReferences": [{**owner, "controller": True}],
    }


@pytest.mark.parametrize("subject", [(), ("deployment/train",), ("replicaset/train-7f",)])
def test_pods_of_a_replica_set_belong_to_its_deployment(subject: tuple[str, ...]) -> None:
    (only,) = pending(replica_set(3), *subject)
    assert only["title"] == "3 pods of deployment train"
