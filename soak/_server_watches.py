"""Watchers of a server: their selections, the events they got, and the check of those.

A watcher lists, or asks for initial events, and watches on from there. When the connection breaks
it resumes from the last revision of an event or bookmark; when that is too old it starts again.
The events between two starts are a *stretch*. The log of all writes determines exactly which events
must be in it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Struct

from soak._http import Address, Connection, LostError
from soak._server_writes import Key, Kind, Made

INITIAL_END = "k8s.io/initial-events-end"
GONE = 410
AWAY_CHANCE = 0.002  # for each event, of a watcher that goes away now and then


class Place(Protocol):
    """Where the server is."""

    async def current(self) -> Address:
        """Return it, as soon as there is one."""


class Selection(NamedTuple):
    """The selection of a watcher."""

    kind: Kind
    namespace: str = ""
    shard: int | None = None
    node: str = ""
    name: str = ""

    @property
    def path(self) -> str:
        """The path of the list, with its selectors."""
        query = "?" if self.shard is None else f"?labelSelector=shard%3D{self.shard}&"
        if self.node:
            query += f"fieldSelector=spec.nodeName%3D{self.node}&"
        if self.name:
            query += f"fieldSelector=metadata.name%3D{self.name}&"
        return self.kind.collection(self.namespace) + query

    def means(self, key: Key, made: Made | None) -> bool:
        """Return whether an object is selected."""
        return (
            made is not None
            and self.namespace in ("", key.namespace)
            and self.shard in (None, made.shard)
            and self.node in ("", key.node)
            and self.name in ("", key.name)
        )


class Metadata(Struct):
    """The fields of an object's metadata that a watcher reads."""

    name: str = ""
    namespace: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="0")
    annotations: dict[str, str] | None = None


class Told(Struct):
    """The fields of an object, or of a Status, that a watcher reads."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    code: int = 0


class Event(Struct):
    """An event of a watch."""

    type: str
    object: Told


class Listed(Struct):
    """A list."""

    metadata: Metadata
    items: list[Told]


Seen = tuple[float, str, Key]  # revision, type of the event, and its object


@dataclass
class Stretch:
    """The events of a watcher from one start to the next."""

    start: int
    initial: dict[Key, int]
    events: list[Seen] = field(default_factory=list)
    through: int = 0


class GoneError(Exception):
    """The watcher's revision is too old."""


