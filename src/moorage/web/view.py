"""What viewers with the same rights see: one fleet, with each change encoded once for all.

    feed ─► follower ─► scene ─► fleet ─┬─ encoded whole, when it is asked for
                                        └─ delta, encoded once ─► ring ─► each viewer

A viewer has a position in the ring and waits there, so that a slow one costs nothing: when its
place is gone, it is told to load the fleet again. The work for changes takes a bounded share of the
time, in all views together: the more it takes, the longer the next change waits.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from moorage.web.errors import BusyError
from moorage.web.feed import Feed, Follower, ObjectKey
from moorage.web.fleet import Delta, Fleet, delta, fleet_tree
from moorage.web.messages import Body
from moorage.web.owner_rows import PodKey
from moorage.web.past import Past
from moorage.web.pending import Cause
from moorage.web.questions.explain import prepare
from moorage.web.questions.kept_cluster import KeptCluster
from moorage.web.questions.moment import ShownMoment
from moorage.web.rights import ALL, Rights
from moorage.web.scene import Scene

EVERY_S_MIN: Final = 0.25
REST: Final = 9.0  # the pause after an update, as a multiple of its duration
KEEP_ALIVE_S: Final = 15.0
IDLE_S: Final = 60.0
SHARED_S: Final = 5.0
PREPARED_MIN: Final = 2000  # devices; for fewer, no first question is slow
VIEWS_MAX: Final = 32
RING_ENTRIES: Final = 128
RING_BYTES: Final = 4 * 1024 * 1024
KEEP_ALIVE: Final = b": keep-alive\n\n"
RELOAD: Final = b"event: reload\ndata: {}\n\n"


class _Entry(NamedTuple):
    number: int
    before: int  # revision
    event: bytes


class _Step(NamedTuple):
    before: Fleet
    after: Fleet
    change: Delta | None  # None: rows moved
    took_s: float


class ViewsShare:
    """What the views of a feed share: one prepares for questions at a time, and all take turns."""

    def __init__(self) -> None:
        self.preparing = asyncio.Lock()
        self.views = 0

    def rest_s(self, took_s: float) -> float:
        """Return how long a view waits after work that took so long."""
        return max(EVERY_S_MIN, REST * took_s * self.views)


class View:
    """The fleet for viewers with the same rights, while there are any."""

    def __init__(self, feed: Feed, rights: Rights, others: ViewsShare) -> None:
        """Take what all views of a feed share."""
        self._feed, self._rights = feed, rights
        self._share = others
        self._preparation: asyncio.Task[None] | None = None
        self.past = Past(feed, rights)
        self._follower = Follower(feed)
        self._kept = KeptCluster()
        self._lock = threading.Lock()  # of the scene
        self._scene: Scene | None = None
        self._fleet: Fleet | None = None
        self._latest: Fleet | None = None  # of the scene; perhaps not yet published
        self._moment: ShownMoment | None = None
        self._captured_s = 0.0
        self._body: tuple[Fleet, Body] | None = None
        self._ring: deque[_Entry] = deque()
        self._ring_bytes = 0
        self._number = 0  # of the last entry
        self._changed = asyncio.Event()
        self._begun = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self.viewers = 0
        self.used_s = time.monotonic()

    # --- what is asked ------------------------------------------------------------------------

    async def body(self) -> Body:
        """Return the whole fleet, encoded once for all viewers."""
        fleet = await self._current()
        if self._body is None or self._body[0] is not fleet:
            self._body = (fleet, await asyncio.to_thread(lambda: Body.of(fleet_tree(fleet))))
        if self._preparation is None and fleet.rows("devices") >= PREPARED_MIN:
            self._preparation = asyncio.create_task(self._prepare())
        return self._body[1]

    async def _prepare(self) -> None:
        """Find out what questions will need, once and after the fleet is shown."""
        async with self._share.preparing:
            await asyncio.to_thread(prepare, await self.moment())

    async def moment(self, *, is_fresh: bool = False) -> ShownMoment:
        """Return the moment that is shown, for questions; unless fresh, it may be some seconds old.

        Questions about the same moment share their intermediate results.
        """
        await self._current()
        return await asyncio.to_thread(self._captured, is_fresh)

    def _captured(self, is_fresh: bool) -> ShownMoment:
        with self._lock:
            scene, fleet, before = self._scene, self._latest, self._moment
            assert scene is not None
            assert fleet is not None
            now_s = time.monotonic()
            if before is not None and (
                before.fleet is fleet
                or (
                    not is_fresh
                    and now_s - self._captured_s < SHARED_S
                    and before.has_rows(scene.rows.device_rows)
                )
            ):
                return before
            self._captured_s = now_s
            self._moment = ShownMoment(
                scene.snapshot,
                fleet,
                tuple(scene.rows.usages),
                scene.rows.device_rows,
                self._feed.context,
                self._copied,
                self._kept,
                before,
            )
            if self._feed.plan is not None and self._rights == ALL:
                self._moment.plan = self._feed.plan
            return self._moment

    def _copied(self) -> Scene:
        with self._lock:
            assert self._scene is not None
            return self._scene.copy()

    async def events(self, since: int) -> AsyncGenerator[bytes]:
        """Yield the changes after a revision, and comments while there are none."""
        await self._current()
        self.viewers += 1
        try:
            position: int | None = self._position(since)
            yield KEEP_ALIVE
            while True:
                found = [] if position is None else self._after(position)
                if found is None:
                    position = None  # A client that loads the fleet again also opens a new stream.
                    yield RELOAD
                    continue
                for entry in found:
                    position = entry.number
                    yield entry.event
                if not found and not await self._has_changed():
                    yield KEEP_ALIVE
        finally:
            self.viewers -= 1
            self.used_s = time.monotonic()

    def _position(self, since: int) -> int | None:
        """Return the number of the last entry that a viewer at a revision has."""
        assert self._fleet is not None
        for entry in self._ring:
            if entry.before == since:
                return entry.number - 1
        return self._number if since == self._fleet.revision else -1

    def _after(self, position: int) -> list[_Entry] | None:
        """Return the entries after one, or None if the ring no longer has them all."""
        oldest = self._ring[0].number if self._ring else self._number + 1
        if position + 1 < oldest:
            return None
        return [entry for entry in self._ring if entry.number > position]

    async def _has_changed(self) -> bool:
        """Wait for the next entry; return False after a while without one."""
        try:
            async with asyncio.timeout(KEEP_ALIVE_S):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    # --- following the feed -------------------------------------------------------------------

    async def _current(self) -> Fleet:
        """Return the fleet, which is built for the first viewer."""
        self.used_s = time.monotonic()
        if self._fleet is None:
            await self._feed.is_ready.wait()
            async with self._begun:
                if self._fleet is None:
                    await self._begin()
        assert self._fleet is not None
        return self._fleet

    async def _begin(self) -> None:
        self._follower.taken()
        feed, context = self._feed, self._feed.context
        objects = list(self._rights.visible(feed.objects.values()))
        unread = self._rights.unread or feed.unread
        revision, time_text, causes = feed.revision, str(feed.time), feed.causes

        def make() -> tuple[Scene, Fleet]:
            scene = Scene(context, objects, unread)
            scene.explain(causes)
            return scene, scene.fleet(revision, time_text)

        self._scene, self._fleet = await asyncio.to_thread(make)
        self._latest = self._fleet
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        feed = self._feed
        while True:
            await self._follower.has_more.wait()
            changed = {
                key: value
                for key, value in self._follower.taken().items()
                if self._rights.allow(key[0], key[1])
            }
            step = await asyncio.to_thread(
                self._step, changed, feed.revision, str(feed.time), feed.causes
            )
            self._publish(step)
            await asyncio.sleep(self._share.rest_s(step.took_s))

    def _step(
        self,
        changed: Mapping[ObjectKey, Any],
        revision: int,
        time_text: str,
        causes: Mapping[PodKey, Cause],
    ) -> _Step:
        began_s = time.thread_time()
        scene, before = self._scene, self._fleet
        assert scene is not None
        assert before is not None
        with self._lock:
            scene.change(
                [value for value in changed.values() if value is not None],
                [key for key, value in changed.items() if value is None],
            )
            scene.explain(causes)
            after = self._latest = scene.fleet(revision, time_text)
        found = delta(before, after)
        return _Step(before, after, found, time.thread_time() - began_s)

    def _publish(self, step: _Step) -> None:
        """Publish an update, unless it changes nothing that is shown."""
        change = step.change
        if change is not None and change.is_empty:
            return
        self._fleet = step.after
        self._number += 1
        if change is None:
            self._ring.clear()  # so that all viewers load the fleet again
            self._ring_bytes = 0
        else:
            text = b"event: fleet\nid: %d\ndata: %s\n\n"
            event = text % (change.revision, msgspec.json.encode(change))
            self._ring.append(_Entry(self._number, step.before.revision, event))
            self._ring_bytes += len(event)
            while len(self._ring) > RING_ENTRIES or self._ring_bytes > RING_BYTES:
                self._ring_bytes -= len(self._ring.popleft().event)
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        """Whether there have been no viewers for a while."""
        return not self.viewers and time.monotonic() - self.used_s > IDLE_S

    async def close(self) -> None:
        """Follow no more."""
        self._follower.close()
        tasks = [each for each in (self._task, self._preparation) if each is not None]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Views:
    """A view for each set of rights that somebody looks with, up to a number of them.

    Beyond it, the view that nobody has looked at for longest makes room.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._views: dict[Rights, View] = {}
        self._share = ViewsShare()

    async def get(self, rights: Rights) -> View:
        """Return the view of some rights; raise BusyError if viewers have all of them."""
        found = self._views.get(rights)
        if found is None:
            await self.prune()
            found = self._views.get(rights)  # Somebody else may have come meanwhile.
        if found is None:
            gone = self._make_room()
            found = self._views[rights] = View(self._feed, rights, self._share)
            self._share.views = len(self._views)
            if gone is not None:
                await gone.close()
        found.used_s = time.monotonic()
        return found

    def _make_room(self) -> View | None:
        """Return the view that is to be closed for a new one, if there are too many."""
        if len(self._views) < VIEWS_MAX:
            return None
        unseen = [(view.used_s, rights) for rights, view in self._views.items() if not view.viewers]
        if not unseen:
            raise BusyError("Too many viewers with different rights look at the fleet.")
        _, rights = min(unseen, key=lambda each: each[0])
        return self._views.pop(rights)

    async def prune(self) -> None:
        """Close the views without viewers."""
        for rights, view in list(self._views.items()):
            if view.is_idle and self._views.get(rights) is view:
                del self._views[rights]
                self._share.views = len(self._views)
                await view.close()

    async def close(self) -> None:
        """Close all views."""
        views, self._views = self._views, {}
        for view in views.values():
            await view.close()
