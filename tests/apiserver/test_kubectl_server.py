"""Every kubectl that there is, end to end with `moor server`: TLS, certificates, roles."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.apiserver.programs import NO_KUBECTL, find_kubectls

KUBECTLS = find_kubectls()
SEEDS = Path(__file__).parents[2] / "examples" / "seeds"
TIMEOUT_S = 60

pytestmark = pytest.mark.skipif(not KUBECTLS, reason=NO_KUBECTL)

_numbers = count(1)


class Done(NamedTuple):
    """What a command printed."""

    status: int
    out: str
    err: str


class Kubectl:
    """One version of kubectl, with a namespace of its own."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self.environment = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "KUBECONFIG": str(folder / "kubeconfig"),
        }

    def command(self, *arguments: str) -> list[str]:
        return [self._program, "--cache-dir", str(self._folder / "cache"), *arguments]

    def run(self, *arguments: str, text: str = "", **environment: str) -> Done:
        done = subprocess.run(
            self.command(*arguments),
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            input=text,
            timeout=TIMEOUT_S,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def __call__(self, *arguments: str, text: str = "", **environment: str) -> str:
        done = self.run(*arguments, text=text, **environment)
        assert done.status == 0, done.err
        return done.out

    def fails(self, *arguments: str, text: str = "") -> str:
        done = self.run(*arguments, text=text)
        assert done.status != 0, done.out
        return done.err

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run a server; give its kubeconfig."""
    start = [sys.executable, "-m", "moorage.cli.main", "server", "--data-dir", str(folder)]
    process = subprocess.Popen([*start, "--port", "0"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        assert process.stderr.readline().startswith("serving at https://")
        yield (folder / "kubeconfig").read_text()
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
        process.stderr.close()


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("server")) as text:
        yield text


@pytest.fixture(scope="module", params=list(KUBECTLS.values()), ids=list(KUBECTLS))
def shared(
    request: pytest.FixtureRequest, kubeconfig: str, tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    folder = tmp_path_factory.mktemp("kubectl")
    (folder / "kubeconfig").write_text(kubeconfig)
    return Kubectl(request.param, folder)


@pytest.fixture
def namespace(shared: Kubectl) -> str:
    """Make a namespace, and have the following commands be about it."""
    name = f"team-{next(_numbers)}"
    shared("create", "namespace", name)
    shared("config", "set-context", "--current", f"--namespace={name}")
    return name


@pytest.fixture
def kubectl(shared: Kubectl, namespace: str) -> Kubectl:
    assert namespace
    return shared


def manifest(name: str, tier: str = "fast") -> str:
    return f"""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {name}, labels: {{tier: {tier}}}}}
