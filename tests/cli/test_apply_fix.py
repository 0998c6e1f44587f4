"""`moor explain --live --apply-fix` makes a fix in a running cluster, and only as agreed."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from moorage.api.apps import Deployment, ReplicaSet, StatefulSet
from moorage.api.batch import Job
from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree
from moorage.api.core import Namespace, Pod
from moorage.api.core.namespace import ResourceQuota
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimTemplate
from moorage.cli import main
from moorage.cli.live_fix import LiveFix, NotPossibleError, Step, failure_text
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.contract import Request
from moorage.client.errors import ConflictError
from moorage.client.writes import Create
from moorage.hardware.catalogue import Catalogue
from moorage.insight.answer.changes.edits import Edit, change_of
from moorage.insight.answer.finding import Answer, Fix, FixRank
from moorage.insight.answer.groups import AnsweredPods
from moorage.insight.snapshot.snapshot import Snapshot
from tests.apiserver.test_kubectl_server import running

EXAMPLES = Path(__file__).parents[2] / "examples"
T = TypeVar("T")
_numbers = count(1)


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a server with one machine in it."""
    with running(tmp_path_factory.mktemp("server")) as text:
        path = tmp_path_factory.mktemp("client") / "kubeconfig"
        path.write_text(text)
        fleet = Catalogue().fleet("dgx-h100")
        for each in (*fleet.nodes, *fleet.classes, *fleet.slices):
            _asked(str(path), _creation(each))
        yield str(path)


class Cluster:
    """A namespace of the server."""

    def __init__(self, kubeconfig: str, namespace: str) -> None:
        self.kubeconfig, self.namespace = kubeconfig, namespace

    def add(self, text: str) -> None:
        """Create the objects of a text, in the namespace."""
        for tree in yaml.safe_load_all(text):
            tree["metadata"]["namespace"] = self.namespace
            kind = CATALOGUE.find(tree["apiVersion"], tree["kind"])
            _asked(self.kubeconfig, _creation(decode_tree(tree, kind.struct).value))

    def get(self, struct: type[T], name: str) -> T:
        found = _asked(self.kubeconfig, lambda client: client.get(struct, self.namespace, name))
        assert found is not None, name
        return found

    def names(self, struct: type[Any]) -> list[str]:
        found = _asked(self.kubeconfig, lambda client: client.list(struct, self.namespace))
        return [each.metadata.name for each in found.values]

    def patch(self, struct: type[Any], name: str, body: dict[str, Any], part: str = "") -> None:
        async def send(client: ApiClient) -> None:
            path = (await client.endpoint(struct)).object(self.namespace, name, part)
            data, kind = msgspec.json.encode(body), "application/merge-patch+json"
            await client.send(Request("PATCH", path, "", data, kind))

        _asked(self.kubeconfig, send)

    def explain(self, *arguments: str) -> Result:
        command = ["explain", *arguments, "--kubeconfig", self.kubeconfig, "-n", self.namespace]
        result = CliRunner().invoke(main.moor, command)
        assert isinstance(result.exception, SystemExit | None), result.exception
        return result

    def apply(self, subject: str, *arguments: str) -> Result:
        return self.explain(subject, "--apply-fix", "1", "--yes", *arguments)


def _asked(kubeconfig: str, ask: Callable[[ApiClient], Awaitable[T]]) -> T:
    async def call() -> T:
        async with http_client(load_rest_config(kubeconfig)) as client:
            return await ask(client)

    return asyncio.run(call())


def _creation(value: Any) -> Callable[[ApiClient], Awaitable[Any]]:
    return lambda client: client.write(Create(value))


@pytest.fixture
def cluster(kubeconfig: str) -> Iterator[Cluster]:
    """Give a namespace; afterwards it has nothing that would take devices from other tests."""
    name = f"team-{next(_numbers)}"
    _asked(kubeconfig, _creation(Namespace(metadata=ObjectMeta(name=name))))
    yield Cluster(kubeconfig, name)

    async def clear(client: ApiClient) -> None:
        for struct in (Deployment, StatefulSet, ReplicaSet, Job, Pod, ResourceClaim):
            path = (await client.endpoint(struct)).collection(name)
            await client.send(Request("DELETE", path))

    _asked(kubeconfig, clear)


CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpus, labels: {app: train}}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 9}}]}}
"""
TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {
  deviceClassName: gpu.nvidia.com, count: 9}}]}}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  automountServiceAccountToken: false
  containers: [{name: c, image: x}]
"""
USING = "  resourceClaims: [{name: g, resourceClaimName: gpus}]\n"
FROM_TEMPLATE = "  resourceClaims: [{name: g, resourceClaimTemplateName: gpus}]\n"
ZONE = "topology.kubernetes.io/zone"
ELSEWHERE = "  nodeSelector: {topology.kubernetes.io/zone: a}\n"


