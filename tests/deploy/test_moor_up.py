"""The manifests of deploy/ applied to `moor up`: as processes of this machine, and as the image."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

import dev
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.contract import Request
from tests.deploy.images import IMAGE, build_image
from tests.deploy.manifests import MOOR, NAMESPACE, ROOT, Tree, of_kind, trees_of
from tests.node.runtime.podmans import NoPodmanError, make_podman, remove_podman
from tests.stories.stage import kind_of, path_of

WAIT_S = 120.0
PROGRAMS = ("controllers", "metrics", "scheduler")
SAMPLE = re.compile(r'^moorage_devices\{driver="(.*?)",node=".*?",state="(.*?)"\} (\d+)$')
PODS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: many, namespace: default}
spec: {spec: {devices: {requests: [{name: cpu, exactly: {deviceClassName: dra.cpu, count: 33}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: default}
spec:
  resourceClaims: [{name: cpu, resourceClaimTemplateName: many}]
  containers: [{name: c, image: i, command: [sleep, infinity], resources: {claims: [{name: cpu}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: placed, namespace: default}
spec:
  schedulerName: moorage-scheduler
  containers: [{name: c, image: localhost/busybox:1, command: [sleep, infinity]}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:monitoring}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
"""


@pytest.fixture(scope="module")
def podman() -> Iterator[list[str]]:
    """Return a podman that has Moorage's image."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    command: list[str] = []
    try:
        command = make_podman(folder)
        build_image(command, folder)
        yield command
    except NoPodmanError as error:
        pytest.skip(str(error))
    finally:
        remove_podman(command or ["true"], folder)


def kustomized(folder: Path) -> list[Tree]:
    """Return what kubectl makes of a kustomization."""
    kubectl = dev.kubectl_of("sid")
    program = str(kubectl) if kubectl.exists() else shutil.which("kubectl")
    if program is None:
        pytest.skip("there is no kubectl")
    done = subprocess.run(
        [program, "kustomize", str(folder)], capture_output=True, text=True, check=True
    )
    return trees_of(done.stdout)


def on_free_ports(trees: list[Tree]) -> dict[str, int]:
    """Change the ports of programs, which share this machine with others; return them."""
    chosen = {}
    for name, deployment in of_kind(trees, "Deployment").items():
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = chosen[name] = server.getsockname()[1]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        old = str(container["ports"][0]["containerPort"])
        container["ports"][0]["containerPort"] = port
        container["command"] = [
            each.replace(f":{old}", f":{port}") for each in container["command"]
        ]
        for probe in ("livenessProbe", "readinessProbe"):
            container[probe]["httpGet"]["port"] = port
        container["readinessProbe"]["periodSeconds"] = 1
    return chosen


def test_the_overlay_for_moor_up_runs_the_programs_as_processes(tmp_path: Path) -> None:
    trees = kustomized(ROOT / "deploy" / "kustomize" / "moor-up")
    with cluster(tmp_path, {}):
        asyncio.run(_works(tmp_path, trees))


@pytest.mark.sweep  # It builds an image, which takes a minute.
def test_the_base_runs_the_image_without_root_and_with_nothing_written(
    tmp_path: Path, podman: list[str]
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "podman"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(podman)} "$@"\n')
    program.chmod(0o755)
    trees = kustomized(ROOT / "deploy" / "kustomize" / "base")
    for deployment in of_kind(trees, "Deployment").values():
        deployment["spec"]["replicas"] = 1  # as all share the ports of this machine
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        container["image"] = IMAGE
    path = {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    with cluster(tmp_path, path, "--runtime", "podman"):
        asyncio.run(_works(tmp_path, trees))
        ids = subprocess.run([program, "ps", "-q"], capture_output=True, text=True, check=True)
        found = json.loads(subprocess.check_output([program, "inspect", *ids.stdout.split()]))
        ours = [each for each in found if "moorage" in each["ImageName"]]
        assert len(ours) == len(PROGRAMS)
        assert {each["Config"]["User"].partition(":")[0] for each in ours} == {"65532"}
        assert all(each["HostConfig"]["ReadonlyRootfs"] for each in ours)


@contextmanager
def cluster(folder: Path, environment: dict[str, str], *flags: str) -> Iterator[None]:
    place = ("--data-dir", str(folder / "state"))
    flags = ("--port", "0", "--drivers", "cpu", "--detach", *flags)
    started = subprocess.run(
        [str(MOOR), "up", *place, *flags],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert started.returncode == 0, started.stderr
    try:
        yield
    finally:
        subprocess.run([str(MOOR), "down", *place], capture_output=True, check=True)


async def _works(folder: Path, trees: list[Tree]) -> None:
    """Apply the manifests, and see each program do its work."""
    ports = on_free_ports(trees)
    kubeconfig = folder / "state" / "kubeconfig"
    async with http_client(load_rest_config(str(kubeconfig))) as client, asyncio.timeout(WAIT_S):
        for tree in (*trees, *yaml.safe_load_all(PODS)):
            await ask(client, "POST", path_of(kind_of(tree), _space(tree)), tree)
        await _until_ready(client)
        await _until_placed(client)
        explained = await _explained(client)
        assert "the claim asks for 33 devices, a claim can have 32 at most" in explained
        await _until_counted(client, ports["moorage-metrics"], kubeconfig)


def _space(tree: Tree) -> str:
    return str(tree["metadata"].get("namespace", ""))


async def ask(client: ApiClient, method: str, path: str, tree: Any = None) -> Any:
    body = b"" if tree is None else msgspec.json.encode(tree)
    answer = await client.send(Request(method, path, "", body, "application/json"))
    return msgspec.json.decode(answer.body)


async def _until_ready(client: ApiClient) -> None:
    while True:
        found = await ask(client, "GET", f"/api/v1/namespaces/{NAMESPACE}/pods")
        ready = [
            condition["status"]
            for pod in found["items"]
            for condition in pod.get("status", {}).get("conditions", ())
            if condition["type"] == "Ready"
        ]
        if ready == ["True"] * len(PROGRAMS):
            return
        await asyncio.sleep(0.2)


async def _until_placed(client: ApiClient) -> None:
    while True:
        pod = await ask(client, "GET", "/api/v1/namespaces/default/pods/placed")
        if pod["status"].get("phase") == "Running":
            return
        await asyncio.sleep(0.2)


async def _explained(client: ApiClient) -> str:
    while True:
        events = await ask(client, "GET", "/api/v1/namespaces/default/events")
        for event in events["items"]:
            if event.get("reason") == "Explained" and event["involvedObject"]["name"] == "waits":
                return str(event["message"])
        await asyncio.sleep(0.2)


async def _until_counted(client: ApiClient, port: int, kubeconfig: Path) -> None:
    """Wait until the exporter counts devices as `moor devices` does."""
    path = "/api/v1/namespaces/default/serviceaccounts/reader/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = (await ask(client, "POST", path, asked))["status"]["token"]
    listed = await asyncio.create_subprocess_exec(
        *(str(MOOR), "devices", "--kubeconfig", str(kubeconfig), "-o", "json"),
        stdout=asyncio.subprocess.PIPE,
    )
    devices = json.loads((await listed.communicate())[0])["devices"]
    wanted = Counter((each["driver"], each["state"]) for each in devices)
    while await asyncio.to_thread(_counted, port, token) != wanted:
        await asyncio.sleep(0.5)


def _counted(port: int, token: str) -> Counter[tuple[str, str]]:
    url = f"https://127.0.0.1:{port}/metrics"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(request, context=context, timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    found = [match for line in lines if (match := SAMPLE.match(line))]
    return +Counter({(each[1], each[2]): int(each[3]) for each in found})