spec: {{selectors: [{{cel: {{expression: 'device.driver == "gpu.example.com"'}}}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: one}}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {{deviceClassName: {name}, allocationMode: ExactCount, count: 1}}
"""


def until(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not check():
        assert time.monotonic() < deadline


# --- looking around -------------------------------------------------------------------------------


def test_what_there_is(shared: Kubectl) -> None:
    assert "Server Version: v1.37.0+moorage." in shared("version")
    rows = {row.split()[0] for row in shared("api-resources", "--no-headers").splitlines()}
    assert {"pods", "resourceclaims", "deviceclasses", "podgroups", "deployments"} <= rows
    assert "resource.k8s.io/v1" in shared("api-versions").split()
    assert shared("get", "--raw", "/readyz") == "ok"
    assert "kind: Namespace" in shared("get", "namespace", "default", "-o", "yaml")


def test_who_may_do_what(kubectl: Kubectl, namespace: str) -> None:
    assert kubectl("auth", "can-i", "create", "resourceclaims") == "yes\n"
    assert kubectl.run("auth", "can-i", "get", "secrets", "--as=ann").out == "no\n"
    assert "kubernetes-admin" in kubectl("auth", "whoami")
    listed = kubectl("auth", "can-i", "--list").splitlines()
    assert listed[1].split() == ["*.*", "[]", "[]", "[*]"]
    kubectl("create", "rolebinding", "ann", "--clusterrole=edit", "--user=ann")
    until(lambda: kubectl.run("get", "pods", "--as=ann").status == 0)
    refused = kubectl.fails("get", "pods", "--as=ann", "-n", "default")
    assert 'User "ann" cannot list resource "pods" in API group "" in the namespace' in refused
    assert namespace not in refused


def test_explain(shared: Kubectl) -> None:
    told = shared("explain", "pod.spec.resourceClaims")
    assert "Claims that must be allocated and reserved before the pod starts." in told
    assert "resourceClaimTemplateName\t<string>" in told
    assert "<no description>" not in told


# --- writing --------------------------------------------------------------------------------------


def test_apply_get_diff_and_delete(kubectl: Kubectl, namespace: str) -> None:
    text = manifest(namespace)
    assert kubectl("apply", "-f", "-", text=text).splitlines() == [
        f"deviceclass.resource.k8s.io/{namespace} created",
        "resourceclaim.resource.k8s.io/one created",
    ]
    assert kubectl("apply", "-f", "-", text=text).count("unchanged") == 2
    assert kubectl("diff", "-f", "-", text=text) == ""
    changed = kubectl.run("diff", "-f", "-", text=manifest(namespace, "slow"))
    assert changed.status == 1
    assert "+    tier: slow" in changed.out
    assert "configured" in kubectl("apply", "-f", "-", text=manifest(namespace, "slow"))
    table = [row.split() for row in kubectl("get", "resourceclaims").splitlines()]
    assert (table[0], table[1][:2]) == (["NAME", "STATE", "AGE"], ["one", "pending"])
    assert kubectl("get", "resourceclaims", "-o", "wide").splitlines()[0].split() == table[0]
    path = "jsonpath={.spec.devices.requests[0].name}"
    assert kubectl("get", "resourceclaim", "one", "-o", path) == "gpu"
    described = kubectl("describe", "resourceclaim", "one")
    assert f"Device Class Name:  {namespace}" in described
    assert kubectl("delete", "-f", "-", text=text).count(" deleted") == 2
    assert "not found" in kubectl.fails("get", "resourceclaim", "one")


def test_apply_on_the_server(kubectl: Kubectl, namespace: str) -> None:
    server_side = ("apply", "--server-side", "-f", "-")
    assert kubectl(*server_side, text=manifest(namespace)).count("serverside-applied") == 2
    before = kubectl.json("get", "deviceclass", namespace)
    kubectl(*server_side, text=manifest(namespace))
    assert kubectl.json("get", "deviceclass", namespace) == before
    other = (*server_side, "--field-manager=other")
    refused = kubectl.fails(*other, text=manifest(namespace, "slow"))
    assert 'conflict with "kubectl": .metadata.labels.tier' in refused
    kubectl(*other, "--force-conflicts", text=manifest(namespace, "slow"))
    labels = "jsonpath={.metadata.labels.tier}"
    assert kubectl("get", "deviceclass", namespace, "-o", labels) == "slow"
    tried = kubectl("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-",
                    text=manifest(namespace, "new"))  # fmt: skip
    assert "(server dry run)" in tried
    assert kubectl("get", "deviceclass", namespace, "-o", labels) == "slow"


def test_edit_label_annotate_and_patch(kubectl: Kubectl, tmp_path: Path) -> None:
    assert kubectl("create", "configmap", "c", "--from-literal=a=b") == "configmap/c created\n"
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/a: b/a: edited/' $1\n")
    editor.chmod(0o755)
    assert "edited" in kubectl("edit", "configmap", "c", KUBE_EDITOR=str(editor))
    kubectl("label", "configmap", "c", "tier=fast")
    assert "already has a value" in kubectl.fails("label", "configmap", "c", "tier=slow")
    kubectl("annotate", "configmap", "c", "note=it")
    kubectl("patch", "configmap", "c", "--type=json", "-p",
            '[{"op": "add", "path": "/data/x", "value": "y"}]')  # fmt: skip
    found = kubectl.json("get", "configmap", "c")
    assert found["data"] == {"a": "edited", "x": "y"}
    assert found["metadata"]["labels"] == {"tier": "fast"}
    assert found["metadata"]["annotations"] == {"note": "it"}
    assert kubectl("get", "configmap", "-l", "tier=fast", "-o", "name") == "configmap/c\n"


def test_create_and_what_is_wrong_with_it(kubectl: Kubectl) -> None:
    unknown = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndta: {a: b}\n"
    assert 'unknown field "dta"' in kubectl.fails("create", "-f", "-", text=unknown)
    bad = manifest("x").replace("device.driver ==", "device.drivers ==").split("---")[0]
    refused = kubectl.fails("create", "-f", "-", text=bad)
    assert "spec.selectors[0].cel.expression: Invalid value" in refused
    twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: z}\n"
    kubectl("create", "-f", "-", text=twice)
    assert "(AlreadyExists)" in kubectl.fails("create", "-f", "-", text=twice)


def test_controllers_are_scaled_and_rolled_out(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "d", "--image=i", "--replicas=2")
    assert kubectl("scale", "deployment", "d", "--replicas=0") == "deployment.apps/d scaled\n"
    assert "was 0" in kubectl.fails("scale", "deployment", "d", "--current-replicas=5",
                                    "--replicas=1").replace("found 0", "was 0")  # fmt: skip
    row = kubectl("get", "deployment", "d", "--subresource=scale", "--no-headers").split()
    assert row[:3] == ["d", "0", "0"]
    kubectl("patch", "deployment", "d", "--subresource=status", "--type=merge", "-p",
            '{"status": {"observedGeneration": 2}}')  # fmt: skip
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/d")
    assert "RollingUpdate" in kubectl("describe", "deployment", "d")
    kubectl("create", "job", "j", "--image=i")
    assert "Completions:      1" in kubectl("describe", "job", "j")


# --- waiting --------------------------------------------------------------------------------------


def test_watch_wait_and_events(kubectl: Kubectl, namespace: str) -> None:
    kubectl("run", "p", "--image=i")
    watch = subprocess.Popen(
        kubectl.command("get", "pods", "-w", "--no-headers"),
        env=kubectl.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watch.stdout is not None
    try:
        assert watch.stdout.readline().split()[:3] == ["p", "0/1", "Pending"]
        status = (
            '{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}'
        )
        kubectl("patch", "pod", "p", "--subresource=status", "--type=merge", "-p", status)
        assert watch.stdout.readline().split()[:3] == ["p", "0/1", "Running"]
    finally:
        watch.kill()
        watch.wait(TIMEOUT_S)
        watch.stdout.close()
    assert kubectl("wait", "--for=condition=Ready", "pod/p") == "pod/p condition met\n"
    path = "--for=jsonpath={.status.phase}=Running"
    assert kubectl("wait", path, "pod/p") == "pod/p condition met\n"
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": namespace},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": namespace, "apiVersion": "v1"},
        "reason": "Scheduled",
        "message": "it has a node",
        "type": "Normal",
        "lastTimestamp": "2026-11-15T12:00:00Z",
    }
    kubectl("create", "-f", "-", text=json.dumps(event))
    assert "it has a node" in kubectl("events", "--for", "pod/p")
    assert "it has a node" in kubectl("get", "events")
    kubectl("delete", "pod", "p", "--wait=false")
    kubectl("wait", "--for=delete", "pod/p", "--timeout=30s")


def test_a_namespace_goes_with_all_that_is_in_it(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "configmap", "c")
    assert f"Name:         {namespace}" in kubectl("describe", "namespace", namespace)
    kubectl("delete", "namespace", namespace)
    assert "NotFound" in kubectl.fails("get", "namespace", namespace)
    assert kubectl("get", "configmaps", "-n", namespace, "-o", "name") == ""


# --- the seeds ------------------------------------------------------------------------------------

# What cannot be applied to a server, and why.
NOT_APPLIED = {
    "002-24-scheduler-configuration.yaml": 'no matches for kind "KubeSchedulerConfiguration"',
    "002-28-device-metadata.json": "",  # a file in a container
}
# Another version of what stands in the file before it: the same name, another spec.
VARIANTS = (
    "000-01-gpu-numa-alignment.yaml",
    "001-06-pcie-aligned-claim.yaml",
    "003-32-numa-node-inference.yaml",
    "004-34-device-class.yaml",
    "004-41-quota-after.yaml",
)


def seeds() -> list[Path]:
    return sorted(path for path in SEEDS.glob("*.yaml") if path.name not in NOT_APPLIED)


def files_of(paths: list[Path]) -> list[str]:
    return [part for path in paths for part in ("-f", str(path))]


def namespaces_of(paths: list[Path]) -> set[str]:
    trees = [tree for path in paths for tree in yaml.safe_load_all(path.read_text()) if tree]
    return {tree["metadata"].get("namespace", "") for tree in trees} - {""}


@pytest.mark.parametrize("way", ["--server-side=false", "--server-side"])
def test_seeds_are_applied_twice_and_the_second_changes_nothing(way: str, tmp_path: Path) -> None:
    """Forms of the KEPs are stored in the shipped form, and are known again when they come."""
    program = list(KUBECTLS.values())[-1]
    with running(tmp_path / "server") as kubeconfig:
        (tmp_path / "kubeconfig").write_text(kubeconfig)
        kubectl = Kubectl(program, tmp_path)
        for name in sorted({"first", "second", *namespaces_of(seeds())}):
            kubectl("create", "namespace", name)
            kubectl("label", "namespace", name, "resource.kubernetes.io/admin-access=true")
        for name, is_variant in (("first", False), ("second", True)):
            kubectl("config", "set-context", "--current", f"--namespace={name}")
            batch = files_of([p for p in seeds() if (p.name in VARIANTS) == is_variant])
            kubectl("apply", way, *batch)
            before = revisions(kubectl, batch)
            again = kubectl("apply", way, *batch)
            assert revisions(kubectl, batch) == before
            assert " created" not in again


def revisions(kubectl: Kubectl, files: list[str]) -> dict[str, str]:
    """Return the revisions of what is in files; of quotas, which the server counts, the spec."""
    items = kubectl.json("get", *files)["items"]
    assert items
    return {
        f"{item['kind']}/{item['metadata']['name']}": (
            str(item["spec"])
            if item["kind"] == "ResourceQuota"
            else item["metadata"]["resourceVersion"]
        )
        for item in items
    }


def test_seeds_that_need_something_first(shared: Kubectl) -> None:
    name = f"seeds-{next(_numbers)}"
    shared("create", "namespace", name)
    admin = SEEDS / "002-15-admin-access-template.yaml"
    refused = shared.fails("apply", "-n", name, "-f", str(admin))
    assert "requires the `resource.kubernetes.io/admin-access: true` label" in refused
    for file, why in NOT_APPLIED.items():
        assert why in shared.fails("apply", "-n", name, "-f", str(SEEDS / file))


@pytest.mark.parametrize("file", sorted((SEEDS / "refused").glob("*.yaml")), ids=lambda p: p.name)
def test_seeds_that_are_refused(shared: Kubectl, file: Path) -> None:
    refused = shared.fails("create", "-n", "default", "-f", str(file))
    assert re.search(r"Invalid value|Required value|unknown field|strict decoding", refused)


# --- pods and jobs ----------------------------------------------------------------------------

PROBED_POD = """
apiVersion: v1
kind: Pod
metadata: {name: probed}
spec:
  containers:
  - {name: c, image: i, livenessProbe: {grpc: {port: 7}}}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    METADATA
    spec:
      restartPolicy: Never
      containers:
      - name: c
        image: i
        env: [{name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
      volumes: [{name: conf, configMap: {name: m}}]
"""


def test_a_pod_with_a_grpc_probe_is_described(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", text=PROBED_POD)
    described = kubectl("describe", "pod", "probed")
    assert "grpc <pod>:7" in described
    assert "delay=0s timeout=1s period=10s #success=1 #failure=3" in described


@pytest.mark.parametrize("metadata", ["", "metadata: {labels: {app: x}}"])
@pytest.mark.parametrize("applying", [(), ("--server-side",)])
def test_nothing_differs_after_a_job_is_applied(
    kubectl: Kubectl, metadata: str, applying: tuple[str, ...]
) -> None:
    job = JOB.replace("METADATA", metadata)
    kubectl("apply", *applying, "-f", "-", text=job)
    done = kubectl.run("diff", *applying, "-f", "-", text=job)
    assert (done.status, done.out) == (0, ""), done.err
    labels = kubectl.json("get", "job", "once")["metadata"]["labels"]
    assert labels["job-name"] == labels["batch.kubernetes.io/job-name"] == "once"
    assert labels["controller-uid"] == labels["batch.kubernetes.io/controller-uid"]