def workload(kind: str, group: str = "apps/v1", more: str = "") -> str:
    return f"""\
apiVersion: {group}
kind: {kind}
metadata: {{name: train}}
spec:
  {more or "selector: {matchLabels: {app: a}}"}
  template:
    metadata: {{labels: {{app: a}}}}
    spec:
      restartPolicy: {"Never" if kind == "Job" else "Always"}
      nodeSelector: {{topology.kubernetes.io/zone: a}}
      containers: [{{name: c, image: x}}]
"""


def count_of(claim: ResourceClaim) -> int:
    (request,) = claim.spec.devices.requests or ()
    assert request.exactly is not None
    return request.exactly.count


# --- what cannot be changed is replaced ---------------------------------------------------------


def test_a_claim_is_replaced_and_the_diff_says_so(cluster: Cluster) -> None:
    cluster.add(f"{CLAIM}---\n{POD}{USING}")
    before = cluster.get(ResourceClaim, "gpus")
    result = cluster.apply("pod/train")
    assert result.exit_code == 0, result.output
    team = cluster.namespace
    assert (
        f"replace ResourceClaim {team}/gpus (it cannot be changed, so it is deleted and created "
        "anew)\n--- in the cluster\n+++ with the fix\n"
    ) in result.stdout
    assert "\n-        count: 9\n+        count: 8\n" in result.stdout
    assert result.stdout.endswith(f"replaced ResourceClaim {team}/gpus\n")
    after = cluster.get(ResourceClaim, "gpus")
    assert (count_of(before), count_of(after)) == (9, 8)
    assert before.metadata.uid != after.metadata.uid
    assert after.metadata.labels == {"app": "train"}
    assert cluster.explain("pod/train").exit_code == 0


def steps_of(cluster: Cluster, *changed: Any, edits: tuple[Edit, ...]) -> list[Step]:
    """Return the steps of a fix with these edits of objects, which were read before."""
    snapshot = Snapshot.of(changed)
    fix = Fix("try", FixRank.LESS, tuple(change_of(each, *edits) for each in changed), "n")
    nobody = AnsweredPods([], cast("Any", None), Answer("cause"))

    async def call(client: ApiClient) -> list[Step]:
        return await LiveFix(client, snapshot, nobody, fix).steps()

    return _asked(cluster.kubeconfig, call)


COUNT = Edit(("spec", "devices", "requests", 0, "exactly", "count"), 8)


def test_a_claim_in_use_is_left_alone(cluster: Cluster) -> None:
    cluster.add(CLAIM)
    user = {"resource": "pods", "name": "other", "uid": "u"}
    status = {"allocation": {"devices": {"results": []}}, "reservedFor": [user]}
    cluster.patch(ResourceClaim, "gpus", {"status": status}, "status")
    with pytest.raises(NotPossibleError, match="only replaced, but it is in use"):
        steps_of(cluster, cluster.get(ResourceClaim, "gpus"), edits=(COUNT,))


def test_an_object_of_a_controller_is_not_replaced(cluster: Cluster) -> None:
    made = yaml.safe_load(CLAIM)
    owner = {"apiVersion": "example.com/v1", "kind": "Train", "name": "t", "uid": "u"}
    made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    cluster.add(yaml.safe_dump(made))
    with pytest.raises(NotPossibleError, match="it belongs to Train t: change that"):
        steps_of(cluster, cluster.get(ResourceClaim, "gpus"), edits=(COUNT,))


def test_what_was_changed_since_it_was_explained_is_left_alone(cluster: Cluster) -> None:
    cluster.add(CLAIM)
    before = cluster.get(ResourceClaim, "gpus")
    cluster.patch(ResourceClaim, "gpus", {"metadata": {"labels": {"app": "other"}}})
    with pytest.raises(NotPossibleError, match="was changed meanwhile: explain it again"):
        steps_of(cluster, before, edits=(COUNT,))


def test_a_change_between_the_question_and_the_answer_is_a_conflict(cluster: Cluster) -> None:
    cluster.add(workload("Deployment"))
    before = cluster.get(Deployment, "train")
    edit = Edit(("spec", "template", "spec", "nodeSelector", ZONE), "b")
    (step,) = steps_of(cluster, before, edits=(edit,))
    cluster.patch(Deployment, "train", {"spec": {"replicas": 5}})
    nobody = AnsweredPods([], cast("Any", None), Answer("cause"))

    async def call(client: ApiClient) -> None:
        fix = Fix("try", FixRank.LESS, (change_of(before, edit),), "n")
        await LiveFix(client, Snapshot.of([before]), nobody, fix).make(step)

    with pytest.raises(ConflictError) as found:
        _asked(cluster.kubeconfig, call)
    assert failure_text(step, found.value).startswith(
        f"Deployment {cluster.namespace}/train was changed meanwhile: "
    )
    after = cluster.get(Deployment, "train")
    assert after.spec.template.spec.node_selector == {ZONE: "a"}


