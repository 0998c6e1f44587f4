"""Backends as the contract suite takes them: open, open again, let time pass."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from moorage.store import Event, KeyChange, Progress, Store, Watch
from moorage.store.etcd import open_etcd
from moorage.store.memory import MemoryStore
from moorage.store.sqlite import SqliteStore, open_sqlite
from tests.store.etcdserver import EtcdServer

_ROOTS = itertools.count()


class Harness(Protocol):
    """A place where a store is, and stays when it is closed."""

    def open(self) -> AbstractAsyncContextManager[Store]: ...

    async def pass_time(self, store: Store, seconds: int) -> None:
        """Have keys expire whose time to live is over by then; some time later is enough."""


class SqliteHarness:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now_s = 1_700_000_000.0

    def open(self) -> AbstractAsyncContextManager[SqliteStore]:
        return open_sqlite(self.folder, clock=lambda: self.now_s)

    async def pass_time(self, store: Store, seconds: int) -> None:
        assert isinstance(store, SqliteStore)
        self.now_s += seconds
        await store.expire()


class MemoryHarness:
    """A store that stays as long as the harness: closing it ends its watches only."""

    def __init__(self) -> None:
        self.now_s = 1_700_000_000.0
        self._store: MemoryStore | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Store]:
        self._store = MemoryStore(lambda: self.now_s, of=self._store)
        try:
            yield self._store
        finally:
            await self._store.close()

    async def pass_time(self, store: Store, seconds: int) -> None:
        assert isinstance(store, MemoryStore)
        self.now_s += seconds
        await store.expire()


class EtcdHarness:
    """A root of its own in an etcd that others use as well."""

    def __init__(self, server: EtcdServer) -> None:
        self.server = server
        self.root = f"/test-{next(_ROOTS)}/"

    def open(self) -> AbstractAsyncContextManager[Store]:
        return open_etcd(self.server.target, root=self.root)

    async def pass_time(self, store: Store, seconds: int) -> None:
        """Do nothing: time passes by itself, and whoever waits for a change waits long enough."""


async def next_events(watch: Watch, count: int) -> list[Event]:
    """Return the next events, so many."""
    return [await anext(watch) for _ in range(count)]


async def changes_until(store: Store, watch: Watch, revision: int) -> list[KeyChange]:
    """Return the changes up to a revision; asks for progress to know that there are no more."""
    found: list[KeyChange] = []
    while True:
        watch.request_progress()
        for event in await watch.batch():
            if not isinstance(event, Progress):
                found.append(event)
            elif event.revision >= revision:
                return found
        await store.revision()  # The backend needs its turn, too.
