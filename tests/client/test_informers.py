"""Informers keep up with a real server, whatever happens to the connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.core import ConfigMap, Namespace
from moorage.api.meta import ObjectMeta, without_managed_fields
from moorage.api.scheduling.v1beta1 import CompositePodGroup
from moorage.apiserver.settings import Settings
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.errors import ClientError
from moorage.client.in_process import InProcessTransport
from moorage.client.indexer import Indexer
from moorage.client.informer_factory import InformerFactory
from moorage.client.informers import Informer
from moorage.client.writes import Create, Delete, Patch, Target, Update
from moorage.kit.backoff import Backoff
from moorage.kit.bulkhead import Fault
from moorage.kit.clock import ManualClock
from tests.client.servers import Breaking, Embedded, breaking, config_map, embedded, serving, until

AT_ONCE = Backoff(first_s=0.0, longest_s=0.0)
Change = tuple[str, str]


class World:
    """A server, a client whose connection can break, and what an informer told."""

    def __init__(self, server: Embedded) -> None:
        self.server = server
        self.wire: Breaking = breaking(server.application)
        self.client = ApiClient(self.wire)
        self.other = ApiClient(InProcessTransport(server.application))  # it never breaks
        self.objects = Indexer()
        self.told: list[Change] = []
        self.informer = self.make()

    def make(self, **options: Any) -> Informer:
        options = {"backoff": AT_ONCE, "random": lambda: 0.5, "page": 2, **options}
        informer = Informer(self.client, ConfigMap, self.objects, namespace="default", **options)
        informer.add_event_handler(self.note)
        return informer

    def note(self, old: Any, new: Any) -> None:
        if old is None:
            self.told.append(("came", new.metadata.name))
        elif new is None:
            self.told.append(("went", old.metadata.name))
        else:
            self.told.append(("changed", new.metadata.name))

    async def create(self, name: str, **data: str) -> Any:
        return await self.other.write(Create(config_map(name, **data)))

    async def change(self, name: str, value: str) -> Any:
        return await self.other.write(
            Patch(Target(ConfigMap, "default", name), {"data": {"v": value}})
        )

    async def delete(self, name: str) -> None:
        await self.other.write(Delete(Target(ConfigMap, "default", name)))

    async def is_equal(self) -> bool:
        page = await self.other.list(ConfigMap, "default")
        kept = sorted(self.objects.list(ConfigMap), key=lambda m: m.metadata.name)
        return kept == list(page.values)

    async def settled(self) -> None:
        async with asyncio.timeout(20):
            while not await self.is_equal():
                await asyncio.sleep(0.002)


def play(folder: Path, scenario: Callable[[World], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(30), embedded(folder) as server:
            world = World(server)
            if options:
                world.informer = world.make(**options)
            following = asyncio.create_task(world.informer.run())
            try:
                await scenario(world)
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                await world.client.close()

    asyncio.run(run())


def test_what_is_there_and_what_happens_is_told_in_order(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        assert not world.informer.synced
        await world.informer.wait_for_sync()
        await world.create("a")
        await world.change("a", "1")
        await world.delete("a")
        await world.create("b")
        await until(lambda: len(world.told) == 4)
        assert world.told == [("came", "a"), ("changed", "a"), ("went", "a"), ("came", "b")]

    play(tmp_path, scenario)


def test_a_handler_that_comes_late_is_told_what_is_there(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.create("a")
        await until(lambda: world.told)
        late: list[Any] = []
        world.informer.add_event_handler(lambda old, new: late.append((old, new)))
        assert [(old, new.metadata.name) for old, new in late] == [(None, "a")]

    play(tmp_path, scenario)


def test_an_update_from_a_cache_without_managed_fields_leaves_the_servers_alone(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        stored = await world.create("a", v="0")
        assert stored.metadata.managed_fields
        await until(lambda: world.told)
        (cached,) = world.objects.list(ConfigMap)
        assert cached == without_managed_fields(stored) != stored
        changed = await world.other.write(Update(replace(cached, data={"v": "1"})))
        managers = {each.manager for each in stored.metadata.managed_fields}
        assert managers <= {each.manager for each in changed.metadata.managed_fields}

    play(tmp_path, scenario, transform=without_managed_fields)


def test_an_informer_says_what_is_told_from_a_list(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        heard: list[tuple[str, bool]] = []

        def hear(_: Any, new: Any) -> None:
            heard.append((new.metadata.name, world.informer.is_listing))

        await world.create("a")
        await until(lambda: world.told)
        world.informer.add_event_handler(hear)
        await world.create("b")
        await until(lambda: len(heard) == 2)
        assert heard == [("a", True), ("b", False)]

    play(tmp_path, scenario)


def test_a_handler_that_fails_harms_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, faults: list[Fault]
) -> None:
    async def scenario(world: World) -> None:
        def fail(old: Any, new: Any) -> None:
            raise ValueError("a bug")

        world.informer.add_event_handler(fail)
        seen: list[Any] = []
        world.informer.add_event_handler(lambda old, new: seen.append(new))
        await world.create("a")
        await world.create("b")
        await world.change("a", "1")
        await until(lambda: len(seen) == 3)

    play(tmp_path, scenario)
    assert len(faults) == 3
    assert caplog.text.count("a bug") == 2  # each object once


def test_a_cut_connection_goes_on_where_it_was(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.create("a")
        await until(lambda: world.told)
        world.wire.asked.clear()
        world.wire.cut()
        await world.delete("a")
        await world.create("b")
        await until(lambda: len(world.told) == 3)
        assert world.told[1:] == [("went", "a"), ("came", "b")]
        lists = [request for request in world.wire.asked if "watch" not in request.query]
        assert all("limit=1" in request.query.split("&") for request in lists)  # how late it is

    play(tmp_path, scenario)


def test_deletions_are_found_after_the_history_is_gone(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for name in "abc":
            await world.create(name)
        await until(lambda: len(world.told) == 3)
        world.wire.is_down = True
        world.wire.cut()
        await world.delete("b")
        await world.create("d")
        store = world.server.store
        await store.compact(await store.revision())
        world.wire.is_down = False
        await until(lambda: len(world.told) == 5)
        assert sorted(world.told[3:]) == [("came", "d"), ("went", "b")]
        assert await world.is_equal()

    play(tmp_path, scenario)


def test_an_object_made_anew_goes_and_comes(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.create("a")
        await until(lambda: world.told)
        world.wire.is_down = True
        world.wire.cut()
        await world.delete("a")
        await world.create("a")
        store = world.server.store
        await store.compact(await store.revision())
        world.wire.is_down = False
        await until(lambda: len(world.told) == 3)
        assert world.told == [("came", "a"), ("went", "a"), ("came", "a")]

    play(tmp_path, scenario)


def test_a_server_that_restarts(tmp_path: Path) -> None:
    async def run() -> None:
        async with embedded(tmp_path) as server:
            world = World(server)
            following = asyncio.create_task(world.informer.run())
            await world.create("a")
            await until(lambda: world.told)
            world.wire.is_down = True
            world.wire.cut()
        async with embedded(tmp_path) as server:
            world.other = ApiClient(InProcessTransport(server.application))
            world.wire.inner = InProcessTransport(server.application)
            await world.create("b")
            world.wire.is_down = False
            await until(lambda: len(world.told) == 2)
            assert await world.is_equal()
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    asyncio.run(run())


def test_a_server_that_restarts_over_tls(tmp_path: Path) -> None:
    async def run() -> None:
        data = tmp_path / "data"
        async with serving(Settings(data, port=0, has_rbac=True)) as url:
            client = http_client(load_rest_config(str(data / "kubeconfig")))
            objects = Indexer()
            informer = Informer(
                client,
                ConfigMap,
                objects,
                namespace="default",
                random=lambda: 0.0,
                backoff=Backoff(0.01, 0.1),
            )
            following = asyncio.create_task(informer.run())
            await client.write(Create(config_map("a")))
            await until(lambda: objects.get(ConfigMap, "default", "a"))
            port = urlsplit(url).port or 0
        await until(lambda: informer.cause)
        async with serving(Settings(data, port=port, has_rbac=True)):
            await client.write(Delete(Target(ConfigMap, "default", "a")))
            await client.write(Create(config_map("b")))
            await until(lambda: objects.get(ConfigMap, "default", "b"))
            assert objects.get(ConfigMap, "default", "a") is None
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await client.close()

    asyncio.run(run())


def test_a_server_that_went_back_in_time(tmp_path: Path) -> None:
    async def run() -> None:
        async with embedded(tmp_path / "one") as server:
            world = World(server)
            following = asyncio.create_task(world.informer.run())
            for name in "abcde":
                await world.create(name)
            await until(lambda: len(world.told) == 5)
            world.wire.is_down = True
            world.wire.cut()
        async with embedded(tmp_path / "two") as server:
            world.other = ApiClient(InProcessTransport(server.application))
            world.wire.inner = InProcessTransport(server.application)
            world.wire.is_down = False
            await world.settled()
            assert world.objects.count(ConfigMap) == 0
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    asyncio.run(run())


def test_a_cause_is_logged_once_and_waiting_grows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()

    async def scenario(world: World) -> None:
        await world.informer.wait_for_sync()
        await until(lambda: world.wire.streams)
        world.wire.is_down = True
        world.wire.asked.clear()
        world.wire.cut()
        await until(lambda: clock.waiting)
        await clock.advance(100)
        assert world.informer.cause == "the network is down"
        assert 5 <= len(world.wire.asked) <= 12  # 1, 2, 4 … up to 30 seconds
        world.wire.is_down = False
        await world.create("a")
        await clock.advance(60)
        await until(lambda: world.told)
        assert world.informer.cause == ""

    with caplog.at_level(logging.INFO, "moorage.client.informers"):
        backoff = Backoff(first_s=1, longest_s=30)
        play(tmp_path, scenario, clock=clock, backoff=backoff)
    told = [record.getMessage() for record in caplog.records if "is down" in record.getMessage()]
    assert len(told) == 1


def test_many_kinds_share_their_objects(tmp_path: Path) -> None:
    async def run() -> None:
        async with embedded(tmp_path) as server:
            client = ApiClient(InProcessTransport(server.application))
            informers = InformerFactory(client, random=lambda: 0.0, backoff=AT_ONCE)
            informers.objects.index(ConfigMap, "value", lambda m: m.data.values())
            informers.informer_for(ConfigMap)
            informers.informer_for(Namespace)
            await client.write(Create(config_map("a", v="x")))
            async with asyncio.timeout(20), informers.running() as objects:
                assert informers.synced
                assert objects.get(Namespace, "", "default") is not None
                assert [m.metadata.name for m in objects.by_index(ConfigMap, "value", "x")] == ["a"]
                await client.write(Create(Namespace(metadata=ObjectMeta(name="team"))))
                await until(lambda: objects.get(Namespace, "", "team"))

    asyncio.run(run())


def test_a_kind_is_followed_in_one_selection(tmp_path: Path) -> None:
    async def run() -> None:
        async with embedded(tmp_path) as server:
            informers = InformerFactory(
                ApiClient(InProcessTransport(server.application)), random=lambda: 0.0
            )
            first = informers.informer_for(ConfigMap, namespace="default")
            assert informers.informer_for(ConfigMap) is first
            assert informers.informer_for(ConfigMap, namespace="default") is first
            with pytest.raises(ValueError, match="another selection"):
                informers.informer_for(ConfigMap, namespace="team")

    asyncio.run(run())


def test_a_kind_that_is_not_served_may_be_missing() -> None:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b"404 page not found"})

    async def run() -> None:
        client = ApiClient(InProcessTransport(answer))
        informers = InformerFactory(client, random=lambda: 0.0, clock=ManualClock())
        informers.informer_for(CompositePodGroup, optional=True)
        async with asyncio.timeout(20), informers.running() as objects:
            assert objects.count(CompositePodGroup) == 0
            assert "CompositePodGroup" in informers.causes

    asyncio.run(run())


# --- random histories ---------------------------------------------------------------------------

NAMES = st.sampled_from("abcde")
STEPS = st.one_of(
    st.tuples(st.just("create"), NAMES),
    st.tuples(st.just("change"), NAMES),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.sampled_from(["cut", "down", "up", "compact", "breathe"]), st.just("")),
)


async def step(world: World, verb: str, name: str) -> None:
    match verb:
        case "create":
            await world.create(name)
        case "change":
            await world.change(name, str(len(world.told)))
        case "delete":
            await world.delete(name)
        case "cut":
            world.wire.cut()
        case "down":
            world.wire.is_down = True
            world.wire.cut()
        case "up":
            world.wire.is_down = False
        case "compact":
            await world.server.store.compact(await world.server.store.revision())
        case _:
            await asyncio.sleep(0.001)


@given(steps=st.lists(STEPS, max_size=30))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_history_ends_with_what_the_server_has(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    async def scenario(world: World) -> None:
        for verb, name in steps:
            with suppress(ClientError):  # there is one already, or none
                await step(world, verb, name)
        world.wire.is_down = False
        await world.settled()
        replayed: set[str] = set()
        for what, name in world.told:
            assert (what == "came") == (name not in replayed)
            (replayed.discard if what == "went" else replayed.add)(name)
        assert replayed == {m.metadata.name for m in world.objects.list(ConfigMap)}

    play(tmp_path_factory.mktemp("history"), scenario, backoff=Backoff(0.001, 0.01))
