"""The changes of a cluster in order, and its state at any revision.

A checkpoint is the whole state after some change. The state at a revision is the last checkpoint
before it, plus the changes since. So the work is bounded by the distance between checkpoints,
however long the history is. Checkpoints share objects, and take one reference for each. Their
distance grows with the number of objects, so all checkpoints together take a few references for
each change.

# moment: a revision and its time
# change: the objects written and removed at one revision; the first is the initial state
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from moorage.api.timestamp import Timestamp
from moorage.insight.errors import UnknownMomentError
from moorage.insight.history.marks import Mark, MarkFinder
from moorage.insight.snapshot.snapshot import Snapshot, key_of

CHECKPOINT_CHANGES_MIN: Final = 100
# The next checkpoint follows once one in so many objects was written.
CHECKPOINT_SHARE: Final = 8

ObjectKey = tuple[str, str, str]  # kind, namespace, name
State = dict[ObjectKey, Any]


class Moment(NamedTuple):
    """A revision and its time."""

    revision: int
    time: Timestamp


class Change(NamedTuple):
    """The objects that were written and removed at a revision."""

    revision: int
    time: Timestamp
    written: tuple[Any, ...] = ()
    removed: tuple[ObjectKey, ...] = ()

    def apply(self, state: State) -> None:
        """Apply the change to a state; objects that exist already keep their places."""
        for key in self.removed:
            state.pop(key, None)
        for value in self.written:
            state[key_of(value)] = value


class History:
    """The changes of a cluster; it grows by `append`."""

    def __init__(
        self,
        changes: Iterable[Change] = (),
        *,
        checkpoint_changes_min: int = CHECKPOINT_CHANGES_MIN,
    ) -> None:
        self._checkpoint_changes_min = checkpoint_changes_min
        self._changes: list[Change] = []
        self._revisions: list[int] = []
        self._checkpoints: list[tuple[int, State]] = []  # the number of its changes, and the state
        self._objects_since = 0  # objects written or removed since the last checkpoint
        self._state: State = {}
        self._marks = MarkFinder()
        for change in changes:
            self.append(change)

    def append(self, change: Change) -> None:
        """Add the next change; its revision must be greater than the last."""
        if self._revisions and change.revision <= self._revisions[-1]:
            raise UnknownMomentError(
                f"revision {change.revision} does not come after {self._revisions[-1]}"
            )
        if self._changes:
            self._marks.find(change.revision, change.time, self._state, change)
        else:
            self._marks.begin(change.revision, change.time, change.written)
        change.apply(self._state)
        self._changes.append(change)
        self._revisions.append(change.revision)
        self._objects_since += len(change.written) + len(change.removed)
        distance = max(self._checkpoint_changes_min, len(self._state) // CHECKPOINT_SHARE)
        if not self._checkpoints or self._objects_since >= distance:
            self._checkpoints.append((len(self._changes), dict(self._state)))
            self._objects_since = 0

    def extend(self, later: History) -> int:
        """Add a history that begins after this one ends; its first state becomes a change.

        Objects of the same version are the same. Return how many objects changed in this one.
        """
        first, *more = later._changes
        known = self._state
        written = tuple(
            each for each in first.written if not _is_same(known.get(key_of(each)), each)
        )
        gone = known.keys() - {key_of(value) for value in first.written}
        changed = sum(len(each.written) + len(each.removed) for each in self._changes[1:])
        self.append(first._replace(written=written, removed=tuple(sorted(gone))))
        for change in more:
            self.append(change)
        return changed

    def __len__(self) -> int:
        return len(self._changes)

    @property
    def moments(self) -> tuple[Moment, ...]:
        """All revisions with their times, in order."""
        return tuple(Moment(change.revision, change.time) for change in self._changes)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """What happened, in the order in which it was observed."""
        return tuple(self._marks.marks)

    @property
    def first(self) -> Moment:
        """The first moment, or raise UnknownMomentError if there is none."""
        return self._moment(0)

    @property
    def last(self) -> Moment:
        """The last moment, or raise UnknownMomentError if there is none."""
        return self._moment(len(self._changes) - 1)

    def snapshot(self, revision: int | None = None) -> Snapshot:
        """Return the cluster at a revision, by default the last, or raise UnknownMomentError.

        A revision that changed none of these objects has the state of the one before it.
        """
        if revision is None:
            revision = self.last.revision
        changes = bisect_right(self._revisions, revision)
        if not changes or revision > self._revisions[-1]:
            raise UnknownMomentError(self._not_known(f"revision {revision}"))
        found = bisect_right(self._checkpoints, changes, key=lambda each: each[0]) - 1
        begun, checkpoint = self._checkpoints[found]
        state = dict(checkpoint)
        for change in self._changes[begun:changes]:
            change.apply(state)
        return Snapshot.of(state.values())

    def since(self, revision: int) -> History:
        """Return the history that begins with the state at a revision, without earlier changes.

        Earlier marks are gone, except for those that objects themselves record.
        """
        changes = bisect_right(self._revisions, revision)
        moment = self.at_revision(revision)
        first = Change(*moment, tuple(self.snapshot(revision).objects()))
        least = self._checkpoint_changes_min
        return History((first, *self._changes[changes:]), checkpoint_changes_min=least)

    def at_revision(self, revision: int) -> Moment:
        """Return the last moment at or before a revision, or raise UnknownMomentError."""
        changes = bisect_right(self._revisions, revision)
        if not changes or revision > self._revisions[-1]:
            raise UnknownMomentError(self._not_known(f"revision {revision}"))
        return self._moment(changes - 1)

    def at(self, time: Timestamp) -> Moment:
        """Return the last moment at or before a time, or raise UnknownMomentError."""
        found = bisect_right(self._changes, time.instant, key=lambda each: each.time.instant)
        if not found:
            raise UnknownMomentError(self._not_known(str(time)))
        return self._moment(found - 1)

    def _moment(self, position: int) -> Moment:
        if not self._changes:
            raise UnknownMomentError("the history is empty")
        change = self._changes[position]
        return Moment(change.revision, change.time)

    def _not_known(self, what: str) -> str:
        if not self._changes:
            return f"{what}: the history is empty"
        first, last = self.first, self.last
        return (
            f"{what} is not in the history, which has revisions {first.revision} to "
            f"{last.revision} ({first.time} to {last.time})"
        )


def _is_same(old: Any, new: Any) -> bool:
    """Return whether two objects are one, in one version."""
    if old is None or old is new:
        return old is new
    before, after = old.metadata, new.metadata
    version = after.resource_version
    return bool(version) and (before.uid, before.resource_version) == (after.uid, version)
