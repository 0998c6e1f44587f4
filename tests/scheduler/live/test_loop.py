"""The loop: a client carries out effects, and errors become answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.api.scheduler_config import (
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
)
from moorage.api.scheduler_plugin_args import DynamicResourcesArgs
from moorage.client.contract import Event, ObjectList
from moorage.client.writes import RecordEvent, Write
from moorage.kit.bulkhead import Fault
from moorage.scheduler.live import (
    EffectLost,
    EffectRefused,
    LiveScheduler,
    Moment,
    SchedulerConfig,
    SchedulerLoop,
    read_config,
)
from moorage.scheduler.live.loop import result_of
from tests.scheduler.live.fakeserver import Change, FakeServer, ServerError
from tests.scheduler.live.harness import fresh_names
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import NOW, claim, device_class, slice_of, user


class Clock:
    """A clock that goes by a second whenever somebody waits for it."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.elapsed_s)

    def monotonic(self) -> float:
        return self.elapsed_s

    def call_later(self, delay_s: float, call: Callable[[], None]) -> asyncio.Handle:
        self.elapsed_s += delay_s
        return asyncio.get_running_loop().call_soon(call)


class Client:
    """A client of a server in memory."""

    def __init__(self, server: FakeServer, errors: list[Exception]) -> None:
        self._server = server
        self._errors = errors

    async def get(self, struct: type[Any], namespace: str, name: str) -> Any:
        return self._server.get(struct, name, namespace)

    async def list(
        self,
        struct: type[Any],
        namespace: str = "",
        *,
        limit: int = 0,
        rest: str = "",
        fields: str = "",
        labels: str = "",
    ) -> ObjectList:
        return ObjectList(tuple(self._server.all(struct)), "")

    async def watch(
        self,
        struct: type[Any],
        namespace: str = "",
        *,
        after: str,
        fields: str = "",
        labels: str = "",
    ) -> AsyncIterator[Event]:
        nothing: tuple[Event, ...] = ()
        for event in nothing:
            yield event

    async def write(self, write: Write) -> Any:
        await asyncio.sleep(0)
        if self._errors:
            raise self._errors.pop(0)
        return self._server.write(write)


async def run(server: FakeServer, errors: list[Exception]) -> list[RecordEvent]:
    clock = Clock()
    scheduler = LiveScheduler(SchedulerConfig(), fresh_names(), elapsed=clock.monotonic)
    events: list[RecordEvent] = []
    loop = SchedulerLoop(
        scheduler, Client(server, errors), clock=clock, record=events.append, workers=3
    )
    changed: Callable[[Change], None] = lambda change: loop.changed(*change)  # noqa: E731
    server.watch(changed)
    task = asyncio.create_task(loop.run())
    for _ in range(400):
        await asyncio.sleep(0)
        if task.done() or all(each.spec.node_name for each in server.all(Pod)):
            break
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return events


def server() -> FakeServer:
    made = FakeServer()
    made.put(device_class(), node("node-1"), slice_of("node-1", 2))
    made.put(claim("c"), claim("d"), user("p", "c"), user("q", "d"), pod("plain"))
    return made


@pytest.mark.parametrize(
    "errors",
    [
        [],
        [ServerError(503, "ServiceUnavailable", "no answer")],
        [ServerError(409, "Conflict", "modified"), ServerError(429, "TooManyRequests", "later")],
        [ServerError(403, "Forbidden", "you may not")] * 3,
    ],
)
def test_pods_are_bound_whatever_errors_there_are(errors: list[Exception]) -> None:
    made = server()
    asyncio.run(run(made, list(errors)))
    assert {each.spec.node_name for each in made.all(Pod)} == {"node-1"}


def test_a_write_that_fails_for_no_known_reason_harms_no_other_pod(faults: list[Fault]) -> None:
    made = server()
    events = asyncio.run(run(made, [TypeError("a bug")]))
    assert {each.spec.node_name for each in made.all(Pod)} == {"node-1"}
    assert [each.place for each in faults] == ["writing"]
    assert not [each for each in events if "bug" in each.message]


def test_scheduling_that_fails_as_a_whole_goes_on(
    monkeypatch: pytest.MonkeyPatch, faults: list[Fault]
) -> None:
    step, errors = LiveScheduler.step, [KeyError("a bug")] * 3

    def stumble(self: LiveScheduler, now: Moment) -> bool:
        if errors:
            raise errors.pop()
        return step(self, now)

    monkeypatch.setattr(LiveScheduler, "step", stumble)
    made = server()
    asyncio.run(run(made, []))
    assert {each.spec.node_name for each in made.all(Pod)} == {"node-1"}
    assert len(faults) == 3


def test_errors_become_answers() -> None:
    assert result_of(ServerError(404, "", "none")) == EffectRefused("NotFound", "none")
    assert result_of(ServerError(422, "Invalid", "wrong")) == EffectRefused("Invalid", "wrong")
    assert result_of(ServerError(0, "", "cut off")) == EffectLost("cut off")
    assert result_of(ServerError(429, "TooManyRequests", "later")) == EffectLost("later")
    assert result_of(ValueError("a bug")) is None


def test_the_configuration_file_sets_names_and_times() -> None:
    args = DynamicResourcesArgs(filter_timeout="3s", binding_timeout="1m0s")
    plugin = PluginConfig(
        name="DynamicResources",
        args={
            "kind": args.kind,
            "apiVersion": args.api_version,
            "filterTimeout": "3s",
            "bindingTimeout": "1m",
        },
    )
    profiles = (
        KubeSchedulerProfile(scheduler_name="one", plugin_config=(plugin,)),
        KubeSchedulerProfile(scheduler_name="two"),
    )
    file = KubeSchedulerConfiguration(profiles=profiles, pod_max_backoff_seconds=5)
    config = read_config(file, Gates.parse(""))
    assert config.names == ("one", "two")
    assert config.backoff.most_s == 5
    first, second = config.profiles
    assert (first.filter_timeout_s, first.binding_timeout_s) == (3, 60)
    assert (second.filter_timeout_s, second.binding_timeout_s) == (10, 600)
