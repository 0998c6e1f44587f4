"""The programs of one process: a part that fails begins again, and the others go on."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from mooring.apiserver.server import assembled
from mooring.apiserver.settings import Settings
from mooring.client.errors import ForbiddenError
from mooring.client.writes import Create
from mooring.cluster.control_plane import (
    PART,
    PartNames,
    Tell,
    certificate_of,
    keep_part_running,
)
from mooring.apiserver.direct_client import direct_client
from mooring.kit.bulkhead import FAULTS
from tests.client.servers import config_map, until
from tests.kit.clocks import FakeClock


def test_a_part_begins_again_with_backoff_once_it_has_worked() -> None:
    told: list[str] = []
    names: list[str] = []

    async def part(tell: Tell) -> None:
        names.append(PART.get())
        tell("scheduling at https://here")
        raise ValueError("a bug")

    async def run() -> None:
        clock = FakeClock()
        task = asyncio.create_task(keep_part_running("scheduler", part, told.append, clock))
        for _ in range(3):
            await until(lambda: clock.sleepers)
            clock.advance(60.0)
        await until(lambda: len(names) == 4)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert told[:3] == [
        "scheduler: scheduling at https://here",
        "scheduler: restarting: ValueError: a bug",
        "scheduler: scheduling at https://here",
    ]
    assert set(names) == {"scheduler"}
