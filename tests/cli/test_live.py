"""Commands that look at a cluster can ask a server for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

import moorage
from moorage.api.core import Namespace, Pod
from moorage.api.core.pod import Container, PodSpec
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.rbac import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from moorage.api.resource.v1 import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from moorage.api.timestamp import Timestamp
from moorage.cli import main
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.writes import Create, Delete, Patch, Target
from moorage.hardware.catalogue import Catalogue
from moorage.insight.snapshot.builder import SnapshotBuilder
from moorage.sources.live_source import give_values
from moorage.validation.strategy import Context
from tests.apiserver.test_kubectl_server import running


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a server with one machine in it."""
    with running(tmp_path_factory.mktemp("server")) as text:
        path = tmp_path_factory.mktemp("client") / "kubeconfig"
        path.write_text(text)
        asyncio.run(_furnish(str(path)))
        yield str(path)


async def _furnish(kubeconfig: str) -> None:
    fleet = Catalogue().fleet("dgx-h100")
    namespaces = (Namespace(metadata=ObjectMeta(name=name)) for name in ("team-a", "team-b"))
    claims = (_claim("team-a", "ours"), _claim("team-b", "theirs"))
    roles = (*_may("jane", "team-a"), *_may("bob"), *_may("bob", "team-a"), *_may("eve", "team-b"))
    async with http_client(load_rest_config(kubeconfig)) as client:
        for each in (*fleet.nodes, *fleet.classes, *fleet.slices, *namespaces, *claims, *roles):
            await client.write(Create(each))


def _claim(namespace: str, name: str) -> ResourceClaim:
    request = DeviceRequest(
        name="gpu", exactly=ExactDeviceRequest(device_class_name="gpu.nvidia.com")
    )
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))),
    )


def _may(user: str, namespace: str = "") -> tuple[Any, ...]:
    """Return a role for reading a namespace, or all that has none, and its binding."""
    verbs, everything = ("get", "list"), ("*",)
    subject = Subject(kind="User", name=user, api_group="rbac.authorization.k8s.io")
    group = "rbac.authorization.k8s.io"
    if namespace:
        metadata = ObjectMeta(name=user, namespace=namespace)
        rule = PolicyRule(verbs=verbs, api_groups=everything, resources=everything)
        reference = RoleRef(api_group=group, kind="Role", name=user)
        return (
            Role(metadata=metadata, rules=(rule,)),
            RoleBinding(metadata=metadata, subjects=(subject,), role_ref=reference),
        )
    cluster_wide = ("nodes", "namespaces", "resourceslices", "deviceclasses", "priorityclasses")
    metadata = ObjectMeta(name=user)
    rule = PolicyRule(verbs=verbs, api_groups=everything, resources=cluster_wide)
    reference = RoleRef(api_group=group, kind="ClusterRole", name=user)
    return (
        ClusterRole(metadata=metadata, rules=(rule,)),
        ClusterRoleBinding(metadata=metadata, subjects=(subject,), role_ref=reference),
    )


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main.moor, arguments)


def test_devices_are_those_of_the_server(kubeconfig: str) -> None:
    live = run("devices", "--summary", "--kubeconfig", kubeconfig)
    assert live.exit_code == 0, live.output
    assert live.stdout == run("devices", "--summary", "--profile", "dgx-h100").stdout


def test_pods_are_planned_on_the_server_s_nodes(kubeconfig: str) -> None:
    live = run("plan", "-f", "examples/training", "--kubeconfig", kubeconfig)
    assert live.stdout == run("plan", "-f", "examples/training", "--profile", "dgx-h100").stdout


def test_a_cluster_that_is_not_there_is_unreadable(tmp_path: Path) -> None:
    result = run("devices", "--kubeconfig", str(tmp_path / "none"))
    assert result.exit_code == 3
    assert "cluster: kubeconfig" in result.stderr
    assert "there is no such file" in result.stderr


def test_a_server_that_does_not_answer_is_unreadable(kubeconfig: str, tmp_path: Path) -> None:
    text = Path(kubeconfig).read_text(encoding="utf-8")
    path = tmp_path / "kubeconfig"
    port = text.split("127.0.0.1:")[1].split()[0].strip('"')
    path.write_text(text.replace(f"127.0.0.1:{port}", "127.0.0.1:1"), encoding="utf-8")
    result = run("devices", "--kubeconfig", str(path))
    assert result.exit_code == 3
    assert "error: cluster: " in result.stderr


