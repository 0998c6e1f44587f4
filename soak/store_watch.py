"""Watch a store that is written to, compacted and restarted: no change missed, none twice.

A case is one folder, 16 writers and 200 watchers. A watcher lists, watches from there, and keeps
its state; when it is cut off, or the store is restarted, it resumes from its last revision, and
lists again only if that is too old. The laws:

1. revisions come in order, and the old value of a change equals the watcher's, so a missed or
   repeated change shows with the next one of its key;
2. a watcher that never had to list again has seen as many changes as were written below its prefix;
3. in the end every watcher knows the content of the store.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from moorage.store import Deletion, Entry, KeyChange, Progress, Put, Watch
from moorage.store.errors import ClosedError, SlowWatcherError, TooOldError
from moorage.store.sqlite import SqliteStore
from soak import Outcome, Plan, Tally

CASES = 5
EVENTS_MAX = 10_000
SLOW_EVENTS_MAX = 50  # the backlog of a slow watcher
SLOW_PAUSE_S = 0.2
CUT_PAUSE_S = 2.0  # how long a slow watcher stays away once it was cut off
SECONDS_MAX = 600


class Size(NamedTuple):
    """How large a case is."""

    watchers: int = 200
    writers: int = 16
    writes: int = 20_000
    compactions: int = 20
    restarts: int = 4


@dataclass
class Place:
    """The open store; it is reopened now and then."""

    folder: Path
    store: SqliteStore | None = None
    is_open: asyncio.Event = field(default_factory=asyncio.Event)

    async def current(self) -> SqliteStore:
        """Return the store, as soon as it is open."""
        await self.is_open.wait()
        assert self.store is not None
        return self.store

    async def restart(self) -> None:
        """Close the store, if it is open, and open it."""
        self.is_open.clear()
        if self.store is not None:
            await self.store.close()
        self.store = await SqliteStore.open(self.folder)
        self.is_open.set()


class Writer:
    """Writes its own keys; a write that meets a closed store is done again."""

    def __init__(self, place: Place, prefix: str, random: Random) -> None:
        self.prefix = prefix
        self.written = 0
        self._place = place
        self._random = random
        self._entries: dict[str, Entry] = {}

    async def run(self, writes: int) -> None:
        """Write a number of changes."""
        while self.written < writes:
            store = await self._place.current()
            try:
                await self._write(store)
            except ClosedError:
                continue
            self.written += 1

    async def _write(self, store: SqliteStore) -> None:
        key = f"{self.prefix}{self._random.randrange(50)}"
        entry = self._entries.get(key)
        value = self._random.randbytes(self._random.choice((20, 300, 3000)))
        if entry is None:
            self._entries[key] = await store.create(key, value)
        elif self._random.random() < 0.2:
            await store.delete(key, expected=entry.revision)
            del self._entries[key]
        else:
            self._entries[key] = await store.update(key, value, expected=entry.revision)


class Watcher:
    """Knows the entries below a prefix, from its events."""

    def __init__(self, place: Place, prefix: str, *, is_slow: bool) -> None:
        self.prefix = prefix
        self.entries: dict[str, Entry] = {}
        self.seen = 0
        self.changes = 0
        self.counts: Counter[str] = Counter()
        self._place = place
        self._is_slow = is_slow

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            store = await self._place.current()
            try:
                events_max = SLOW_EVENTS_MAX if self._is_slow else EVENTS_MAX
                watch = await store.watch(self.prefix, after=self.seen, events_max=events_max)
                await self._read(watch)
            except SlowWatcherError:
                self.counts["watches cut off"] += 1
                await asyncio.sleep(CUT_PAUSE_S)
            except ClosedError:
                self.counts["watches resumed after a restart"] += 1
                await asyncio.sleep(0)
            except TooOldError:
                self.counts["lists anew"] += 1
                await self._list(store)

    async def _read(self, watch: Watch) -> None:
        while True:
            for event in await watch.batch():
                if not isinstance(event, Progress):
                    self._take(event)
            if self._is_slow:
                await asyncio.sleep(SLOW_PAUSE_S)

    def _take(self, change: KeyChange) -> None:
        assert change.revision > self.seen, f"{change.revision} comes after {self.seen}"
        self.seen = change.revision
        self.changes += 1
        match change:
            case Put(entry, previous):
                assert self.entries.get(entry.key) == previous, f"{entry.key}: missed"
                self.entries[entry.key] = entry
            case Deletion(previous):
                assert self.entries.pop(previous.key, None) == previous, f"{change.key}: missed"

    async def _list(self, store: SqliteStore) -> None:
        try:
            page = await store.list(self.prefix)
        except ClosedError:
            return
        self.entries = {entry.key: entry for entry in page.entries}
        self.seen = page.revision


@dataclass(frozen=True)
class WatchCase:
    """One folder, written to and watched."""

    seed: int
    number: int
    size: Size

    def outcomes(self) -> Counter[str]:
        """Return the counts; raise when a law is broken."""
        with tempfile.TemporaryDirectory(prefix="store-watch-") as folder:
            return asyncio.run(self._run(Place(Path(folder))))

    async def _run(self, place: Place) -> Counter[str]:
        async with asyncio.timeout(SECONDS_MAX):
            await place.restart()
            writers = [
                Writer(place, f"/{n}/", Random(f"{self.seed}/{self.number}/{n}"))  # noqa: S311
                for n in range(self.size.writers)
            ]
            # One in four watches everything, one in twenty is slow.
            watchers = [
                Watcher(
                    place,
                    "" if n % 4 == 0 else f"/{n % self.size.writers}/",
                    is_slow=n % 20 == 0,
                )
                for n in range(self.size.watchers)
            ]
            counts = await self._write(place, writers, watchers)
            assert place.store is not None
            await self._compare(place.store, writers, watchers)
            await place.store.close()
        return sum((watcher.counts for watcher in watchers), counts)

    async def _write(
        self, place: Place, writers: list[Writer], watchers: list[Watcher]
    ) -> Counter[str]:
        """Have everything written, compacted, restarted and seen."""
        each = self.size.writes // self.size.writers
        assert each * self.size.writers == self.size.writes
        async with asyncio.TaskGroup() as group:
            watching = [group.create_task(watcher.run()) for watcher in watchers]
            upkeep = group.create_task(self._upkeep(place, writers))
            await asyncio.gather(*(writer.run(each) for writer in writers))
            counts = await upkeep
            await self._wait_until_seen(place, watchers)
            for task in watching:
                task.cancel()
        counts["writes"] = sum(writer.written for writer in writers)
        counts["changes seen"] = sum(watcher.changes for watcher in watchers)
        counts["watchers"] = len(watchers)
        return counts

    async def _upkeep(self, place: Place, writers: list[Writer]) -> Counter[str]:
        """Compact and restart at even distances, by the number of writes."""
        total = self.size.writes
        marks = [*_marks(total, self.size.compactions, "compactions")]
        marks += _marks(total, self.size.restarts, "restarts")
        counts: Counter[str] = Counter()
        for mark, what in sorted(marks):
            while sum(writer.written for writer in writers) < mark:
                await asyncio.sleep(0.002)
            counts[what] += 1
            if what == "restarts":
                await place.restart()
            else:
                store = await place.current()
                await store.compact(max(await store.revision() - total // 50, 0))
        return counts

    async def _wait_until_seen(self, place: Place, watchers: list[Watcher]) -> None:
        """Wait until each watcher has seen the newest change below its prefix."""
        store = await place.current()
        newest: dict[str, int] = {}
        # The prefix of all comes last: what is newest below it is newer than all others.
        for prefix in sorted({watcher.prefix for watcher in watchers}, reverse=True):
            last = await store.create(f"{prefix}~last", b"")
            newest[prefix] = (await store.delete(last.key, expected=last.revision)).revision
        while any(watcher.seen < newest[watcher.prefix] for watcher in watchers):
            await asyncio.sleep(0.01)

    async def _compare(
        self, store: SqliteStore, writers: list[Writer], watchers: list[Watcher]
    ) -> None:
        for watcher in watchers:
            page = await store.list(watcher.prefix)
            assert watcher.entries == {entry.key: entry for entry in page.entries}
            if not watcher.counts["lists anew"]:
                below = sum(w.written for w in writers if w.prefix.startswith(watcher.prefix))
                # The last key of each prefix is created and deleted below it.
                lasts = {w.prefix for w in watchers if w.prefix.startswith(watcher.prefix)}
                wanted = below + 2 * len(lasts)
                assert watcher.changes == wanted, f"{watcher.changes} of {wanted}"


def _marks(total: int, count: int, what: str) -> list[tuple[int, str]]:
    return [(number * total // (count + 1), what) for number in range(1, count + 1)]


def run(plan: Plan, size: Size = Size()) -> Outcome:  # noqa: B008
    """Run the campaign."""
    tally = Tally("store-watch", lambda seed, number: WatchCase(seed, number, size))
    started = time.monotonic()
    tally.run(plan)
    figures = {"cases": str(tally.cases), "seed": str(plan.seed)}
    figures |= {name: f"{count:,}" for name, count in tally.counts.items()}
    figures["seconds"] = f"{time.monotonic() - started:.0f}"
    return Outcome(figures, tuple(tally.faults.values()))
