"""Podman runs containers as every runtime must: tried with the real one."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api.cdi import ContainerEdits, DeviceNode, Mount
from moorage.kit.clock import ManualClock
from moorage.node.runtime.contract import (
    ContainerId,
    ContainerSpec,
    ResourceLimits,
    Runtime,
    RuntimeRefusedError,
    SubPathMount,
)
from moorage.node.runtime.podman import command_line
from moorage.node.runtime.podman.client import Podman, default_policy
from moorage.node.runtime.podman.runtime import PodmanRuntime
from moorage.node.runtime.security_context import SecurityContext
from tests.node.runtime.contract_suite import (
    FOREVER,
    MAIN,
    OTHER,
    RuntimeContract,
    ended,
    log_of,
    opened,
    run,
)
from tests.node.runtime.podmans import IMAGE, NoPodmanError, make_podman, remove_podman


class PodmanBench:
    """A podman with an image."""

    runs_commands = True

    def __init__(self, command: list[str]) -> None:
        self.command = command

    async def open(self) -> Runtime:
        return PodmanRuntime("tests", Podman(self.command), "0")  # which version matters little

    async def close(self, runtime: Runtime) -> None:
        assert isinstance(runtime, PodmanRuntime)
        await runtime.close()

    async def pass_time(self) -> None:
        """Time passes by itself."""

    def spec(self, id_: ContainerId, script: str, **fields: Any) -> ContainerSpec:
        known = {"image": IMAGE, "command": ("/bin/sh", "-c", script)}
        return ContainerSpec(id_, "default", "pod", **{**known, **fields})


@pytest.fixture(scope="session")
def podman() -> Iterator[list[str]]:
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    command: list[str] = []
    try:
        command = make_podman(folder)
        yield command
    except NoPodmanError as error:
        pytest.skip(str(error))
    finally:
        remove_podman(command or ["true"], folder)


@pytest.fixture
def bench(podman: list[str]) -> PodmanBench:
    return PodmanBench(podman)


class TestPodman(RuntimeContract):
    """The contract, by podman."""


def said(bench: PodmanBench, script: str, **fields: Any) -> str:
    """Return what a container says."""
    found = []

    async def main() -> None:
        async with opened(bench) as runtime:
            await runtime.start(bench.spec(MAIN, script, **fields))
            state = await ended(bench, runtime, MAIN)
            found.append((await log_of(runtime, MAIN)).decode())
            assert state.exit_code == 0, found

    run(main)
    return found[0]


def test_container_has_its_environment_mounts_and_devices(
    bench: PodmanBench, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("from outside")
    edits = ContainerEdits(
        env=("B=2",),
        mounts=(
            Mount(host_path=str(tmp_path), container_path="/in", options=("rbind", "ro")),
            Mount(host_path="tmpfs", container_path="/scratch", type="tmpfs"),
        ),
        device_nodes=(DeviceNode(path="/dev/thing", host_path="/dev/null", permissions="rw"),),
    )
    script = "echo $A $B; cat /in/file; echo; ls -l /dev/thing; echo x > /scratch/x; cat /scratch/x"
    text = said(bench, script, env={"A": "1"}, edits=edits)
    first, second, third, last = text.splitlines()
    assert (first, second, last) == ("1 2", "from outside", "x")
    assert third.startswith("crw")


def test_podman_looks_up_cdi_devices(bench: PodmanBench) -> None:
    # Podman looks into its own two folders and no other, so this one is written there.
    folder = Path("/var/run/cdi")
    if not os.access("/var/run", os.W_OK):
        pytest.skip("/var/run/cdi cannot be written by this user")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "moorage-test.example-thing.json"
    device = {"name": "one", "containerEdits": {"env": ["THING=one"]}}
    kind = "moorage-test.example/thing"
    path.write_text(json.dumps({"cdiVersion": "0.5.0", "kind": kind, "devices": [device]}))
    try:
        assert said(bench, "echo $THING", cdi_ids=(f"{kind}=one",)) == "one\n"
    finally:
        path.unlink()


def test_cdi_devices_of_other_folders_are_looked_up_for_podman(bench: PodmanBench) -> None:
    async def main() -> None:
        runtime = await PodmanRuntime.open(
            "tests", bench.command, resolve=lambda ids: ContainerEdits(env=(f"IDS={ids[0]}",))
        )
        await runtime.start(bench.spec(MAIN, "echo $IDS", cdi_ids=("a.b/c=d",)))
        await ended(bench, runtime, MAIN)
        assert await log_of(runtime, MAIN) == b"a.b/c=d\n"
        await runtime.remove(MAIN.pod_uid)
        await runtime.close()

    run(main)


def test_device_that_podman_does_not_know_is_refused(bench: PodmanBench) -> None:
    async def main() -> None:
        async with opened(bench) as runtime:
            spec = bench.spec(MAIN, "true", cdi_ids=("moorage-test.example/none=x",))
            with pytest.raises(RuntimeRefusedError, match=r"moorage-test\.example/none=x"):
                await runtime.start(spec)
            assert await runtime.containers() == []

    run(main)


def test_container_keeps_to_its_limits(bench: PodmanBench) -> None:
    async def main() -> None:
        async with opened(bench) as runtime:
            limits = ResourceLimits(cpu_millis=500, memory_bytes=64 * 1024 * 1024, cpus=(0,))
            state = await runtime.start(bench.spec(MAIN, FOREVER, limits=limits))
            process = await asyncio.create_subprocess_exec(
                *(*bench.command, "inspect", state.handle.removeprefix("podman://")),
                stdout=asyncio.subprocess.PIPE,
            )
            output, _ = await process.communicate()
            host = json.loads(output)[0]["HostConfig"]
            assert host["Memory"] == 64 * 1024 * 1024
            assert host["CpusetCpus"] == "0"
            assert host["CpuQuota"] / host["CpuPeriod"] == 0.5

    run(main)


def test_containers_of_others_are_not_touched(bench: PodmanBench) -> None:
    async def main() -> None:
        other = await PodmanRuntime.open("another", bench.command)
        assert re.fullmatch(r"podman://\d+\.\d+\..*", other.name)
        await other.start(bench.spec(MAIN, FOREVER))
        async with opened(bench) as runtime:
            assert await runtime.containers() == []
            await runtime.remove(MAIN.pod_uid)
        assert [each.id for each in await other.containers()] == [MAIN]
        await other.remove(MAIN.pod_uid)

    run(main)


def test_image_that_cannot_be_pulled_is_tried_again_later(bench: PodmanBench) -> None:
    async def main() -> None:
        clock = ManualClock()
        runtime = await PodmanRuntime.open("tests", bench.command, clock=clock)
        spec = bench.spec(MAIN, "true", image="nowhere.invalid/image:1")
        reasons = []
        for wait_s in (0, 9, 2):
            await clock.advance(wait_s)
            with pytest.raises(RuntimeRefusedError, match=r"nowhere\.invalid/image:1") as error:
                await runtime.start(spec)
            reasons.append(error.value.reason)
        assert reasons == ["ErrImagePull", "ImagePullBackOff", "ErrImagePull"]

    run(main)


@pytest.mark.parametrize(
    ("fields", "reason", "text"),
    [
        (
            {"image": "localhost/none:1", "pull_policy": "Never"},
            "ErrImageNeverPull",
            'Container image "localhost/none:1" is not present with pull policy of Never',
        ),
        ({"image": "--privileged"}, "InvalidImageName", "'--privileged'"),
        ({"image": ""}, "InvalidImageName", "has no image"),
        (
            {"edits": ContainerEdits(mounts=(Mount(host_path="/a:b", container_path="/c"),))},
            "CreateContainerError",
            "'/a:b' has a colon",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    bench: PodmanBench, fields: dict[str, Any], reason: str, text: str
) -> None:
    async def main() -> None:
        async with opened(bench) as runtime:
            with pytest.raises(RuntimeRefusedError) as error:
                await runtime.start(bench.spec(OTHER, "true", **fields))
            assert error.value.reason == reason
            assert text in str(error.value)

    run(main)


def test_missing_podman_is_told() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeRefusedError, match="/no/such/podman cannot be started"):
            await PodmanRuntime.open("tests", ["/no/such/podman"])

    run(main)


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("host:5000/busybox", "Always"),
        ("busybox:1", "IfNotPresent"),
        ("host:5000/busybox:1", "IfNotPresent"),
        ("busybox@sha256:00", "IfNotPresent"),
    ],
)
def test_images_that_may_change_are_pulled_each_time(image: str, policy: str) -> None:
    assert default_policy(image) == policy


def test_container_left_before_its_start_is_started(bench: PodmanBench) -> None:
    async def main() -> None:
        async with opened(bench) as runtime:
            assert isinstance(runtime, PodmanRuntime)
            spec = bench.spec(MAIN, "echo hello")
            verb, _, *rest = command_line.run_line(runtime.owner, spec)
            process = await asyncio.create_subprocess_exec(*bench.command, "create", *rest)
            assert (verb, await process.wait()) == ("run", 0)
            assert await runtime.containers() == []
            await runtime.start(spec)
            assert (await ended(bench, runtime, MAIN)).exit_code == 0

    run(main)


@pytest.mark.parametrize("verb", ["ps", "inspect"])
def test_podman_that_fails_is_not_taken_for_one_without_containers(
    verb: str, tmp_path: Path
) -> None:
    broken = tmp_path / "podman"
    script = f'[ "$1" = {verb} ] && {{ echo "Error: storage is locked" >&2; exit 125; }}; echo x'
    broken.write_text(f"#!/bin/sh\n{script}\n")
    broken.chmod(0o755)

    async def main() -> None:
        runtime = PodmanRuntime("tests", Podman([str(broken)]), "0")
        with pytest.raises(RuntimeRefusedError, match="storage is locked"):
            await runtime.containers()

    run(main)


def test_values_of_variables_are_not_on_a_command_line(tmp_path: Path) -> None:
    script = (
        f'echo "$@" >> {tmp_path}/lines\n'
        f'for each; do case $each in --env-file=*) file="${{each#*=}}"; cp "$file" {tmp_path}/env\n'
        f'echo "$file" > {tmp_path}/name; stat -c %a "$file" > {tmp_path}/mode;; esac; done\n'
        "exit 125"
    )
    fake = tmp_path / "podman"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    spec = ContainerSpec(MAIN, "default", "pod", image="i:1", env={"A": "hidden é", "PATH": "/b"})

    async def main() -> None:
        runtime = PodmanRuntime("tests", Podman([str(fake)]), "0")
        with pytest.raises(RuntimeRefusedError):
            await runtime.start(spec)

    run(main)
    assert "hidden" not in (tmp_path / "lines").read_text()
    assert (tmp_path / "env").read_text() == "A=hidden é\nPATH=/b\n"
    assert (tmp_path / "mode").read_text() == "600\n"
    assert not Path((tmp_path / "name").read_text().strip()).exists()


def test_a_part_of_a_volume_is_mounted(bench: PodmanBench, tmp_path: Path) -> None:
    (tmp_path / "in/side").mkdir(parents=True)
    (tmp_path / "in/side/file").write_text("of the volume")
    assert said(bench, "cat /v/file", edits=part(tmp_path, "in/side")) == "of the volume"


def test_a_part_of_a_volume_that_is_swapped_for_a_link_is_not_run(
    bench: PodmanBench, tmp_path: Path
) -> None:
    """The link comes between our look and podman's, as by a container of the same pod."""
    volume, outside = tmp_path / "volume", tmp_path / "outside"
    (volume / "data").mkdir(parents=True)
    outside.mkdir()
    real = " ".join(map(shlex.quote, bench.command))
    swap = f"mv {volume}/data {volume}/aside && ln -s {outside} {volume}/data"
    fake = tmp_path / "podman"
    fake.write_text(f'#!/bin/sh\nif [ "$1" = create ]; then {swap}; fi\nexec {real} "$@"\n')
    fake.chmod(0o755)

    async def main() -> None:
        runtime = PodmanRuntime("tests", Podman([str(fake)]), "0")
        spec = bench.spec(MAIN, "echo x > /v/file", edits=part(volume, "data"))
        with pytest.raises(RuntimeRefusedError, match="was replaced while it was mounted"):
            await runtime.start(spec)
        with pytest.raises(RuntimeRefusedError, match="symbolic link is in the way"):
            await runtime.start(spec)
        assert await runtime.containers() == []

    run(main)
    assert list(outside.iterdir()) == []


