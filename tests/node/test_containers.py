"""The configuration of containers: environment, command, volumes, limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.api.cdi import ContainerEdits
from moorage.api.quantity import Quantity
from moorage.node.contract import DeviceRunOptions
from moorage.node.errors import ConfigError
from moorage.node.pods import volumes
from moorage.node.pods.container_environment import (
    NodeContext,
    ObjectSource,
    TokenSpec,
    environment,
    expand,
    needed_by_container,
    needed_by_volumes,
    token_specs,
)
from moorage.node.pods.container_spec import limits_of, spec_of
from moorage.node.pods.volumes import Materials, make, make_subpaths, mounts_of, volumes_of
from tests.node.world import container, make_pod

AROUND = NodeContext("n", "10.0.0.1", "10.1.0.1", {"cpu": Quantity.parse("8")})
CONFIG, SECRET = ObjectSource("configmap", "config"), ObjectSource("secret", "hidden")


def values(*env: dict[str, Any], **more: Any) -> dict[str, str]:
    contents = more.pop("contents", {})
    pod = make_pod(container(env=list(env), **more), metadata={"labels": {"app": "x"}})
    return environment(pod, pod.spec.containers[0], AROUND, contents)


def field(path: str) -> dict[str, Any]:
    return {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "uid-p"),
        ("metadata.labels['app']", "x"),
        ("metadata.labels['none']", ""),
        ("spec.nodeName", "n"),
        ("status.podIP", "10.1.0.1"),
        ("status.hostIP", "10.0.0.1"),
    ],
)
def test_fields_of_the_pod_are_in_the_environment(path: str, value: str) -> None:
    assert values(field(path)) == {"A": value}


def test_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"env A: unsupported fieldPath: status\.phase"):
        values(field("status.phase"))


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ({"resource": "limits.memory", "divisor": "1Mi"}, "3"),  # rounded up
        ({"resource": "requests.cpu", "divisor": "1m"}, "250"),
        ({"resource": "requests.cpu"}, "1"),
        ({"resource": "limits.cpu"}, "8"),  # all that the node has
    ],
)
def test_resources_are_in_the_environment(reference: dict[str, str], value: str) -> None:
    resources = {"limits": {"memory": "2500Ki"}, "requests": {"cpu": "250m"}}
    variable = {"name": "A", "valueFrom": {"resourceFieldRef": reference}}
    assert values(variable, resources=resources) == {"A": value}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)-b", "1-b"),
        ("$$(A)", "$(A)"),
        ("$(B)", "$(B)"),
        ("$A $", "$A $"),
        ("$(A$(A)", "$(A$(A)"),
    ],
)
def test_references_to_variables_are_replaced(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1"}) == expanded


def test_variables_come_from_config_maps_and_secrets() -> None:
    key = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "hidden", "key": "k"}}}
    all_ = [{"prefix": "P_", "configMapRef": {"name": "config"}}]
    contents = {CONFIG: {"a": b"1"}, SECRET: {"k": b"2"}}
    last = {"name": "B", "value": "$(P_a)$(A)"}
    found = values(key, last, envFrom=all_, contents=contents)
    assert found == {"P_a": "1", "A": "2", "B": "12"}
    pod = make_pod(container(env=[key], envFrom=all_))
    assert set(needed_by_container(pod.spec.containers[0])) == {CONFIG, SECRET}


def test_what_is_missing_is_named_unless_it_may_be() -> None:
    def reference(**more: Any) -> dict[str, Any]:
        return {
            "name": "A",
            "valueFrom": {"configMapKeyRef": {"name": "config", "key": "k", **more}},
        }

    with pytest.raises(ConfigError, match='configmap "config" not found'):
        values(reference())
    with pytest.raises(ConfigError, match="couldn't find key k in ConfigMap default/config"):
        values(reference(), contents={CONFIG: {}})
    assert values(reference(optional=True)) == {}


def test_a_container_gets_its_devices_mounts_and_expanded_command(tmp_path: Path) -> None:
    one = container("c", "run", "$(A)", env=[{"name": "A", "value": "1"}], workingDir="/w")
    one["volumeMounts"] = [{"name": "v", "mountPath": "/data", "readOnly": True, "subPath": "s"}]
    pod = make_pod(one, volumes=[{"name": "v", "emptyDir": {}}])
    made = volumes_of(pod, Materials(tmp_path))
    given = DeviceRunOptions(("example.com/gpu=0",), ContainerEdits(env=("X=1",)))
    spec = spec_of(
        pod, pod.spec.containers[0], 2, run_options=given, volumes=made, node_context=AROUND
    )
    assert spec.command == ("run", "1")
    assert (spec.id.attempt, spec.cdi_ids, spec.edits.env) == (2, ("example.com/gpu=0",), ("X=1",))
    (mount,) = spec.edits.mounts
    assert mount.host_path == str(tmp_path / "volumes/v/s")
    assert mount.options == ("rbind", "ro")


def test_limits_are_raised_by_what_comes_with_claims() -> None:
    status = {
        "resourceClaimName": "x",
        "containers": ["c"],
        "mapping": [{"name": "cpu", "quantity": "2"}],
        "overhead": [{"name": "memory", "perPod": "1Mi", "perContainer": "1Mi"}],
    }
    resources = {"limits": {"cpu": "1", "memory": "10Mi"}}
    pod = make_pod(
        container(resources=resources),
        container("d"),
        status={"nodeAllocatableResourceClaimStatuses": [status]},
    )
    limits = limits_of(pod, pod.spec.containers[0])
    assert (limits.cpu_millis, limits.memory_bytes) == (3000, 12 * 1024**2)
    assert limits_of(pod, pod.spec.containers[1]).memory_bytes is None


# --- volumes ------------------------------------------------------------------------------------


def test_volumes_are_made_from_what_they_name(tmp_path: Path) -> None:
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
    parts = [
        token,
        {"configMap": {"name": "config", "items": [{"key": "k", "path": "sub/k", "mode": 0o600}]}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    pod = make_pod(
        volumes=[
            {"name": "all", "projected": {"sources": parts, "defaultMode": 0o440}},
            {"name": "hidden", "secret": {"secretName": "hidden"}},
            {"name": "empty", "emptyDir": {}},
        ]
    )
    assert set(needed_by_volumes(pod)) == {CONFIG, SECRET}
    assert list(token_specs(pod)) == [TokenSpec("", 600)]
    contents = {CONFIG: {"k": b"v"}, SECRET: {"s": b"t"}}
    make(volumes_of(pod, Materials(tmp_path, AROUND, contents, {TokenSpec("", 600): "secret"})))
    folder = tmp_path / "volumes"
    assert (folder / "all/token").read_text() == "secret"
    assert (folder / "all/token").stat().st_mode & 0o777 == 0o440
    assert (folder / "all/sub/k").read_text() == "v"
    assert (folder / "all/sub/k").stat().st_mode & 0o777 == 0o600
    assert (folder / "all/name").read_text() == "p"
    assert (folder / "hidden/s").read_text() == "t"
    assert (folder / "empty").stat().st_mode & 0o777 == 0o777
    volumes.remove(tmp_path)
    assert not tmp_path.exists()


@pytest.mark.parametrize(
    ("volume", "option"),
    [
        ({"emptyDir": {}}, "rw"),
        ({"hostPath": {"path": "/tmp"}}, "rw"),
        ({"secret": {"secretName": "hidden"}}, "ro"),
        ({"configMap": {"name": "config"}}, "ro"),
        ({"downwardAPI": {"items": []}}, "ro"),
        ({"projected": {"sources": []}}, "ro"),
    ],
)
def test_what_we_write_is_not_a_container_s_to_change(
    volume: dict[str, Any], option: str, tmp_path: Path
) -> None:
    one = container(volumeMounts=[{"name": "v", "mountPath": "/m"}])
    pod = make_pod(one, volumes=[{"name": "v", **volume}])
    made = volumes_of(pod, Materials(tmp_path, AROUND, {CONFIG: {}, SECRET: {}}))
    (mount,) = mounts_of(pod.spec.containers[0], made, {})
    assert mount.options == ("rbind", option)


def test_nobody_else_reads_what_is_written_for_a_pod(tmp_path: Path) -> None:
    secret = {"secretName": "hidden", "defaultMode": 0o400}
    pod = make_pod(volumes=[{"name": "v", "secret": secret}])
    folder = tmp_path / "uid"
    old, new = ({SECRET: {"s": each}} for each in (b"old", b"new"))
    make(volumes_of(pod, Materials(folder, AROUND, old)))
    assert folder.stat().st_mode & 0o777 == 0o750
    other = tmp_path / "other"
    other.write_text("of the machine")
    (folder / "volumes/v/.s.new").symlink_to(other)  # as someone may have put it there
    with (folder / "volumes/v/s").open() as before:
        make(volumes_of(pod, Materials(folder, AROUND, new)))
        assert before.read() == "old"
    assert (folder / "volumes/v/s").read_text() == "new"
    assert (folder / "volumes/v/s").stat().st_mode & 0o777 == 0o400
    assert other.read_text() == "of the machine"


@pytest.mark.parametrize(
    ("volume", "fault"),
    [
        ({"nfs": {"server": "s"}}, 'volume "v" : nfs is not supported by this node'),
        ({"configMap": {"name": "none"}}, 'volume "v" : configmap "none" not found'),
        (
            {
                "downwardAPI": {
                    "items": [{"path": "../x", "fieldRef": {"fieldPath": "metadata.name"}}]
                }
            },
            "must be a path within the volume",
        ),
        ({"hostPath": {"path": "/dev/null", "type": "Directory"}}, "is not a directory"),
    ],
)
def test_a_volume_that_cannot_be_is_named(
    volume: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    pod = make_pod(volumes=[{"name": "v", **volume}])
    with pytest.raises(ConfigError, match=fault):
        make(volumes_of(pod, Materials(tmp_path)))


def test_what_cannot_be_removed_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    volumes.remove(tmp_path / "none")
    assert not caplog.text
    (tmp_path / "file").touch()
    volumes.remove(tmp_path / "file")
    assert f"{tmp_path}/file cannot be removed: Not a directory" in caplog.text


def test_a_part_of_a_volume_never_leads_out_of_it(tmp_path: Path) -> None:
    pod = make_pod(
        container(volumeMounts=[{"name": "v", "mountPath": "/m", "subPath": "link/x"}]),
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    made = volumes_of(pod, Materials(tmp_path))
    make(made)
    (tmp_path / "volumes/v/link").symlink_to("/tmp")
    mounts = mounts_of(pod.spec.containers[0], made, {})
    with pytest.raises(ConfigError, match="symbolic link"):
        make_subpaths(mounts)
    up = make_pod(container(volumeMounts=[{"name": "v", "mountPath": "/m", "subPath": "../x"}]))
    with pytest.raises(ConfigError, match="must be within the volume"):
        mounts_of(up.spec.containers[0], made, {})
