"""Cgroups, in folders that look like them: discovery, creation, limits and removal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from moorage.node.runtime.contract import ResourceLimits
from moorage.node.runtime.process import ProcessRuntime
from moorage.node.runtime.shim.cgroup_manager import probe
from moorage.node.runtime.shim.protocol import ContainerKey, Launch
from tests.node.runtime.bench import Bench, finished, shell

KEY = ContainerKey("pod", "a", 0)


def launch(**more: Any) -> Launch:
    return Launch(KEY, "", ("true",), {}, **more)


LIMITED = launch(cpu_millis=1500, memory_bytes=1 << 20, cpus=(1, 3), memory_nodes=(0,))


def unified(mount: Path, own: str = "", controllers: str = "cpu io memory cpuset") -> Path:
    folder = mount / own
    folder.mkdir(parents=True, exist_ok=True)
    for each in (mount, folder):
        (each / "cgroup.controllers").write_text(controllers)
    return folder


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}


def test_version_2_limits_all(tmp_path: Path) -> None:
    own = unified(tmp_path, "system.slice/moor.service")
    found = probe("0::/system.slice/moor.service\n", "moorage-1", str(tmp_path))
    assert found.controllers == ("cpu", "cpuset", "memory")
    cgroup = found.make("c", LIMITED)
    folder = own / "moorage-1" / "c"
    assert cgroup.process_files == (str(folder / "cgroup.procs"),)
    assert content(folder) == {
        "cpu.max": "150000 100000",
        "cpuset.cpus": "1,3",
        "cpuset.mems": "0",
        "memory.max": "1048576",
        "memory.oom.group": "1",
        "memory.swap.max": "0",
    }


def test_version_2_has_a_folder_for_who_has_no_limits(tmp_path: Path) -> None:
    unified(tmp_path)
    found = probe("0::/\n", "moorage-1", str(tmp_path))
    cgroup = found.make("c", launch())
    assert content(tmp_path / "moorage-1" / "c") == {}
    assert cgroup.members() == set()
    (tmp_path / "moorage-1" / "c" / "cgroup.procs").write_text("12\n13\n")
    assert found.find("c").members() == {12, 13}
    (tmp_path / "moorage-1" / "c" / "cgroup.procs").unlink()
    assert cgroup.remove()
    assert found.find("c").folders == ()


def test_where_controllers_are_not_passed_on_the_root_is_tried(tmp_path: Path) -> None:
    own = unified(tmp_path, "session")
    (own / "cgroup.subtree_control").mkdir()  # cannot be written: processes are in it
    found = probe("0::/session\n", "moorage-1", str(tmp_path))
    assert found.controllers == ("cpu", "cpuset", "memory")
    assert not (own / "moorage-1").exists()
    assert (tmp_path / "moorage-1").is_dir()


def test_version_1_limits_what_is_asked_for(tmp_path: Path) -> None:
    for controller in ("cpu", "memory", "cpuset"):
        (tmp_path / controller / "own").mkdir(parents=True)
    (tmp_path / "cpuset" / "own" / "cpuset.cpus").write_text("0-3\n")
    (tmp_path / "cpuset" / "own" / "cpuset.mems").write_text("0\n")
    own = "3:cpuset:/own\n2:memory:/own\n1:cpu,cpuacct:/own\n0::/\n"
    found = probe(own, "moorage-1", str(tmp_path))
    assert found.controllers == ("cpu", "cpuset", "memory")
    assert content(tmp_path / "cpuset" / "own" / "moorage-1") == {
        "cgroup.clone_children": "1",
        "cpuset.cpus": "0-3",
        "cpuset.mems": "0",
    }
    assert found.make("free", launch()).folders == ()
    assert len(found.make("c", LIMITED).process_files) == 3
    assert content(tmp_path / "cpu/own/moorage-1/c") == {
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "150000",
    }
    assert content(tmp_path / "memory/own/moorage-1/c")["memory.limit_in_bytes"] == "1048576"
    assert content(tmp_path / "cpuset/own/moorage-1/c")["cpuset.cpus"] == "1,3"


@pytest.mark.parametrize("own", ["", "0::/\n", "1:cpu:/\n", "nonsense", ":::\n"])
def test_without_cgroups_there_is_nothing(tmp_path: Path, own: str) -> None:
    found = probe(own, "moorage-1", str(tmp_path))
    assert found.controllers == ()
    cgroup = found.make("c", LIMITED)
    assert (cgroup.folders, cgroup.process_files, cgroup.oom_kills()) == ((), (), 0)
    assert cgroup.remove()


def test_a_tiny_share_is_what_the_kernel_takes(tmp_path: Path) -> None:
    unified(tmp_path)
    probe("0::/\n", "m", str(tmp_path)).make("c", launch(cpu_millis=1))
    assert content(tmp_path / "m" / "c")["cpu.max"] == "1000 100000"


@pytest.mark.parametrize(
    ("events", "reason"), [("low 0\noom 1\noom_kill 2\n", "OOMKilled"), ("oom_kill 0\n", "Error")]
)
def test_a_container_that_had_no_memory_left_is_told_so(
    bench: Bench, events: str, reason: str
) -> None:
    mount = bench.root / "cgroup"
    own = unified(mount, own_path())
    bench.options["cgroup_mount"] = str(mount)

    async def story(runtime: ProcessRuntime) -> None:
        await runtime.containers()
        (base,) = own.glob("moorage-*")
        folder = base / "pod-1_a_0"
        folder.mkdir()
        (folder / "memory.events").write_text(events)
        limits = ResourceLimits(memory_bytes=1 << 30)
        state = await finished(runtime, shell("a", "kill -9 $$", limits=limits))
        assert (state.exit_code, state.reason) == (137, reason)
        assert (folder / "memory.max").read_text() == str(1 << 30)

    bench.play(story)


def own_path() -> str:
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    paths = [line.removeprefix("0::") for line in lines if line.startswith("0::")]
    return paths[0].strip("/") if paths else ""


def test_the_keeper_leaves_no_cgroups(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        limits = ResourceLimits(cpu_millis=500, memory_bytes=1 << 28)
        assert (await finished(runtime, shell("a", "true", limits=limits))).exit_code == 0

    bench.play(story)
    left = [path for path, _, _ in os.walk("/sys/fs/cgroup") if bench_name(bench) in path]
    assert left == []


def bench_name(bench: Bench) -> str:
    import zlib

    return f"moorage-{zlib.crc32(str(bench.root.resolve()).encode()):08x}"
