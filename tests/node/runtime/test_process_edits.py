"""CDI edits of a process: variables, mounts, device files, groups; and its limits."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

from moorage.api.cdi import ContainerEdits, DeviceNode, Hook, Mount, NetDevice
from moorage.api.structs import unchecked
from moorage.node.runtime.contract import Phase, ResourceLimits, RuntimeRefusedError, SubPathMount
from moorage.node.runtime.process import ProcessRuntime
from moorage.node.runtime.shim.container_process import ForkedChild
from tests.node.runtime.bench import (
    FOREVER,
    Bench,
    ended,
    executed,
    finished,
    id_of,
    python,
    shell,
    told_by,
)

SOURCE = Path(__file__).parents[3]


def can_mount() -> bool:
    """Whether this machine lets us have a mount namespace."""
    flag = [] if os.geteuid() == 0 else ["--map-current-user"]
    command = ["unshare", *flag, "--mount", "true"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


needs_mounts = pytest.mark.skipif(not can_mount(), reason="no mount namespaces on this machine")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this")


def mount(source: Path | str, target: str, *options: str) -> ContainerEdits:
    # As it is read from a spec, which may say anything.
    made = unchecked(Mount)(host_path=str(source), container_path=target, options=options)
    return ContainerEdits(mounts=(made,))


def test_ids_are_looked_up_and_bring_variables(bench: Bench) -> None:
    bench.cdi.mkdir()
    device = {"name": "0", "containerEdits": {"env": ["GPU=0", "A=device"]}}
    spec = {"cdiVersion": "0.6.0", "kind": "vendor.example/gpu", "devices": [device]}
    (bench.cdi / "gpu.json").write_text(json.dumps(spec))

    async def story(runtime: ProcessRuntime) -> None:
        edits = ContainerEdits(env=("B=edit",))
        env = {"A": "container", "B": "container", "C": "container"}
        given = shell(
            "a", "echo $GPU $A $B $C", edits=edits, env=env, cdi_ids=("vendor.example/gpu=0",)
        )
        assert await told_by(runtime, given) == "0 device edit container\n"
        with pytest.raises(RuntimeRefusedError) as caught:
            await runtime.start(shell("b", "true", cdi_ids=("vendor.example/gpu=1",)))
        assert caught.value.reason == "CreateContainerError"
        assert str(caught.value) == "unresolvable CDI devices vendor.example/gpu=1"

    bench.play(story)


def test_what_a_process_cannot_have_is_told(bench: Bench) -> None:
    edits = ContainerEdits(
        hooks=(Hook(hook_name="createContainer", path="/usr/bin/nvidia-ctk"),),
        net_devices=(NetDevice(host_interface_name="eth7", name="net0"),),
    )

    async def story(runtime: ProcessRuntime) -> None:
        state = await runtime.start(shell("a", FOREVER, edits=edits))
        assert state.phase is Phase.RUNNING
        assert state.message == (
            "unsupported: createContainer hook /usr/bin/nvidia-ctk is not run; "
            "network interface eth7 stays with the host"
        )
        assert (await finished(runtime, shell("b", "true", edits=edits))).message == ""

    bench.play(story)


# --- mounts ------------------------------------------------------------------------------------


@needs_mounts
@pytest.mark.parametrize(
    "target",
    [
        "/moorage-test/deep/below/root",
        "/etc/moorage-test/config",
        "/var/run/kubernetes.io/moorage-test/metadata",
        "/tmp/moorage-test/x",
        "/usr/share/moorage-test",
        "/opt",
    ],
)
def test_a_folder_is_seen_where_there_was_none(bench: Bench, target: str) -> None:
    source = bench.root / "volume"
    source.mkdir()
    (source / "file").write_text("content\n")

    def seen_by_host() -> list[tuple[str, bool]]:
        return [(str(each), each.exists()) for each in (Path(target), *Path(target).parents)]

    before = seen_by_host()

    async def story(runtime: ProcessRuntime) -> None:
        script = f"cat {target}/file; echo new > {target}/written; ls -d {bench.root} /proc/self"
        text = await told_by(runtime, shell("a", script, edits=mount(source, target)))
        assert text == f"content\n/proc/self\n{bench.root}\n"
        assert (source / "written").read_text() == "new\n"

    bench.play(story)
    assert before == seen_by_host()


@needs_mounts
def test_a_file_is_seen_and_may_be_read_only(bench: Bench) -> None:
    source = bench.root / "metadata.json"
    source.write_text("{}\n")
    target = "/moorage-test/claim/metadata.json"

    async def story(runtime: ProcessRuntime) -> None:
        script = f"cat {target}; echo x > {target}"
        edits = mount(source, target, "ro", "bind", "nosuid", "nodev", "noexec")
        text = await told_by(runtime, shell("a", script, edits=edits))
        assert text.startswith("{}\n")
        assert "Read-only file system" in text
        assert source.read_text() == "{}\n"

    bench.play(story)


@needs_mounts
def test_mounts_lie_within_mounts_and_hide_no_source(bench: Bench) -> None:
    outer, inner, file = bench.root / "outer", bench.root / "inner", bench.root / "file"
    outer.mkdir()
    inner.mkdir()
    (inner / "x").write_text("inner\n")
    file.write_text("file\n")

    async def story(runtime: ProcessRuntime) -> None:
        mounts = (
            Mount(host_path=str(inner), container_path="/moorage-test/data/sub/dir"),
            Mount(host_path=str(file), container_path=f"{inner}/hidden"),
            Mount(host_path=str(outer), container_path="/moorage-test/data"),
            Mount(host_path=str(outer), container_path=str(inner)),
        )
        script = f"cat /moorage-test/data/sub/dir/x {inner}/hidden; touch /moorage-test/data/new"
        edits = ContainerEdits(mounts=mounts)
        assert await told_by(runtime, shell("a", script, edits=edits)) == "inner\nfile\n"
        # As with every runtime, mount points in a volume are made in the volume.
        assert sorted(os.listdir(outer)) == ["hidden", "new", "sub"]

    bench.play(story)


@needs_mounts
def test_a_command_sees_the_mounts_of_its_container(bench: Bench) -> None:
    (bench.root / "volume").mkdir()
    (bench.root / "volume" / "file").write_text("content\n")

    async def story(runtime: ProcessRuntime) -> None:
        edits = mount(bench.root / "volume", "/moorage-test")
        await runtime.start(shell("a", FOREVER, edits=edits))
        result = await executed(runtime, id_of("a"), ["cat", "/moorage-test/file"])
        assert result == (0, b"content\n", b"")

    bench.play(story)


@needs_mounts
def test_a_file_system_in_memory(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        made = Mount(
            host_path="tmpfs",
            container_path="/moorage-test",
            type="tmpfs",
            options=("size=64k", "noexec"),
        )
        script = "head -c 1000000 /dev/zero > /moorage-test/x; stat -f -c %T /moorage-test"
        text = await told_by(runtime, shell("a", script, edits=ContainerEdits(mounts=(made,))))
        assert "No space left" in text
        assert text.endswith("tmpfs\n")

    bench.play(story)


def test_mounts_that_cannot_be_are_refused(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        for edits, fact in (
            (mount("/no/such", "/data"), "mount at /data: host path /no/such does not exist"),
            (mount("/etc", "data"), "mount at 'data': not an absolute path"),
        ):
            with pytest.raises(RuntimeRefusedError) as caught:
                await runtime.start(shell("a", "true", edits=edits))
            assert str(caught.value) == fact
        if can_mount():
            with pytest.raises(RuntimeRefusedError, match="cannot mount /etc at /etc/passwd/x"):
                await runtime.start(shell("a", "true", edits=mount("/etc", "/etc/passwd/x")))

    bench.play(story)


def test_what_is_there_needs_no_mount(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", "test -e /etc/passwd", edits=mount("/etc", "/etc"))
        assert (await finished(runtime, spec)).exit_code == 0

    bench.play(story)


UNPRIVILEGED = """
    import asyncio, os, sys, tempfile
    from pathlib import Path
    from moorage.node.runtime.contract import RuntimeRefusedError
    from tests.node.runtime.bench import *

    async def main(root):
        runtime = ProcessRuntime(root)
        volume = root / "volume"
        volume.mkdir()
        (volume / "file").write_text("content")
        mounts = (Mount(host_path=str(volume), container_path="/moorage-test/x"),)
        edits = ContainerEdits(mounts=mounts, additional_gids=(7,))
        spec = shell("a", "echo $(cat /moorage-test/x/file) $(id -u); " + FOREVER, edits=edits)
        try:
            state = await runtime.start(spec)
            print(state.message)
            print(await said(runtime, spec.id, "content"))
            print(await executed(runtime, spec.id, ["cat", "/moorage-test/x/file"]))
        except RuntimeRefusedError as error:
            print("refused:", error)
        finally:
            await runtime.shut_down()

    from moorage.api.cdi import Mount
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        asyncio.run(main(Path(folder)))
"""


def is_usable_by_nobody(python_: str) -> bool:
    try:
        done = run_as_nobody([python_, "-c", "import sys; print(sys.version_info[:2])"], {})
    except OSError:
        return False
    return done.stdout.strip() == str(sys.version_info[:2])


def run_as_nobody(
    command: list[str], environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment,
        user=65534,
        group=65534,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@needs_root
def test_others_than_root_have_mounts_where_the_machine_allows_it(bench: Bench) -> None:
    python_ = next(filter(is_usable_by_nobody, [sys.executable, "/usr/bin/python3"]), None)
    if python_ is None:
        pytest.skip("other users may not run this Python")
    packages = f"{SOURCE}:{SOURCE}/src:{sysconfig.get_path('purelib')}"
    environment = {"PYTHONPATH": packages, "HOME": "/", "PATH": os.environ["PATH"]}
    done = run_as_nobody([python_, "-B", "-c", textwrap.dedent(UNPRIVILEGED)], environment)
    if "Permission denied" in done.stderr:
        pytest.skip("other users may not read this folder")
    assert done.stderr == ""
    if done.stdout.startswith("refused: cannot mount"):
        assert "this machine allows no mount namespaces here" in done.stdout
    else:
        expected = "unsupported: groups 7 need root\ncontent 65534\n\n(0, b'content', b'')\n"
        assert done.stdout == expected


# --- device files and groups -------------------------------------------------------------------


def test_device_files_are_simply_there(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        edits = ContainerEdits(device_nodes=(DeviceNode(path="/dev/null"),))
        assert (await finished(runtime, shell("a", "true", edits=edits))).exit_code == 0
        missing = ContainerEdits(device_nodes=(DeviceNode(path="/dev/moorage0"),))
        with pytest.raises(RuntimeRefusedError, match="device /dev/moorage0: not on this machine"):
            await runtime.start(shell("b", "true", edits=missing))

    bench.play(story)


@needs_root
def test_a_device_file_may_have_another_name(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        node = DeviceNode(path="/dev/moorage0", host_path="/dev/zero")
        script = "head -c 4 /dev/moorage0 | od -An -tx1; test -c /dev/null && echo /dev/shm"
        text = await told_by(
            runtime, shell("a", script, edits=ContainerEdits(device_nodes=(node,)))
        )
        assert text == " 00 00 00 00\n/dev/shm\n"
        assert not os.path.exists("/dev/moorage0")

    bench.play(story)


@needs_root
def test_groups_are_added(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        edits = ContainerEdits(additional_gids=(4242, 4243))
        groups = (await told_by(runtime, shell("a", "id -G", edits=edits))).split()
        assert {"4242", "4243"} <= set(groups)

    bench.play(story)


# --- limits ------------------------------------------------------------------------------------


def test_a_process_and_its_children_stay_on_their_cpus(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        cpu = max(os.sched_getaffinity(0))
        limits = ResourceLimits(cpus=(cpu,), memory_nodes=(0,))
        script = "sh -c 'grep -E \"Cpus_allowed_list|Mems_allowed_list\" /proc/self/status'"
        text = await told_by(runtime, shell("a", script, limits=limits))
        assert text.split()[:2] == ["Cpus_allowed_list:", str(cpu)]

    bench.play(story)


@pytest.mark.parametrize(
    ("limits", "fact"),
    [
        (ResourceLimits(cpus=(100_000,)), "cannot be bound to cpus 100000: not on this machine"),
        (
            ResourceLimits(memory_nodes=(63,)),
            "cannot take memory of nodes 63 only: Invalid argument",
        ),
    ],
)
def test_limits_that_cannot_be_are_refused(bench: Bench, limits: ResourceLimits, fact: str) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        with pytest.raises(RuntimeRefusedError) as caught:
            await runtime.start(shell("a", "true", limits=limits))
        assert str(caught.value) == fact

    bench.play(story)


def test_without_cgroups_limits_are_not_kept_and_that_is_told(bench: Bench) -> None:
    bench.options["cgroup_mount"] = str(bench.root / "nothing")

    async def story(runtime: ProcessRuntime) -> None:
        limits = ResourceLimits(cpu_millis=100, memory_bytes=1 << 20)
        state = await runtime.start(shell("a", FOREVER, limits=limits))
        assert state.message == (
            "unsupported: memory limit is not kept: no cgroup can be written; "
            "cpu limit is not kept: no cgroup can be written"
        )

    bench.play(story)


@needs_root
def test_too_much_memory_ends_a_container(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        limits = ResourceLimits(memory_bytes=32 << 20)
        spec = python("a", "x = bytearray(100 << 20); print(len(x))", limits=limits)
        state = await runtime.start(spec)
        if state.message:
            await runtime.stop(spec.id, 0)
            pytest.skip(state.message)
        state = await ended(runtime, spec.id)
        assert (state.exit_code, state.reason) == (137, "OOMKilled")

    bench.play(story)


def test_a_mount_namespace_is_handed_to_no_other_container() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, open(os.devnull, "rb") as file:
        socket.send_fds(theirs, [b"namespace"], [file.fileno()])
        namespace = ForkedChild(0, -1, ours).receive().namespace
        assert namespace is not None
        try:
            assert not os.get_inheritable(namespace)
        finally:
            os.close(namespace)


# --- parts of volumes ---------------------------------------------------------------------------


def part(root: Path, within: str, target: str) -> ContainerEdits:
    made = SubPathMount(
        host_path=f"{root}/{within}", container_path=target, options=("rbind",), root=str(root)
    )
    return ContainerEdits(mounts=(made,))


@needs_mounts
def test_a_part_of_a_volume_is_mounted_without_following_links(
    bench: Bench, tmp_path: Path
) -> None:
    volume = tmp_path / "volume"
    (volume / "in/side").mkdir(parents=True)
    (volume / "in/side/file").write_text("of the volume")
    (volume / "link").symlink_to("in")
    (volume / "out").symlink_to("/etc")

    async def story(runtime: ProcessRuntime) -> None:
        edits = part(volume, "in/side", "/moorage-test/v")
        assert await told_by(runtime, shell("a", "cat /moorage-test/v/file", edits=edits)) == (
            "of the volume"
        )
        for name, within in (("b", "link/side"), ("c", "out"), ("d", "out/passwd")):
            spec = shell(name, "true", edits=part(volume, within, "/moorage-test/v"))
            with pytest.raises(RuntimeRefusedError, match="symbolic link is in the way"):
                await runtime.start(spec)

    bench.play(story)


@needs_mounts
def test_a_mount_point_within_a_volume_is_made_without_following_links(
    bench: Bench, tmp_path: Path
) -> None:
    volume, other, outside = (tmp_path / name for name in ("volume", "other", "outside"))
    for each in (volume, other, outside):
        each.mkdir()
    (volume / "link").symlink_to(outside)  # as a container may have left it there

    async def story(runtime: ProcessRuntime) -> None:
        edits = mount(volume, "/moorage-test/v") + mount(other, "/moorage-test/v/link/inner")
        with pytest.raises(RuntimeRefusedError, match="symbolic link"):
            await runtime.start(shell("a", "true", edits=edits))

    bench.play(story)
    assert list(outside.iterdir()) == []
