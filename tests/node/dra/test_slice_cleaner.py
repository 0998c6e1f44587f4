"""Slices of drivers that are away are deleted."""

from __future__ import annotations

import asyncio

from moorage.client.errors import UnauthorizedError, UnavailableError
from moorage.kit.clock import ManualClock
from moorage.node.dra.service import SliceCleaner
from tests.node.dra.worlds import NODE, FakeServer, World, connected, make_slice, play, until
from tests.node.fakedriver import FakeDriver

GPU, NIC = "gpu.example.com", "nic.example.com"


def server() -> FakeServer:
    made = FakeServer()
    slices = [("a", GPU, NODE), ("b", GPU, NODE), ("c", NIC, NODE), ("d", GPU, "other")]
    made.slices = {name: make_slice(name, driver, node) for name, driver, node in slices}
    return made


def test_at_the_start_the_slices_of_the_node_are_deleted_and_of_no_other() -> None:
    async def run() -> None:
        slices, clock = server(), ManualClock()
        async with SliceCleaner(slices, NODE, clock=clock).running():
            await clock.advance(0)
            assert set(slices.slices) == {"d"}
            assert slices.selectors == [f"spec.nodeName={NODE}"]

    asyncio.run(run())


def test_a_driver_that_is_there_already_keeps_its_slices() -> None:
    async def run() -> None:
        slices, clock = server(), ManualClock()
        slice_cleaner = SliceCleaner(slices, NODE, clock=clock)
        async with slice_cleaner.running():
            slice_cleaner.usable(NIC)
            await clock.advance(0)
            assert set(slices.slices) == {"c", "d"}

    asyncio.run(run())


def test_a_server_that_is_away_is_asked_again_less_and_less() -> None:
    async def run() -> None:
        slices, clock = server(), ManualClock()
        slices.errors = [UnavailableError("away"), UnauthorizedError("who?"), *_away(10)]
        async with SliceCleaner(slices, NODE, clock=clock).running():
            await clock.advance(1 + 2 + 4 + 8)
            assert len(slices.selectors) == 5
            await clock.advance(16 + 32 + 64 + 128 + 256 + 300 + 300)
            assert len(slices.selectors) == 12
            await clock.advance(300)
            assert set(slices.slices) == {"d"}

    asyncio.run(run())


def _away(times: int) -> list[UnavailableError]:
    return [UnavailableError("away") for _ in range(times)]


def test_a_driver_has_half_a_minute_to_come_back() -> None:
    async def run() -> None:
        slices, clock = FakeServer(), ManualClock()
        slice_cleaner = SliceCleaner(slices, NODE, clock=clock)
        async with slice_cleaner.running():
            await clock.advance(0)
            slices.slices = server().slices
            slice_cleaner.unusable(GPU)
            await clock.advance(29)
            slice_cleaner.unusable(GPU)  # says nothing new
            slice_cleaner.usable(GPU)
            await clock.advance(60)
            assert len(slices.slices) == 4
            slice_cleaner.unusable(GPU)
            await clock.advance(20)
            slice_cleaner.unusable(GPU)
            await clock.advance(10)
            assert set(slices.slices) == {"c", "d"}
            assert slices.selectors[-1] == f"spec.nodeName={NODE},spec.driver={GPU}"
            slices.slices = server().slices
            slice_cleaner.unusable(GPU)
            await clock.advance(30)
            assert set(slices.slices) == {"c", "d"}

    asyncio.run(run())


def test_what_a_driver_published_is_deleted_when_it_stays_away() -> None:
    async def scenario(world: World) -> None:
        world.settings["clean_up_delay_s"] = 0.02
        async with world.agent() as dra:
            async with FakeDriver(world.root, GPU):
                await connected(dra, GPU)
                world.server.slices = {"a": make_slice("a", GPU), "b": make_slice("b", NIC)}
            await until(lambda: not dra.drivers.names())
            await world.server.until(lambda: set(world.server.slices) == {"b"})

    play(scenario)
