"""Names of pods, volumes and files come from users: whatever they are, a pod stays in its folder.

The API server refuses most of them; the agent does not rely on that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.kit.clock import settle
from moorage.node.errors import ConfigError
from moorage.node.pods.container_environment import CONFIG_MAP, SECRET, NodeContext, ObjectSource
from moorage.node.pods.pod_workers import PodWorkers
from moorage.node.pods.volumes import Materials, make, make_subpaths, mounts_of, remove, volumes_of
from moorage.node.runtime.sim import SimRuntime
from tests.node.world import World, container, make_pod, play

VICTIM = "../../uid-victim/volumes/conf"
NAMES = [VICTIM, "/srv/x", "..", ".", "a/b", "a\0b", "a\nb", "x" * 300, "", "A_b"]
AROUND = NodeContext("n", "10.0.0.1", "10.0.0.1", {})
CONTENTS = {
    ObjectSource(CONFIG_MAP, "c"): {"key": b"hostile"},
    ObjectSource(SECRET, "c"): {"key": b"hostile"},
}
FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
KINDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "emptyDir": lambda _: {"emptyDir": {}},
    "configMap": lambda path: {"configMap": {"name": "c", "items": [{"key": "key", "path": path}]}},
    "secret": lambda path: {"secret": {"secretName": "c", "items": [{"key": "key", "path": path}]}},
    "downwardAPI": lambda path: {"downwardAPI": {"items": [{"path": path, **FIELD}]}},
    "projected": lambda path: {
        "projected": {
            "sources": [
                {"configMap": {"name": "c", "items": [{"key": "key", "path": path}]}},
                {"downwardAPI": {"items": [{"path": path, **FIELD}]}},
            ]
        }
    },
    "token": lambda path: {"projected": {"sources": [{"serviceAccountToken": {"path": path}}]}},
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_volume_whose_name_is_a_path_is_refused(kind: str, name: str, tmp_path: Path) -> None:
    pod = make_pod(volumes=[{"name": name, **KINDS[kind]("file")}])
    with pytest.raises(ConfigError, match=r"MountVolume\.SetUp failed .* the name is invalid"):
        make(volumes_of(pod, Materials(tmp_path / "uid-p", AROUND, CONTENTS)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["../x", "/srv/x", "..", "a/../../x", "a\0b", "x" * 300])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "emptyDir"])
def test_a_file_stays_in_its_volume(kind: str, path: str, tmp_path: Path) -> None:
    pod = make_pod(volumes=[{"name": "v", **KINDS[kind](path)}])
    with pytest.raises(ConfigError, match="must be a path within the volume"):
        make(volumes_of(pod, Materials(tmp_path / "uid-p", AROUND, CONTENTS)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["../../../../victim", "/srv/x", "..", "a\0b"])
def test_keys_of_config_maps_are_no_way_out(key: str, tmp_path: Path) -> None:
    pod = make_pod(volumes=[{"name": "v", "configMap": {"name": "c"}}])
    contents = {ObjectSource(CONFIG_MAP, "c"): {key: b"hostile"}}
    with pytest.raises(ConfigError, match="must be a path within the volume"):
        make(volumes_of(pod, Materials(tmp_path / "uid-p", AROUND, contents)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("type_", ["", "DirectoryOrCreate", "FileOrCreate", "Directory", "Socket"])
def test_a_path_of_the_machine_that_no_file_can_have_is_refused(type_: str, tmp_path: Path) -> None:
    pod = make_pod(volumes=[{"name": "v", "hostPath": {"path": "/a\0b", "type": type_}}])
    with pytest.raises(ConfigError, match=r'failed for volume "v" : hostPath: .* contains NUL'):
        make(volumes_of(pod, Materials(tmp_path, AROUND, CONTENTS)))


def test_a_relative_path_of_the_machine_is_below_its_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    path = str(tmp_path / "there").lstrip("/")
    pod = make_pod(volumes=[{"name": "v", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}])
    make(volumes_of(pod, Materials(tmp_path, AROUND, CONTENTS)))
    assert (tmp_path / "there").is_dir()
    assert list((tmp_path / "here").iterdir()) == []


def test_two_volumes_of_one_name_are_refused(tmp_path: Path) -> None:
    pod = make_pod(volumes=[{"name": "v", "emptyDir": {}}, {"name": "v", "configMap": {}}])
    with pytest.raises(ConfigError, match="two volumes of this name"):
        volumes_of(pod, Materials(tmp_path, AROUND, CONTENTS))


@pytest.mark.parametrize("name", NAMES)
def test_the_pod_is_told_of_a_bad_name_and_nobody_else_suffers(name: str, tmp_path: Path) -> None:
    async def story(world: World) -> None:
        conf = tmp_path / "pods/uid-victim/volumes/conf"
        conf.mkdir(parents=True, mode=0o755)
        world.cluster.put(make_pod(name="p", volumes=[{"name": name, "emptyDir": {}}]))
        await settle()
        assert world.runtime.running() == []
        assert world.phase() == "Pending"
        (event,) = world.told
        assert (event.reason, event.is_warning) == ("FailedMount", True)
        assert "the name is invalid" in event.message
        assert conf.stat().st_mode & 0o777 == 0o755
        world.cluster.delete("p", 0)
        await world.clock.advance(2)
        assert world.phase() == "gone"
        assert conf.is_dir()

    play(tmp_path / "pods", story)
    assert os.listdir(tmp_path) == ["pods"]
    assert os.listdir(tmp_path / "pods") == ["uid-victim"]


@pytest.mark.parametrize("uid", ["../victim", "/srv/x", "..", "a/b", "a_b", "a\nb", "x" * 300])
def test_a_pod_whose_uid_is_a_path_fails(uid: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim/volumes/v"
    victim.mkdir(parents=True)

    async def story(world: World) -> None:
        pod = make_pod(volumes=[{"name": "v", "emptyDir": {}}], metadata={"uid": uid})
        world.cluster.put(pod)
        await world.clock.advance(1)
        status = world.pod().status
        assert (status.phase, status.reason) == ("Failed", "UnexpectedAdmissionError")
        assert "metadata.uid: Invalid value" in status.message
        assert world.events() == ["UnexpectedAdmissionError"]
        world.cluster.delete("p", 0)
        await world.clock.advance(2)
        assert world.phase() == "gone"

    play(tmp_path / "pods", story)
    assert victim.is_dir()
    assert not (tmp_path / "pods").exists() or os.listdir(tmp_path / "pods") == []


def test_what_a_pod_of_before_leaves_is_removed_in_its_folder_only(tmp_path: Path) -> None:
    """An agent that starts again takes pods as they are, also those that it would refuse."""
    victim = tmp_path / "victim"
    victim.mkdir()

    async def story(world: World) -> None:
        pod = make_pod(
            volumes=[{"name": "v", "emptyDir": {}}],
            metadata={"uid": "../victim"},
            status={"startTime": "2026-11-15T12:00:00Z"},
        )
        world.cluster.put(pod)
        await settle()
        world.cluster.delete("p", 0)
        await world.clock.advance(40)
        assert world.phase() == "gone"

    play(tmp_path / "pods", story)
    assert victim.is_dir()
    assert os.listdir(tmp_path / "pods") == []


def test_nothing_is_written_for_bad_names_with_a_simulated_runtime_either(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        runtime = SimRuntime(tmp_path / "node/containers", world.clock)
        world.pod_workers = PodWorkers(replace(world.context, runtime=runtime), lambda: world.node)
        names = [VICTIM, "/srv/x", ".."]
        for number, name in enumerate(names):
            volumes = [{"name": name, "emptyDir": {}}]
            world.cluster.put(make_pod(name=f"p{number}", volumes=volumes))
        world.cluster.put(make_pod(container("../../x"), name="named"))
        await settle()
        assert sorted(world.events()) == ["Failed", *["FailedMount"] * len(names)]
        assert await runtime.containers() == []
        await runtime.close()

    play(tmp_path / "pods", story)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == [
        "node",
        "node/containers",
    ]


# --- parts of volumes ---------------------------------------------------------------------------


def part_of(folder: Path, volume: dict[str, Any], sub_path: str) -> None:
    """Have a part of a volume ready to be mounted."""
    mount = {"name": "v", "mountPath": "/m", "subPath": sub_path}
    pod = make_pod(container(volumeMounts=[mount]), volumes=[{"name": "v", **volume}])
    made = volumes_of(pod, Materials(folder, AROUND, CONTENTS))
    make(made)
    make_subpaths(mounts_of(pod.spec.containers[0], made, {}))


@pytest.mark.parametrize("path", ["/srv/x", "../x", "..", "a/../../x", "a\0b", "a\nb", "x" * 300])
def test_a_sub_path_is_within_its_volume(path: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="subPath must be within the volume"):
        part_of(tmp_path, {"emptyDir": {}}, path)


@pytest.mark.parametrize("path", ["link", "link/x", "in/link", "in/link/x"])
@pytest.mark.parametrize("kind", ["emptyDir", "hostPath"])
def test_a_sub_path_follows_no_link(kind: str, path: str, tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "uid-p/volumes/v"
    volume: dict[str, Any] = {"emptyDir": {}}
    if kind == "hostPath":
        root = tmp_path / "host"
        volume = {"hostPath": {"path": str(root)}}
    (root / "in").mkdir(parents=True)
    outside.mkdir()
    for place in (root, root / "in"):
        (place / "link").symlink_to(outside)
    with pytest.raises(ConfigError, match="symbolic link is in the way"):
        part_of(tmp_path / "uid-p", volume, path)
    assert list(outside.iterdir()) == []


def test_a_sub_path_that_is_missing_is_made_like_its_volume(tmp_path: Path) -> None:
    part_of(tmp_path / "uid-p", {"emptyDir": {}}, "a//./b")
    for made in ("a", "a/b"):
        assert (tmp_path / "uid-p/volumes/v" / made).stat().st_mode & 0o777 == 0o777


def test_removal_takes_links_and_not_what_they_lead_to(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    part_of(tmp_path / "pods/uid-p", {"emptyDir": {}}, "a")
    (tmp_path / "pods/uid-p/volumes/v/a/link").symlink_to(outside)
    remove(tmp_path / "pods/uid-p")
    assert list((tmp_path / "pods").iterdir()) == []
    assert (outside / "file").exists()
