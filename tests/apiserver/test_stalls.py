"""No request keeps the event loop from others for long, and no client that does not read fills it.

The first is counted in lines of Python that one turn of the event loop executes: about 30 million
take a second. Work beside the event loop does not count. The second is counted in bytes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from moorage.apiserver.body_limits import VALUES_MAX
from moorage.apiserver.http.app import PIECE_BYTES
from moorage.apiserver.http.flow_control import ALWAYS_BYTES, SharedBytes
from moorage.apiserver.settings import Limits
from moorage.apiserver.verbs.list import ListPage, decode_token, size_of
from moorage.apiserver.verbs.resource_request import PLAIN_BYTES_MAX
from moorage.apiserver.verbs.watch import INITIAL_PAGE_BYTES, beginning_of
from moorage.store.contract import Entry
from soak._worst_requests import Worst, known
from tests.apiserver.client import (
    CLAIMS,
    CONFIG_MAPS,
    JSON_PATCH,
    NAMESPACES,
    PODS,
    Client,
    scope_of,
)

PART = 0.1  # of the size of the worst requests
LINES_MAX = 30_000


class Turns:
    """Counts the lines of Python in each turn of the event loop of this thread."""

    def __init__(self) -> None:
        self.longest = 0
        self._lines = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self._lines += 1
            self.longest = max(self.longest, self._lines)
        elif frame.f_code.co_name == "_run" and frame.f_code.co_filename.endswith("events.py"):
            self._lines = 0
        return self


@contextmanager
def counted() -> Iterator[Turns]:
    turns, before = Turns(), sys.gettrace()
    sys.settrace(turns)
    try:
        yield turns
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("worst", known("default", PART), ids=lambda worst: worst.name)
def test_the_worst_requests_take_no_long_turn(client: Client, worst: Worst) -> None:
    if worst.before is not None:
        assert client.post(*worst.before, content_type="application/json").status == 201
    with counted() as turns:
        reply = client.ask(
            worst.method, worst.path, worst.body, content_type=worst.media, accept=worst.accept
        )
    assert reply.status < 500, reply
    assert turns.longest < LINES_MAX


def test_new_expressions_take_no_long_turn(client: Client) -> None:
    expression = "&&".join(["[1].all(x,x==1)"] * 420)  # less than 8 KiB
    exactly = {"deviceClassName": "a", "selectors": [{"cel": {"expression": expression}}]}
    requests = [{"name": "a", "exactly": exactly}]
    body = {"metadata": {"name": "a"}, "spec": {"devices": {"requests": requests}}}
    with counted() as turns:
        reply = client.post(CLAIMS, body)
    assert reply.status == 201, reply
    assert turns.longest < LINES_MAX


def test_many_limit_ranges_take_no_long_turn(client: Client) -> None:
    bounds = {f"example.com/r{number}": "5" for number in range(40)}
    ranges = f"{NAMESPACES}/default/limitranges"
    for number in range(40):
        most = bounds if number < 39 else {"example.com/last": "5"}
        spec = {"limits": [{"type": "Container", "max": most}]}
        made = client.post(ranges, {"metadata": {"name": f"l{number}"}, "spec": spec})
        assert made.status == 201, made
    containers = [{"name": f"c{number}", "image": "i"} for number in range(30)]
    body = {"metadata": {"name": "a"}, "spec": {"containers": containers}}

    def limits() -> Any:
        made = client.post(f"{PODS}?dryRun=All", body).json
        return made["spec"]["containers"][0]["resources"].get("limits", {})

    client.until(lambda: "example.com/last" in limits())
    with counted() as turns:
        assert len(limits()) == len(bounds) + 1
    assert turns.longest < LINES_MAX


def test_lines_are_counted() -> None:
    async def busy() -> None:
        for _ in range(LINES_MAX):
            pass

    with counted() as turns:
        asyncio.run(busy())
    assert turns.longest > LINES_MAX


# --- bodies ---------------------------------------------------------------------------------------


def test_a_body_has_no_more_values_than_allowed(client: Client) -> None:
    many = b"[" + b"1," * VALUES_MAX + b"1]"
    refused = client.post(CONFIG_MAPS, b'{"metadata":{"name":"a"},"data":' + many + b"}")
    assert (refused.status, refused.reason) == (400, "BadRequest")
    assert f"more than {VALUES_MAX} values" in refused.message
    client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert client.patch(f"{CONFIG_MAPS}/a", many, JSON_PATCH).status == 400


def test_lists_have_no_more_maps_than_allowed(client: Client) -> None:
    owners: list[Any] = [{}] * 10_001
    body = {"metadata": {"name": "a", "ownerReferences": owners}}
    refused = client.post(CONFIG_MAPS, body)
    assert refused.status == 400
    assert "the lists of the object have more than 10,000 items in all" in refused.message
    client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})
    add = [{"op": "add", "path": "/metadata/ownerReferences", "value": owners}]
    refused = client.patch(f"{CONFIG_MAPS}/a", add, JSON_PATCH)
    assert refused.status == 422
    assert "more than 10,000 items" in refused.message


@pytest.mark.parametrize("path", [f"{CONFIG_MAPS}/a", f"{NAMESPACES}/default"])
def test_options_are_small(client: Client, path: str) -> None:
    body = b'{"dryRun":["All"' + b" " * PLAIN_BYTES_MAX + b"]}"
    refused = client.delete(path, body)
    assert (refused.status, refused.reason) == (413, "RequestEntityTooLarge")


# --- clients that do not read ---------------------------------------------------------------------


class Reader:
    """A client that sends a request and reads only when it is told."""

    def __init__(self, client: Client, path: str) -> None:
        self.status = 0
        self.buffered = 0
        self.events = 0
        self.is_done = False
        self._reads = asyncio.Event()
        self._client = client
        self._path = path

    async def run(self) -> None:
        gone = asyncio.Event()
        asked = False

        async def receive() -> Any:
            nonlocal asked
            if asked:
                await gone.wait()
            asked = True
            return {"type": "http.request", "body": b""}

        await self._client.app(scope_of("GET", self._path, {}), receive, self._send)
        self.is_done = True

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        self.buffered += len(message["body"])
        self.events += message["body"].count(b'"type":"ADDED"')
        if message["body"] and message.get("more_body", False):
            await self._reads.wait()

    def read(self) -> None:
        self._reads.set()


def _with_maps(client: Client, count: int, size: int) -> None:
    for number in range(count):
        body = {"metadata": {"name": f"m{number}"}, "data": {"k": "x" * size}}
        assert client.post(CONFIG_MAPS, body).status == 201


def test_unread_lists_are_bound_in_all_and_let_go_when_they_are_read(tmp_path: Path) -> None:
    limit = 2 * 1024 * 1024
    client = Client(tmp_path / "store", limits=Limits(unsent_bytes_max=limit))
    _with_maps(client, 4, 100_000)
    readers = [Reader(client, CONFIG_MAPS) for _ in range(50)]

    async def ask() -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(reader.run()) for reader in readers]
        while not all(reader.status for reader in readers):
            await asyncio.sleep(0)
        return tasks

    tasks = client.run(ask())
    unsent = client.app.unsent
    assert 0 < unsent.total <= limit
    answers = sorted(reader.status for reader in readers)
    assert 200 in answers
    assert answers.count(429) > 40
    # A connection buffers one piece, and what is small still gets through.
    assert max(reader.buffered for reader in readers if reader.status == 200) == PIECE_BYTES
    assert client.get(f"{NAMESPACES}/default").status == 200
    for reader in readers:
        reader.read()
    client.run(asyncio.wait(tasks))
    assert unsent.total == 0
    assert client.get(CONFIG_MAPS).status == 200
    client.close()


def test_an_unread_watch_reads_no_further(client: Client) -> None:
    _with_maps(client, 30, 100_000)
    sizes: list[int] = []
    read, store = client.store.list, client.store

    async def noted(*args: Any, **options: Any) -> Any:
        page = await read(*args, **options)
        sizes.append(sum(len(entry.value) for entry in page.entries))
        return page

    store.list = noted  # type: ignore[method-assign]
    reader = Reader(client, f"{CONFIG_MAPS}?watch=true")

    async def ask() -> asyncio.Task[None]:
        task = asyncio.create_task(reader.run())
        while not reader.buffered:
            await asyncio.sleep(0)
        return task

    async def read_all(task: asyncio.Task[None]) -> None:
        reader.read()
        while reader.buffered < 30 * 100_000:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})

    task = client.run(ask())
    assert len(sizes) == 1
    assert sizes[0] < 30 * 100_000 / 2
    client.run(read_all(task))
    assert len(sizes) > 1
    assert all(size <= INITIAL_PAGE_BYTES for size in sizes[1:])


def test_a_user_reads_one_list_at_once(client: Client) -> None:
    _with_maps(client, 2, 10)
    read, store = client.store.list, client.store
    at_once = longest = 0

    async def noted(*args: Any, **options: Any) -> Any:
        nonlocal at_once, longest
        at_once += 1
        longest = max(longest, at_once)
        try:
            return await read(*args, **options)
        finally:
            at_once -= 1

    store.list = noted  # type: ignore[method-assign]
    paths = [CONFIG_MAPS, f"{CONFIG_MAPS}?labelSelector=a", f"{CONFIG_MAPS}?watch=true"]
    readers = [Reader(client, path) for path in paths * 5]

    async def ask() -> None:
        tasks = [asyncio.create_task(reader.run()) for reader in readers]
        while not all(reader.status for reader in readers):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    client.run(ask())
    assert {reader.status for reader in readers} == {200}
    assert longest == 1


def test_a_page_for_a_watch_is_cut_where_its_objects_have_many_bytes(client: Client) -> None:
    for number in range(12):  # The first objects say nothing about the others.
        assert client.post(CONFIG_MAPS, {"metadata": {"name": f"a{number:02}"}}).status == 201
    _with_maps(client, 30, 100_000)
    reader = Reader(client, f"{CONFIG_MAPS}?watch=true")
    reader.read()

    async def read_all() -> None:
        task = asyncio.create_task(reader.run())
        while reader.events < 42:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})

    client.run(read_all())
    assert reader.events == 42
    large = [Entry(f"/maps/m{number}", b"x" * 100_000, 1, 1) for number in range(12)]
    small = [Entry(f"/maps/a{number}", b"x", 1, 1) for number in range(12)]
    page = beginning_of(ListPage([*small, *large], 7, "more"), "/maps/")
    assert size_of(page.entries) <= INITIAL_PAGE_BYTES
    assert len(page.entries) == 17
    assert decode_token(page.continue_) == (7, "m4")
    assert beginning_of(ListPage(small, 7, "more"), "/maps/").continue_ == "more"


def test_unread_watches_are_bound_in_all_and_let_go_when_they_are_read(tmp_path: Path) -> None:
    limit = 2 * 1024 * 1024
    client = Client(tmp_path / "store", limits=Limits(unsent_bytes_max=limit))
    _with_maps(client, 4, 100_000)
    readers = [Reader(client, f"{CONFIG_MAPS}?watch=true") for _ in range(50)]

    async def ask() -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(reader.run()) for reader in readers]
        while not all(reader.buffered or reader.is_done for reader in readers):
            await asyncio.sleep(0)
        return tasks

    async def let_go(tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    tasks = client.run(ask())
    assert 0 < client.app.unsent.total <= limit
    assert sum(reader.is_done for reader in readers) > 30
    client.run(let_go(tasks))
    assert client.app.unsent.total == 0
    client.close()


def test_unread_bytes_are_shared_among_users() -> None:
    unsent = SharedBytes(900_000)
    size = 50_000
    with ExitStack() as stack:

        def fill(user: str) -> int:
            count = 0
            while unsent.has_room(user, size):
                stack.enter_context(unsent.held(user, size))
                count += 1
            return count

        assert 9 <= fill("mallory") <= 12
        assert fill("bob") > 0
        assert unsent.has_room("eve", size)
        assert unsent.total <= 900_000
        assert unsent.has_room("mallory", ALWAYS_BYTES)
    assert unsent.total == 0


def test_a_list_that_is_larger_than_the_bound_is_sent(tmp_path: Path) -> None:
    client = Client(tmp_path / "store", limits=Limits(unsent_bytes_max=1000))
    _with_maps(client, 1, 100_000)
    assert client.get(CONFIG_MAPS).status == 200
    assert client.get(PODS).status == 200
    client.close()
