"""An object that cannot be read, from whatever server, keeps no other object from its readers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from moorage.api.core import Pod
from moorage.client.api_client import ApiClient
from moorage.client.contract import Request, Response, Unreadable, list_all
from moorage.client.errors import UnreadableError
from moorage.client.indexer import Indexer
from moorage.client.informers import Informer
from moorage.kit.backoff import Backoff
from moorage.kit.bulkhead import Fault
from tests.client.servers import until

Tree = dict[str, Any]
AT_ONCE = Backoff(first_s=0.0, longest_s=0.0)


class ScriptedServer:
    """A transport to a server that sends what its script says, well formed or not."""

    def __init__(self, *items: Tree) -> None:
        self.items = list(items)
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.lists = 0

    async def send(self, request: Request) -> Response:
        assert request.method == "GET", request
        if "limit=1&" not in f"{request.query}&":  # else it only asks for the revision
            self.lists += 1
        return Response(200, json.dumps({"metadata": _at("9"), "items": self.items}).encode())

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        assert "watch=1" in request.query

        async def parts() -> AsyncIterator[bytes]:
            while (line := await self.lines.get()) is not None:
                yield line

        yield parts()

    def tell(self, type_: str, item: Tree) -> None:
        self.lines.put_nowait(json.dumps({"type": type_, "object": item}).encode() + b"\n")

    async def renew(self) -> bool:
        return False

    async def close(self) -> None: ...


def _at(revision: str) -> Tree:
    return {"resourceVersion": revision}


def pod(name: str, revision: str = "1", uid: str = "", **spec: Any) -> Tree:
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"}
    containers = [{"name": "a", "image": "b"}]
    return {"metadata": {**metadata, **_at(revision)}, "spec": {"containers": containers, **spec}}


def bad(name: str, revision: str = "1", uid: str = "") -> Tree:
    return pod(name, revision, uid, containers=[["x"]])


class World:
    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.objects = Indexer()
        self.informer = Informer(
            ApiClient(server), Pod, self.objects, random=lambda: 0.5, backoff=AT_ONCE
        )
        self.told: list[tuple[str, str]] = []
        self.informer.add_event_handler(self._note)

    def _note(self, old: Any, new: Any) -> None:
        if new is None:
            self.told.append(("went", old.metadata.name))
        else:
            self.told.append((new.metadata.resource_version, new.metadata.name))


def play(server: ScriptedServer, scenario: Callable[[World], Any]) -> None:
    async def run() -> None:
        world = World(server)
        following = asyncio.create_task(world.informer.run())
        try:
            async with asyncio.timeout(20):
                await world.informer.wait_for_sync()
                await scenario(world)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    asyncio.run(run())


def test_a_handler_is_told_of_objects_without_a_version_and_when_they_are_gone(
    faults: list[Fault],
) -> None:
    told: list[tuple[str, bool]] = []

    def note(item: Unreadable) -> None:
        told.append((item.name, item.is_gone))

    async def scenario(world: World) -> None:
        world.informer.add_unreadable_handler(note)
        assert told == [("b", False)]
        server = world.server
        server.tell("MODIFIED", bad("a", "10"))  # its last version stays
        server.tell("ADDED", bad("c", "11"))
        server.tell("DELETED", bad("b", "12"))
        server.tell("ADDED", pod("d", "13"))
        await until(lambda: ("13", "d") in world.told)
        assert told[1:] == [("c", False), ("b", True)]
        server.items = [pod("a", "14")]
        server.lines.put_nowait(b'{"type":"ERROR","object":{"code":410,"reason":"Expired"}}\n')
        await until(lambda: ("14", "a") in world.told)
        assert told[3:] == [("c", True)]

    play(ScriptedServer(pod("a"), bad("b")), scenario)
    assert faults


@pytest.mark.parametrize(
    "item",
    [
        bad("b"),
        pod("b", containers="x"),
        pod("b", nodeName=["x"]),
        pod("b") | {"status": "x"},
        pod("b") | {"status": {"containerStatuses": [3]}},
        {"metadata": {"name": "b", "uid": "uid-b", "namespace": "default", "labels": [1]}},
    ],
)
def test_the_others_of_a_list_are_read(item: Tree, faults: list[Fault]) -> None:
    async def scenario(world: World) -> None:
        assert world.told == [("1", "a"), ("1", "c")]
        assert [each.uid for each in world.informer.unreadable] == ["uid-b"]
        assert world.server.lists == 1

    play(ScriptedServer(pod("a"), item, pod("c")), scenario)
    assert [each.subject for each in faults] == ["Pod default/b (uid uid-b)"]


def test_a_watch_goes_on_after_an_unreadable_object(faults: list[Fault]) -> None:
    async def scenario(world: World) -> None:
        server = world.server
        server.tell("ADDED", bad("b", "10"))
        server.tell("MODIFIED", pod("a", "11"))
        server.tell("MODIFIED", pod("b", "12"))
        server.tell("DELETED", bad("x", "13"))
        server.tell("ADDED", pod("c", "14"))
        await until(lambda: world.informer.revision == "14")
        assert world.told == [("1", "a"), ("11", "a"), ("12", "b"), ("14", "c")]
        assert world.informer.unreadable == ()
        assert server.lists == 1

    play(ScriptedServer(pod("a")), scenario)
    assert [each.subject for each in faults] == ["Pod default/b (uid uid-b)"]


def test_the_last_readable_version_stays_until_the_object_is_gone(faults: list[Fault]) -> None:
    async def scenario(world: World) -> None:
        server = world.server
        server.tell("MODIFIED", bad("a", "10"))
        await until(lambda: world.informer.revision == "10")
        kept = world.objects.get(Pod, "default", "a")
        assert kept is not None
        assert kept.metadata.resource_version == "1"
        server.tell("DELETED", bad("a", "11"))
        await until(lambda: world.informer.revision == "11")
        assert world.told == [("1", "a"), ("went", "a")]

    play(ScriptedServer(pod("a")), scenario)
    assert len(faults) == 1


def test_an_unreadable_object_under_the_same_name_is_another_one(faults: list[Fault]) -> None:
    async def scenario(world: World) -> None:
        world.server.tell("MODIFIED", bad("a", "10", uid="other"))
        await until(lambda: world.informer.revision == "10")
        assert world.told == [("1", "a"), ("went", "a")]
        assert [each.uid for each in world.informer.unreadable] == ["other"]

    play(ScriptedServer(pod("a")), scenario)
    assert len(faults) == 1


def test_a_list_for_a_user_names_what_cannot_be_read() -> None:
    async def run() -> None:
        client = ApiClient(ScriptedServer(pod("a"), bad("b")))
        with pytest.raises(UnreadableError, match=r"^Pod default/b \(uid uid-b\): cannot decode"):
            await list_all(client, Pod)

    asyncio.run(run())


def test_an_index_that_cannot_read_an_object_has_the_others(faults: list[Fault]) -> None:
    async def scenario(world: World) -> None:
        world.objects.index(Pod, "by node", lambda each: [each.spec.node_name[0].upper()])
        assert [each.metadata.name for each in world.objects.by_index(Pod, "by node", "N")] == ["b"]
        world.server.tell("DELETED", pod("a", "10"))
        world.server.tell("MODIFIED", pod("c", "11", nodeName="n"))
        await until(lambda: world.informer.revision == "11")
        assert {each.metadata.name for each in world.objects.by_index(Pod, "by node", "N")} == {
            "b",
            "c",
        }

    play(ScriptedServer(pod("a"), pod("b", nodeName="n"), pod("c")), scenario)
    assert {each.place for each in faults} == {"index by node"}
