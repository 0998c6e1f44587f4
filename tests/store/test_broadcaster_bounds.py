"""A reader that stops keeps a bounded number of bytes, however large the changes are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from moorage.store.broadcaster import (
    BATCH_BYTES,
    PENDING_BYTES_MAX,
    Broadcaster,
    BroadcastWatch,
    HistoryPage,
)
from moorage.store.contract import Deletion, Entry, Put
from moorage.store.errors import SlowWatcherError

LARGE = bytes(BATCH_BYTES)  # one object, which all changes share: the test itself stays small


def test_a_reader_that_is_many_bytes_behind_is_cut_off() -> None:
    async def check(broadcaster: Broadcaster, watch: BroadcastWatch) -> None:
        count = PENDING_BYTES_MAX // len(LARGE)
        for number in range(count):
            broadcaster.publish([_put(number + 1)])
        assert len(await watch.batch()) == 1  # It is at the limit, and may go on.
        broadcaster.publish([_put(count + 1)])
        broadcaster.publish([Deletion(_put(count + 1).entry, count + 2)])
        with pytest.raises(SlowWatcherError, match="bytes of changes") as cut:
            await watch.batch()
        assert cut.value.revision == 1

    _run(check)


def test_a_batch_holds_few_bytes_and_none_is_lost() -> None:
    async def check(broadcaster: Broadcaster, watch: BroadcastWatch) -> None:
        broadcaster.publish([_put(1, b"a"), _put(2, b"b"), _put(3), _put(4), _put(5, b"c")])
        revisions = [[event.revision for event in await watch.batch()] for _ in range(3)]
        assert revisions == [[1, 2, 3], [4], [5]]

    _run(check)


def test_a_change_that_is_larger_than_all_that_may_wait_is_delivered() -> None:
    async def check(broadcaster: Broadcaster, watch: BroadcastWatch) -> None:
        broadcaster.publish([_put(1, bytes(PENDING_BYTES_MAX + 1))])
        assert [event.revision for event in await watch.batch()] == [1]

    _run(check)


def _put(revision: int, value: bytes = LARGE) -> Put:
    return Put(Entry(f"/{revision}", value, revision, revision), None)


def _run(check: Callable[[Broadcaster, BroadcastWatch], Coroutine[Any, Any, None]]) -> None:
    async def history(prefix: str, after: int, through: int) -> HistoryPage:
        assert (prefix, after) == ("/", 0)
        return HistoryPage((), through)

    async def run() -> None:
        broadcaster = Broadcaster(0, history)
        watch = broadcaster.watch("/", 0, 10_000)
        watch.request_progress()
        await watch.batch()  # So it is subscribed.
        await check(broadcaster, watch)

    asyncio.run(run())