class Watcher:
    """Keeps a copy of the selected objects, from its events."""

    def __init__(
        self, place: Place, selection: Selection, *, streams: bool, away_s: float, random: Random
    ) -> None:
        self.selection = selection
        self.copy: dict[Key, int] = {}
        self.stretches: list[Stretch] = []
        self.seen = 0
        self.counts: Counter[str] = Counter()
        self._place = place
        self._streams = streams  # asks for initial events, and does not list
        self._away_s = away_s  # how long it goes away at most; 0: it stays
        self._random = random
        self._decode = msgspec.json.Decoder(Event).decode
        self._knows = False

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            connection = None
            try:
                connection = await Connection.open(await self._place.current())
                await self._follow(connection)
                self.counts["watches that the server ended"] += 1
            except LostError:
                self.counts["watches that broke"] += 1
                await asyncio.sleep(0.01)
            except GoneError:
                self.counts["beginnings anew, as it was too old"] += 1
                self._knows = False
            finally:
                if connection is not None:
                    connection.cut()

    async def _follow(self, connection: Connection) -> None:
        """Resume the watch, or start again."""
        query = "watch=true&allowWatchBookmarks=true"
        if self._knows:
            query += f"&resourceVersion={self.seen}"
            if self.stretches[-1].events:
                self.counts["watches resumed"] += 1
        elif self._streams:
            query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        else:
            await self._list(connection)
            query += f"&resourceVersion={self.seen}"
        status, body = await connection.watch(self.selection.path + query)
        if status == GONE:
            raise GoneError
        assert status == 200, f"{self.selection.path}{query}: {status} {body!r}"
        lines = connection.lines()
        initial: dict[Key, int] | None = None if self._knows else {}
        async for batch in lines:
            for line in batch:
                event = self._decode(line)
                if initial is not None:
                    initial = self._take_initial(event, initial)
                else:
                    self._take(event)
            if self._away_s and self._random.random() < AWAY_CHANCE * len(batch):
                self.counts["times away"] += 1
                connection.cut()
                await asyncio.sleep(self._random.random() * self._away_s)
                return

    async def _list(self, connection: Connection) -> None:
        reply = await connection.ask("GET", self.selection.path)
        assert reply.status == 200, f"{self.selection.path}: {reply}"
        listed = msgspec.json.decode(reply.body, type=Listed)
        copy = {self._key(item.metadata): _revision(item.metadata) for item in listed.items}
        self._begin(_revision(listed.metadata), copy)

    def _begin(self, revision: int, copy: dict[Key, int]) -> None:
        assert revision >= self.seen, f"began at {revision}, after {self.seen}"
        self.seen = revision
        self.copy = copy
        self.stretches.append(Stretch(revision, dict(copy), through=revision))
        self._knows = True

    def _take_initial(self, event: Event, initial: dict[Key, int]) -> dict[Key, int] | None:
        """Take one of the initial events; return what there is so far, None at the end."""
        metadata = event.object.metadata
        if event.type == "BOOKMARK":
            assert (metadata.annotations or {}).get(INITIAL_END) == "true", event
            self._begin(_revision(metadata), initial)
            return None
        assert event.type == "ADDED", event
        key = self._key(metadata)
        assert key not in initial, f"twice: {event}"
        initial[key] = _revision(metadata)
        return initial

    def _take(self, event: Event) -> None:
        """Take an event; raises if it cannot follow what came before."""
        metadata = event.object.metadata
        if event.type == "ERROR":
            assert event.object.code == GONE, event
            raise GoneError
        revision, stretch = _revision(metadata), self.stretches[-1]
        if event.type == "BOOKMARK":
            assert revision >= self.seen, f"bookmark {revision} after {self.seen}"
            self.counts["bookmarks"] += 1
        else:
            assert revision > self.seen, f"{event.type} {revision} after {self.seen}"
            key = self._key(metadata)
            assert (event.type == "ADDED") == (key not in self.copy), f"{event}: {self.copy}"
            stretch.events.append((revision, event.type, key))
            if event.type == "DELETED":
                del self.copy[key]
            else:
                self.copy[key] = revision
        self.seen = stretch.through = revision

    def _key(self, metadata: Metadata) -> Key:
        return Key(self.selection.kind, metadata.namespace, metadata.name)


def _revision(metadata: Metadata) -> int:
    return int(metadata.resource_version)


# --- the expected events --------------------------------------------------------------------------


class Happened(NamedTuple):
    """A write, with its revision; one between two that nobody was there to see is a fraction."""

    revision: float
    key: Key
    before: Made | None
    after: Made | None


def check_watcher(watcher: Watcher, history: Sequence[Happened]) -> int:
    """Raise unless a watcher got exactly the right events; return their number.

    History is all that happened to objects of the watcher's kind, in order.
    """
    selection, state = watcher.selection, dict[Key, float]()
    wanted: list[Seen] = []
    place = 0
    for stretch in watcher.stretches:
        place = _replay(history, place, stretch.start, selection, state, None)
        assert stretch.initial == state, _difference(selection, stretch.initial, state)
        wanted.clear()
        place = _replay(history, place, stretch.through, selection, state, wanted)
        if stretch.events != wanted:
            lost = [event for event in wanted if event not in set(stretch.events)]
            other = [event for event in stretch.events if event not in set(wanted)]
            raise AssertionError(f"{selection}: lost {lost[:3]}, not wanted {other[:3]}")
    return sum(len(stretch.events) for stretch in watcher.stretches)


def _replay(
    history: Sequence[Happened],
    place: int,
    through: int,
    selection: Selection,
    state: dict[Key, float],
    events: list[Seen] | None,
) -> int:
    """Bring the state to a revision, note the events on the way, and return the next place."""
    while place < len(history) and history[place].revision <= through:
        revision, key, before, after = history[place]
        was, is_ = selection.means(key, before), selection.means(key, after)
        if is_:
            state[key] = revision
        elif was:
            del state[key]
        if events is not None and (was or is_):
            type_ = "DELETED" if not is_ else "MODIFIED" if was else "ADDED"
            events.append((revision, type_, key))
        place += 1
    return place


def _difference(
    selection: Selection, found: Mapping[Key, float], wanted: Mapping[Key, float]
) -> str:
    different = dict(found.items() ^ wanted.items())
    return f"{selection}: began with {len(found)}, different from {len(wanted)}: {different}"
