"""What both machines do with the steps of a plan: sort them, and chain writes to one object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from mooring.client.objects import Key, key_of
from mooring.client.writes import Create, LookAgain, Tell, Update, Write
from mooring.controllers.controller import Ask, DeleteContent, Failed, Question, Refused, Step

W = TypeVar("W", bound=Write)


class Sorted(NamedTuple):
    """The steps of a plan by what is done with them."""

    writes: tuple[Write, ...]
    again: tuple[LookAgain, ...]
    asks: tuple[Question, ...]
    failed: Failed | None


def sort_steps(steps: Iterable[Step]) -> Sorted:
    """Return the steps sorted; of several failures the first counts."""
    writes: list[Write] = []
    again: list[LookAgain] = []
    asks: list[Question] = []
    failed: Failed | None = None
    for step in steps:
        match step:
            case LookAgain():
                again.append(step)
            case Ask() | DeleteContent():
                asks.append(step)
            case Failed():
                failed = failed or step
            case _:
                writes.append(step)
    return Sorted(tuple(writes), tuple(again), tuple(asks), failed)


class Chain:
    """The versions that the updates of one plan have led to."""

    def __init__(self) -> None:
        self._revisions: dict[tuple[type[Any], Key], str] = {}

    def follow(self, write: W) -> W:
        """Return the write against what an earlier update of the same object returned."""
        if not isinstance(write, Update):
            return write
        value = write.value
        revision = self._revisions.get((type(value), key_of(value)))
        if revision is None:
            return write
        metadata = replace(value.metadata, resource_version=revision)
        return replace(write, value=replace(value, metadata=metadata))

    def note(self, write: Write, stored: Any) -> None:
        """Remember what a write has led to. Only after an update is nobody else in between."""
        if isinstance(write, Update | Create) and stored is not None:
            place = (type(stored), key_of(stored))
            self._revisions[place] = stored.metadata.resource_version


class Refusals:
    """The writes of one plan that the server refused, and what is not done because of them."""

    def __init__(self, *, is_independent: bool) -> None:
        self._is_independent = is_independent
        self._objects: set[tuple[type[Any], Key]] = set()
        self._first: tuple[Write, Refused] | None = None

    @property
    def gravest(self) -> tuple[Write, Refused] | None:
        """The first that is more than a conflict, or else the first; None if all were taken."""
        return self._first

    def note(self, write: Write, refused: Refused) -> None:
        """Remember a refusal."""
        self._objects.add(_object_of(write))
        had = self._first
        if had is None or (had[1].is_conflict and not refused.is_conflict):
            self._first = write, refused

    def skips(self, write: Write) -> bool:
        """Tell whether a write is not to be carried out after what was refused."""
        if self._first is None:
            return False
        return not self._is_independent or _object_of(write) in self._objects


def _object_of(write: Write) -> tuple[type[Any], Key]:
    match write:
        case Create(value=value) | Update(value=value) | Tell(about=value):
            return type(value), key_of(value)
        case _:
            return write.target.struct, (write.target.namespace, write.target.name)
