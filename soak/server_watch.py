"""Watch an API server that is written to, compacted and killed: no event missed, none twice.

A case is one folder, a real `moor server` over TLS, 16 writers and 200 watchers of different kinds,
namespaces, labels, nodes and names; some watchers go away now and then, some ask for initial events
instead of a list. The server forgets changes older than a few seconds and is killed with SIGKILL
several times; each time it is restarted. The laws:

1. the initial objects and the events of a watcher are exactly those that the writes make: each
   once, in the order of revisions, ADDED, MODIFIED or DELETED as its selection says;
2. in the end every watcher knows the same objects as a list of the server;
3. the server never fails: no answer but the expected one, no traceback in its log.

The answer to a deletion does not have its revision; it is taken from the watchers, who must agree.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from soak import Outcome, Plan, Tally
from soak._http import Address, Connection, LostError
from soak._server_watches import Happened, Selection, Watcher, check_watcher
from soak._server_writes import (
    KINDS,
    NAMES,
    NAMESPACES,
    NODES,
    SHARDS,
    Key,
    Kind,
    Step,
    Write,
    Writer,
    prepare,
)
from soak._servers import Server

CASES = 1
SECONDS_MAX = 3600
CONVERGED_S_MAX = 120


class Size(NamedTuple):
    """How large a case is."""

    watchers: int = 200
    writers: int = 16
    writes: int = 100_000
    kills: int = 10
    kept_s: float = 4.0  # how far back watches can go


@dataclass
class Place:
    """The server's address; the server is killed and restarted now and then."""

    server: Server
    address: Address | None = None
    is_there: asyncio.Event = field(default_factory=asyncio.Event)

    async def current(self) -> Address:
        """Return where it listens, as soon as it does."""
        await self.is_there.wait()
        assert self.address is not None
        return self.address

    async def restart(self) -> None:
        """Kill the server, if there is one, and start it."""
        self.is_there.clear()
        self.server.kill()
        self.address = await self.server.start()
        self.is_there.set()


@dataclass(frozen=True)
class WatchCase:
    """One folder, written to and watched."""

    seed: int
    number: int
    size: Size

    def outcomes(self) -> Counter[str]:
        """Return the counts; raise when a law is broken."""
        with tempfile.TemporaryDirectory(prefix="server-watch-") as folder:
            interval = f"{round(self.size.kept_s * 1e3)}ms"
            server = Server(Path(folder) / "data", "--etcd-compaction-interval", interval)
            try:
                return asyncio.run(self._run(Place(server)))
            finally:
                server.kill()

    async def _run(self, place: Place) -> Counter[str]:
        async with asyncio.timeout(SECONDS_MAX):
            await place.restart()
            connection = await Connection.open(await place.current())
            await prepare(connection)
            connection.close()
            writers = [Writer(n, self._random(f"writer {n}")) for n in range(self.size.writers)]
            watchers = [self._watcher(place, n) for n in range(self.size.watchers)]
            async with asyncio.TaskGroup() as group:
                watching = [group.create_task(watcher.run()) for watcher in watchers]
                await self._write(place, writers)
                await _wait_until_seen(writers, watchers)
                for task in watching:
                    task.cancel()
            log = place.server.faults()
            assert not log, log
            await _compare(await place.current(), watchers)
        return self._counted(writers, watchers)

    def _random(self, what: str) -> Random:
        return Random(f"{self.seed}/{self.number}/{what}")  # noqa: S311

    def _watcher(self, place: Place, number: int) -> Watcher:
        random = self._random(f"watcher {number}")
        # One of each kind is about everything and stays, so that each deletion has a witness.
        is_plain = number < len(KINDS)
        kind = KINDS[number % len(KINDS)]
        selection = Selection(kind) if is_plain else _selection(kind, random, self.size.writers)
        away_s = 0.0 if is_plain or number % 8 else 3 * self.size.kept_s
        streams = not is_plain and number % 5 == 0
        return Watcher(place, selection, streams=streams, away_s=away_s, random=random)

    async def _write(self, place: Place, writers: list[Writer]) -> None:
        """Have everything written, with kills at even distances; then leave all objects there."""
        each = self.size.writes // self.size.writers
        async with asyncio.TaskGroup() as group:
            killing = group.create_task(self._kill(place, writers))
            tasks = [group.create_task(_write(writer, place, each)) for writer in writers]
            await asyncio.gather(*tasks)
            await killing
        async with asyncio.TaskGroup() as group:
            for writer in writers:
                group.create_task(_write_steps(writer, place, list(writer.last())))

    async def _kill(self, place: Place, writers: list[Writer]) -> None:
        for number in range(1, self.size.kills + 1):
            mark = number * self.size.writes // (self.size.kills + 1)
            while sum(len(writer.log) for writer in writers) < mark:
                await asyncio.sleep(0.002)
            await place.restart()

    def _counted(self, writers: list[Writer], watchers: list[Watcher]) -> Counter[str]:
        """Check the events of every watcher, and count them."""
        counts = sum((watcher.counts for watcher in watchers), Counter[str]())
        writes = [write for writer in writers for write in writer.log]
        for kind in KINDS:
            about = [watcher for watcher in watchers if watcher.selection.kind is kind]
            history = history_of(kind, writes, about, counts)
            for watcher in about:
                counts["events told"] += check_watcher(watcher, history)
                counts["stretches compared with what was written"] += len(watcher.stretches)
        counts["writes"] = len(writes)
        counts["watchers"] = len(watchers)
        counts["writers"] = len(writers)
        counts["kills"] = self.size.kills
        return counts