def test_lint_and_cel_ask_the_server_as_other_commands_do(kubeconfig: str) -> None:
    expression = 'device.driver == "gpu.nvidia.com"'
    live = run("cel", expression, "-o", "name", "--kubeconfig", kubeconfig)
    assert len(live.stdout.splitlines()) == 8
    live = run("lint", "--kubeconfig", kubeconfig, "-o", "json")
    assert json.loads(live.stdout)["summary"]["devices"] > 8
    assert live.exit_code in (0, 1)
    missing = run("lint", "--live", "--kubeconfig", f"{kubeconfig}.none")
    assert missing.exit_code == 3
    assert "error: cluster: kubeconfig" in missing.stderr


# --- whoever may not read everything ------------------------------------------------------


def as_user(kubeconfig: str, folder: Path, user: str, namespace: str = "team-a") -> str:
    """Return a kubeconfig by which a user acts in a namespace."""
    tree = yaml.safe_load(Path(kubeconfig).read_text(encoding="utf-8"))
    tree["users"][0]["user"]["as"] = user
    tree["contexts"][0]["context"]["namespace"] = namespace
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return str(path)


def test_the_namespace_is_that_of_the_context(kubeconfig: str, tmp_path: Path) -> None:
    admin = as_user(kubeconfig, tmp_path, "kubernetes-admin")
    tree = yaml.safe_load(Path(admin).read_text(encoding="utf-8"))
    tree["users"][0]["user"]["as-groups"] = ["system:masters"]
    Path(admin).write_text(yaml.safe_dump(tree), encoding="utf-8")
    assert (
        run("claims", "--kubeconfig", admin, "-o", "name").stdout
        == "resourceclaim.resource.k8s.io/ours\n"
    )
    named = run("claims", "--kubeconfig", admin, "-o", "name", "-n", "team-b")
    assert named.stdout == "resourceclaim.resource.k8s.io/theirs\n"
    assert len(run("claims", "--kubeconfig", admin, "-o", "name", "-A").stdout.splitlines()) == 2
    explained = run("explain", "claim/ours", "--kubeconfig", admin)
    assert "ours" in explained.stdout


def test_what_may_be_read_of_one_namespace_is_read(kubeconfig: str, tmp_path: Path) -> None:
    jane = as_user(kubeconfig, tmp_path, "jane")
    result = run("claims", "--kubeconfig", jane, "-A", "-o", "name")
    assert (result.exit_code, result.stdout) == (0, "resourceclaim.resource.k8s.io/ours\n")
    (note,) = result.stderr.splitlines()
    assert note.startswith(
        "warning: not all of the cluster may be read "
        "(no Node, PriorityClass, RuntimeClass, StorageClass, PersistentVolume, DeviceClass, "
        "ResourceSlice, DeviceTaintRule; Namespace, ResourceQuota, PersistentVolumeClaim, "
        "ResourceClaimTemplate, ResourceClaim, "
    )
    assert ", Service, ReplicationController, " in note.partition(";")[2]
    assert " in namespace team-a only): where pods would run is unknown; " in note
    assert "other namespaces are not looked into, with -A neither, unless -n names one" in note


def test_namespaces_that_may_be_listed_are_all_tried(kubeconfig: str, tmp_path: Path) -> None:
    bob = as_user(kubeconfig, tmp_path, "bob", "team-b")
    result = run("claims", "--kubeconfig", bob, "-A", "-o", "name")
    assert (result.exit_code, result.stdout) == (0, "resourceclaim.resource.k8s.io/ours\n")
    (note,) = result.stderr.splitlines()
    assert "(no RuntimeClass, StorageClass, PersistentVolume, DeviceTaintRule; " in note
    assert "; ResourceQuota, PersistentVolumeClaim, ResourceClaimTemplate, " in note
    assert "in namespace team-a only)" in note
    assert note.endswith(
        ": quotas that refuse pods or claims are unknown; "
        "whether pods can use their volume claims is unknown; "
        "which devices other claims hold is unknown; how much room other pods take is unknown"
    )


