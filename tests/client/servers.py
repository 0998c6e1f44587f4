"""A real server for a client, each way that a client can reach it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from moorage.api.core import ConfigMap
from moorage.api.meta import ObjectMeta
from moorage.apiserver.auth.authorizer import AlwaysAllow
from moorage.apiserver.direct_client import direct_client
from moorage.apiserver.http.app import Application
from moorage.apiserver.namespace_controller import create_system_namespaces
from moorage.apiserver.server import make_application, make_server_context, serve
from moorage.apiserver.settings import Settings
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import http_client, in_process_client, load_rest_config
from moorage.client.contract import Request, Response, Transport
from moorage.client.errors import UnavailableError
from moorage.client.in_process import InProcessTransport
from moorage.store.contract import Store
from moorage.store.sqlite import open_sqlite

WAIT_S = 20.0

T = TypeVar("T")
Scenario = Callable[[ApiClient], Awaitable[None]]


class Embedded:
    """A server in this process, and its store."""

    def __init__(self, application: Application, store: Store) -> None:
        self.application = application
        self.store = store


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[Embedded]:
    async with open_sqlite(folder) as store:
        service = make_server_context(store)
        await create_system_namespaces(service)
        yield Embedded(make_application(service, AlwaysAllow()), store)


@asynccontextmanager
async def in_process(folder: Path) -> AsyncIterator[ApiClient]:
    async with embedded(folder) as server, in_process_client(server.application) as client:
        yield client


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[str]:
    """Run a server on a free port and give its URL."""
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(settings, started.set_result))
    try:
        async with asyncio.timeout(WAIT_S):
            yield await started
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def over_http(folder: Path) -> AsyncIterator[ApiClient]:
    async with (
        serving(Settings(folder, port=0, allows_all=True)),
        http_client(load_rest_config(str(folder / "kubeconfig"))) as client,
    ):
        yield client


@asynccontextmanager
async def over_https(folder: Path) -> AsyncIterator[ApiClient]:
    async with (
        serving(Settings(folder, port=0, has_rbac=True)),
        http_client(load_rest_config(str(folder / "kubeconfig"))) as client,
    ):
        yield client


@asynccontextmanager
async def direct(folder: Path) -> AsyncIterator[ApiClient]:
    async with embedded(folder) as server, direct_client(server.application) as client:
        yield client


WAYS: dict[str, Callable[[Path], AbstractAsyncContextManager[ApiClient]]] = {
    "direct": direct,
    "http": over_http,
    "https": over_https,
    "in-process": in_process,
}


def every_way(scenario: Scenario) -> Any:
    """Make a test of a scenario that is played over each way to a server."""

    @pytest.mark.parametrize("way", sorted(WAYS))
    def test(way: str, tmp_path: Path) -> None:
        async def play() -> None:
            async with asyncio.timeout(WAIT_S), WAYS[way](tmp_path / "data") as client:
                await scenario(client)

        asyncio.run(play())

    return test


class Breaking:
    """A transport that can be cut, and refuses to carry anything for a while."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.is_down = False
        self.asked: list[Request] = []
        self.in_flight = 0
        self._cuts: set[asyncio.Event] = set()

    def cut(self) -> None:
        """End all streams as a broken connection ends them."""
        for cut in self._cuts:
            cut.set()

    @property
    def streams(self) -> int:
        return len(self._cuts)

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        if self.is_down:
            raise UnavailableError("the network is down")
        self.in_flight += 1
        try:
            return await self.inner.send(request)
        finally:
            self.in_flight -= 1

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        self.asked.append(request)
        if self.is_down:
            raise UnavailableError("the network is down")
        cut = asyncio.Event()
        async with self.inner.stream(request) as parts:
            self._cuts.add(cut)
            try:
                yield _until(parts, cut)
            finally:
                self._cuts.discard(cut)

    async def renew(self) -> bool:
        return False

    async def close(self) -> None:
        await self.inner.close()


async def _until(parts: AsyncIterator[bytes], cut: asyncio.Event) -> AsyncIterator[bytes]:
    waiting = asyncio.create_task(cut.wait())
    try:
        while True:

            async def next_part() -> bytes:
                return await anext(parts)

            coming = asyncio.create_task(next_part())
            await asyncio.wait({waiting, coming}, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
            if waiting.done():
                raise UnavailableError("the connection was cut")
            try:
                yield coming.result()
            except StopAsyncIteration:
                return
    finally:
        waiting.cancel()


def breaking(application: Application) -> Breaking:
    return Breaking(InProcessTransport(application))


def config_map(name: str, namespace: str = "default", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data=data)


async def until(check: Callable[[], T]) -> T:
    """Wait until a check gives something."""
    async with asyncio.timeout(WAIT_S):
        while not (found := check()):
            await asyncio.sleep(0.002)
    return found