def part(root: Path, within: str) -> ContainerEdits:
    made = SubPathMount(
        host_path=f"{root}/{within}", container_path="/v", options=("rbind",), root=str(root)
    )
    return ContainerEdits(mounts=(made,))


SECURITY: dict[str, tuple[SecurityContext, str, str]] = {
    "user": (SecurityContext(user=5, group=6, groups=(7,)), "id -u; id -g; id -G", "5\n6\n6 7\n"),
    "read-only": (
        SecurityContext(is_root_read_only=True),
        "for each in /x /tmp/x; do (echo > $each) 2>/dev/null || echo no; done",
        "no\nno\n",
    ),
    "rights": (
        SecurityContext(dropped=("ALL",), no_new_privileges=True),
        "grep -E '^(CapBnd|NoNewPrivs)' /proc/self/status",
        "CapBnd:\t0000000000000000\nNoNewPrivs:\t1\n",
    ),
}


@pytest.mark.parametrize("name", SECURITY)
def test_security_context_acts(bench: PodmanBench, name: str) -> None:
    context, script, wanted = SECURITY[name]
    assert said(bench, script, security=context) == wanted


def test_image_that_runs_as_root_is_refused_if_it_must_not(bench: PodmanBench) -> None:
    async def main() -> None:
        async with opened(bench) as runtime:
            context = SecurityContext(pod="p_default(u)", is_non_root=True)
            with pytest.raises(RuntimeRefusedError) as caught:
                await runtime.start(bench.spec(MAIN, FOREVER, security=context))
            assert caught.value.reason == "CreateContainerConfigError"
            assert str(caught.value) == (
                "container has runAsNonRoot and image will run as root "
                '(pod: "p_default(u)", container: main)'
            )
            assert await runtime.containers() == []

    run(main)
