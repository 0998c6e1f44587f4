"""The programs of one process: a part that fails begins again, and none has more rights."""

from __future__ import annotations

import asyncio
import logging

import pytest

from moorage.cluster.control_plane import PART, PartNames, Tell, keep_part_running
from moorage.kit.bulkhead import Fault
from moorage.kit.clock import ManualClock

WORKING = "scheduling at https://here"


def test_a_part_begins_again_with_backoff_once_it_has_worked(faults: list[Fault]) -> None:
    told: list[str] = []
    starts: list[tuple[str, float]] = []

    async def run() -> None:
        clock = ManualClock()

        async def part(tell: Tell) -> None:
            starts.append((PART.get(), clock.monotonic()))
            tell(WORKING)
            raise ValueError("a bug")

        task = asyncio.create_task(keep_part_running("scheduler", part, told.append, clock))
        await clock.advance(1.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert told[:3] == [
        f"scheduler: {WORKING}",
        "scheduler: restarting: ValueError: a bug",
        f"scheduler: {WORKING}",
    ]
    assert [round(at_s, 3) for _, at_s in starts] == [0.0, 0.2, 0.6, 1.4]
    assert {name for name, _ in starts} == {"scheduler"}
    assert {fault.subject for fault in faults} == {"scheduler"}


def test_a_part_that_never_worked_ends_everything() -> None:
    async def part(tell: Tell) -> None:
        tell("metrics at http://here")
        raise OSError("the port is taken")

    with pytest.raises(OSError, match="the port is taken"):
        asyncio.run(keep_part_running("scheduler", part, lambda _: None, ManualClock()))


def test_lines_of_logs_begin_with_the_part_that_writes_them() -> None:
    lines: list[str] = []
    names = PartNames()

    def line() -> str:
        record = logging.LogRecord("x", logging.WARNING, "", 0, "text", (), None)
        assert names.filter(record)
        return f"{record.__dict__['part']}{record.getMessage()}"

    async def part(_: Tell) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(inner())
        raise OSError("over")

    async def inner() -> None:
        lines.append(line())

    with pytest.raises(OSError, match="over"):
        asyncio.run(keep_part_running("controllers", part, lambda _: None, ManualClock()))
    lines.append(line())
    assert lines == ["controllers: text", "text"]
