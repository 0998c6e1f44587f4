"""The process that the crash campaign kills: mixed writes, each reported before and after.

    python -m soak._store_writes FOLDER SEED ROUND

It says on its standard output, a line each:

    ready REVISION               the store is open
    begin KEY NUMBER VERB        a write is handed to the store
    done KEY NUMBER REVISION     it was answered

NUMBER counts writes and says which round they are of, so no value is ever written twice. A line is
one write to a pipe: it arrives completely or not at all.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

from moorage.store import Entry
from moorage.store.sqlite import SqliteStore, open_sqlite

WRITERS = 16
KEYS = 8  # of each writer
ROUND = 1_000_000  # numbers of a round
COMPACT_EVERY = 150
KEPT = 200  # revisions
SIZES = (0, 40, 40, 700, 3000, 3000, 20_000)
EVENTS_PAUSE_S = 0.005


def value_of(key: str, number: int) -> bytes:
    """Return the one value that a write of a key has: it says which, and is hard to mix up."""
    head = f"{number} {key} ".encode()
    seed = hashlib.sha256(head).digest()
    size = SIZES[seed[0] % len(SIZES)]
    return head + (seed * (size // len(seed) + 1))[:size]


def number_of(value: bytes) -> int:
    """Return which write of its key a value is of."""
    return int(value.split(b" ", 1)[0])


def tell(*words: object) -> None:
    """Say a line at once."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def write_keys(
    store: SqliteStore, writer: int, numbers: Iterator[int], random: Random
) -> None:
    """Create, update and delete the keys of one writer, one write after the other."""
    keys = [f"/k/{writer}/{n}" for n in range(KEYS)]
    entries = {entry.key: entry for entry in (await store.list(f"/k/{writer}/")).entries}
    for number in numbers:
        key = random.choice(keys)
        entry = entries.pop(key, None)
        if entry is not None and random.random() < 0.2:
            tell("begin", key, number, "delete")
            deletion = await store.delete(key, expected=entry.revision)
            tell("done", key, number, deletion.revision)
        else:
            tell("begin", key, number, "put")
            entries[key] = await _put(store, key, value_of(key, number), entry)
            tell("done", key, number, entries[key].revision)


async def _put(store: SqliteStore, key: str, value: bytes, entry: Entry | None) -> Entry:
    if entry is None:
        return await store.create(key, value)
    return await store.update(key, value, expected=entry.revision)


async def write_events(store: SqliteStore, numbers: Iterator[int]) -> None:
    """Write keys that expire soon."""
    for number in numbers:
        key = f"/e/{number}"
        await store.create(key, value_of(key, number), ttl_s=1)
        await asyncio.sleep(EVENTS_PAUSE_S)


async def compact_now_and_then(store: SqliteStore) -> None:
    """Compact after a number of writes."""
    compacted = await store.revision()
    while True:
        revision = await store.revision()
        if revision - compacted > COMPACT_EVERY:
            compacted = revision
            await store.compact(max(revision - KEPT, 0))
        await asyncio.sleep(EVENTS_PAUSE_S)


async def main(folder: Path, seed: str, round_: int) -> None:
    """Write until killed."""
    numbers = itertools.count(round_ * ROUND)
    async with open_sqlite(folder) as store, asyncio.TaskGroup() as tasks:
        tell("ready", await store.revision())
        for writer in range(WRITERS):
            random = Random(f"{seed}/{round_}/{writer}")  # noqa: S311
            tasks.create_task(write_keys(store, writer, numbers, random))
        tasks.create_task(write_events(store, numbers))
        tasks.create_task(compact_now_and_then(store))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