def test_a_namespace_that_is_named_is_tried_too(kubeconfig: str, tmp_path: Path) -> None:
    eve = as_user(kubeconfig, tmp_path, "eve", "team-a")
    result = run("claims", "--kubeconfig", eve, "-n", "team-b", "-o", "name")
    assert (result.exit_code, result.stdout) == (0, "resourceclaim.resource.k8s.io/theirs\n")
    assert len(result.stderr.splitlines()) == 1


def test_what_may_not_be_read_is_not_said_to_be_missing(kubeconfig: str, tmp_path: Path) -> None:
    jane = as_user(kubeconfig, tmp_path, "jane")
    result = run("explain", "claim/ours", "--kubeconfig", jane, "-o", "json")
    assert result.exit_code == 3, result.output
    (found,) = json.loads(result.stdout)["pending"]
    assert found["cause"] == (
        "nodes, resourceslices, deviceclasses may not be read with these rights, so which node "
        "would take the pod is not known"
    )
    (fix,) = found["fixes"]
    assert (fix["kind"], "the right to list nodes, resourceslices" in fix["text"]) == (
        "advice",
        True,
    )


def test_the_words_of_the_scheduler_are_passed_on_to_who_may_not_look(
    kubeconfig: str, tmp_path: Path
) -> None:
    jane = as_user(kubeconfig, tmp_path, "jane")
    asyncio.run(_stand_still(kubeconfig))
    result = run("explain", "pod/still", "--kubeconfig", jane, "-o", "json")
    asyncio.run(_gone(kubeconfig))
    (found,) = json.loads(result.stdout)["pending"]
    assert found["cause"].startswith("nodes may not be read with these rights")
    assert found["fixes"][0]["text"] == "see what the scheduler says: the pod asks for too much."


async def _stand_still(kubeconfig: str) -> None:
    """Create a pod of which a scheduler says why it has no node."""
    metadata = ObjectMeta(name="still", namespace="team-a")
    container = Container(name="main", image="registry.example.com/app:1")
    said = "0/1 nodes are available: 1 Insufficient cpu. Moorage: the pod asks for too much."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    async with http_client(load_rest_config(kubeconfig)) as client:
        spec = PodSpec(containers=(container,))
        pod = await client.write(Create(Pod(metadata=metadata, spec=spec)))
        status = {"conditions": [{**condition, "message": said}]}
        await client.write(Patch(Target.of(pod), {"status": status}, "status"))


async def _gone(kubeconfig: str) -> None:
    """Delete the pod again: tests share the server."""
    async with http_client(load_rest_config(kubeconfig)) as client:
        await client.write(Delete(Target(Pod, "team-a", "still"), grace_s=0))


def test_whoever_may_read_nothing_is_told_so(kubeconfig: str, tmp_path: Path) -> None:
    result = run("claims", "--kubeconfig", as_user(kubeconfig, tmp_path, "nobody"))
    assert result.exit_code == 3
    (line,) = result.stderr.splitlines()
    assert line.startswith('error: cluster: nodes is forbidden: User "nobody" cannot list resource')


def test_objects_of_another_kind_than_was_asked_for_are_unreadable() -> None:
    metadata = ObjectMeta(name="a", namespace="default")
    now = Timestamp.parse("2026-01-01T00:00:00Z")
    builder = SnapshotBuilder(Context(gates=Gates.parse(""), now=now), is_cluster=True)
    values = [Pod(kind="X\x1b", metadata=metadata), Pod(metadata=metadata)]
    give_values(values, builder, "server")
    assert builder.unreadable == ['cluster: Pod: no matches for kind "X\x1b" in version "v1"']
    assert len(builder.snapshot().pods) == 1


def test_the_library_reads_the_server_also_beside_an_event_loop(kubeconfig: str) -> None:
    def devices() -> dict[str, Any]:
        return moorage.load(kubeconfig=kubeconfig, context="", live=True).devices().to_dict()

    async def notebook() -> dict[str, Any]:
        return devices()

    assert devices() == asyncio.run(notebook())
    assert devices()["summary"]["total"] == 24
    world = moorage.load("examples/training", kubeconfig=kubeconfig)
    assert [pod.name for pod in world.plan().pending] == ["training-1"]


def test_a_server_that_cannot_be_reached_is_an_error_of_the_library() -> None:
    with pytest.raises(moorage.MoorageError, match="cluster: kubeconfig missing"):
        moorage.load(kubeconfig="missing.yaml")
