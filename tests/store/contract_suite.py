"""The contract, case by case; every backend passes all of them.

A case is a coroutine that takes a harness with an empty store behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from moorage.store import Deletion, Entry, Progress, Put, Store, Watch
from moorage.store.errors import (
    BadRequestError,
    ClosedError,
    ConflictError,
    FutureRevisionError,
    KeyExistsError,
    KeyMissingError,
    SlowWatcherError,
    TooOldError,
)
from moorage.store.keys import KEY_BYTES_MAX, VALUE_BYTES_MAX
from tests.store.harness import Harness, next_events

Case = Callable[[Harness], Awaitable[None]]
CASES: list[Case] = []


def case(function: Case) -> Case:
    CASES.append(function)
    return function


async def fill(store: Store, *keys: str) -> list[Entry]:
    return [await store.create(key, key.encode()) for key in keys]


def keys_of(entries: Sequence[Entry]) -> list[str]:
    return [entry.key for entry in entries]


# --- single keys -------------------------------------------------------------------------------


@case
async def what_was_created_is_there(harness: Harness) -> None:
    async with harness.open() as store:
        created = await store.create("/a", b"one")
        assert created == Entry("/a", b"one", created.revision, created.revision)
        assert created.revision > 0
        assert await store.get("/a") == created
        assert await store.get("/b") is None


@case
async def a_key_is_created_once(harness: Harness) -> None:
    async with harness.open() as store:
        created = await store.create("/a", b"one")
        with pytest.raises(KeyExistsError) as refused:
            await store.create("/a", b"two")
        assert refused.value.current == created
        assert await store.get("/a") == created


@case
async def an_update_keeps_when_the_key_was_created(harness: Harness) -> None:
    async with harness.open() as store:
        created = await store.create("/a", b"one")
        updated = await store.update("/a", b"two", expected=created.revision)
        assert updated == Entry("/a", b"two", created.revision, updated.revision)
        assert updated.revision > created.revision
        assert await store.get("/a") == updated


@case
async def an_update_of_another_revision_is_refused(harness: Harness) -> None:
    async with harness.open() as store:
        created = await store.create("/a", b"one")
        updated = await store.update("/a", b"two", expected=created.revision)
        for expected in (created.revision, updated.revision + 1, 0, -1):
            with pytest.raises(ConflictError) as refused:
                await store.update("/a", b"three", expected=expected)
            assert refused.value.current == updated
        assert await store.get("/a") == updated


@case
async def what_is_not_there_is_neither_updated_nor_deleted(harness: Harness) -> None:
    async with harness.open() as store:
        for expected in (0, 1):
            with pytest.raises(KeyMissingError):
                await store.update("/a", b"one", expected=expected)
            with pytest.raises(KeyMissingError):
                await store.delete("/a", expected=expected)
        assert (await store.list("")).entries == []


@case
async def a_deletion_tells_what_was_there(harness: Harness) -> None:
    async with harness.open() as store:
        created = await store.create("/a", b"one")
        with pytest.raises(ConflictError):
            await store.delete("/a", expected=created.revision + 1)
        deleted = await store.delete("/a", expected=created.revision)
        assert deleted == Deletion(created, deleted.revision)
        assert deleted.revision > created.revision
        assert await store.get("/a") is None


@case
async def a_key_that_is_created_again_has_a_new_beginning(harness: Harness) -> None:
    async with harness.open() as store:
        first = await store.create("/a", b"one")
        deleted = await store.delete("/a", expected=first.revision)
        second = await store.create("/a", b"two")
        assert second.created == second.revision > deleted.revision


@case
async def the_past_of_a_key_can_be_read(harness: Harness) -> None:
    async with harness.open() as store:
        created = await store.create("/a", b"one")
        updated = await store.update("/a", b"two", expected=created.revision)
        deleted = await store.delete("/a", expected=updated.revision)
        assert await store.get("/a", at=created.revision - 1) is None
        assert await store.get("/a", at=created.revision) == created
        assert await store.get("/a", at=updated.revision) == updated
        assert await store.get("/a", at=deleted.revision) is None
        with pytest.raises(FutureRevisionError):
            await store.get("/a", at=deleted.revision + 100)


@case
async def of_many_who_update_the_same_revision_one_succeeds(harness: Harness) -> None:
    async with harness.open() as store:
        created = await store.create("/a", b"")
        results = await asyncio.gather(
            *(store.update("/a", bytes([n]), expected=created.revision) for n in range(20)),
            return_exceptions=True,
        )
        winners = [result for result in results if isinstance(result, Entry)]
        assert winners == [await store.get("/a")]
        assert sum(isinstance(result, ConflictError) for result in results) == 19


@case
async def every_write_has_a_revision_of_its_own(harness: Harness) -> None:
    async with harness.open() as store:
        entries = await asyncio.gather(*(store.create(f"/{n}", b"") for n in range(100)))
        assert len({entry.revision for entry in entries}) == 100
        assert await store.revision() >= max(entry.revision for entry in entries)


@case
async def values_are_any_bytes_and_keys_any_text(harness: Harness) -> None:
    async with harness.open() as store:
        keys = ["/ä", "/日本", "/\U0001f6a2", "/x'\";--", "/%_*", "/a b", "x" * KEY_BYTES_MAX]
        for number, key in enumerate(keys):
            value = bytes(range(256)) * number  # empty, too
            created = await store.create(key, value)
            assert await store.get(key) == created
            assert created.value == value
        assert keys_of((await store.list("")).entries) == sorted(keys)


@case
async def the_largest_value_is_stored(harness: Harness) -> None:
    async with harness.open() as store:
        created = await store.create("/a", b"x" * VALUE_BYTES_MAX)
        assert await store.get("/a") == created


@case
async def what_no_store_takes_is_refused(harness: Harness) -> None:
    async with harness.open() as store:
        for key in ("", "\x00", "/a\n", "/\ud800", "/\U0010ffff", "x" * (KEY_BYTES_MAX + 1)):
            with pytest.raises(BadRequestError):
                await store.create(key, b"")
            with pytest.raises(BadRequestError):
                await store.get(key)
            with pytest.raises(BadRequestError):
                await store.delete(key, expected=1)
        with pytest.raises(BadRequestError):
            await store.create("/a", b"x" * (VALUE_BYTES_MAX + 1))
        for ttl_s in (0, -1, 10**12):
            with pytest.raises(BadRequestError):
                await store.create("/a", b"", ttl_s=ttl_s)
        with pytest.raises(BadRequestError):
            await store.list("", limit=0)
        for revision in (-1, 2**63):
            with pytest.raises(BadRequestError):
                await store.list("", at=revision)
            with pytest.raises(BadRequestError):
                await store.watch("", after=revision)
            with pytest.raises(BadRequestError):
                await store.compact(revision)
        assert (await store.list("")).entries == []


# --- lists -------------------------------------------------------------------------------------


@case
async def a_list_has_what_is_below_its_prefix_in_order(harness: Harness) -> None:
    async with harness.open() as store:
        await fill(store, "/b/2", "/a/1", "/b", "/b/1", "/b0", "/bä", "/c", "b")
        page = await store.list("/b")
        assert keys_of(page.entries) == ["/b", "/b/1", "/b/2", "/b0", "/bä"]
        assert keys_of((await store.list("/b/")).entries) == ["/b/1", "/b/2"]
        assert keys_of((await store.list("/d")).entries) == []
        assert page.remaining == 0
        assert page.revision == await store.revision()


@case
async def pages_of_a_list_are_of_one_revision(harness: Harness) -> None:
    async with harness.open() as store:
        entries = await fill(store, *(f"/{n}" for n in range(7)))
        first = await store.list("/", limit=3)
        assert (keys_of(first.entries), first.remaining) == (["/0", "/1", "/2"], 4)
        await store.delete("/4", expected=entries[4].revision)
        await store.update("/5", b"new", expected=entries[5].revision)
        await store.create("/35", b"new")
        then = {"at": first.revision, "limit": 3}
        second = await store.list("/", after="/2", **then)
        assert (list(second.entries), second.remaining) == (entries[3:6], 1)
        third = await store.list("/", after="/5", **then)
        assert (list(third.entries), third.remaining) == (entries[6:], 0)
        assert {first.revision, second.revision, third.revision} == {first.revision}
        now = await store.list("/", after="/2")
        assert keys_of(now.entries) == ["/3", "/35", "/5", "/6"]


@case
async def a_page_that_is_just_full_has_nothing_remaining(harness: Harness) -> None:
    async with harness.open() as store:
        await fill(store, "/0", "/1")
        assert (await store.list("/", limit=2)).remaining == 0
        assert (await store.list("/", limit=2, after="/1")) == (
            [],
            await store.revision(),
            0,
        )


@case
async def a_key_to_go_on_after_need_not_be_there_nor_below_the_prefix(harness: Harness) -> None:
    async with harness.open() as store:
        await fill(store, "/b/1", "/b/3", "/c")
        assert keys_of((await store.list("/b/", after="/b/2")).entries) == ["/b/3"]
        assert keys_of((await store.list("/b/", after="/a")).entries) == ["/b/1", "/b/3"]
        assert keys_of((await store.list("/b/", after="/c")).entries) == []


@case
async def long_lists_come_whole(harness: Harness) -> None:
    async with harness.open() as store:
        await asyncio.gather(*(store.create(f"/{n:05}", b"x") for n in range(2500)))
        page = await store.list("/")
        assert keys_of(page.entries) == [f"/{n:05}" for n in range(2500)]
        assert page.remaining == 0


@case
async def a_list_of_the_future_is_refused(harness: Harness) -> None:
    async with harness.open() as store:
        with pytest.raises(FutureRevisionError):
            await store.list("/", at=await store.revision() + 100)


@case
async def revision_nought_is_the_empty_beginning(harness: Harness) -> None:
    async with harness.open() as store:
        start = await store.revision()
        await fill(store, "/a")
        try:
            assert (await store.list("/", at=start)).entries == []
            assert (await store.list("/", at=0)).entries == []
        except TooOldError:
            assert start > 0  # someone else, in a backend that is shared


# --- watches -----------------------------------------------------------------------------------


async def write_some(store: Store) -> list[Put | Deletion]:
    created = await store.create("/a/1", b"one")
    updated = await store.update("/a/1", b"two", expected=created.revision)
    other = await store.create("/b/1", b"other")
    deleted = await store.delete("/a/1", expected=updated.revision)
    return [Put(created, None), Put(updated, created), Put(other, None), deleted]


@case
async def a_watch_has_every_change_from_where_it_starts(harness: Harness) -> None:
    async with harness.open() as store:
        start = await store.revision()
        changes = await write_some(store)
        for number in range(len(changes) + 1):
            after = changes[number - 1].revision if number else start
            watch = await store.watch("/", after=after)
            later = await store.create(f"/later/{number}", b"")
            rest = changes[number:]
            assert await next_events(watch, len(rest)) == rest
            watch.request_progress()
            last: object = None
            while last != Put(later, None):
                last = await anext(watch)
            watch.close()


@case
async def a_watch_has_what_is_below_its_prefix_only(harness: Harness) -> None:
    async with harness.open() as store:
        start = await store.revision()
        changes = await write_some(store)
        watch = await store.watch("/b/", after=start)
        assert await anext(watch) == changes[2]
        await write_some_more(store, watch)


async def write_some_more(store: Store, watch: Watch) -> None:
    """Write while the watch follows."""
    await store.create("/a/9", b"")
    seen = await store.create("/b/9", b"")
    await store.create("/c/9", b"")
    assert await anext(watch) == Put(seen, None)


@case
async def a_reader_that_waits_is_woken(harness: Harness) -> None:
    async with harness.open() as store:
        watch = await store.watch("/", after=await store.revision())
        reading = asyncio.create_task(watch.batch())
        await store.get("/")
        assert not reading.done()
        created = await store.create("/a", b"")
        assert await reading == [Put(created, None)]


@case
async def progress_comes_after_all_that_was_written_before(harness: Harness) -> None:
    async with harness.open() as store:
        watch = await store.watch("/a", after=await store.revision())
        created = await store.create("/a", b"")
        other = await store.create("/b", b"")
        seen: list[object] = []
        while True:
            watch.request_progress()
            event = await anext(watch)
            if isinstance(event, Progress) and event.revision >= other.revision:
                break
            if isinstance(event, Progress):
                assert event.revision < created.revision or seen
                await store.revision()  # The backend needs its turn, too.
            else:
                seen.append(event)
        assert seen == [Put(created, None)]


@case
async def progress_alone_tells_the_revision(harness: Harness) -> None:
    async with harness.open() as store:
        start = await store.revision()
        watch = await store.watch("/", after=start)
        for _ in range(3):
            watch.request_progress()
        assert await watch.batch() == [Progress(start)]


@case
async def watches_of_a_changing_store_miss_nothing(harness: Harness) -> None:
    async with harness.open() as store:
        start = await store.revision()
        writers = [asyncio.create_task(_write_own(store, name)) for name in "abc"]
        watches = [await store.watch("/", after=start) for _ in range(10)]
        await asyncio.gather(*writers)
        late = await store.watch("/", after=start)
        seen = [await next_events(watch, 3 * 40) for watch in (*watches, late)]
        assert all(events == seen[0] for events in seen)
        revisions = [event.revision for event in seen[0]]
        assert revisions == sorted(set(revisions))


async def _write_own(store: Store, name: str) -> None:
    for number in range(20):
        entry = await store.create(f"/{name}/{number}", b"1")
        await store.update(entry.key, b"2", expected=entry.revision)


@case
async def a_long_past_comes_whole(harness: Harness) -> None:
    async with harness.open() as store:
        start = await store.revision()
        entries = await asyncio.gather(*(store.create(f"/{n % 2}/{n}", b"") for n in range(2600)))
        odd = sorted((e for e in entries if e.key[1] == "1"), key=lambda e: e.revision)
        watch = await store.watch("/1/", after=start)
        assert await next_events(watch, 1300) == [Put(entry, None) for entry in odd]


@case
async def a_watch_from_the_future_is_refused(harness: Harness) -> None:
    async with harness.open() as store:
        with pytest.raises(FutureRevisionError):
            await store.watch("/", after=await store.revision() + 100)


@case
async def a_slow_reader_is_cut_off(harness: Harness) -> None:
    async with harness.open() as store:
        start = await store.revision()
        slow = await store.watch("/", after=start, events_max=5)
        quick = await store.watch("/", after=start, events_max=5)
        for watch in (slow, quick):
            watch.request_progress()
            assert await anext(watch) == Progress(start)
        for number in range(8):
            created = await store.create(f"/{number}", b"")
            assert await anext(quick) == Put(created, None)
        with pytest.raises(SlowWatcherError) as cut:
            await slow.batch()
        assert cut.value.revision == start
        again = await store.watch("/", after=cut.value.revision)
        assert len(await next_events(again, 8)) == 8


@case
async def a_reader_of_the_past_is_not_cut_off(harness: Harness) -> None:
    async with harness.open() as store:
        start = await store.revision()
        await fill(store, *(f"/{n}" for n in range(20)))
        await next_events(await store.watch("/", after=start), 20)  # so it is all past
        watch = await store.watch("/", after=start, events_max=5)
        assert len(await next_events(watch, 20)) == 20


@case
async def a_watch_that_is_closed_ends(harness: Harness) -> None:
    async with harness.open() as store:
        watch = await store.watch("/", after=await store.revision())
        reading = asyncio.create_task(watch.batch())
        await store.get("/")
        watch.close()
        with pytest.raises(ClosedError):
            await reading
        await store.create("/a", b"")
        with pytest.raises(ClosedError):
            await watch.batch()


# --- compaction --------------------------------------------------------------------------------


@case
async def what_is_compacted_is_too_old(harness: Harness) -> None:
    async with harness.open() as store:
        start = await store.revision()
        changes = await write_some(store)
        await store.compact(changes[1].revision)
        for old in (start, changes[0].revision):
            with pytest.raises(TooOldError):
                await store.watch("/", after=old)
            with pytest.raises(TooOldError):
                await store.list("/", at=old)
            with pytest.raises(TooOldError):
                await store.get("/a/1", at=old)


@case
async def what_came_after_compaction_is_kept(harness: Harness) -> None:
    async with harness.open() as store:
        changes = await write_some(store)
        kept = changes[1]
        assert isinstance(kept, Put)
        await store.compact(kept.revision)
        assert await store.get("/a/1", at=kept.revision) == kept.entry
        assert (await store.list("/", at=kept.revision)).entries == [kept.entry]
        watch = await store.watch("/", after=kept.revision)
        assert await next_events(watch, 2) == changes[2:]


@case
async def compaction_changes_nothing_that_is(harness: Harness) -> None:
    async with harness.open() as store:
        await write_some(store)
        await fill(store, "/c", "/d")
        before = await store.list("/")
        for revision in range(before.revision - 4, before.revision + 1):
            await store.compact(revision)
            assert (await store.list("/")).entries == before.entries
        await store.compact(before.revision)
        await store.compact(before.revision - 2)
        assert await store.revision() >= before.revision
        with pytest.raises(TooOldError):
            await store.watch("/", after=before.revision - 1)


@case
async def the_future_is_not_compacted(harness: Harness) -> None:
    async with harness.open() as store:
        with pytest.raises(FutureRevisionError):
            await store.compact(await store.revision() + 100)


@case
async def a_watch_that_follows_survives_compaction(harness: Harness) -> None:
    async with harness.open() as store:
        watch = await store.watch("/", after=await store.revision())
        watch.request_progress()
        await anext(watch)
        first = await store.create("/a", b"")
        await store.compact(await store.revision())
        second = await store.update("/a", b"2", expected=first.revision)
        assert await next_events(watch, 2) == [Put(first, None), Put(second, first)]


@case
async def a_watch_whose_past_is_compacted_ends(harness: Harness) -> None:
    async with harness.open() as store:
        start = await store.revision()
        watch = await store.watch("/", after=start)
        await write_some(store)
        await store.compact(await store.revision())
        with pytest.raises(TooOldError):
            await watch.batch()


# --- time to live ------------------------------------------------------------------------------


@case
async def a_key_whose_time_is_over_is_deleted_by_a_change(harness: Harness) -> None:
    async with harness.open() as store:
        lasting = await store.create("/lasting", b"")
        watch = await store.watch("/", after=lasting.revision)
        entries = [await store.create(f"/{n}", b"", ttl_s=1) for n in range(3)]
        assert await next_events(watch, 3) == [Put(entry, None) for entry in entries]
        await harness.pass_time(store, 1)
        gone = await next_events(watch, 3)
        assert all(isinstance(change, Deletion) for change in gone)
        assert {change.previous for change in gone if isinstance(change, Deletion)} == {*entries}
        assert len({change.revision for change in gone}) == 3
        assert (await store.list("/")).entries == [lasting]


@case
async def an_update_gives_a_new_time_to_live_or_none(harness: Harness) -> None:
    async with harness.open() as store:
        first = await store.create("/kept", b"", ttl_s=1)
        kept = await store.update("/kept", b"2", expected=first.revision)
        brief = await store.create("/brief", b"")
        brief = await store.update("/brief", b"2", expected=brief.revision, ttl_s=1)
        watch = await store.watch("/", after=brief.revision)
        await harness.pass_time(store, 2)
        assert (await anext(watch)).previous == brief  # type: ignore[union-attr]
        assert (await store.list("/")).entries == [kept]


@case
async def a_refused_write_has_no_time_to_live(harness: Harness) -> None:
    async with harness.open() as store:
        kept = await store.create("/kept", b"")
        with pytest.raises(KeyExistsError):
            await store.create("/kept", b"", ttl_s=1)
        with pytest.raises(ConflictError):
            await store.update("/kept", b"", expected=kept.revision + 1, ttl_s=1)
        brief = await store.create("/brief", b"", ttl_s=1)
        watch = await store.watch("/", after=brief.revision)
        await harness.pass_time(store, 2)
        assert (await anext(watch)).previous == brief  # type: ignore[union-attr]
        assert (await store.list("/")).entries == [kept]


# --- closing and opening -----------------------------------------------------------------------


@case
async def what_was_written_is_there_when_opened_again(harness: Harness) -> None:
    async with harness.open() as store:
        start = await store.revision()
        changes = await write_some(store)
        before = await store.list("/")
    async with harness.open() as store:
        again = await store.list("/")
        assert again.entries == before.entries
        assert again.revision >= before.revision
        watch = await store.watch("/", after=start)
        assert await next_events(watch, len(changes)) == changes
        later = await store.create("/later", b"")
        assert later.revision > before.revision
        assert await anext(watch) == Put(later, None)


@case
async def what_was_compacted_stays_so(harness: Harness) -> None:
    async with harness.open() as store:
        changes = await write_some(store)
        revision = await store.revision()
        await store.compact(revision)
    async with harness.open() as store:
        assert await store.revision() >= revision
        with pytest.raises(TooOldError):
            await store.watch("/", after=changes[-1].revision - 1)


@case
async def a_store_that_is_closed_answers_nothing(harness: Harness) -> None:
    async with harness.open() as store:
        watch = await store.watch("/", after=await store.revision())
        reading = asyncio.create_task(watch.batch())
        await store.get("/")
    with pytest.raises(ClosedError):
        await reading
    with pytest.raises(ClosedError):
        await store.get("/a")
    with pytest.raises(ClosedError):
        await store.create("/a", b"")
    with pytest.raises(ClosedError):
        await store.watch("/", after=0)
    await store.close()


@case
async def a_caller_that_is_cancelled_harms_nobody(harness: Harness) -> None:
    async with harness.open() as store:
        tasks = [asyncio.create_task(store.create(f"/{n}", b"")) for n in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, Entry) for result in results[1::2])
        present = {entry.key for entry in (await store.list("/")).entries}
        assert {f"/{n}" for n in range(1, 20, 2)} <= present