def test_a_bare_pod_is_replaced(cluster: Cluster) -> None:
    cluster.add(POD + ELSEWHERE)
    before = cluster.get(Pod, "train")
    result = cluster.apply("pod/train")
    assert result.exit_code == 0, result.output
    after = cluster.get(Pod, "train")
    assert after.metadata.uid != before.metadata.uid
    assert after.spec.node_selector == {}


def test_a_template_is_replaced_and_claims_made_from_it_are_deleted(cluster: Cluster) -> None:
    cluster.add(f"{TEMPLATE}---\n{POD}{FROM_TEMPLATE}")
    pod = cluster.get(Pod, "train")
    made = yaml.safe_load(CLAIM)
    made["metadata"] = {
        "name": "train-g-x",
        "annotations": {"resource.kubernetes.io/pod-claim-name": "g"},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": "train",
                "uid": pod.metadata.uid,
                "controller": True,
            }
        ],
    }
    cluster.add(yaml.safe_dump(made))
    statuses = [{"name": "g", "resourceClaimName": "train-g-x"}]
    cluster.patch(Pod, "train", {"status": {"resourceClaimStatuses": statuses}}, "status")
    result = cluster.apply("pod/train")
    assert result.exit_code == 0, result.output
    team = cluster.namespace
    assert f"delete ResourceClaim {team}/train-g-x (a new one is made from" in result.stdout
    template = cluster.get(ResourceClaimTemplate, "gpus")
    (request,) = template.spec.spec.devices.requests or ()
    assert request.exactly is not None
    assert request.exactly.count == 8
    assert cluster.names(ResourceClaim) == []
    assert cluster.names(Pod) == ["train"]


def test_a_job_is_replaced(cluster: Cluster) -> None:
    cluster.add(workload("Job", "batch/v1", "backoffLimit: 3"))
    before = cluster.get(Job, "train")
    result = cluster.apply("job/train")
    assert result.exit_code == 0, result.output
    after = cluster.get(Job, "train")
    assert after.metadata.uid != before.metadata.uid
    assert not after.spec.template.spec.node_selector
    assert before.metadata.uid not in str(after)


# --- what can be changed is ---------------------------------------------------------------------


@pytest.mark.parametrize("struct", [Deployment, StatefulSet, ReplicaSet])
def test_the_template_of_a_workload_is_changed_in_place(
    cluster: Cluster, struct: type[Any]
) -> None:
    kind = struct.__name__
    cluster.add(workload(kind))
    before = cluster.get(struct, "train")
    result = cluster.apply(f"{kind.lower()}/train")
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith(f"changed {kind} {cluster.namespace}/train\n")
    after = cluster.get(struct, "train")
    assert after.metadata.uid == before.metadata.uid
    assert not after.spec.template.spec.node_selector


def test_pods_that_their_controller_leaves_as_they_are_are_deleted(cluster: Cluster) -> None:
    cluster.add(workload("StatefulSet"))
    owner = cluster.get(StatefulSet, "train").metadata.uid
    made = yaml.safe_load(POD + ELSEWHERE)
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "train", "uid": owner}
    made["metadata"] = {
        "name": "train-0",
        "labels": {"app": "a"},
        "ownerReferences": [{**reference, "controller": True}],
    }
    cluster.add(yaml.safe_dump(made))
    made["metadata"]["name"], made["spec"]["nodeName"] = "train-1", "dgx-h100-0"
    cluster.add(yaml.safe_dump(made))
    result = cluster.apply("pod/train-0")
    assert result.exit_code == 0, result.output
    fate = "is replaced by a pod with the change, as StatefulSet train has another template"
    assert f"  train-1 (runs on dgx-h100-0): {fate}\n" in result.stdout
    assert f"delete Pod {cluster.namespace}/train-0 (StatefulSet" in result.stdout
    assert cluster.names(Pod) == ["train-1"]


def test_pods_that_come_too_late_get_a_priority(cluster: Cluster) -> None:
    cluster.add((EXAMPLES / "training" / "training.yaml").read_text("utf-8"))
    result = cluster.apply("pod/training-1")
    assert result.exit_code == 0, result.output
    assert "created PriorityClass training-first\n" in result.stdout
    assert result.stdout.endswith(f"changed Deployment {cluster.namespace}/training\n")
    try:
        template = cluster.get(Deployment, "training").spec.template
        assert template.spec.priority_class_name == "training-first"
        assert "pod training-1" not in cluster.explain("deployment/training").stdout
    finally:
        path = "/apis/scheduling.k8s.io/v1/priorityclasses/training-first"
        _asked(cluster.kubeconfig, lambda client: client.send(Request("DELETE", path)))


