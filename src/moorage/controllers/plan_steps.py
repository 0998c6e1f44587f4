"""Carrying out the steps of a plan: sorted by kind, chained, skipped after a refusal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from moorage.client.indexer import ObjectKey, object_key
from moorage.client.writes import Create, RecordEvent, RequeueAfter, Update, Write
from moorage.controllers.controller import (
    DeleteContent,
    Lookup,
    Question,
    ReconcileFailed,
    Step,
    WriteRefused,
)

W = TypeVar("W", bound=Write)


class SortedSteps(NamedTuple):
    """The steps of a plan by kind."""

    writes: tuple[Write, ...]
    again: tuple[RequeueAfter, ...]
    asks: tuple[Question, ...]
    failed: ReconcileFailed | None


def sort_steps(steps: Iterable[Step]) -> SortedSteps:
    """Return the steps by kind; the first of several failures counts."""
    writes: list[Write] = []
    again: list[RequeueAfter] = []
    asks: list[Question] = []
    failed: ReconcileFailed | None = None
    for step in steps:
        match step:
            case RequeueAfter():
                again.append(step)
            case Lookup() | DeleteContent():
                asks.append(step)
            case ReconcileFailed():
                failed = failed or step
            case _:
                writes.append(step)
    return SortedSteps(tuple(writes), tuple(again), tuple(asks), failed)


class WriteChain:
    """The resource versions that the updates of one plan have written."""

    def __init__(self) -> None:
        self._revisions: dict[tuple[type[Any], ObjectKey], str] = {}

    def follow(self, write: W) -> W:
        """Return the write, based on the result of an earlier update of the same object."""
        if not isinstance(write, Update):
            return write
        value = write.value
        revision = self._revisions.get((type(value), object_key(value)))
        if revision is None:
            return write
        metadata = replace(value.metadata, resource_version=revision)
        return replace(write, value=replace(value, metadata=metadata))

    def note(self, write: Write, stored: Any) -> None:
        """Remember the version of a write. Only after an update is nobody else in between."""
        if isinstance(write, Update | Create) and stored is not None:
            place = (type(stored), object_key(stored))
            self._revisions[place] = stored.metadata.resource_version


class RefusedWrites:
    """The writes of one plan that the server refused, and the writes skipped because of them."""

    def __init__(self, *, is_independent: bool) -> None:
        self._is_independent = is_independent
        self._objects: set[tuple[type[Any], ObjectKey]] = set()
        self._first: tuple[Write, WriteRefused] | None = None

    @property
    def gravest(self) -> tuple[Write, WriteRefused] | None:
        """The first refusal that is not a conflict, or else the first; None if there is none."""
        return self._first

    def note(self, write: Write, refused: WriteRefused) -> None:
        """Remember a refusal."""
        self._objects.add(_object_of(write))
        had = self._first
        if had is None or (had[1].is_conflict and not refused.is_conflict):
            self._first = write, refused

    def skips(self, write: Write) -> bool:
        """Return whether a write must be skipped because another was refused."""
        if self._first is None:
            return False
        return not self._is_independent or _object_of(write) in self._objects


def _object_of(write: Write) -> tuple[type[Any], ObjectKey]:
    match write:
        case Create(value=value) | Update(value=value) | RecordEvent(about=value):
            return type(value), object_key(value)
        case _:
            return write.target.struct, (write.target.namespace, write.target.name)
