"""Kill a process that writes to the store, again and again: nothing that was answered may be lost.

A case is one folder and some rounds. In each round a process (`soak._store_writes`) opens the
store and writes, and is killed with SIGKILL: while it opens, or after a number of answers and a
moment. Then the store is opened and looked at; in half of the rounds it is a copy of the files, so
that the next process finds them as the killed one left them. The laws:

1. every answered write is there: a key holds the result of its last answered write, or of the one
   write that was begun after that and not answered;
2. every value is one that was written, byte by byte;
3. answered changes are in the history, unless compacted, and the history replayed is the state;
4. revisions of answers are given once, and the store's revision never goes back;
5. the store finds nothing wrong with itself.

SIGKILL shows what the process has handed to the kernel, not what the disk has: that commits are
synced is a matter of SQLite's setting, which a test looks at.

# answer: of the store to the writing process, which reported it
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from moorage.store import Deletion, Entry, KeyChange, Progress, Put, Store
from moorage.store.errors import TooOldError
from moorage.store.sqlite import SqliteStore, open_sqlite
from soak import Outcome, Plan, Tally
from soak._store_writes import number_of, value_of

CASES = 50
ROUNDS = 10
ANSWERS_MAX = 400  # before a kill
MOMENT_S = 0.004
OPENING_S = 0.25  # a kill within that after the start may hit the opening
OPENING_SHARE = 0.15
COPY_SHARE = 0.5
READ_S_MAX = 60.0


class Begun(NamedTuple):
    """A write that was handed to the store: the key's value if it happened."""

    number: int
    value: bytes | None


NOTHING = Begun(0, None)


@dataclass
class Told:
    """The reports of the processes: for each key the last answer, and the writes begun since."""

    answered: dict[str, Begun] = field(default_factory=dict)
    begun: dict[str, Begun] = field(default_factory=dict)
    changes: dict[int, tuple[str, Begun]] = field(default_factory=dict)  # by revision
    revision: int = 0
    answers: int = 0

    def hear(self, line: str) -> None:
        """Take in one line."""
        verb, *words = line.split()
        if verb == "ready":
            self._note_revision(int(words[0]))
        elif verb == "begin":
            key, number = words[0], int(words[1])
            self.begun[key] = Begun(number, value_of(key, number) if words[2] == "put" else None)
        else:
            key, revision = words[0], int(words[2])
            write = self.begun.pop(key)
            assert write.number == int(words[1])
            assert revision not in self.changes, f"revision {revision} was given twice"
            self.changes[revision] = (key, write)
            self.answered[key] = write
            self.answers += 1
            self.revision = max(self.revision, revision)

    def _note_revision(self, revision: int) -> None:
        assert revision >= self.revision, f"revision went back: {self.revision} to {revision}"
        self.revision = revision