def test_a_quota_is_raised_and_its_manager_is_named(cluster: Cluster) -> None:
    cluster.add(f"{TEMPLATE.replace('count: 9', 'count: 1')}---\n{POD}{FROM_TEMPLATE}")
    quota = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: few, labels: {app.kubernetes.io/managed-by: Helm}}
spec: {hard: {count/resourceclaims.resource.k8s.io: "0"}}
"""
    cluster.add(quota)
    result = cluster.apply("pod/train")
    assert result.exit_code == 0, result.output
    assert "/few (Helm manages it: make the change there, too)\n" in result.stdout
    found = cluster.get(ResourceQuota, "few").spec.hard
    assert str(found["count/resourceclaims.resource.k8s.io"]) == "1"


# --- nothing is changed unless all is well --------------------------------------------------------


def test_without_a_terminal_nothing_is_changed_unless_told(cluster: Cluster) -> None:
    cluster.add(POD + ELSEWHERE)
    result = cluster.explain("pod/train", "--apply-fix", "1")
    assert result.exit_code == 2
    assert "there is no terminal to ask on: --yes makes the fix unasked" in result.stderr
    assert f"replace Pod {cluster.namespace}/train" in result.stdout
    assert cluster.get(Pod, "train").spec.node_selector == {ZONE: "a"}


@pytest.mark.parametrize(("word", "selector"), [("y", {}), ("n", {ZONE: "a"})])
def test_the_answer_decides(cluster: Cluster, word: str, selector: dict[str, str]) -> None:
    cluster.add(POD + ELSEWHERE)
    reader, writer = pty.openpty()
    with os.fdopen(reader, "wb", buffering=0) as keyboard, os.fdopen(writer, "rb") as terminal:
        keyboard.write(f"{word}\n".encode())
        done = subprocess.run(
            [
                *(sys.executable, "-m", "moorage.cli.main", "explain", "pod/train"),
                *("--apply-fix", "1", "--kubeconfig", cluster.kubeconfig),
                *("-n", cluster.namespace),
            ],
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert "Apply? [y/N] " in done.stdout, done.stderr
    assert done.returncode == (0 if word == "y" else 1)
    assert ("Nothing was changed." in done.stdout) == (word == "n")
    assert cluster.get(Pod, "train").spec.node_selector == selector


def test_the_server_s_words_are_told_if_it_refuses(
    cluster: Cluster, kubeconfig: str, tmp_path: Path
) -> None:
    cluster.add(POD + ELSEWHERE)
    tree = yaml.safe_load(Path(kubeconfig).read_text(encoding="utf-8"))
    tree["users"][0]["user"]["as"] = "jane"
    reader = tmp_path / "kubeconfig"
    reader.write_text(yaml.safe_dump(tree), encoding="utf-8")
    _asked(kubeconfig, _may_read("jane"))
    result = Cluster(str(reader), cluster.namespace).apply("pod/train")
    assert result.exit_code == 1
    assert 'User "jane" cannot update resource "pods"' in result.stderr
    assert "nothing was changed: Pod " in result.stderr
    assert cluster.get(Pod, "train").spec.node_selector == {ZONE: "a"}


def _may_read(user: str) -> Callable[[ApiClient], Awaitable[None]]:
    group = "rbac.authorization.k8s.io"
    trees: list[dict[str, Any]] = [
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": user},
            "rules": [{"verbs": ["get", "list"], "apiGroups": ["*"], "resources": ["*"]}],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": user},
            "subjects": [{"kind": "User", "name": user, "apiGroup": group}],
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": user},
        },
    ]

    async def write(client: ApiClient) -> None:
        for tree in trees:
            kind = CATALOGUE.find(tree["apiVersion"], tree["kind"])
            await client.write(Create(decode_tree(tree, kind.struct).value))

    return write


@pytest.mark.parametrize("more", [("-f", "x.yaml"), ("--on", "x.yaml"), ("--profile", "dgx-h100")])
def test_only_the_cluster_as_it_is_is_changed(cluster: Cluster, more: tuple[str, ...]) -> None:
    result = cluster.apply("pod/train", *more)
    assert result.exit_code == 2
    assert "give --live without -f, --on and --profile" in result.stderr


def test_the_hint_is_about_applying(cluster: Cluster) -> None:
    cluster.add(POD + ELSEWHERE)
    assert "(moor explain pod/train … --apply-fix 1 makes fix 1)" in (
        cluster.explain("pod/train").stdout
    )
