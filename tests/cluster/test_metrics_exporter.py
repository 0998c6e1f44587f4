"""The exporter: what it shows before its first pass, after it, and when a pass fails."""

from __future__ import annotations

import asyncio
import itertools
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.apiserver.server import assembled
from moorage.apiserver.settings import Settings
from moorage.client.client_factory import in_process_client
from moorage.client.informer_factory import InformerFactory
from moorage.client.writes import Create
from moorage.cluster.metrics_exporter import ExporterSettings, MetricsProgram
from moorage.cluster.programs import ProgramContext
from moorage.cluster.snapshot_passes import IDLE_S, INTERVAL_S, SnapshotPasses
from moorage.hardware import Catalogue
from moorage.kit.clock import EPOCH, LoopClock, run_simulated
from moorage.validation.strategy import Context
from tests.client.servers import until

CONTEXT = Context(gates=Gates.parse(), now=Timestamp(EPOCH))
NOBODY: Any = None


def test_it_counts_what_is_there_and_what_comes(tmp_path: Path) -> None:
    async def run() -> None:
        around = ProgramContext()
        settings = Settings(tmp_path, allows_all=True)
        async with asyncio.timeout(60), assembled(settings) as server:
            client = in_process_client(server.application)
            program = MetricsProgram(client, around, CONTEXT, ExporterSettings(interval_s=0.05))
            page, openpage = (
                pages["/metrics"] for pages in (program.metrics_pages, program.openmetrics_pages)
            )
            assert program.troubles
            assert "moorage_devices" not in page()
            task = asyncio.create_task(program.run())
            await until(lambda: not program.troubles)
            fleet = Catalogue().fleet("dgx-h100")
            for each in (*fleet.nodes, *fleet.classes, *fleet.slices):
                await client.write(Create(each))
            sample = 'moorage_devices{driver="gpu.nvidia.com",node="dgx-h100-0",state="free"} 8'
            await until(lambda: sample in page())
            assert 'moorage_exporter_objects{kind="Node"} 1\n' in page()
            assert openpage().endswith("# EOF\n")
            assert "# TYPE moorage_exporter_passes counter\n" in openpage()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


class Work:
    """Notes when passes begin; those of some numbers fail."""

    def __init__(self, fails: frozenset[int] = frozenset()) -> None:
        self.begun: list[datetime] = []
        self._fails = fails

    def __call__(self, _: Any, now: datetime) -> None:
        self.begun.append(now)
        if len(self.begun) in self._fails:
            raise ArithmeticError("no number")


def played(work: Work, seconds: float) -> SnapshotPasses[None]:
    """Return passes over a cluster in which nothing changes, after a time."""

    async def run() -> SnapshotPasses[None]:
        clock = LoopClock(EPOCH)
        informers = InformerFactory(NOBODY, random=lambda: 0.0, clock=clock)
        found: SnapshotPasses[None] = SnapshotPasses(
            "tests", informers, work, lambda _: None, gates=Gates.parse(), clock=clock
        )

        async def synced() -> None:
            pass

        informers.wait_for_sync = synced  # type: ignore[method-assign]
        task = asyncio.create_task(found.run())
        await clock.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return found

    return run_simulated(run())


def test_where_nothing_changes_a_pass_comes_once_a_minute() -> None:
    work = Work()
    found = played(work, 3.5 * IDLE_S)
    assert found.passes == len(work.begun) == 4
    gaps = [(b - a).total_seconds() for a, b in itertools.pairwise(work.begun)]
    assert all(IDLE_S <= gap < IDLE_S + INTERVAL_S for gap in gaps)


def test_a_pass_that_fails_is_noted_and_the_next_one_comes(
    faults: Any, caplog: pytest.LogCaptureFixture
) -> None:
    work = Work(frozenset({1}))
    found = played(work, 1.5 * IDLE_S)
    assert (len(work.begun), found.passes) == (2, 1)
    assert "no number" in caplog.text