def _selection(kind: Kind, random: Random, writers: int) -> Selection:
    """Return the selection of a watcher; mostly small, so that events stay bounded in number."""
    namespace = f"team-{random.randrange(NAMESPACES)}" if kind.namespaced else ""
    writer = random.randrange(writers)
    name = f"w{writer}-{random.randrange(NAMES)}"
    choices = [
        Selection(kind, namespace=namespace, shard=random.randrange(SHARDS)),
        Selection(kind, shard=random.randrange(SHARDS)),
        Selection(kind, namespace=f"team-{writer % NAMESPACES}" if namespace else "", name=name),
    ]
    if kind.has_node:
        choices.append(Selection(kind, node=f"node-{random.randrange(NODES)}"))
    elif random.random() < 0.3:
        choices.append(Selection(kind, namespace=namespace))
    return random.choice(choices)


# --- writing --------------------------------------------------------------------------------------


async def _write(writer: Writer, place: Place, writes: int) -> None:
    """Write a number of times; look up writes in flight when the server is back."""
    connection: Connection | None = None
    while len(writer.log) < writes:
        try:
            connection = connection or await Connection.open(await place.current())
            if writer.under_way is not None:
                await writer.settle(connection)
            else:
                await writer.write(connection)
        except LostError:
            connection = None
            await asyncio.sleep(0.01)
    if connection is not None:
        connection.close()


async def _write_steps(writer: Writer, place: Place, steps: list[Step]) -> None:
    connection = await Connection.open(await place.current())
    for step in steps:
        await writer.write(connection, step)
    connection.close()


# --- what must be true in the end -----------------------------------------------------------------


async def _wait_until_seen(writers: list[Writer], watchers: list[Watcher]) -> None:
    """Wait until each watcher has seen the newest write that it selects."""
    async with asyncio.timeout(CONVERGED_S_MAX):
        for watcher in watchers:
            about = watcher.selection
            newest = max(
                (
                    write.revision or 0
                    for writer in writers
                    for write in writer.log
                    if write.key.kind is about.kind
                    and (
                        about.means(write.key, write.before) or about.means(write.key, write.after)
                    )
                ),
                default=0,
            )
            while watcher.seen < newest:
                await asyncio.sleep(0.01)


async def _compare(address: Address, watchers: list[Watcher]) -> None:
    """Raise unless every watcher's state equals a list."""
    connection = await Connection.open(address)
    for watcher in watchers:
        kind = watcher.selection.kind
        reply = await connection.ask("GET", watcher.selection.path)
        listed = {
            Key(kind, item["metadata"].get("namespace", ""), item["metadata"]["name"]): int(
                item["metadata"]["resourceVersion"]
            )
            for item in reply.json["items"]
        }
        assert watcher.copy == listed, f"{watcher.selection}: {watcher.copy} is not {listed}"
    connection.close()


def history_of(
    kind: Kind, writes: Iterable[Write], watchers: list[Watcher], counts: Counter[str]
) -> list[Happened]:
    """Return what happened to objects of a kind, in order; watchers know when deletions were."""
    told: dict[Key, set[float]] = defaultdict(set)
    for watcher in watchers:
        for stretch in watcher.stretches:
            for revision, type_, key in stretch.events:
                if type_ == "DELETED":
                    told[key].add(revision)
    by_key: dict[Key, list[Write]] = defaultdict(list)
    for write in writes:
        if write.key.kind is kind:
            by_key[write.key].append(write)
    history: list[Happened] = []
    for key, log in by_key.items():
        history += _dated(log, sorted(told[key]), watchers, counts)
    return sorted(history)


def _dated(
    log: list[Write], told: list[float], watchers: list[Watcher], counts: Counter[str]
) -> Iterable[Happened]:
    """Yield the writes of one object with their revisions."""
    last: float = 0
    for number, write in enumerate(log):
        revision: float | None = write.revision
        if revision is None:
            following = log[number + 1].revision  # A creation, whose answer has its revision.
            assert following is not None, f"{write} is followed by {log[number + 1]}"
            between = [r for r in told if last < r < following]
            assert len(between) <= 1, f"{write} after {last}: watchers say {between}"
            revision = between[0] if between else _unseen(write, last, following, watchers)
            counts["deletions that every watcher was away for"] += not between
        assert revision > last, f"{write} after {last}"
        last = revision
        yield Happened(revision, *write[1:])


def _unseen(write: Write, after: float, before: int, watchers: list[Watcher]) -> float:
    """Return the revision of a deletion without an event, from watchers that started meanwhile.

    Whoever was there all the time is then found to have missed it.
    """
    for watcher in watchers:
        if watcher.selection.means(write.key, write.before):
            for stretch in watcher.stretches:
                if after < stretch.start < before and write.key not in stretch.initial:
                    before = stretch.start
    return before - 0.5


def run(plan: Plan, size: Size = Size()) -> Outcome:  # noqa: B008
    """Run the campaign."""
    tally = Tally("server-watch", lambda seed, number: WatchCase(seed, number, size))
    started = time.monotonic()
    tally.run(plan)
    figures = {"cases": str(tally.cases), "seed": str(plan.seed)}
    figures |= {name: f"{count:,}" for name, count in sorted(tally.counts.items())}
    figures["seconds"] = f"{time.monotonic() - started:.0f}"
    return Outcome(figures, tuple(tally.faults.values()))
