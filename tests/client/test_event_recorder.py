"""Events that recorders write, against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from moorage.api.codec import decode_tree
from moorage.api.core import Event, Pod
from moorage.client.api_client import ApiClient
from moorage.client.event_recorder import WAITING_MAX, EventRecorder, EventStyle
from moorage.client.in_process import InProcessTransport
from moorage.client.writes import Create, RecordEvent
from moorage.kit.clock import ManualClock
from tests.apiserver.client import pod
from tests.client.servers import Breaking, embedded


class World:
    def __init__(self, wire: Breaking, about: Pod) -> None:
        self.wire = wire
        self.client = ApiClient(wire)
        self.clock = ManualClock()
        self.about = about

    def tell(self, message: str = "no room", reason: str = "FailedScheduling") -> RecordEvent:
        return RecordEvent(self.about, reason, message, action="Scheduling", is_warning=True)

    def recorder(self, style: EventStyle) -> EventRecorder:
        return EventRecorder(
            self.client, "default-scheduler", style=style, instance="here", clock=self.clock
        )

    async def events(self) -> list[Event]:
        page = await self.client.list(Event, "default")
        return sorted(page.values, key=lambda e: (e.metadata.name, e.message))


def play(folder: Path, scenario: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(30), embedded(folder) as server:
            wire = Breaking(InProcessTransport(server.application))
            client = ApiClient(wire)
            tree = pod("p", namespace="default")
            await scenario(World(wire, await client.write(Create(decode_tree(tree, Pod).value))))

    asyncio.run(run())


def test_an_event_as_the_scheduler_tells_it(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with world.recorder(EventStyle.SERIES).running() as recorder:
            recorder.record(world.tell())
        (event,) = await world.events()
        assert (event.type, event.reason, event.message) == (
            "Warning",
            "FailedScheduling",
            "no room",
        )
        assert (event.action, event.count, event.series) == ("Scheduling", 0, None)
        assert (event.reporting_controller, event.reporting_instance) == (
            "default-scheduler",
            "here",
        )
        about = event.involved_object
        assert (about.kind, about.name, about.uid) == ("Pod", "p", world.about.metadata.uid)
        assert event.metadata.name.startswith("p.")

    play(tmp_path, scenario)


def test_an_event_as_controllers_tell_it(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with world.recorder(EventStyle.COUNTS).running() as recorder:
            for _ in range(3):
                recorder.record(world.tell())
        (event,) = await world.events()
        assert (event.count, event.source.component) == (3, "default-scheduler")
        assert event.first_timestamp is not None

    play(tmp_path, scenario)


def test_a_series_is_written_twice_and_when_it_is_over(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with world.recorder(EventStyle.SERIES).running() as recorder:
            for _ in range(5):
                recorder.record(world.tell())
            await recorder.drained()
            writes = [r for r in world.wire.asked if r.method in ("POST", "PATCH")]
            assert len(writes[1:]) == 2  # the first made the pod
            (event,) = await world.events()
            assert event.series is not None
            assert event.series.count == 2
            await world.clock.advance(400)
            await recorder.drained()
            for _ in range(200):
                (event,) = await world.events()
                assert event.series is not None
                if event.series.count == 5:
                    break
        assert event.series is not None
        assert event.series.count == 5

    play(tmp_path, scenario)


def test_many_that_differ_in_their_message_become_one(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with world.recorder(EventStyle.COUNTS).running() as recorder:
            for number in range(20):
                recorder.record(world.tell(f"attempt {number}"))
        events = await world.events()
        combined = [e for e in events if e.message.startswith("(combined from similar events): ")]
        assert len(events) == 10
        assert [(e.count, e.message[-10:]) for e in combined] == [(11, "attempt 19")]

    play(tmp_path, scenario)


def test_an_object_has_so_many_events_and_no_more(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with world.recorder(EventStyle.COUNTS).running() as recorder:
            for number in range(40):
                recorder.record(world.tell(reason=f"Reason{number}"))
            await recorder.drained()
            assert (len(await world.events()), recorder.dropped) == (25, 15)
            await world.clock.advance(301)
            recorder.record(world.tell(reason="Another"))
        assert len(await world.events()) == 26

    play(tmp_path, scenario)


def test_another_message_is_not_counted_as_the_same(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with world.recorder(EventStyle.SERIES).running() as recorder:
            for message in ("no room", "no device", "no room", "no device", "no room"):
                recorder.record(world.tell(message))
        found = {event.message: event.series for event in await world.events()}
        assert set(found) == {"no room", "no device"}
        assert all(series is not None and series.count == 2 for series in found.values())

    play(tmp_path, scenario)


def test_telling_never_fails_and_is_bounded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        recorder = world.recorder(EventStyle.SERIES)
        for number in range(WAITING_MAX + 5):
            recorder.record(world.tell(reason=f"Reason{number}"))
        assert recorder.dropped == 5
        world.wire.is_down = True
        async with recorder.running(stop_s=0.01):
            pass

    play(tmp_path, scenario)
    assert "dropped" in caplog.text


def test_a_server_that_is_away_for_a_while_gets_the_event_later(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.wire.is_down = True
        async with world.recorder(EventStyle.SERIES).running() as recorder:
            recorder.record(world.tell())
            await world.clock.advance(3)
            world.wire.is_down = False
            await world.clock.advance(10)
        assert len(await world.events()) == 1

    play(tmp_path, scenario)


def test_a_long_message_is_cut(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with world.recorder(EventStyle.SERIES).running() as recorder:
            recorder.record(world.tell("ä" * 5000))
        (event,) = await world.events()
        assert len(event.message.encode()) <= 1024

    play(tmp_path, scenario)
