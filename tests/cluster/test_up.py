"""A whole cluster of processes, as `moor up` runs it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from moorage.api.apps import Deployment
from moorage.api.codec import decode_tree
from moorage.api.core import Node, Pod
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimTemplate
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.certificates import authority_certificate, new_key
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.errors import ClientError
from moorage.client.writes import Create, Patch, Target
from moorage.cluster.simulation.machines import SIMULATED
from moorage.cluster.state_folder import StateFolder

WAIT_S = 60.0
REQUESTS = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]


def moor(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moorage.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)


@contextmanager
def cluster(folder: Path, *flags: str) -> Iterator[None]:
    place = ("--data-dir", str(folder))
    started = moor("up", *place, "--port", "0", "--profile", "dgx-h100", "--detach", *flags)
    assert started.returncode == 0, started.stderr
    page = rf"page: http://127\.0\.0\.1:\d+/ui/login\?token=\S+ .*`moor ui --data-dir {folder}`"
    assert re.search(page, started.stdout), started.stdout
    try:
        yield
    finally:
        assert moor("down", *place).stdout == "stopped\n"


def status(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        moor("status", "--data-dir", str(folder), "-o", "json").stdout
    )
    return found


def kill(folder: Path, name: str) -> None:
    state = StateFolder(folder).read()
    assert state is not None
    (pid,) = [each.pid for each in state.processes if each.name == name]
    os.kill(pid, signal.SIGKILL)


def client(folder: Path) -> ApiClient:
    return http_client(load_rest_config(str(folder / "kubeconfig")))


async def create(client: ApiClient, struct: type[Any], name: str, spec: dict[str, Any]) -> None:
    metadata = {"name": name, "namespace": "default"}
    value = decode_tree({"metadata": metadata, "spec": spec}, struct).value
    await client.write(Create(value))


async def deploy(client: ApiClient, name: str) -> None:
    labels = {"app": name}
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [container], "resourceClaims": claims},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    await create(client, Deployment, name, spec)


async def until_running(client: ApiClient, count: int) -> tuple[Pod, ...]:
    """Wait until so many pods run; a server that is away is asked again."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                pods: tuple[Pod, ...] = (await client.list(Pod)).values
                if len(pods) == count and all(each.status.phase == "Running" for each in pods):
                    return pods
            except ClientError:
                pass
            await asyncio.sleep(0.05)


async def get_devices_whatever_is_killed(folder: Path, *processes: str) -> None:
    """Run a pod with a device before and after each process is killed, the server last."""
    async with client(folder) as kubectl:
        await create(
            kubectl, ResourceClaimTemplate, "gpu", {"spec": {"devices": {"requests": REQUESTS}}}
        )
        await deploy(kubectl, "first")
        await until_running(kubectl, 1)
        for count, name in enumerate(processes, 1):
            kill(folder, name)
            await until_running(kubectl, count)
            await deploy(kubectl, f"after-{name}")
            await until_running(kubectl, count + 1)
        claims = (await kubectl.list(ResourceClaim)).values
        devices = {each.status.allocation.devices.results[0].device for each in claims}
        assert len(devices) == len(processes) + 1


def test_pods_get_devices_and_run_whichever_process_is_killed(tmp_path: Path) -> None:
    with cluster(tmp_path, "--isolate"):
        asyncio.run(get_devices_whatever_is_killed(tmp_path, "scheduler", "controllers", "server"))
        shown = status(tmp_path)
        restarts = {each["name"]: each["restarts"] for each in shown["processes"]}
        assert restarts == {"server": 1, "scheduler": 1, "controllers": 1}
        assert len({each["pid"] for each in shown["processes"]}) == 3
        text = moor("status", "--data-dir", str(tmp_path)).stdout
        assert "mode     server, scheduler and controllers are separate processes" in text


def test_one_process_is_the_control_plane_and_may_be_killed(tmp_path: Path) -> None:
    with cluster(tmp_path):
        asyncio.run(get_devices_whatever_is_killed(tmp_path, "server"))
        shown = status(tmp_path)
        parts = {each["name"]: each for each in shown["processes"]}
        assert {name: each["restarts"] for name, each in parts.items()} == {
            "server": 1,
            "scheduler": 1,
            "controllers": 1,
        }
        assert len({each["pid"] for each in parts.values()}) == 1
        assert all(parts[name]["metrics"] for name in ("scheduler", "controllers"))
        text = moor("status", "--data-dir", str(tmp_path)).stdout
        assert "mode     server, scheduler and controllers are one process" in text
        logs = {path.stem: path.read_text() for path in (tmp_path / "log").glob("*.log")}
        assert logs["scheduler"].count("scheduling at ") == 2
        assert logs["controllers"].count("controlling at ") == 2
        assert logs["server"].count("serving at ") == 2


