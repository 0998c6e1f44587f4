"""`moor driver run` says that it drives once devices are published: `moor up` waits for that."""

from __future__ import annotations

import asyncio

import pytest

from moorage.cli import driver_run
from moorage.cli.driver_run import announce


class FakeRunning:
    """A driver whose devices are published when a test says so."""

    def __init__(self) -> None:
        self.published = asyncio.Event()

    async def wait_published(self) -> None:
        await self.published.wait()


def test_nothing_is_announced_before_all_devices_are_published(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def play() -> tuple[str, str]:
        cpu, memory = FakeRunning(), FakeRunning()
        announcing = asyncio.create_task(announce("cpu, memory", (cpu, memory)))
        cpu.published.set()
        for _ in range(10):
            await asyncio.sleep(0)
        before = capsys.readouterr().err
        memory.published.set()
        await announcing
        return before, capsys.readouterr().err

    assert asyncio.run(play()) == ("", "driving cpu, memory\n")


def test_without_a_server_the_driver_is_announced_in_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(driver_run, "PUBLISHED_S_MAX", 0.0)
    asyncio.run(announce("cpu", (FakeRunning(),)))
    assert capsys.readouterr().err == "driving cpu\n"
