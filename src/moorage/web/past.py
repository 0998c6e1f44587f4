"""Earlier revisions: their fleets and moments, as users with the same rights may see them.

One scene moves through time; going from one moment to another updates only what differs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from moorage.api.errors import ApiError
from moorage.api.timestamp import Timestamp
from moorage.insight.errors import UnknownMomentError
from moorage.insight.history import History, Mark
from moorage.insight.history import Moment as Point
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.kit.lru import LRU
from moorage.web.errors import BadQuestionError, UnknownTimeError
from moorage.web.feed import Feed
from moorage.web.fleet import fleet_tree
from moorage.web.messages import Body
from moorage.web.questions.kept_cluster import KeptCluster
from moorage.web.questions.moment import ShownMoment
from moorage.web.rights import Rights
from moorage.web.scene import Scene

POINTS_MAX: Final = 2000
MARKS_MAX: Final = 2000
BODIES_MAX: Final = 8
BEGUN_S: Final = 10.0
TEXT_MAX: Final = 40
_DEVICE: Final = "Device"  # the kind of marks about tainted devices


class Past:
    """Earlier revisions, as users with the same rights may see them."""

    def __init__(self, feed: Feed, rights: Rights) -> None:
        self._feed, self._rights = feed, rights
        self._kept = KeptCluster()
        self._lock = threading.Lock()
        self._scene: Scene | None = None
        self._moments: LRU[int, ShownMoment] = LRU(BODIES_MAX)
        self._bodies: LRU[int, Body] = LRU(BODIES_MAX)

    async def body(self, at: str) -> Body:
        """Return the fleet of a moment."""
        point = self._point(at)
        found = self._bodies.get(point.revision)
        if found is None:
            moment = await asyncio.to_thread(self._moment, point)
            found = await asyncio.to_thread(lambda: Body.of(fleet_tree(moment.fleet)))
            self._bodies.put(point.revision, found)
        return found

    async def moment(self, at: str) -> ShownMoment:
        """Return a moment, for questions about it."""
        return await asyncio.to_thread(self._moment, self._point(at))

    async def tree(self) -> dict[str, Any]:
        """Return the moments that can be asked for, and what happened."""
        return await asyncio.to_thread(self._tree)

    async def begun(self) -> None:
        """Wait for the beginning of the history, but not long; call this before all others."""
        self._feed.wants_past.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(BEGUN_S):
                await self._feed.has_past.wait()

    def _tree(self) -> dict[str, Any]:
        history = self._history()
        points = history.moments
        marks = [mark for mark in history.marks if self._is_visible(mark)]
        return {
            "first": points[0].revision,
            "last": points[-1].revision,
            "points": [[each.revision, _milliseconds(each.time)] for each in _thinned(points)],
            "marks": [
                {**mark._asdict(), "time": str(mark.time), "what": mark.what.value}
                for mark in marks[-MARKS_MAX:]
            ],
        }

    def _is_visible(self, mark: Mark) -> bool:
        kind = "ResourceSlice" if mark.kind == _DEVICE else mark.kind
        return self._rights.allow(kind, mark.namespace)

    def _history(self) -> History:
        history = self._feed.history
        if history is None or not len(history):
            raise UnknownTimeError("This page has no history.")
        return history

    def _point(self, at: str) -> Point:
        """Return the moment of a revision or time."""
        history, text = self._history(), at[:TEXT_MAX]
        try:
            if text.isascii() and text.isdigit():
                return history.at_revision(int(text))
            return history.at(Timestamp.parse(text))
        except UnknownMomentError as error:
            raise UnknownTimeError(f"{error}") from None
        except ApiError:
            what = f"{text!r} is neither a revision nor a time such as 2026-01-31T12:00:00Z"
            raise BadQuestionError(f"at: {what}.") from None

    def _moment(self, point: Point) -> ShownMoment:
        with self._lock:
            found = self._moments.get(point.revision)
            if found is not None:
                return found
            snapshot = self._visible(self._history().snapshot(point.revision))
            context = self._feed.context._replace(now=point.time)
            if self._scene is None:
                self._scene = Scene(context, snapshot.objects(), snapshot.unread)
            scene = self._scene
            scene.move_to(snapshot)
            found = ShownMoment(
                snapshot,
                scene.fleet(point.revision, str(point.time)),
                tuple(scene.rows.usages),
                scene.rows.device_rows,
                context,
                lambda: self._copied(snapshot),
                self._kept,
            )
            self._moments.put(point.revision, found)
            return found

    def _copied(self, snapshot: Snapshot) -> Scene:
        with self._lock:
            assert self._scene is not None
            self._scene.move_to(snapshot)
            return self._scene.copy()

    def _visible(self, snapshot: Snapshot) -> Snapshot:
        return Snapshot.of(
            self._rights.visible(snapshot.objects()), self._rights.unread or self._feed.unread
        )


def _thinned(points: tuple[Point, ...]) -> Iterable[Point]:
    """Return at most this many points, evenly spaced, including the first and the last."""
    if len(points) <= POINTS_MAX:
        return points
    step = (len(points) - 1) / (POINTS_MAX - 1)
    return [points[round(number * step)] for number in range(POINTS_MAX)]


def _milliseconds(time: Timestamp) -> int:
    return int(time.instant.timestamp() * 1000)
