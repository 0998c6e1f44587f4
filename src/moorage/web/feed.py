"""The objects of a source, and the followers of their changes.

Files are published once, a cluster whenever it changes. Each follower collects the changes that it
has not taken yet; several changes of one object count as one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from moorage.api.timestamp import Timestamp
from moorage.insight.history import Change, History
from moorage.insight.plan.planner import Plan
from moorage.insight.snapshot.snapshot import FIELDS, key_of
from moorage.insight.snapshot.unread import NOTHING_UNREAD
from moorage.validation.strategy import Context
from moorage.web.owner_rows import PodKey
from moorage.web.pending import Cause

ObjectKey = tuple[str, str, str]
EventReader = Callable[[str, str, str], Awaitable[Sequence[Any]]]  # kind, namespace, name
REMEMBERED_MAX: Final = 100_000  # in the changes that a live history keeps
CHANGES_MAX: Final = 20_000


class SourceFacts(NamedTuple):
    """What the session says about the source."""

    title: str
    source: str  # cluster, files, snapshot, recording, kubeconfig
    is_live: bool = False


class Feed:
    """The objects of a source."""

    def __init__(
        self,
        facts: SourceFacts,
        context: Context,
        *,
        now: Callable[[], Timestamp] | None = None,
        history: History | None = None,
        plan: Plan | None = None,
        reads_past: bool = False,
    ) -> None:
        """Take a plan that was made of the objects already, if they do not change.

        With `reads_past`, somebody calls `begin_before` and sets `has_past`.
        """
        self.facts = facts
        self._context = context
        self._now = now
        self.history = history
        self.plan = plan
        self.unread = NOTHING_UNREAD if plan is None else plan.before.unread
        self.objects: dict[ObjectKey, Any] = {}
        self.revision = 0
        self.time = context.now
        self.causes: Mapping[PodKey, Cause] = {}
        self.followers: set[Follower] = set()
        self._remembered = 0
        self.read_events: EventReader | None = None
        self.is_ready = asyncio.Event()
        self.wanted = asyncio.Event()  # somebody looks
        self._reads_past = reads_past
        self.wants_past = asyncio.Event()  # somebody asks for it
        self.has_past = asyncio.Event()  # the history begins where it can
        if not reads_past:
            self.has_past.set()

    @property
    def context(self) -> Context:
        """The gates and the time for questions."""
        return self._context if self._now is None else self._context._replace(now=self._now())

    def forget(self) -> None:
        """Forget all objects until there are viewers again."""
        self.is_ready.clear()
        self.wanted.clear()
        if self._reads_past:
            self.wants_past.clear()
            self.has_past.clear()
        self.objects.clear()
        self.causes = {}
        if self.history is not None:
            self.history, self._remembered = History(), 0

    async def events(self, kind: str, namespace: str, name: str) -> Sequence[Any]:
        """Return the events about an object, if the source has any."""
        return () if self.read_events is None else await self.read_events(kind, namespace, name)

    def publish(
        self,
        written: Iterable[Any],
        removed: Iterable[ObjectKey] = (),
        *,
        revision: int,
        time: Timestamp,
    ) -> None:
        """Apply changes, and pass them to all followers."""
        changed: dict[ObjectKey, Any] = {}
        for key in removed:
            if self.objects.pop(key, None) is not None:
                changed[key] = None
        for value in written:
            if type(value) in FIELDS:
                key = key_of(value)
                self.objects[key] = changed[key] = value
        self.revision, self.time = max(self.revision, revision), time
        if self.facts.is_live and self.history is not None and changed:
            self._remember(changed)
        self.is_ready.set()
        for follower in self.followers:
            follower.take(changed)

    def _remember(self, changed: Mapping[ObjectKey, Any]) -> None:
        """Add changes to the history; when it is full, drop its older half."""
        assert self.history is not None
        written = tuple(value for value in changed.values() if value is not None)
        removed = tuple(key for key, value in changed.items() if value is None)
        is_first = not len(self.history)
        self.history.append(Change(self.revision, self.time, written, removed))
        self._remembered += 0 if is_first else len(changed)
        if self._remembered > REMEMBERED_MAX or len(self.history) > CHANGES_MAX:
            points = self.history.moments
            self.history = self.history.since(points[len(points) // 2].revision)
            self._remembered //= 2

    def begin_before(self, past: History | None) -> None:
        """Let the history begin with what was before it."""
        if past is not None and self.history is not None:
            self._remembered += past.extend(self.history)
            self.history = past

    def explain(self, causes: Mapping[PodKey, Cause]) -> None:
        """Publish the causes of pending pods."""
        self.causes = causes
        for follower in self.followers:
            follower.take({})


class Follower:
    """Collects changes until they are taken."""

    def __init__(self, feed: Feed) -> None:
        self._changed: dict[ObjectKey, Any] = {}
        self._feed = feed
        self.has_more = asyncio.Event()
        feed.followers.add(self)
        feed.wanted.set()

    def take(self, changed: Mapping[ObjectKey, Any]) -> None:
        """Collect changes."""
        self._changed.update(changed)
        self.has_more.set()

    def taken(self) -> dict[ObjectKey, Any]:
        """Return and clear the collected changes; removed objects are None."""
        found, self._changed = self._changed, {}
        self.has_more.clear()
        return found

    def close(self) -> None:
        """Stop following."""
        self._feed.followers.discard(self)
