"""Running processes get other limits, and say what they have used."""

from __future__ import annotations

import pytest

from moorage.node.runtime.contract import ContainerStats, ResourceLimits, RuntimeRefusedError
from moorage.node.runtime.process import ProcessRuntime
from tests.node.runtime.bench import FOREVER, Bench, said, shell
from tests.node.runtime.test_cgroups import own_path, unified

BUSY = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; exec sleep 1000000"


def test_what_a_container_has_used_is_measured(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        busy, idle = shell("a", BUSY), shell("b", FOREVER)
        await runtime.start(idle)
        await runtime.start(busy)
        await said(runtime, busy.id, "done")
        found = {each.id.name: each for each in await runtime.stats()}
        assert found["a"].id == busy.id
        assert found["a"].cpu_ns > found["b"].cpu_ns
        assert found["b"].memory_bytes >= 4096
        await runtime.stop(busy.id, 0)
        assert [each.id for each in await runtime.stats()] == [idle.id]

    bench.play(story)


def test_limits_of_a_running_container_are_changed(bench: Bench) -> None:
    mount = bench.root / "cgroup"
    own = unified(mount, own_path())
    bench.options["cgroup_mount"] = str(mount)

    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", FOREVER, limits=ResourceLimits(cpu_millis=500, memory_bytes=1 << 20))
        await runtime.start(spec)
        (base,) = own.glob("moorage-*")
        folder = base / "pod-1_a_0"
        await runtime.update(spec.id, ResourceLimits(cpu_millis=1500, memory_bytes=1 << 21))
        assert (folder / "cpu.max").read_text() == "150000 100000"
        assert (folder / "memory.max").read_text() == str(1 << 21)
        (folder / "memory.current").write_text(str(1 << 19))
        (folder / "cpu.stat").write_text("usage_usec 12\n")
        (folder / "memory.stat").write_text(f"anon 5\ninactive_file {1 << 18}\n")
        assert await runtime.stats() == [ContainerStats(spec.id, 12_000, 1 << 18)]
        with pytest.raises(RuntimeRefusedError, match=r"\(1024\) below current usage \(524288\)"):
            await runtime.update(spec.id, ResourceLimits(cpu_millis=1500, memory_bytes=1024))
        assert (folder / "memory.max").read_text() == str(1 << 21)
        await runtime.stop(spec.id, 0)
        with pytest.raises(RuntimeRefusedError, match="is not running"):
            await runtime.update(spec.id, ResourceLimits())
        with pytest.raises(RuntimeRefusedError, match="is unknown"):
            await runtime.update(shell("b", "").id, ResourceLimits())

    bench.play(story)


def test_a_machine_without_cgroups_keeps_no_limit(bench: Bench) -> None:
    bench.options["cgroup_mount"] = str(bench.root / "none")

    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", FOREVER, limits=ResourceLimits(memory_bytes=1 << 20))
        assert "memory limit is not kept" in (await runtime.start(spec)).message
        await runtime.update(spec.id, ResourceLimits(memory_bytes=1 << 21))

    bench.play(story)
