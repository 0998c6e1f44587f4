"""What a controller is: kinds that it follows, changes as keys, and a plan for each key.

Something else does the rest: `running` with a server, `settling` in memory for tests. Both
1. tell the controller each change (`keys`), and queue the keys that it answers with;
2. ask it for a plan of a key, read what the plan asks for and plan again with the answers;
3. carry out the steps in order. Writes to one object in one plan follow each other: an Update
   after an Update is made against what the first one returned. A refused write ends the plan, or
   only what the plan does with that object if its steps are independent of each other; either way
   the key is planned again;
4. tell it what came of each write (`wrote`, `refused`).

# step: one thing that a plan wants done
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from msgspec import Struct

from mooring.api.timestamp import Timestamp
from mooring.client.objects import Key, Objects, key_of
from mooring.client.writes import LookAgain, Write

VANISHED_MAX = 500


class ObjectChange(Struct, frozen=True):
    """An object came (no old), went (no new), or became another."""

    old: Any | None
    new: Any | None

    @property
    def value(self) -> Any:
        """The object as it is, or as it was last."""
        return self.old if self.new is None else self.new

    @property
    def gone(self) -> Any | None:
        """The object that is there no more, also where another has its name now."""
        if self.old is None:
            return None
        if self.new is None or self.new.metadata.uid != self.old.metadata.uid:
            return self.old
        return None


class Lookup(Struct, frozen=True):
    """Look at the server whether an object is there, because the copy may be late."""

    struct: type[Any]
    namespace: str
    name: str


class DeleteContent(Struct, frozen=True):
    """Delete all that is in a namespace; the answer is what remains (`Remains`).

    Whoever plans cannot list what to delete: the server may have kinds that nobody here knows.
    """

    namespace: str
    grace_s: int  # how long its pods may take to end


class ReconcileFailed(Struct, frozen=True):
    """It cannot be done now; the key is planned again after a while, later each time."""

    reason: str
    attempts_max: int | None = None  # then the key is left alone until something changes


Question = Lookup | DeleteContent
Step = Write | LookAgain | Question | ReconcileFailed
Answers = Mapping[Question, Any]  # what the server has: an object, or None; or what remains

NO_ANSWERS: Answers = {}


class WriteRefused(Struct, frozen=True):
    """Why the server did not take a write: Kubernetes' reason and message."""

    reason: str
    message: str

    @property
    def is_conflict(self) -> bool:
        """Whether someone else was first, so that a new plan may do."""
        return self.reason in ("Conflict", "AlreadyExists")

    @property
    def is_gone(self) -> bool:
        """Whether what was to be changed or deleted is not there."""
        return self.reason == "NotFound"


class Controller:
    """One loop. Give `name` and `kinds`; the first kind's objects are the keys unless told."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[type[Any], ...]]  # the kinds that it follows
    optional: ClassVar[tuple[type[Any], ...]] = ()  # of these: what a server need not have
    source: ClassVar[str] = ""  # who its events come from; the name if it is empty
    workers: ClassVar[int] = 4
    # Whether writes to one object of a plan make sense although another object's was refused.
    has_independent_steps: ClassVar[bool] = False

    def prepare(self, objects: Objects) -> None:
        """Keep the indexes that the plan needs."""

    def keys(self, objects: Objects, change: ObjectChange) -> Iterable[Key]:  # noqa: ARG002
        """Give the keys to plan after a change, which `objects` has already."""
        if isinstance(change.value, self.kinds[0]):
            yield key_of(change.value)

    def plan(self, objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterable[Step]:
        """Give what to do for a key."""
        raise NotImplementedError

    def wrote(self, objects: Objects, key: Key, write: Write, now: Timestamp) -> Iterable[Step]:  # noqa: ARG002
        """Note that the server took a write; give what follows from it (no writes)."""
        return ()

    def refused(
        self, objects: Objects, key: Key, write: Write, refused: WriteRefused
    ) -> Iterable[Step]:  # noqa: ARG002
        """Note that the server refused a write; give what is to be told."""
        return ()


class DeletedUIDs:
    """The uids of objects that were seen to go; the oldest are forgotten first."""

    def __init__(self, most: int = VANISHED_MAX) -> None:
        self._uids: OrderedDict[str, None] = OrderedDict()
        self._most = most

    def note(self, uid: str) -> None:
        """Note that the one with this uid is gone for ever."""
        self._uids[uid] = None
        self._uids.move_to_end(uid)
        if len(self._uids) > self._most:
            self._uids.popitem(last=False)

    def forget(self, uid: str) -> None:
        """Note that it is there after all: a server can be brought back to what it was."""
        self._uids.pop(uid, None)

    def __contains__(self, uid: object) -> bool:
        return uid in self._uids


# MOVED
Ask = Lookup  # MOVED
Change = ObjectChange  # MOVED
Refused = WriteRefused  # MOVED
