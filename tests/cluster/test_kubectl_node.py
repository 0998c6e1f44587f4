"""What a real kubectl does with `moor up`'s own node, whose containers are processes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.programs import NO_KUBECTL, find_kubectls
from tests.apiserver.test_kubectl_server import Kubectl

KUBECTLS = find_kubectls()
PROGRAM = list(KUBECTLS.values())[-1] if KUBECTLS else ""
TIMEOUT_S = 150
EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.skipif(not KUBECTLS, reason=NO_KUBECTL)


def moor(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moorage.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    state, folder = tmp_path_factory.mktemp("cluster"), tmp_path_factory.mktemp("kubectl")
    place = ("--data-dir", str(state))
    flags = ("--port", "0", "--drivers", "none", "--node-name", "own")
    started = moor("up", *place, *flags, "--detach")
    assert started.returncode == 0, started.stderr
    (folder / "kubeconfig").write_text((state / "kubeconfig").read_text())
    try:
        yield Kubectl(PROGRAM, folder)
    finally:
        moor("down", *place)
        moor("reset", *place, "--yes")


def apply(kubectl: Kubectl, *objects: dict[str, Any]) -> None:
    kubectl("apply", "-f", "-", text=yaml.safe_dump_all(objects))


def pod_of(name: str, *command: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "command": list(command)}
    container |= spec.pop("container", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **spec.pop("metadata", {})},
        "spec": {"containers": [container], "restartPolicy": "Never", **spec},
    }


def wait(kubectl: Kubectl, name: str, phase: str = "Succeeded") -> None:
    kubectl("wait", f"--for=jsonpath={{.status.phase}}={phase}", f"pod/{name}", "--timeout=60s")


# --- in-cluster -----------------------------------------------------------------------------------


def test_a_pod_reaches_the_server_as_its_service_account(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    script = (
        "cat $D/namespace; echo; "
        f"HOME=/proc/nowhere {PROGRAM} auth whoami -o jsonpath='{{.status}}'"
    )
    where = "/var/run/secrets/kubernetes.io/serviceaccount"
    env = [{"name": "D", "value": where}]
    apply(
        kubectl,
        pod_of("robot", "sh", "-c", script, serviceAccountName="robot", container={"env": env}),
    )
    wait(kubectl, "robot")
    namespace, who = kubectl("logs", "robot").splitlines()
    assert namespace == "default"
    assert '"username":"system:serviceaccount:default:robot"' in who
    assert '"authentication.kubernetes.io/node-name":["own"]' in who


def test_a_driver_runs_as_a_daemon_set_with_its_service_account(kubectl: Kubectl) -> None:
    folder = EXAMPLES / "driver-daemonset"
    kubectl("apply", "-f", str(folder / "driver.yaml"))
    place = ("-n", "dra-drivers")
    kubectl("rollout", "status", "daemonset/cpu-driver", *place, "--timeout=60s")
    kubectl("apply", "-f", str(folder / "pod.yaml"))
    wait(kubectl, "one-cpu")
    assert kubectl("logs", "one-cpu").splitlines()[0] == "1"
    (published,) = kubectl.json("get", "resourceslices")["items"]
    assert (published["spec"]["driver"], published["spec"]["nodeName"]) == ("dra.cpu", "own")
    # Without its role, the account may not: nothing else let the driver in.
    kubectl("delete", "clusterrolebinding", "cpu-driver")
    account = "--as=system:serviceaccount:dra-drivers:cpu-driver"
    assert "no" in kubectl.run("auth", "can-i", "create", "resourceslices", account).out
    kubectl("delete", "-f", str(folder / "driver.yaml"), "--ignore-not-found", "--wait=false")
    kubectl("delete", "-f", str(folder / "pod.yaml"))


# --- changes of running pods ----------------------------------------------------------------------


def test_a_running_pod_is_resized(kubectl: Kubectl) -> None:
    sizes = {"resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}}
    apply(kubectl, pod_of("grows", "sleep", "1000", container=sizes))
    wait(kubectl, "grows", "Running")
    change = {"name": "main", "resources": {"requests": {"cpu": "200m"}}}
    patch = json.dumps({"spec": {"containers": [change]}})
    kubectl("patch", "pod", "grows", "--subresource=resize", "-p", patch)
    path = "jsonpath={.status.containerStatuses[0].resources.requests.cpu}=200m"
    kubectl("wait", f"--for={path}", "pod/grows", "--timeout=60s")
    (status,) = kubectl.json("get", "pod", "grows")["status"]["containerStatuses"]
    assert (status["allocatedResources"]["cpu"], status["restartCount"]) == ("200m", 0)
    kubectl("delete", "pod", "grows", "--grace-period=0", "--force")


def test_kubectl_debug_adds_a_container(kubectl: Kubectl) -> None:
    apply(kubectl, pod_of("ill", "sleep", "1000"))
    wait(kubectl, "ill", "Running")
    words = ("debug", "ill", "-i", "--image=none", "--target=main", "-q", "--")
    out = kubectl(*words, "sh", "-c", "read x; echo got $x", text="this\n")
    assert "got this" in out
    (added,) = kubectl.json("get", "pod", "ill")["spec"]["ephemeralContainers"]
    assert added["targetContainerName"] == "main"
    kubectl("delete", "pod", "ill", "--grace-period=0", "--force")


# --- what the node says of itself -----------------------------------------------------------------


def test_kubectl_top_shows_what_is_used(kubectl: Kubectl) -> None:
    apply(kubectl, pod_of("busy", "sh", "-c", "while true; do i=$((i+1)); done"))
    wait(kubectl, "busy", "Running")
    (line,) = kubectl("top", "nodes", "--no-headers").splitlines()
    assert line.split()[0] == "own"
    lines = kubectl("top", "pods", "--containers", "--no-headers").splitlines()
    (own,) = [line.split() for line in lines if line.startswith("busy ")]
    assert own[1] == "main"
    assert int(own[2].removesuffix("m")) > 10
    missing = 'podmetrics.metrics.k8s.io "default/none" not found'
    assert missing in kubectl.fails("top", "pod", "none")
    assert 'cannot list resource "nodes"' in kubectl.fails("top", "nodes", "--as=somebody")
    kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer")
    assert "busy" in kubectl("top", "pods", "--as=viewer")
    kubectl("delete", "pod", "busy", "--grace-period=0", "--force")


def test_paths_of_the_node_are_read_through_the_server(kubectl: Kubectl) -> None:
    base = "/api/v1/nodes/own/proxy"
    assert kubectl("get", "--raw", f"{base}/healthz") == "ok"
    assert "kubelet_running_pods" in kubectl("get", "--raw", f"{base}/metrics")
    summary = json.loads(kubectl("get", "--raw", f"{base}/stats/summary"))
    assert summary["node"]["nodeName"] == "own"
    config = json.loads(kubectl("get", "--raw", f"{base}/configz"))
    assert config["kubeletconfig"]["maxPods"] == 110
    assert json.loads(kubectl("get", "--raw", f"{base}/pods"))["kind"] == "PodList"
    refused = kubectl.fails("get", "--raw", f"{base}/pods", "--as=somebody")
    assert 'cannot get resource "nodes/proxy"' in refused
    assert "not found" in kubectl.fails("get", "--raw", "/api/v1/nodes/none/proxy/pods")
    assert "control plane" in kubectl("cluster-info")


# --- volumes --------------------------------------------------------------------------------------


def test_a_claimed_volume_is_mounted(kubectl: Kubectl, tmp_path: Path) -> None:
    modes = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    size = {"storage": "1Mi"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "kept"},
        "spec": {**modes, "volumeName": "kept", "resources": {"requests": size}},
    }
    apply(kubectl, claim)
    uid = kubectl("get", "pvc", "kept", "-o", "jsonpath={.metadata.uid}")
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "kept"}
    spec = {**modes, "capacity": size, "hostPath": {"path": str(tmp_path)}}
    spec["claimRef"] = {"apiVersion": "v1", **reference, "uid": uid}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "kept"}}
    apply(kubectl, {**volume, "spec": spec})
    bound = '{"status": {"phase": "Bound"}}'
    kubectl("patch", "pvc", "kept", "--subresource=status", "-p", bound)
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/kept/here"}]}
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "kept"}}]
    writing = ("sh", "-c", "echo hello > /kept/here/file")
    apply(kubectl, pod_of("writer", *writing, container=mount, volumes=volumes, nodeName="own"))
    wait(kubectl, "writer")
    assert (tmp_path / "file").read_text() == "hello\n"


def test_a_volume_that_the_node_lacks_is_refused_with_an_event(kubectl: Kubectl) -> None:
    volumes = [{"name": "v", "nfs": {"server": "s", "path": "/"}}]
    apply(kubectl, pod_of("far", "true", volumes=volumes))
    place = ("--for=jsonpath={.reason}=FailedMount", "events", "--timeout=60s")
    kubectl("wait", *place, "--field-selector=involvedObject.name=far,reason=FailedMount")
    events = kubectl("events", "--for=pod/far")
    assert 'MountVolume.SetUp failed for volume "v" : nfs is not supported by this node' in events
    kubectl("delete", "pod", "far", "--grace-period=0", "--force")


# --- services -------------------------------------------------------------------------------------


def test_a_service_answers_at_its_address(kubectl: Kubectl) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serve = ("-m", "http.server", "--bind", "127.0.0.1", str(port))
    apply(kubectl, pod_of("web", sys.executable, *serve))
    labels = {"kubernetes.io/service-name": "my-web"}
    ports = [{"port": 8123, "targetPort": port, "protocol": "TCP"}]
    head = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "my-web"}}
    apply(
        kubectl,
        {**head, "spec": {"clusterIP": "127.96.77.7", "ports": ports}},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "my-web-1", "labels": labels},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
            "ports": [{"name": "", "port": port, "protocol": "TCP"}],
        },
    )
    reading = (
        "import os, urllib.request as r\n"
        "place = os.environ['MY_WEB_SERVICE_HOST'] + ':' + os.environ['MY_WEB_SERVICE_PORT']\n"
        "print(place, r.urlopen(f'http://{place}/').status)"
    )
    apply(kubectl, pod_of("reader", sys.executable, "-c", reading, restartPolicy="OnFailure"))
    wait(kubectl, "reader")
    assert kubectl("logs", "reader").splitlines()[-1] == "127.96.77.7:8123 200"
    for name in ("pod/web", "pod/reader", "service/my-web", "endpointslice/my-web-1"):
        kubectl("delete", name, "--wait=false")


def test_a_service_finds_its_pod_and_a_claim_gets_a_volume(kubectl: Kubectl) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    size = {"requests": {"storage": "1Mi"}}
    spec = {"selector": {"app": "db"}, "ports": [{"port": 8124, "targetPort": port}]}
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/served"}], "workingDir": "/served"}
    serve = ("-m", "http.server", "--bind", "127.0.0.1", str(port))
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "served"}}]
    apply(
        kubectl,
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"}, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "served"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": size},
        },
        pod_of(
            "db",
            *("sh", "-c", f"echo kept > page; exec {sys.executable} {' '.join(serve)}"),
            metadata={"labels": {"app": "db"}},
            container=mount,
            volumes=volumes,
        ),
    )
    reading = (
        "import os, urllib.request as r\n"
        "place = os.environ['DB_SERVICE_HOST'] + ':' + os.environ['DB_SERVICE_PORT']\n"
        "print(r.urlopen(f'http://{place}/page').read().decode())"
    )
    apply(kubectl, pod_of("client", sys.executable, "-c", reading, restartPolicy="OnFailure"))
    wait(kubectl, "client")
    assert "kept" in kubectl("logs", "client")
    for name in ("pod/db", "pod/client", "service/db", "pvc/served"):
        kubectl("delete", name, "--wait=false")