async def written_under_another_domain(folder: Path) -> None:
    """Change the nodes to how they would be if another program had simulated them."""
    async with client(folder) as kubectl:
        for node in (await kubectl.list(Node)).values:
            annotations = {SIMULATED: None, "earlier.example/simulated": "true"}
            change = {"metadata": {"annotations": annotations}}
            await kubectl.write(Patch(Target.of(node), change))
        template = {"spec": {"devices": {"requests": REQUESTS}}}
        await create(kubectl, ResourceClaimTemplate, "gpu", template)


async def until_first_runs(folder: Path) -> None:
    async with client(folder) as kubectl:
        await deploy(kubectl, "first")
        await until_running(kubectl, 1)


def test_state_of_another_authority_and_domain_is_opened(tmp_path: Path) -> None:
    pki, key = tmp_path / "pki", new_key()
    pki.mkdir()
    authority = authority_certificate(key, Timestamp(datetime.now(UTC)), name="another-ca")
    (pki / "ca.crt").write_bytes(authority.certificate)
    (pki / "ca.key").write_bytes(key)
    with cluster(tmp_path):
        asyncio.run(written_under_another_domain(tmp_path))
    with cluster(tmp_path):
        asyncio.run(until_first_runs(tmp_path))
        assert status(tmp_path)["overview"]["nodes_ready"] == 1
    assert (pki / "ca.crt").read_bytes() == authority.certificate


def test_nodes_of_another_profile_are_kept_and_named(tmp_path: Path) -> None:
    with cluster(tmp_path):
        pass
    place = ("--data-dir", str(tmp_path))
    started = moor("up", *place, "--port", "0", "--profile", "xe8640", "--detach")
    try:
        assert started.returncode == 0, started.stderr
        assert "kept from an earlier start, 1 node of another --profile: dgx-h100-0; kubectl " in (
            started.stdout
        )
    finally:
        moor("down", *place)


def test_whoever_asks_for_another_cluster_hears_of_the_one_that_runs_here(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    environment = {**os.environ, "MOORAGE_DATA_DIR": str(folder), "KUBECONFIG": "/nowhere"}
    told = f"hint: `moor up` runs a cluster here: give --kubeconfig {folder}/kubeconfig, or export"
    command = [sys.executable, "-m", "moorage.cli.main"]

    def errors(*arguments: str) -> str:
        done = subprocess.run(
            [*command, *arguments],
            env=environment, capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip
        assert done.returncode == 3, done.stderr
        return done.stderr

    recording = str(tmp_path / "x.moorrec")
    with cluster(folder):
        for each in ("devices --live", "lint --live", "ui --live", f"record -o {recording}"):
            assert told in errors(*each.split()), each
    assert "hint" not in errors("devices", "--live")


def test_the_kubeconfig_is_printed_as_a_line_for_the_shell(tmp_path: Path) -> None:
    folder = tmp_path / "my state"
    started = moor("up", "--data-dir", str(folder), "--port", "0", "--no-node", "--detach")
    moor("down", "--data-dir", str(folder))
    assert f"\nexport KUBECONFIG='{folder}/kubeconfig'\n" in started.stdout


def test_only_its_owner_can_read_what_a_cluster_writes(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    mask = os.umask(0)
    try:
        with cluster(folder):
            backup = tmp_path / "cluster.moorbak"
            saved = moor("store", "backup", str(backup), "--data-dir", str(folder))
            assert saved.returncode == 0, saved.stderr
            made = moor(
                *("kubeconfig", "--data-dir", str(folder), "--node", "worker-1"),
                *("--folder", str(tmp_path / "worker")),
            )
            assert made.returncode == 0, made.stderr
    finally:
        os.umask(mask)
    written = [path for path in tmp_path.rglob("*") if path.is_file() or path.is_dir()]
    assert len(written) > 20
    assert [str(path) for path in written if path.stat().st_mode & 0o077] == []


def test_what_there_was_is_there_after_a_restart_and_nobody_starts_twice(tmp_path: Path) -> None:
    async def begin() -> str:
        async with client(tmp_path) as kubectl:
            await create(
                kubectl, ResourceClaimTemplate, "gpu", {"spec": {"devices": {"requests": REQUESTS}}}
            )
            await deploy(kubectl, "kept")
            (pod,) = await until_running(kubectl, 1)
            return pod.metadata.uid

    async def look() -> str:
        async with client(tmp_path) as kubectl:
            (pod,) = await until_running(kubectl, 1)
            return pod.metadata.uid

    with cluster(tmp_path):
        before = asyncio.run(begin())
        second = moor("up", "--data-dir", str(tmp_path), "--detach")
        assert second.returncode == 3
        assert "a cluster runs here already" in second.stderr
    assert moor("status", "--data-dir", str(tmp_path)).returncode == 1
    with cluster(tmp_path):
        assert asyncio.run(look()) == before
        overview = status(tmp_path)["overview"]
        assert (overview["nodes_ready"], overview["devices_in_use"]) == (1, 1)
