"""The page's history begins with what the store keeps, not with its first viewer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from moorage.api.core import Pod
from moorage.api.core.pod import Container, PodSpec
from moorage.api.resource.v1 import DeviceClass
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.credentials import ADMIN
from moorage.apiserver.http.app import PEER
from moorage.apiserver.server import Assembled, assembled
from moorage.apiserver.settings import Settings
from moorage.client.client_factory import in_process_client
from moorage.client.contract import Client
from moorage.client.writes import Create, Delete, Target
from moorage.cluster.page import page_beside
from moorage.store.contract import Store
from moorage.store.etcd import open_etcd
from moorage.store.memory import MemoryStore
from moorage.web import store_past
from moorage.web.fleet import read_fleet
from tests.cluster.test_page import OBJECTS, TOKENS, Cluster, _roles, meta
from tests.store.etcdserver import find_etcd, running_etcd
from tests.web.fleets import machine, told

Scenario = Callable[[Cluster, Client, "Clock"], Awaitable[None]]


class Clock:
    """The server's time: a little before now, so that its certificates are valid."""

    def __init__(self) -> None:
        self._begun = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=3)
        self.minutes = 0

    def __call__(self) -> Timestamp:
        return self.after(self.minutes)

    def after(self, minutes: int) -> Timestamp:
        """Return the time so many minutes after the beginning."""
        return Timestamp(self._begun + timedelta(minutes=minutes))


@asynccontextmanager
async def memory_store() -> AsyncIterator[Store]:
    yield MemoryStore(time.monotonic)


@asynccontextmanager
async def etcd_store() -> AsyncIterator[Store]:
    with running_etcd() as server:
        async with open_etcd(server.target, root="/past/") as store:
            yield store


def at_cluster(
    folder: Path,
    scenario: Scenario,
    stores: Callable[[], AbstractAsyncContextManager[Store]] = memory_store,
) -> None:
    """Run a scenario in a server whose objects are there before the page."""
    clock = Clock()

    async def run() -> None:
        settings = Settings(folder, port=0, has_rbac=True, tokens=TOKENS, compact_after_s=0)
        async with (
            asyncio.timeout(60),
            stores() as store,
            assembled(settings, now=clock, store=store) as made,
            client_of(made) as client,
        ):
            for value in (*_roles(), *OBJECTS):
                await client.write(Create(value))
            async with page_beside(made, settings) as page:
                await scenario(Cluster(made, page), client, clock)

    asyncio.run(run())


@asynccontextmanager
async def client_of(made: Assembled) -> AsyncIterator[Client]:
    assert made.credentials is not None
    certificate = made.credentials.client_certificate(ADMIN)
    async with in_process_client(made.application, scope={PEER: certificate}) as client:
        yield client


async def history(cluster: Cluster, token: str = "root") -> dict[str, Any]:
    status, _, found = await cluster.ask("/ui/history", token=token)
    assert status == 200, found
    assert isinstance(found, dict)
    return found


async def fleet_at(cluster: Cluster, revision: int, token: str = "root") -> dict[str, Any]:
    status, _, tree = await cluster.ask(f"/ui/fleet?at={revision}", token=token)
    assert status == 200, tree
    return told(read_fleet(tree))


async def make_and_remove(client: Client, clock: Clock) -> None:
    """Let two pods wait a minute after the beginning, and vanish a minute later."""
    clock.minutes = 1
    for space in ("default", "secret"):
        spec = PodSpec(containers=(Container(name="main", image="none"),))
        await client.write(Create(Pod(metadata=meta("gone", space), spec=spec)))
    clock.minutes = 2
    for space in ("default", "secret"):
        await client.write(Delete(Target(Pod, space, "gone")))
    for value in machine("n2"):
        await client.write(Create(value))


