"""What happened in a cluster: marks on its history, found by comparing objects before and after.

Objects also record their own past: a pod when it was created and scheduled, a claim when it was
allocated, a taint when it was added. So the marks of an initial state reach back before it.

    # mark: something that happened to one object at a moment, with the cause if it is known
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from moorage.api.core import Node, Pod
from moorage.api.resource.v1 import DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.api.timestamp import Timestamp
from moorage.insight.messages import listed, taint_text
from moorage.insight.snapshot.snapshot import key_of

ObjectKey = tuple[str, str, str]
CAUSE_LENGTH_MAX = 1000
_FINISHED = ("Succeeded", "Failed")


class Occurrence(StrEnum):
    """What can happen to an object."""

    PENDING = "Pending"
    SCHEDULED = "Scheduled"
    EVICTED = "Evicted"
    ALLOCATED = "Allocated"
    DEALLOCATED = "Deallocated"
    TAINTED = "Tainted"


class Mark(NamedTuple):
    """Something that happened to an object."""

    revision: int
    time: Timestamp
    what: Occurrence
    kind: str
    namespace: str
    name: str
    cause: str = ""


class ChangedObjects(Protocol):
    """The objects of a change."""

    @property
    def written(self) -> tuple[Any, ...]:
        """Objects as they are after the change."""
        ...

    @property
    def removed(self) -> tuple[ObjectKey, ...]:
        """Keys of objects that are gone."""
        ...


class _Fact(NamedTuple):
    """A mark without its moment; `since` is the time that the object itself records."""

    what: Occurrence
    key: ObjectKey
    cause: str = ""
    since: Timestamp | None = None


class MarkFinder:
    """Finds the marks of one change after the other."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self._pending: dict[ObjectKey, int] = {}  # positions of marks

    def begin(self, revision: int, time: Timestamp, objects: Iterable[Any]) -> None:
        """Add what the objects of the initial state record of their past, oldest first."""
        facts = [fact for value in objects for fact in _past(value)]
        facts.sort(key=lambda fact: min(fact.since or time, time))
        for fact in facts:
            self._add(revision, min(fact.since or time, time), fact)
        for value in objects:
            self._explain(value)

    def find(
        self,
        revision: int,
        time: Timestamp,
        before: Mapping[ObjectKey, Any],
        change: ChangedObjects,
    ) -> None:
        """Add the marks of a change."""
        for key in change.removed:
            for fact in _removal(key, before.get(key)):
                self._add(revision, time, fact)
            self._pending.pop(key, None)
        for value in change.written:
            old = before.get(key_of(value))
            if old is not None and old.metadata.uid != value.metadata.uid:
                for fact in _removal(key_of(value), old):  # recreated with the same name
                    self._add(revision, time, fact)
                old = None
            for fact in _difference(old, value):
                self._add(revision, time, fact)
            self._explain(value)

    def _add(self, revision: int, time: Timestamp, fact: _Fact) -> None:
        if fact.what is Occurrence.PENDING:
            self._pending[fact.key] = len(self.marks)
        elif fact.what is Occurrence.SCHEDULED:
            self._pending.pop(fact.key, None)
        cause = fact.cause[:CAUSE_LENGTH_MAX]
        self.marks.append(Mark(revision, time, fact.what, *fact.key, cause))

    def _explain(self, value: Any) -> None:
        """Add the cause to the mark of a pending pod, which the scheduler writes later."""
        position = self._pending.get(key_of(value)) if isinstance(value, Pod) else None
        if position is not None and not self.marks[position].cause:
            cause = _refusal(value)[:CAUSE_LENGTH_MAX]
            self.marks[position] = self.marks[position]._replace(cause=cause)


# --- objects that record their past ---------------------------------------------------------


