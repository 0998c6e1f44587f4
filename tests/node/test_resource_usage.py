"""What a node says of its use, with a runtime on paper and a machine in files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from moorage.kit.clock import ManualClock, settle
from moorage.node.resource_usage import UsageMeter
from moorage.node.runtime.contract import ContainerId, ContainerStats, Runtime
from tests.node.world import make_pod

MEMORY = "MemTotal:  1000 kB\nMemFree: 100 kB\nMemAvailable:  400 kB\n"
ID = ContainerId("uid-p", "c", 0)


class Usage:
    """A runtime whose containers use what a test says."""

    def __init__(self) -> None:
        self.found: list[ContainerStats] = []

    async def stats(self) -> list[ContainerStats]:
        return self.found


def machine(folder: Path, *ticks: int) -> None:
    (folder / "stat").write_text(f"cpu  {' '.join(map(str, ticks))} 0 0\ncpu0 1\n")
    (folder / "meminfo").write_text(MEMORY)


def test_rates_are_between_two_measurements(tmp_path: Path) -> None:
    machine(tmp_path, 100, 0, 50, 9999, 7, 0, 0, 0)
    usage = Usage()
    usage.found = [ContainerStats(ID, 2 * 10**9, 4096)]
    other = make_pod(name="other")

    async def run() -> tuple[dict[str, Any], dict[str, Any]]:
        clock = ManualClock()
        meter = UsageMeter(cast("Runtime", usage), clock, tmp_path)
        first = asyncio.create_task(meter.summary("n", [make_pod(), other]))
        await settle()
        usage.found = [ContainerStats(ID, 25 * 10**8, 8192)]
        await clock.advance(1)
        found = await first
        await clock.advance(10)
        machine(tmp_path, 1100, 0, 1050, 9999, 7, 0, 0, 0)
        return found, await meter.summary("n", [make_pod()])

    first, second = asyncio.run(run())
    pod, without = first["pods"]
    (container,) = pod["containers"]
    assert container["cpu"]["usageNanoCores"] == pod["cpu"]["usageNanoCores"] == 5 * 10**8
    assert container["cpu"]["windowSeconds"] == 1.0
    assert container["memory"]["workingSetBytes"] == 8192
    assert (without["containers"], "cpu" in without) == ([], False)
    assert first["node"]["memory"]["workingSetBytes"] == 600 * 1024
    assert first["node"]["cpu"]["usageNanoCores"] == 0
    # The second answer did not wait: the first one was its beginning.
    assert second["node"]["cpu"]["windowSeconds"] == 10.0
    assert second["node"]["cpu"]["usageNanoCores"] == 2 * 10**9
    assert second["pods"][0]["containers"][0]["cpu"]["usageNanoCores"] == 0
