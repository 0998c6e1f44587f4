"""The contract of a controller: the kinds it watches, the keys of changes, a plan for each key.

A reconciler does the rest:
1. it passes each change to the controller (`keys`), and queues the keys that it returns;
2. it gets a plan for a key from the controller, looks up missing objects at the server, and plans
   again with the answers;
3. it carries out the steps in order. Writes to one object in one plan follow each other: an Update
   after an Update is made against what the first one returned. A refused write ends the plan, or
   only what the plan does with that object if its steps are independent of each other; either way
   the key is planned again. So is at once the key of a controller with something to do with what
   it created, as the names of created objects are the server's (`continues_after_create`);
4. it reports the result of each write to the controller (`wrote`, `refused`).

    # step: one thing that a plan wants done
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from msgspec import Struct

from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import RequeueAfter, Write

DELETED_UIDS_MAX = 500


class ObjectChange:
    """An object was added (no old), deleted (no new), or changed.

    All controllers of the kind share it, so it has what most of them need.
    """

    __slots__ = ("gone", "new", "old", "value")

    def __init__(self, old: Any | None, new: Any | None) -> None:
        self.old, self.new = old, new
        # The object in its current or last state.
        self.value: Any = old if new is None else new
        # The object that was deleted, even if another one has its name now.
        self.gone: Any | None = None
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self.gone = old

    @property
    def states(self) -> tuple[Any, ...]:
        """The object before and after the change, as far as there is one."""
        return tuple(each for each in (self.old, self.new) if each is not None)


class Lookup(Struct, frozen=True):
    """Look an object up at the server, because the informer may be late."""

    struct: type[Any]
    namespace: str
    name: str


class DeleteContent(Struct, frozen=True):
    """Delete everything in a namespace; the answer is what remains (`RemainingContent`).

    A plan cannot list what to delete: the server may have kinds that no informer follows.
    """

    namespace: str
    grace_s: int  # how long its pods may take to terminate


class ReconcileFailed(Struct, frozen=True):
    """It cannot be done now; the key is requeued with backoff."""

    reason: str
    attempts_max: int | None = None  # then the key waits for a change


Question = Lookup | DeleteContent
Step = Write | RequeueAfter | Question | ReconcileFailed
Answers = Mapping[Question, Any]  # the object at the server, or None; or what remains

NO_ANSWERS: Answers = {}


class WriteRefused(Struct, frozen=True):
    """Why the server refused a write: Kubernetes' reason and message."""

    reason: str
    message: str

    @property
    def is_conflict(self) -> bool:
        """Whether someone else was first, so that a new plan may succeed."""
        return self.reason in ("Conflict", "AlreadyExists")

    @property
    def is_gone(self) -> bool:
        """Whether the object to change or delete does not exist."""
        return self.reason == "NotFound"


class Controller:
    """One controller. Set `name` and `kinds`; objects of the first kind are the keys by default."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[type[Any], ...]]  # the kinds that it follows
    optional: ClassVar[tuple[type[Any], ...]] = ()  # of these, the ones that a server need not have
    source: ClassVar[str] = ""  # the source of its events; its name if empty
    workers: ClassVar[int] = 4
    # Whether writes to one object make sense although a write to another was refused.
    has_independent_steps: ClassVar[bool] = False
    # Whether a plan that created objects is followed by another at once, with them as answers.
    continues_after_create: ClassVar[bool] = False

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Yield the keys to plan after a change, which `objects` has already."""
        if isinstance(change.value, self.kinds[0]):
            yield object_key(change.value)

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Return the steps for a key."""
        raise NotImplementedError

    def wrote(
        self, objects: Indexer, key: ObjectKey, write: Write, now: Timestamp
    ) -> Iterable[Step]:
        """Record a write; return what follows from it (no writes)."""
        return ()

    def refused(
        self, objects: Indexer, key: ObjectKey, write: Write, refused: WriteRefused
    ) -> Iterable[Step]:
        """Record that the server refused a write; return the events to record."""
        del objects, key, write, refused  # not needed here
        return ()


class DeletedUIDs:
    """The uids of objects that were seen to be deleted; the oldest are forgotten first."""

    def __init__(self, most: int = DELETED_UIDS_MAX) -> None:
        self._uids: OrderedDict[str, None] = OrderedDict()
        self._most = most

    def note(self, uid: str) -> None:
        """Record a deleted object: its uid never comes back."""
        self._uids[uid] = None
        self._uids.move_to_end(uid)
        if len(self._uids) > self._most:
            self._uids.popitem(last=False)

    def forget(self, uid: str) -> None:
        """Record that an object exists after all: a server can be restored from a backup."""
        self._uids.pop(uid, None)

    def __contains__(self, uid: object) -> bool:
        return uid in self._uids
