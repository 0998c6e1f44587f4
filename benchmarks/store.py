"""The store, on SQLite and beside it on etcd: durable creates, lists, start, fan-out.

The rate of durable creates is first of all the disk's: a line says how many times a second it
syncs a small write.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from statistics import quantiles

from moorage.store import Store
from moorage.store.etcd import open_etcd
from moorage.store.sqlite import open_sqlite
from tests.store.etcdserver import find_etcd, running_etcd

VALUE = b"x" * 2000  # a claim
Open = Callable[[], AbstractAsyncContextManager[Store]]


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        print(f"disk: {_syncs(Path(folder)):,.0f} syncs/s")
        print("-- sqlite")
        asyncio.run(measure(lambda: open_sqlite(Path(folder) / "store")))
    if find_etcd() is None:
        print("-- etcd: cannot be had here")
        return
    with running_etcd() as server:
        print("-- etcd")
        asyncio.run(measure(lambda: open_etcd(server.target)))


async def measure(open_store: Open) -> None:
    """Print the figures of one backend."""
    async with open_store() as store:
        await _print_creates(store, "single", writers=1, writes=400)
        await _print_creates(store, "grouped", writers=16, writes=6_000)
        await _print_creates(store, "crowded", writers=200, writes=20_000)
        await _fill(store, "/list/", 40_000)
        await _print_lists(store)
        await _print_fan_out(store, watchers=100, writes=2_000)
        total = len((await store.list("")).entries)
        await _fill(store, "/more/", 100_000 - total)
    await _print_start(open_store)


async def _print_creates(store: Store, name: str, *, writers: int, writes: int) -> None:
    times_s: list[float] = []

    async def write(writer: int) -> None:
        for number in range(writes // writers):
            started = time.perf_counter()
            await store.create(f"/{name}/{writer}/{number}", VALUE)
            times_s.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(write(writer) for writer in range(writers)))
    rate = len(times_s) / (time.perf_counter() - started)
    slow_ms = quantiles(times_s, n=100)[-1] * 1e3
    print(f"creates, {writers:3} writers: {rate:8,.0f}/s, p99 {slow_ms:.1f} ms")


async def _fill(store: Store, prefix: str, count: int) -> None:
    async def write(writer: int) -> None:
        for number in range(writer, count, 200):
            await store.create(f"{prefix}{number}", VALUE)

    await asyncio.gather(*map(write, range(200)))


async def _print_lists(store: Store) -> None:
    started = time.perf_counter()
    page = await store.list("/list/")
    print(f"list of {len(page.entries):,}: {(time.perf_counter() - started) * 1e3:.0f} ms")
    await store.create("/changed", VALUE)  # so that the pages are of the past
    started = time.perf_counter()
    count, after = 0, ""
    while True:
        part = await store.list("/list/", limit=500, after=after, at=page.revision)
        count, after = count + len(part.entries), part.entries[-1].key
        if not part.remaining:
            break
    elapsed_ms = (time.perf_counter() - started) * 1e3
    print(f"the same in pages of 500, of a past revision: {elapsed_ms:.0f} ms")
    started = time.perf_counter()
    for number in range(1000):
        await store.get(f"/list/{number}")
    print(f"get: {(time.perf_counter() - started) * 1e3:.0f} µs")


async def _print_fan_out(store: Store, *, watchers: int, writes: int) -> None:
    start = await store.revision()
    watches = [await store.watch("/fan/", after=start) for _ in range(watchers)]

    async def read(number: int) -> None:
        seen = 0
        while seen < writes:
            seen += len(await watches[number].batch())

    reading = asyncio.gather(*map(read, range(watchers)))
    started = time.perf_counter()
    await _fill(store, "/fan/", writes)
    await reading
    rate = watchers * writes / (time.perf_counter() - started)
    print(f"fan-out, {watchers} watches of {writes:,} creates: {rate:,.0f} events/s")


async def _print_start(open_store: Open) -> None:
    started = time.perf_counter()
    async with open_store() as store:
        opened = time.perf_counter()
        page = await store.list("")
        listed = time.perf_counter()
    opened_ms, listed_ms = (opened - started) * 1e3, (listed - opened) * 1e3
    print(f"start with {len(page.entries):,} objects: {opened_ms:.0f} ms", end=", ")
    print(f"and {listed_ms:.0f} ms to list them")


def _syncs(folder: Path) -> float:
    """Return how many times a second the disk syncs 2 KB."""
    with (folder / "sync").open("wb", buffering=0) as file:
        started = time.perf_counter()
        for _ in range(200):
            file.write(VALUE)
            os.fdatasync(file.fileno())
        return 200 / (time.perf_counter() - started)
