"""The store on etcd: what etcd does that SQLite does not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from moorage.store import Put
from moorage.store.errors import BadRequestError, StoreError, TooOldError, UnavailableError
from moorage.store.etcd import EtcdStore, TlsFiles, open_etcd, read_endpoint
from moorage.store.etcd import store as store_module
from moorage.store.etcd.client import EtcdEndpoint, Members
from moorage.wire import etcd_pb2 as pb
from tests.store.etcdserver import EtcdServer, free_port, running_etcd
from tests.store.harness import EtcdHarness, next_events


@pytest.fixture
def own_etcd(etcd: EtcdServer) -> Iterator[EtcdServer]:
    """An etcd that a test may kill."""
    with running_etcd() as server:
        yield server


def test_watches_do_not_notice_that_etcd_was_killed(own_etcd: EtcdServer) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), open_etcd(own_etcd.target) as store:
            watch = await store.watch("/", after=await store.revision())
            first = await store.create("/a", b"1")
            assert await anext(watch) == Put(first, None)
            await asyncio.to_thread(own_etcd.kill)
            with pytest.raises(UnavailableError):
                await store.create("/b", b"")
            await asyncio.to_thread(own_etcd.start)
            assert await store_comes_back(store) == first
            second = await store.update("/a", b"2", expected=first.revision)
            assert await anext(watch) == Put(second, first)

    async def store_comes_back(store: EtcdStore) -> object:
        while True:
            try:
                return await store.get("/a")
            except UnavailableError:
                await asyncio.sleep(0.05)

    asyncio.run(run())


def test_an_etcd_that_is_not_there_is_unavailable(
    etcd: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "CALL_S_MAX", 0.2)

    async def run() -> None:
        with pytest.raises(UnavailableError, match="etcd: "):
            async with open_etcd(f"unix:{etcd.folder}/nobody"):
                pass

    asyncio.run(run())


def test_stores_below_other_roots_are_not_seen(etcd: EtcdServer) -> None:
    async def run() -> None:
        ours, theirs = EtcdHarness(etcd), EtcdHarness(etcd)
        async with asyncio.timeout(60), ours.open() as store, theirs.open() as other:
            start = await store.revision()
            watch = await store.watch("", after=start)
            await other.create("/a", b"theirs")
            created = await store.create("/a", b"ours")
            assert await anext(watch) == Put(created, None)
            assert (await store.list("")).entries == [created]
            assert await store.revision() > start + 1

    asyncio.run(run())


def test_two_servers_share_a_root(etcd: EtcdServer) -> None:
    async def run() -> None:
        harness = EtcdHarness(etcd)
        async with asyncio.timeout(60), harness.open() as one, harness.open() as two:
            watch = await one.watch("", after=await one.revision())
            created = await two.create("/a", b"")
            assert await anext(watch) == Put(created, None)
            assert await one.get("/a") == created

    asyncio.run(run())


def test_a_root_ends_with_a_slash(etcd: EtcdServer) -> None:
    async def run() -> None:
        with pytest.raises(BadRequestError, match="must end with /"):
            await EtcdStore.open(etcd.target, root="/moorage")

    asyncio.run(run())


def test_what_others_compacted_ends_watches_that_miss_it(etcd: EtcdServer) -> None:
    """The feed was away while someone else compacted: nobody may go on as if nothing happened."""

    async def run() -> None:
        async with asyncio.timeout(60), EtcdHarness(etcd).open() as store:
            assert isinstance(store, EtcdStore)
            start = await store.revision()
            watch = await store.watch("", after=start)
            watch.request_progress()
            await anext(watch)
            created = await store.create("/a", b"")
            await store._members.stub.compact(pb.CompactionRequest(revision=created.revision))
            store._feeding.cancel()
            await asyncio.wait([store._feeding])
            store._feed.broadcaster.revision = 1  # as if it had seen nothing since
            store._feeding = asyncio.create_task(store._feed.run())
            with pytest.raises(TooOldError):
                await next_events(watch, 3)
            later = await store.watch("", after=created.revision)
            updated = await store.update("/a", b"2", expected=created.revision)
            assert await anext(later) == Put(updated, created)

    asyncio.run(run())


def test_a_call_that_is_under_way_when_the_store_closes_ends(etcd: EtcdServer) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), EtcdHarness(etcd).open() as store:
            calls = [asyncio.create_task(store.get("/a")) for _ in range(50)]
            await asyncio.sleep(0)
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(result is None or isinstance(result, StoreError) for result in results)

    asyncio.run(run())


# --- members and TLS ------------------------------------------------------------------------------


def test_an_etcd_with_tls_wants_a_certificate_and_shows_one(
    etcd: EtcdServer,  # only to know that there can be one
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running_etcd(has_tls=True) as server:
        files = [server.folder / name for name in ("ca.crt", "admin.crt", "admin.key")]

        async def run() -> None:
            async with asyncio.timeout(60):
                async with open_etcd(server.url, trust=TlsFiles(*files)) as store:
                    created = await store.create("/a", b"1")
                    assert await store.get("/a") == created
                monkeypatch.setattr(store_module, "CALL_S_MAX", 0.5)
                for trust in (TlsFiles(files[0]), None):
                    with pytest.raises(UnavailableError):
                        async with open_etcd(server.url, trust=trust):
                            pass

        asyncio.run(run())


def test_a_member_that_cannot_be_reached_is_passed_over(own_etcd: EtcdServer) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"

    async def run() -> None:
        async with asyncio.timeout(60), open_etcd([nobody, own_etcd.target]) as store:
            watch = await store.watch("", after=await store.revision())
            created = await store.create("/a", b"1")
            assert await anext(watch) == Put(created, None)

    asyncio.run(run())


def test_when_a_member_goes_the_next_is_asked() -> None:
    async def run() -> None:
        members = Members([EtcdEndpoint("a:1"), EtcdEndpoint("b:2"), EtcdEndpoint("c:3")])
        first = members.stub
        members.leave(first)
        second = members.stub
        assert second is not first
        members.leave(first)  # by a call that was begun before
        assert members.stub is second
        for _ in range(2):
            members.leave(members.stub)
        assert members.stub is first
        await members.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("http://127.0.0.1:2379", EtcdEndpoint("127.0.0.1:2379")),
        ("https://etcd.example", EtcdEndpoint("etcd.example:2379", has_tls=True)),
        ("127.0.0.1:12379", EtcdEndpoint("127.0.0.1:12379")),
        ("http://[::1]:2379/", EtcdEndpoint("[::1]:2379")),
        ("unix:/run/etcd", EtcdEndpoint("unix:/run/etcd")),
    ],
)
def test_how_members_are_named(text: str, endpoint: EtcdEndpoint) -> None:
    assert read_endpoint(text) == endpoint


@pytest.mark.parametrize("text", ["", "ftp://x", "http://x/y", "http://x:port", "http://u@x"])
def test_what_names_no_member(text: str) -> None:
    with pytest.raises(BadRequestError):
        read_endpoint(text)
