"""Random histories: what a store answers is what a few lines of Python would.

The model keeps the state at every revision and the list of changes; laws follow from it:
revisions increase, a list is the state at its revision, a watch from any kept revision brings the
changes since, replayed over the list of then they give the list of now, and nothing of it depends
on closing, opening, compacting or time.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from moorage.store import Deletion, Entry, KeyChange, Put, Store
from moorage.store.errors import (
    ConflictError,
    KeyExistsError,
    KeyMissingError,
    TooOldError,
)
from tests.store.etcdserver import EtcdServer
from tests.store.harness import EtcdHarness, Harness, MemoryHarness, SqliteHarness, changes_until

R = TypeVar("R")

KEYS = st.sampled_from(["/a", "/a/1", "/a/2", "/b/1", "/b/2", "/ä"])
PREFIXES = st.sampled_from(["", "/", "/a", "/a/", "/b/", "/c"])
VALUES = st.binary(max_size=20)
STEPS_SQLITE = settings(
    max_examples=40, stateful_step_count=40, suppress_health_check=[*HealthCheck]
)
STEPS_ETCD = settings(STEPS_SQLITE, max_examples=10, stateful_step_count=30)


class Model:
    """What a store holds, and held."""

    def __init__(self, revision: int) -> None:
        self.start = self.compacted = revision
        self.entries: dict[str, Entry] = {}
        self.changes: list[KeyChange] = []

    @property
    def revision(self) -> int:
        return self.changes[-1].revision if self.changes else self.start

    def note(self, change: KeyChange) -> None:
        assert change.revision > self.revision
        self.changes.append(change)
        apply(self.entries, change)

    def at(self, revision: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for change in self.changes:
            if change.revision <= revision:
                apply(entries, change)
        return entries

    def since(self, revision: int, prefix: str) -> list[KeyChange]:
        return [c for c in self.changes if c.revision > revision and c.key.startswith(prefix)]


def apply(entries: dict[str, Entry], change: KeyChange) -> None:
    match change:
        case Put(entry, previous):
            assert entries.get(entry.key) == previous
            entries[entry.key] = entry
        case Deletion(previous):
            assert entries.pop(previous.key) == previous


def below(entries: dict[str, Entry], prefix: str) -> list[Entry]:
    return [entries[key] for key in sorted(entries) if key.startswith(prefix)]


class Histories(RuleBasedStateMachine):
    """Does to a store and to the model the same."""

    harness: Harness

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        async def bounded() -> R:
            async with asyncio.timeout(30):
                return await work

        return self.runner.run(bounded())

    def make_harness(self) -> Harness:
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.harness = self.make_harness()
        self.store: Store = self.run(self.stack.enter_async_context(self.harness.open()))
        self.model = Model(self.run(self.store.revision()))

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.runner.close()

    # --- writes

    @rule(key=KEYS, value=VALUES)
    def create(self, key: str, value: bytes) -> None:
        before = self.model.entries.get(key)
        try:
            entry = self.run(self.store.create(key, value))
        except KeyExistsError as refused:
            assert refused.current == before  # noqa: PT017
        else:
            assert before is None
            assert entry == Entry(key, value, entry.revision, entry.revision)
            self.model.note(Put(entry, None))

    @rule(key=KEYS, value=VALUES, off=st.sampled_from([0, 0, 0, -1, 1]))
    def update(self, key: str, value: bytes, off: int) -> None:
        before = self.model.entries.get(key)
        expected = (before.revision if before else 1) + off
        try:
            entry = self.run(self.store.update(key, value, expected=expected))
        except KeyMissingError:
            assert before is None
        except ConflictError as refused:
            assert refused.current == before  # noqa: PT017
            assert off != 0
        else:
            assert before is not None
            assert off == 0
            assert entry == Entry(key, value, before.created, entry.revision)
            self.model.note(Put(entry, before))

    @rule(key=KEYS, off=st.sampled_from([0, 0, 0, -1, 1]))
    def delete(self, key: str, off: int) -> None:
        before = self.model.entries.get(key)
        expected = (before.revision if before else 1) + off
        try:
            deletion = self.run(self.store.delete(key, expected=expected))
        except KeyMissingError:
            assert before is None
        except ConflictError as refused:
            assert refused.current == before  # noqa: PT017
            assert off != 0
        else:
            assert off == 0
            assert deletion.previous == before
            self.model.note(deletion)

    # --- reads

    def revision_from(self, share: float) -> int:
        """Return a revision that may be compacted or not."""
        return self.model.start + round(share * (self.model.revision - self.model.start))

    @rule(prefix=PREFIXES, share=st.floats(0, 1), limit=st.integers(1, 4))
    def list_then(self, prefix: str, share: float, limit: int) -> None:
        at = self.revision_from(share)
        wanted = below(self.model.at(at), prefix)
        found: list[Entry] = []
        try:
            while True:
                after = found[-1].key if found else ""
                page = self.run(self.store.list(prefix, limit=limit, after=after, at=at))
                found += page.entries
                assert page.revision == at
                assert page.remaining == len(wanted) - len(found)
                if not page.remaining:
                    break
        except TooOldError:
            assert at < self.model.compacted
            return
        assert at >= self.model.compacted
        assert found == wanted

    @rule(prefix=PREFIXES, share=st.floats(0, 1))
    def replay(self, prefix: str, share: float) -> None:
        after = self.revision_from(share)
        try:
            watch = self.run(self.store.watch(prefix, after=after))
        except TooOldError:
            assert after < self.model.compacted
            return
        assert after >= self.model.compacted
        changes = self.run(changes_until(self.store, watch, self.model.revision))
        watch.close()
        assert changes == self.model.since(after, prefix)
        page = self.run(self.store.list(prefix, at=after))
        entries = {entry.key: entry for entry in page.entries}
        for change in changes:
            apply(entries, change)
        assert below(entries, "") == self.run(self.store.list(prefix)).entries

    @invariant()
    def entries_are_those_of_the_model(self) -> None:
        if hasattr(self, "model"):
            page = self.run(self.store.list(""))
            assert page.entries == below(self.model.entries, "")
            assert page.revision >= self.model.revision

    # --- what must not be seen

    @precondition(lambda self: self.model.changes)
    @rule(share=st.floats(0, 1))
    def compact(self, share: float) -> None:
        revision = self.revision_from(share)
        self.run(self.store.compact(revision))
        self.model.compacted = max(self.model.compacted, revision)

    @rule()
    def reopen(self) -> None:
        self.run(self.stack.aclose())
        self.stack = AsyncExitStack()
        self.store = self.run(self.stack.enter_async_context(self.harness.open()))


def test_histories_on_sqlite() -> None:
    class SqliteHistories(Histories):
        def make_harness(self) -> Harness:
            self.folder = tempfile.TemporaryDirectory()
            return SqliteHarness(Path(self.folder.name))

        def teardown(self) -> None:
            super().teardown()
            self.folder.cleanup()

    run_state_machine_as_test(SqliteHistories, settings=STEPS_SQLITE)


def test_histories_in_memory() -> None:
    class MemoryHistories(Histories):
        def make_harness(self) -> Harness:
            return MemoryHarness()

    run_state_machine_as_test(MemoryHistories, settings=STEPS_SQLITE)


def test_histories_on_etcd(etcd: EtcdServer) -> None:
    class EtcdHistories(Histories):
        def make_harness(self) -> Harness:
            return EtcdHarness(etcd)

    run_state_machine_as_test(EtcdHistories, settings=STEPS_ETCD)