def _past(value: Any) -> Iterator[_Fact]:
    key = key_of(value)
    match value:
        case Pod():
            is_waiting = _is_pending(value)
            scheduled = _condition(value, "PodScheduled")
            since = scheduled.last_transition_time if scheduled else None
            if is_waiting:
                yield _Fact(Occurrence.PENDING, key, since=value.metadata.creation_timestamp)
            elif value.spec.node_name and since and scheduled.status == "True":
                yield _Fact(Occurrence.SCHEDULED, key, _to_node(value), since)
            if (target := _disruption(value)) is not None:
                yield _Fact(Occurrence.EVICTED, key, _reason(target), target.last_transition_time)
        case ResourceClaim():
            allocation = value.status.allocation
            if allocation is not None and allocation.allocation_timestamp is not None:
                since = allocation.allocation_timestamp
                yield _Fact(Occurrence.ALLOCATED, key, _devices(value), since)
        case Node() | ResourceSlice() | DeviceTaintRule():
            yield from (fact for fact in _taints(value) if fact.since is not None)


# --- objects before and after ---------------------------------------------------------------


def _difference(old: Any, new: Any) -> Iterator[_Fact]:
    key = key_of(new)
    match new:
        case Pod():
            yield from _pod_difference(old, new)
        case ResourceClaim():
            had = old is not None and old.status.allocation is not None
            has = new.status.allocation is not None
            if has and not had:
                yield _Fact(Occurrence.ALLOCATED, key, _devices(new))
            elif had and not has:
                yield _Fact(Occurrence.DEALLOCATED, key, _devices(old))
        case Node() | ResourceSlice() | DeviceTaintRule():
            known = set() if old is None else {(f.key, f.cause) for f in _taints(old)}
            yield from (fact for fact in _taints(new) if (fact.key, fact.cause) not in known)


def _pod_difference(old: Pod | None, new: Pod) -> Iterator[_Fact]:
    key = key_of(new)
    if _is_pending(new) and (old is None or not _is_pending(old)):
        yield _Fact(Occurrence.PENDING, key)
    if new.spec.node_name and (old is None or not old.spec.node_name):
        yield _Fact(Occurrence.SCHEDULED, key, _to_node(new))
    target = _disruption(new)
    if target is not None and (old is None or _disruption(old) is None):
        yield _Fact(Occurrence.EVICTED, key, _reason(target))


def _removal(key: ObjectKey, old: Any) -> Iterator[_Fact]:
    if isinstance(old, ResourceClaim) and old.status.allocation is not None:
        yield _Fact(Occurrence.DEALLOCATED, key, _devices(old))


def _is_pending(pod: Pod) -> bool:
    return not pod.spec.node_name and pod.status.phase not in _FINISHED


def _condition(pod: Pod, kind: str) -> Any:
    return next((each for each in pod.status.conditions if each.type == kind), None)


def _disruption(pod: Pod) -> Any:
    """Return the condition of a pod that is being evicted."""
    found = _condition(pod, "DisruptionTarget")
    return found if found is not None and found.status == "True" else None


def _refusal(pod: Pod) -> str:
    """Return why the scheduler does not place a pod."""
    found = _condition(pod, "PodScheduled")
    return _reason(found) if found is not None and found.status == "False" else ""


def _reason(condition: Any) -> str:
    return ": ".join(filter(None, (condition.reason, condition.message)))


def _to_node(pod: Pod) -> str:
    return f"to {pod.spec.node_name}"


def _devices(claim: ResourceClaim) -> str:
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results
    return listed([f"{each.driver}/{each.pool}/{each.device}" for each in results])


def _taints(value: Node | ResourceSlice | DeviceTaintRule) -> Iterator[_Fact]:
    match value:
        case Node():
            for taint in value.spec.taints:
                text = taint_text(taint.key, taint.value, taint.effect)
                yield _Fact(Occurrence.TAINTED, key_of(value), text, taint.time_added)
        case ResourceSlice():
            driver, pool = value.spec.driver, value.spec.pool.name
            for device in value.spec.devices or ():
                for mark in device.taints or ():
                    text = taint_text(mark.key, mark.value, mark.effect)
                    key = ("Device", "", f"{driver}/{pool}/{device.name}")
                    yield _Fact(Occurrence.TAINTED, key, text, mark.time_added)
        case DeviceTaintRule():
            rule = value.spec.taint
            text = taint_text(rule.key, rule.value, rule.effect)
            yield _Fact(Occurrence.TAINTED, key_of(value), text, rule.time_added)
