"""Leader election against a real server: one leader at a time, whatever happens to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar

import pytest

from moorage.api.coordination import Lease
from moorage.client.api_client import ApiClient
from moorage.client.in_process import InProcessTransport
from moorage.client.leader_election import LeaderElector, LeaseTimings
from moorage.client.writes import Delete, Target
from moorage.kit.clock import ManualClock, settle
from tests.client.servers import Breaking, Embedded, embedded, until

TERMS = LeaseTimings(lease_s=15, renew_s=10, retry_s=2)


class Candidate:
    """A program that wants to lead; it notes when it does."""

    leading: ClassVar[set[str]] = set()

    def __init__(self, name: str, server: Embedded, clock: ManualClock) -> None:
        self.name = name
        self.wire = Breaking(InProcessTransport(server.application))
        self.election = LeaderElector(
            ApiClient(self.wire),
            namespace="default",
            name="scheduler",
            identity=name,
            random=lambda: 0.5,
            terms=TERMS,
            clock=clock,
        )
        self.task = asyncio.create_task(self.election.run(self.work))

    async def work(self) -> None:
        assert not self.leading, "two lead at once"
        self.leading.add(self.name)
        try:
            await asyncio.Event().wait()
        finally:
            self.leading.discard(self.name)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


class World:
    def __init__(self, server: Embedded) -> None:
        self.clock = ManualClock()
        self.client = ApiClient(InProcessTransport(server.application))
        self.one = Candidate("one", server, self.clock)
        self.two: Candidate
        self.server = server

    async def pass_s(self, seconds: float) -> None:
        """Let time pass in small steps; the server answers before each."""
        for _ in range(int(seconds * 2)):
            await self.clock.advance(0.5)
            await self.answered()

    async def answered(self) -> None:
        """Wait until no question is open, and everybody has gone on."""
        for _ in range(3):
            await settle()
            await until(lambda: not (self.one.wire.in_flight or self.two.wire.in_flight))

    async def lease(self) -> Lease:
        found = await self.client.get(Lease, "default", "scheduler")
        assert found is not None
        return found

    async def both(self) -> None:
        await until(lambda: self.one.leading == {"one"})
        self.two = Candidate("two", self.server, self.clock)
        await self.pass_s(1)


def play(folder: Path, scenario: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        Candidate.leading.clear()
        async with asyncio.timeout(30), embedded(folder) as server:
            world = World(server)
            try:
                await world.both()
                await scenario(world)
            finally:
                await world.one.stop()
                await world.two.stop()

    asyncio.run(run())


def test_one_leads_and_renews(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        before = await world.lease()
        await world.pass_s(40)
        after = await world.lease()
        assert Candidate.leading == {"one"}
        assert world.one.election.is_leader
        assert world.two.election.leader == "one"
        assert before.spec.renew_time is not None
        assert after.spec.renew_time is not None
        assert before.spec.renew_time < after.spec.renew_time
        assert before.spec.acquire_time == after.spec.acquire_time
        assert after.spec.lease_transitions == 0

    play(tmp_path, scenario)


def test_a_leader_that_stops_gives_the_lease_back(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.one.stop()
        assert (await world.lease()).spec.holder_identity == ""
        await world.pass_s(3)  # not the time of a lease
        assert Candidate.leading == {"two"}
        assert (await world.lease()).spec.lease_transitions == 1

    play(tmp_path, scenario)


def test_a_leader_that_is_cut_off_stops_before_the_next_begins(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.pass_s(5)
        world.one.wire.is_down = True
        await world.pass_s(9)
        assert Candidate.leading == {"one"}
        await world.pass_s(3)
        assert Candidate.leading == set()
        await world.pass_s(8)
        assert Candidate.leading == {"two"}
        assert world.one.task.done()

    play(tmp_path, scenario)


def test_clocks_that_differ_do_no_harm(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.clock.jump(100_000)
        await world.pass_s(30)
        world.clock.jump(-200_000)
        await world.pass_s(30)
        assert Candidate.leading == {"one"}

    play(tmp_path, scenario)


def test_a_lease_that_is_deleted_is_made_anew_by_one(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.client.write(Delete(Target(Lease, "default", "scheduler")))
        await world.pass_s(30)
        assert len(Candidate.leading) == 1

    play(tmp_path, scenario)


def test_work_that_is_done_ends_the_lead(tmp_path: Path) -> None:
    async def run() -> None:
        async with embedded(tmp_path) as server:
            client = ApiClient(InProcessTransport(server.application))
            election = LeaderElector(
                client, namespace="default", name="x", identity="me", random=lambda: 0.0
            )

            async def fail() -> None:
                assert election.is_leader
                raise ValueError("a bug")

            with pytest.raises(ValueError, match="a bug"):
                await election.run(fail)
            lease = await client.get(Lease, "default", "x")
            assert lease is not None
            assert lease.spec.holder_identity == ""

    asyncio.run(run())


def test_timings_must_be_ordered() -> None:
    with pytest.raises(ValueError, match="must exceed"):
        LeaseTimings(lease_s=10, renew_s=10, retry_s=2)
