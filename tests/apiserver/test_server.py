"""`moor server` runs, and the real kubectl works with it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError

import pytest
from click.testing import CliRunner

from moorage.cli.main import moor
from tests.apiserver.programs import NO_KUBECTL, find_kubectl
from tests.store.etcdserver import find_etcd, running_etcd

KUBECTL = find_kubectl()
TIMEOUT_S = 60

MANIFEST = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one, namespace: team}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
"""

Kubectl = Callable[..., str]


class Running:
    """A server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], url: str, folder: Path) -> None:
        self.process = process
        self.url = url
        self.folder = folder

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT_S)


def command(folder: Path, *options: str) -> list[str]:
    start = [sys.executable, "-m", "moorage.cli.main", "server", "--data-dir", str(folder)]
    return [*start, "--port", "0", *options]


@contextmanager
def running(folder: Path, *options: str) -> Iterator[Running]:
    process = subprocess.Popen(command(folder, *options), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.match(r"serving at (http://127\.0\.0\.1:\d+)", line)
        assert found, line
        yield Running(process, found[1], folder)
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
        process.stderr.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "data", "--authorization-mode", "AlwaysAllow") as server:
        yield server


@pytest.fixture
def kubectl(server: Running, tmp_path: Path) -> Kubectl:
    if KUBECTL is None:
        pytest.skip(NO_KUBECTL)
    environment = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(server.folder / "kubeconfig"),
    }

    def run(*arguments: str, text: str = "", fails: bool = False) -> str:
        done = subprocess.run(
            [str(KUBECTL), "--cache-dir", str(tmp_path / "cache"), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            input=text,
            timeout=TIMEOUT_S,
        )
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout

    return run


def test_kubectl_from_creation_to_deletion(kubectl: Kubectl) -> None:
    assert kubectl("create", "namespace", "team") == "namespace/team created\n"
    applied = kubectl("apply", "-f", "-", text=MANIFEST)
    assert applied == (
        "deviceclass.resource.k8s.io/gpu created\nresourceclaim.resource.k8s.io/one created\n"
    )
    assert "gpu unchanged" in kubectl("apply", "-f", "-", text=MANIFEST)
    table = kubectl("get", "resourceclaims", "-n", "team").split()
    assert table[:5] == ["NAME", "STATE", "AGE", "one", "pending"]
    assert "kind: DeviceClass" in kubectl("get", "deviceclass", "gpu", "-o", "yaml")
    kubectl("label", "deviceclass", "gpu", "tier=fast")
    kubectl("annotate", "deviceclass", "gpu", "note=it")
    labels = json.loads(kubectl("get", "deviceclass", "gpu", "-o", "json"))["metadata"]["labels"]
    assert labels == {"tier": "fast"}
    assert kubectl("get", "deviceclass", "-l", "tier=fast", "-o", "name").strip() == (
        "deviceclass.resource.k8s.io/gpu"
    )
    kubectl("patch", "deviceclass", "gpu", "--type=merge", "-p", '{"metadata":{"labels":null}}')
    applied = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=MANIFEST)
    assert "gpu serverside-applied" in applied
    assert kubectl("diff", "-f", "-", text=MANIFEST) == ""
    assert "Name:         gpu" in kubectl("describe", "deviceclass", "gpu")
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert kubectl("delete", "namespace", "team") == 'namespace "team" deleted\n'
    assert "not found" in kubectl("get", "ns", "team", fails=True)


def test_kubectl_watches_and_waits(kubectl: Kubectl, server: Running) -> None:
    kubectl("apply", "-f", "-", text=MANIFEST.split("---", maxsplit=1)[0])
    process = subprocess.Popen(
        [str(KUBECTL), "--server", server.url, "get", "deviceclass", "-w", "-o", "name"],
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(server.folder), "KUBECONFIG": ""},
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().strip() == "deviceclass.resource.k8s.io/gpu"
        kubectl("label", "deviceclass", "gpu", "a=b")
        assert process.stdout.readline().strip() == "deviceclass.resource.k8s.io/gpu"
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
        process.stdout.close()
    path = "{.metadata.labels.a}=b"
    assert "met" in kubectl("wait", "deviceclass/gpu", f"--for=jsonpath={path}", "--timeout=10s")


def test_a_server_keeps_its_objects_and_its_token(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with running(folder, "--authorization-mode", "Token") as server:
        token = (folder / "admin-token").read_text().strip()
        request = urllib.request.Request(f"{server.url}/api/v1/namespaces")
        with pytest.raises(HTTPError, match="403"):
            urllib.request.urlopen(request)
        request.add_header("Authorization", f"Bearer {token}")
        before = json.load(urllib.request.urlopen(request))
        assert server.stop() == 0
    assert (folder / "admin-token").stat().st_mode & 0o777 == 0o600
    with running(folder, "--authorization-mode", "Token") as server:
        request.full_url = f"{server.url}/api/v1/namespaces"
        after = json.load(urllib.request.urlopen(request))
    assert [item["metadata"]["uid"] for item in after["items"]] == [
        item["metadata"]["uid"] for item in before["items"]
    ]
    shown = CliRunner().invoke(moor, ["kubeconfig", "--data-dir", str(folder)])
    assert token in shown.output


def test_objects_can_be_in_etcd(tmp_path: Path) -> None:
    if find_etcd() is None:
        pytest.skip("etcd-server cannot be had")
    everybody = ("--authorization-mode", "AlwaysAllow")
    with running_etcd() as etcd:
        options = ("--etcd-servers", etcd.target, *everybody)
        with running(tmp_path / "one", *options) as server:
            first = json.load(urllib.request.urlopen(f"{server.url}/api/v1/namespaces/default"))
        with running(tmp_path / "two", *options) as server:
            again = json.load(urllib.request.urlopen(f"{server.url}/api/v1/namespaces/default"))
    assert first == again


def test_a_folder_has_one_server_with_etcd_too(tmp_path: Path) -> None:
    if find_etcd() is None:
        pytest.skip("etcd-server cannot be had")
    with running_etcd() as etcd:
        options = ("--etcd-servers", etcd.target, "--authorization-mode", "AlwaysAllow")
        with running(tmp_path, *options):
            done = subprocess.run(
                command(tmp_path, *options), capture_output=True, text=True, timeout=TIMEOUT_S
            )
    assert done.returncode == 3
    assert "in use by process" in done.stderr


def test_a_port_that_is_taken_is_told(server: Running, tmp_path: Path) -> None:
    port = server.url.rpartition(":")[2]
    again = [*command(tmp_path / "other"), "--port", port]
    done = subprocess.run(again, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 3
    assert done.stderr == (
        f"error: 127.0.0.1:{port}: Address already in use; "
        "--secure-port names another port, and 0 takes a free one\n"
    )


def test_what_was_done_is_noted_and_backed_up(tmp_path: Path) -> None:
    log, folder = tmp_path / "audit.log", tmp_path / "data"
    options = ("--authorization-mode", "AlwaysAllow", "--audit-log-path", str(log))
    with running(folder, *options) as server:
        urllib.request.urlopen(f"{server.url}/api/v1/namespaces/default").read()
        saved = ["store", "backup", str(tmp_path / "copy"), "--data-dir", str(folder)]
        assert CliRunner().invoke(moor, saved).exit_code == 0
        assert server.stop() == 0
    (line,) = map(json.loads, log.read_text().splitlines())
    assert (line["verb"], line["objectRef"]["name"]) == ("get", "default")
    assert line["sourceIPs"] == ["127.0.0.1"]
    restored = ["store", "restore", str(tmp_path / "copy"), "--data-dir", str(tmp_path / "new")]
    assert CliRunner().invoke(moor, restored).exit_code == 0
    with running(tmp_path / "new", *options) as server:
        urllib.request.urlopen(f"{server.url}/api/v1/namespaces/default").read()


def test_a_server_stops_while_watches_and_idle_connections_are_open(server: Running) -> None:
    watch = urllib.request.urlopen(f"{server.url}/api/v1/namespaces?watch=1")
    assert json.loads(watch.readline())["type"] == "ADDED"
    assert server.stop() == 0
    watch.read()  # it ends, and is whole


def test_a_folder_has_one_server(server: Running) -> None:
    second = subprocess.run(
        command(server.folder), capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert second.returncode == 3
    assert "error:" in second.stderr
    assert "Traceback" not in second.stderr


def test_only_loopback_addresses_without_tls(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        moor,
        [
            "server",
            "--bind-address",
            "0.0.0.0",
            "--data-dir",
            str(tmp_path),
            "--authorization-mode",
            "Token",
        ],
    )
    assert done.exit_code == 2
    assert "loopback" in done.output


@pytest.mark.parametrize("text", ["soon", "-1s", "5"])
def test_the_interval_of_compaction_must_be_one(tmp_path: Path, text: str) -> None:
    options = ["--data-dir", str(tmp_path), f"--etcd-compaction-interval={text}"]
    done = CliRunner().invoke(moor, ["server", *options])
    assert done.exit_code == 2
    assert f"'--etcd-compaction-interval': '{text}'" in done.output


def test_a_folder_without_a_server(tmp_path: Path) -> None:
    done = CliRunner().invoke(moor, ["kubeconfig", "--data-dir", str(tmp_path)])
    assert done.exit_code == 3
    assert "moor server" in done.output
