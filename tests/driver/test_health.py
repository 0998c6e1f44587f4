"""Health is read once from the driver, and sent to all watchers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import grpc
import pytest

from moorage.client.api_client import ApiClient
from moorage.driver import DeviceHealth, Health
from moorage.driver.health_service import REPEAT_S
from moorage.driver.serving import serving
from moorage.kit.clock import ManualClock
from moorage.wire.health_v1_pb2 import NodeWatchResourcesRequest
from moorage.wire.services import HEALTH_V1, HEALTH_V1ALPHA1, WATCH_HEALTH, call, open_socket
from tests.driver.stage import NODE, Blinkers, played, register, settings_in


class Feeling(Blinkers):
    """A driver whose health a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.news: asyncio.Queue[list[DeviceHealth] | None] = asyncio.Queue()

    async def health(self) -> AsyncIterator[Iterable[DeviceHealth]]:
        while True:
            found = await self.news.get()
            if found is None:
                raise OSError("the bus is gone")
            yield found


class Listener:
    """Listens to a driver as a kubelet does."""

    def __init__(self, channel: Any, version: str = HEALTH_V1) -> None:
        method = call(channel, WATCH_HEALTH.of(version))
        self._stream = method(NodeWatchResourcesRequest()).__aiter__()

    async def hear(self) -> list[tuple[str, str, int, str]]:
        answer = await anext(self._stream)
        return [
            (each.device.pool_name, each.device.device_name, each.health, each.message)
            for each in answer.devices
        ]


@played
async def test_all_who_listen_hear_what_is_known_and_what_changes(
    folder: Path, client: ApiClient
) -> None:
    driver = Feeling()
    async with serving(driver, settings_in(folder), client) as running:
        assert running.registrar_socket is not None
        assert running.socket is not None
        info = await register(running.registrar_socket)
        assert list(info.supported_versions)[2:] == [HEALTH_V1, HEALTH_V1ALPHA1]
        async with open_socket(running.socket) as channel:
            first = Listener(channel)
            driver.news.put_nowait([DeviceHealth("red", Health.HEALTHY)])
            assert await first.hear() == [(NODE, "red", 1, "")]
            second = Listener(channel, HEALTH_V1ALPHA1)
            assert await second.hear() == [(NODE, "red", 1, "")]
            driver.news.put_nowait([DeviceHealth("red", Health.UNHEALTHY, "too hot")])
            for each in (first, second):
                assert await each.hear() == [(NODE, "red", 2, "too hot")]


@played
async def test_what_holds_is_said_again(folder: Path, client: ApiClient) -> None:
    clock = ManualClock()
    driver = Feeling()
    async with serving(driver, settings_in(folder), client, clock=clock) as running:
        assert running.socket is not None
        async with open_socket(running.socket) as channel:
            listener = Listener(channel)
            driver.news.put_nowait(
                [
                    DeviceHealth("red", Health.HEALTHY),
                    DeviceHealth("green", Health.HEALTHY, timeout_s=60),
                ]
            )
            assert len(await listener.hear()) == 2
            await clock.advance(REPEAT_S)
            assert await listener.hear() == [(NODE, "red", 1, "")]  # green's time is its own


@played
async def test_a_driver_that_fails_knows_nothing_until_it_is_back(
    folder: Path, client: ApiClient
) -> None:
    clock = ManualClock()
    driver = Feeling()
    async with serving(driver, settings_in(folder), client, clock=clock) as running:
        assert running.socket is not None
        async with open_socket(running.socket) as channel:
            listener = Listener(channel)
            driver.news.put_nowait([DeviceHealth("red", Health.HEALTHY)])
            await listener.hear()
            driver.news.put_nowait(None)
            assert await listener.hear() == [
                (NODE, "red", 0, "health is not known: the bus is gone")
            ]
            driver.news.put_nowait([DeviceHealth("red", Health.HEALTHY)])
            await clock.advance(2)
            assert await listener.hear() == [(NODE, "red", 1, "")]
    assert [str(each) for each in driver.errors] == ["health() raised OSError: the bus is gone"]
    assert isinstance(driver.errors[0].__cause__, OSError)


@played
async def test_a_driver_that_says_no_more_knows_nothing(folder: Path, client: ApiClient) -> None:
    class Brief(Feeling):
        async def health(self) -> AsyncIterator[Iterable[DeviceHealth]]:
            while (found := await self.news.get()) is not None:
                yield found

    clock = ManualClock()
    driver = Brief()
    async with serving(driver, settings_in(folder), client, clock=clock) as running:
        assert running.socket is not None
        async with open_socket(running.socket) as channel:
            listener = Listener(channel)
            driver.news.put_nowait([DeviceHealth("red", Health.HEALTHY)])
            await listener.hear()
            driver.news.put_nowait(None)
            lost = [(NODE, "red", 0, "health is not known: the driver says no more of it")]
            assert await listener.hear() == lost
            assert await Listener(channel).hear() == lost
            await clock.advance(REPEAT_S)
            assert await listener.hear() == lost
    assert [str(each) for each in driver.errors] == [
        "health() has ended: the health of 1 devices is not known any more"
    ]


@played
async def test_a_driver_whose_health_cannot_be_asked_again_is_asked_later(
    folder: Path, client: ApiClient
) -> None:
    class Shy(Feeling):
        asked = 0

        def health(self) -> AsyncIterator[Iterable[DeviceHealth]]:
            self.asked += 1
            if self.asked == 2:
                raise OSError("the bus is still gone")
            return super().health()

    clock = ManualClock()
    driver = Shy()
    async with serving(driver, settings_in(folder), client, clock=clock) as running:
        assert running.socket is not None
        async with open_socket(running.socket) as channel:
            listener = Listener(channel)
            driver.news.put_nowait([DeviceHealth("red", Health.HEALTHY)])
            await listener.hear()
            driver.news.put_nowait(None)
            await listener.hear()
            await clock.advance(2)
            assert (await listener.hear())[0][3] == "health is not known: the bus is still gone"
            driver.news.put_nowait([DeviceHealth("red", Health.HEALTHY)])
            await clock.advance(4)
            assert await listener.hear() == [(NODE, "red", 1, "")]


@played
async def test_a_driver_without_health_says_so(folder: Path, client: ApiClient) -> None:
    async with serving(Blinkers(), settings_in(folder), client) as running:
        assert running.socket is not None
        async with open_socket(running.socket) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await Listener(channel).hear()
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