@dataclass(frozen=True)
class CrashCase:
    """Some rounds of writing and killing in one folder."""

    seed: int
    number: int
    rounds: int

    def outcomes(self) -> Counter[str]:
        """Return the counts; raise when a law is broken."""
        random = Random(f"{self.seed}/{self.number}")  # noqa: S311
        told = Told()
        counts: Counter[str] = Counter()
        with tempfile.TemporaryDirectory(prefix="store-crash-") as folder:
            for round_ in range(self.rounds):
                self._round(Path(folder), round_, told, random, counts)
        counts["answered writes"] = told.answers
        return counts

    def _round(
        self, folder: Path, round_: int, told: Told, random: Random, counts: Counter[str]
    ) -> None:
        store = folder / "store"
        was_opening = self._write_and_kill(store, round_, told, random)
        counts["kills"] += 1
        counts["of these while it opened"] += was_opening
        counts["writes that were under way"] += len(told.begun)
        if random.random() < COPY_SHARE and store.exists():
            counts["looked at in a copy"] += 1
            copy = folder / "copy"
            shutil.copytree(store, copy)
            asyncio.run(look(copy, told, counts))
            shutil.rmtree(copy)
        else:
            asyncio.run(look(store, told, counts))

    def _write_and_kill(self, store: Path, round_: int, told: Told, random: Random) -> bool:
        """Run the process until it is killed; return whether it was still opening the store."""
        words = [str(store), f"{self.seed}/{self.number}", str(round_)]
        command = [sys.executable, "-m", "soak._store_writes", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
        assert process.stdout is not None
        lines: list[str] = []
        if random.random() < OPENING_SHARE:
            time.sleep(random.random() * OPENING_S)
        else:
            wanted = random.randrange(1, ANSWERS_MAX)
            for line in process.stdout:
                lines.append(line)
                wanted -= line.startswith("done")
                if not wanted:
                    break
            time.sleep(random.random() * MOMENT_S)
        os.kill(process.pid, signal.SIGKILL)
        lines += process.stdout.readlines()
        process.stdout.close()
        status = process.wait()
        assert status == -signal.SIGKILL, f"the process ended by itself: {status}"
        for line in lines:
            told.hear(line)
        return not lines


async def look(folder: Path, told: Told, counts: Counter[str]) -> None:
    """Open the store and check the laws; the clock is stopped, so that no key expires."""
    async with asyncio.timeout(READ_S_MAX), open_sqlite(folder, clock=lambda: 0.0) as store:
        page = await store.list("")
        assert page.revision >= told.revision, f"{page.revision} is before {told.revision}"
        told.revision = page.revision
        _check_entries({entry.key: entry for entry in page.entries}, told, counts)
        await _check_history(store, page.revision, told, counts)
        findings = await store.check()
        assert not findings, findings[0]


def _check_entries(entries: dict[str, Entry], told: Told, counts: Counter[str]) -> None:
    for entry in entries.values():
        assert entry.value == value_of(entry.key, number_of(entry.value)), f"torn: {entry.key}"
    for key in told.answered.keys() | told.begun.keys():
        found = entries.get(key)
        value = None if found is None else found.value
        allowed = [told.answered.get(key, NOTHING), told.begun.get(key, NOTHING)]
        if key not in told.begun:
            allowed.pop()
        assert value in [write.value for write in allowed], f"{key}: an answered write is lost"
        counts["keys compared"] += 1
        if key in told.begun:  # Whether it happened is known now, and may not change any more.
            told.answered[key] = Begun(told.begun.pop(key).number, value)
    known = {key for key in entries if key.startswith("/k/")}
    assert known <= told.answered.keys(), "a key that nobody wrote"


async def _check_history(
    store: SqliteStore, revision: int, told: Told, counts: Counter[str]
) -> None:
    start = await _oldest_kept(store, revision)
    entries = {entry.key: entry for entry in (await store.list("", at=start)).entries}
    changes: dict[int, KeyChange] = {}
    if start < revision:
        watch = await store.watch("", after=start)
        while not changes or max(changes) < revision:
            for event in await watch.batch():
                assert not isinstance(event, Progress)
                assert event.revision not in changes
                changes[event.revision] = event
                replay(entries, event)
    assert list(changes) == sorted(changes)
    assert entries == {entry.key: entry for entry in (await store.list("")).entries}
    for at, (key, write) in told.changes.items():
        if at > start:
            change = changes[at]
            assert change.key == key
            assert (change.entry.value if isinstance(change, Put) else None) == write.value
            counts["answered changes found in the history"] += 1


async def _oldest_kept(store: Store, revision: int) -> int:
    try:
        await store.watch("", after=0)
        return 0
    except TooOldError as fault:
        compacted = fault.compacted
    assert compacted is not None
    assert compacted <= revision
    return compacted


def replay(entries: dict[str, Entry], change: KeyChange) -> None:
    """Carry out a change on entries, or raise that it does not follow from them."""
    match change:
        case Put(entry, previous):
            assert entries.get(entry.key) == previous
            entries[entry.key] = entry
        case Deletion(previous):
            assert entries.pop(previous.key) == previous


def run(plan: Plan, rounds: int = ROUNDS) -> Outcome:
    """Run the campaign."""
    tally = Tally("store-crash", lambda seed, number: CrashCase(seed, number, rounds))
    started = time.monotonic()
    tally.run(plan)
    figures = {"cases": str(tally.cases), "seed": str(plan.seed)}
    figures |= {name: f"{count:,}" for name, count in tally.counts.items()}
    figures["seconds"] = f"{time.monotonic() - started:.0f}"
    return Outcome(figures, tuple(tally.faults.values()))