def test_what_happened_before_the_first_viewer_is_shown(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, client: Client, clock: Clock) -> None:
        await make_and_remove(client, clock)
        found = await history(cluster)
        marks = [m for m in found["marks"] if m["name"] == "gone" and m["what"] == "Pending"]
        assert {mark["namespace"] for mark in marks} == {"default", "secret"}
        assert {mark["time"] for mark in marks} == {str(clock.after(1))}
        (revision,) = {m["revision"] for m in marks if m["namespace"] == "default"}
        then = await fleet_at(cluster, revision)
        assert "default/gone" in then["pods"]
        assert set(then["nodes"]) == {"n1"}
        now = await cluster.fleet("root")
        assert "default/gone" not in now["pods"]
        assert set(now["nodes"]) == {"n1", "n2"}
        assert await fleet_at(cluster, found["last"]) == now
        times = [time for _, time in found["points"]]
        assert times == sorted(times)
        assert await fleet_at(cluster, found["first"]) != now

    at_cluster(tmp_path, scenario)


def test_the_past_is_shown_within_the_rights_of_viewers(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, client: Client, clock: Clock) -> None:
        await make_and_remove(client, clock)
        found = await history(cluster, "ann")
        assert {m["namespace"] for m in found["marks"] if m["kind"] == "Pod"} == {"default"}
        revision = max(m["revision"] for m in found["marks"] if m["name"] == "gone")
        then = await fleet_at(cluster, revision, "ann")
        assert {name for name in then["pods"] if name.endswith("/gone")} == {"default/gone"}

    at_cluster(tmp_path, scenario)


@pytest.mark.parametrize("stores", [memory_store, etcd_store])
def test_history_begins_where_the_store_was_compacted(
    tmp_path: Path, stores: Callable[[], AbstractAsyncContextManager[Store]]
) -> None:
    if stores is etcd_store and find_etcd() is None:
        pytest.skip("no etcd in .tools: `python3 dev.py test` fetches it")

    async def scenario(cluster: Cluster, client: Client, clock: Clock) -> None:
        await make_and_remove(client, clock)
        store = cluster.made.context.registry.store
        oldest = await store.revision()
        await store.compact(oldest)
        for name in ("late", "later"):
            await client.write(Create(DeviceClass(metadata=meta(name))))
        found = await history(cluster)
        assert found["first"] == oldest
        assert "gone" not in {mark["name"] for mark in found["marks"]}
        assert set((await fleet_at(cluster, oldest))["nodes"]) == {"n1", "n2"}

    at_cluster(tmp_path, scenario, stores)


def test_the_past_that_is_read_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_past, "CHANGES_MAX", 5)

    async def scenario(cluster: Cluster, client: Client, clock: Clock) -> None:
        await make_and_remove(client, clock)
        found = await history(cluster)
        assert 2 <= len(found["points"]) <= 6
        assert found["first"] >= found["last"] - 5

    at_cluster(tmp_path, scenario)


def test_large_values_shorten_the_past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_past, "BYTES_MAX", 500)

    async def scenario(cluster: Cluster, client: Client, clock: Clock) -> None:
        await make_and_remove(client, clock)
        found = await history(cluster)
        assert found["first"] > 1
        assert await fleet_at(cluster, found["last"]) == await cluster.fleet("root")

    at_cluster(tmp_path, scenario)


def test_history_begins_no_earlier_than_what_it_shows(tmp_path: Path) -> None:
    """A write need not tell its time: that of a lease tells when the node came."""

    async def scenario(cluster: Cluster, client: Client, clock: Clock) -> None:
        clock.minutes = 1
        spec = PodSpec(containers=(Container(name="main", image="none"),))
        await client.write(Create(Pod(metadata=meta("waits", "default"), spec=spec)))
        store = cluster.made.context.registry.store
        await store.compact(await store.revision())
        clock.minutes = 0
        for name in ("early", "earlier"):
            await client.write(Create(DeviceClass(metadata=meta(name))))
        found = await history(cluster)
        (mark,) = [mark for mark in found["marks"] if mark["name"] == "waits"]
        assert mark["time"] == str(clock.after(1))
        assert found["points"][0][1] >= clock.after(1).instant.timestamp() * 1000

    at_cluster(tmp_path, scenario)
