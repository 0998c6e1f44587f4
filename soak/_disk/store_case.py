"""A store on a disk whose writes and syncs fail, and that loses power.

Writers create, update and delete their keys while the weather of the disk changes: calm, or a time
in which writes, truncations or syncs fail, some or all. A round ends with the store closed, or with
a loss of power in the middle of an operation of the disk. The laws of `soak.store_crash` hold, and:

1. a write that was refused has not happened, and never will have;
2. of a write whose outcome was unknown, it is known once the store works again, and stays so;
3. when the weather is calm, the store works again by itself;
4. a watch that was open all the time saw exactly what happened.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from moorage.store import Entry, Progress
from moorage.store.errors import RefusedError, StoreError, UnavailableError
from moorage.store.sqlite import SqliteStore, open_sqlite
from moorage.store.sqlite import writer as writer_module
from soak._disk import faulty_sqlite
from soak._disk.faulty_sqlite import FaultyDisk, Operation
from soak._store_writes import value_of
from soak.store_crash import NOTHING, Begun, Told, look, replay

WRITERS = 6
KEYS = 4  # of each writer
WRITES = 60  # of each writer, in a round
POWER_LOSS_SHARE = 0.6
OPERATIONS_MAX = 1500  # before the power is lost
AFTER_FAULT_SHARE = 0.05  # of faults after which it is lost soon
CALM_S_MAX = 30.0
PAUSE_S = 0.002

WRITE_FAULTS = (faulty_sqlite.FULL, faulty_sqlite.IOERR_WRITE, faulty_sqlite.SHORT)


class PowerLossError(Exception):
    """The power was lost."""


class Weather:
    """Which operations of a disk fail: none, some or all, for a while."""

    def __init__(self, random: Random) -> None:
        self.is_over = False
        self._random = random
        self._left = random.randrange(200)  # operations until the weather changes
        self._share = 0.0  # of operations that fail
        self._verbs: tuple[str, ...] = ()
        self._write_fault = faulty_sqlite.FULL

    def fault(self, operation: Operation) -> int:
        """Return how an operation fails, or that it does not."""
        if self.is_over:
            return faulty_sqlite.OK
        random = self._random
        self._left -= 1
        if self._left < 0:
            was_calm = not self._share
            self._left = random.randrange(1, 60) if was_calm else random.randrange(20, 400)
            self._share = random.choice((0.05, 0.3, 1.0)) if was_calm else 0.0
            self._verbs = random.choice((("write",), ("sync",), ("write", "truncate", "sync")))
            self._write_fault = random.choice(WRITE_FAULTS)
        if operation.verb not in self._verbs or random.random() >= self._share:
            return faulty_sqlite.OK
        by_verb = {"write": self._write_fault, "truncate": faulty_sqlite.IOERR_TRUNCATE}
        return by_verb.get(operation.verb, faulty_sqlite.IOERR_FSYNC)


@dataclass(frozen=True)
class StoreCase:
    """Some rounds on one disk."""

    seed: int
    number: int
    rounds: int

    def outcomes(self) -> Counter[str]:
        """Return the counts; raise when a law is broken."""
        random = Random(f"{self.seed}/{self.number}")  # noqa: S311
        counts: Counter[str] = Counter()
        with tempfile.TemporaryDirectory(prefix="disk-store-") as folder, _hurried():
            told, store = Told(), Path(folder) / "store"
            asyncio.run(look(store, told, counts))
            for number in range(self.rounds):
                told, store = Round(store, told, random, number).run(counts)
                asyncio.run(look(store, told, counts))
        return counts


class Round:
    """One store, from its opening to its end."""

    def __init__(self, folder: Path, told: Told, random: Random, number: int) -> None:
        self._folder, self._image = folder, folder.with_name(f"image-{number}")
        self._told, self._told_then = told, told
        self._random, self._numbers = random, itertools.count(number * 1_000_000)
        self._weather, self._disk = Weather(random), FaultyDisk(random)
        self._lock = threading.Lock()
        loses_power = random.random() < POWER_LOSS_SHARE
        self._operations_left = random.randrange(OPERATIONS_MAX) if loses_power else -1
        self._is_lost = threading.Event()

    def run(self, counts: Counter[str]) -> tuple[Told, Path]:
        """Write until the end; return what is known, and the folder that is left."""
        with self._disk.installed():
            self._disk.fault = self._fault
            with suppress(PowerLossError):
                asyncio.run(self._work(counts))
        counts["faults of the disk"] += self._disk.faults
        if not self._is_lost.is_set():
            counts["rounds that ended in order"] += 1
            return self._told, self._folder
        counts["losses of power"] += 1
        return self._told_then, self._image

    def _fault(self, operation: Operation) -> int:
        """Called by SQLite, in the thread of the store that writes."""
        if self._operations_left > 0:
            self._operations_left -= 1
            if not self._operations_left:
                with self._lock:
                    self._disk.write_image(self._image)
                    self._told_then = copy.deepcopy(self._told)
                self._is_lost.set()
        code = self._weather.fault(operation)
        if code and self._operations_left > 0 and self._random.random() < AFTER_FAULT_SHARE:
            self._operations_left = self._random.randrange(1, 8)
        return code

    async def _work(self, counts: Counter[str]) -> None:
        async with open_sqlite(self._folder, clock=lambda: 0.0) as store:
            self._hear("ready", await store.revision())
            page = await store.list("")
            following = asyncio.create_task(follow(store, list(page.entries), page.revision))
            try:
                async with asyncio.TaskGroup() as tasks:
                    for writer in range(WRITERS):
                        tasks.create_task(self._write_keys(store, writer, counts))
                    tasks.create_task(self._compact(store, counts))
            except* PowerLossError:
                pass
            self._weather.is_over = True
            if self._is_lost.is_set():
                following.cancel()
                raise PowerLossError
            await self._until_calm(store)
            number = next(self._numbers)
            await store.create(f"/last/{number}", value_of(f"/last/{number}", number))
            seen = await asyncio.wait_for(following, CALM_S_MAX)
            assert seen == list((await store.list("")).entries), "a watch missed something"

    async def _write_keys(self, store: SqliteStore, writer: int, counts: Counter[str]) -> None:
        keys = [f"/k/{writer}/{n}" for n in range(KEYS)]
        for _ in range(WRITES):
            if self._is_lost.is_set():
                raise PowerLossError
            await self._write(store, self._random.choice(keys), counts)

    async def _write(self, store: SqliteStore, key: str, counts: Counter[str]) -> None:
        entry, number = await _read(store, key), next(self._numbers)
        verb = "delete" if entry is not None and self._random.random() < 0.2 else "put"
        self._hear("begin", key, number, verb)
        try:
            revision = await _carry_out(store, key, verb, value_of(key, number), entry)
        except RefusedError:
            counts["writes refused"] += 1
            with self._lock:
                del self._told.begun[key]
            await asyncio.sleep(PAUSE_S)
        except UnavailableError:
            counts["writes whose outcome was unknown"] += 1
            await self._until_calm(store)
            counts["of these, that happened"] += self._settle(key, await _read(store, key))
        else:
            counts["answered writes"] += 1
            self._hear("done", key, number, revision)

    def _settle(self, key: str, found: Entry | None) -> bool:
        """Note whether a write happened; from now on that may not change."""
        with self._lock:
            begun, before = self._told.begun.pop(key), self._told.answered.get(key, NOTHING)
            value = None if found is None else found.value
            assert value in (begun.value, before.value), f"{key}: neither before nor after"
            self._told.answered[key] = Begun(begun.number, value)
        return value == begun.value

    async def _until_calm(self, store: SqliteStore) -> None:
        async with asyncio.timeout(CALM_S_MAX):
            while await store.trouble():
                if self._is_lost.is_set() and not self._weather.is_over:
                    raise PowerLossError
                await asyncio.sleep(PAUSE_S)

    async def _compact(self, store: SqliteStore, counts: Counter[str]) -> None:
        for _ in range(3):
            await asyncio.sleep(PAUSE_S * 50)
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(CALM_S_MAX):
                    await store.compact(max(await store.revision() - 100, 0))
                    counts["compactions"] += 1

    def _hear(self, *words: object) -> None:
        with self._lock:
            self._told.hear(" ".join(map(str, words)))


async def follow(store: SqliteStore, entries: list[Entry], revision: int) -> list[Entry]:
    """Return the entries after all changes up to the one whose key begins with `/last/`."""
    state = {entry.key: entry for entry in entries}
    watch = await store.watch("", after=revision)
    while True:
        for event in await watch.batch():
            assert not isinstance(event, Progress)
            assert event.revision > revision, "a change came twice"
            revision = event.revision
            replay(state, event)
            if event.key.startswith("/last/"):
                return [state[key] for key in sorted(state)]


async def _carry_out(
    store: SqliteStore, key: str, verb: str, value: bytes, entry: Entry | None
) -> int:
    if entry is None:
        return (await store.create(key, value)).revision
    if verb == "delete":
        return (await store.delete(key, expected=entry.revision)).revision
    return (await store.update(key, value, expected=entry.revision)).revision


async def _read(store: SqliteStore, key: str) -> Entry | None:
    """Return an entry; reads go on whatever the disk does with writes."""
    return await store.get(key)


@contextmanager
def _hurried() -> Iterator[None]:
    """Have stores look more often whether a disk works again."""
    before, writer_module.PAUSE_S_TROUBLE = writer_module.PAUSE_S_TROUBLE, PAUSE_S
    try:
        yield
    finally:
        writer_module.PAUSE_S_TROUBLE = before
