"""Objects go when their owners have gone: by references of owners, for all kinds in one place.

Background   an owner that is gone leaves dependents behind, which are deleted then
Foreground   an owner with `foregroundDeletion` waits until those that block it are deleted
Orphan       an owner with `orphan` waits until nobody refers to it any more

Dependents are found by the owner's uid, so the cost of a change depends on what it touches. A key
is a uid: of an object that came or changed, of one that went, or of an owner whose dependents
changed.

An owner that the copy does not have may only be late. Before it deletes a dependent, the collector
asks the server, unless the informer saw the owner's deletion. The deletion meets only the version
that was looked at: a dependent that got another owner meanwhile stays.

# solid: an owner that is there; waiting: one that waits for its dependents; dangling: one that is
# gone; unclear: one of a kind that we do not know, which nobody may judge
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

from moorage.api.catalogue import SERVED
from moorage.api.kinds import Kind
from moorage.api.meta import OwnerReference
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey
from moorage.client.writes import Delete, Target
from moorage.controllers.controller import (
    NO_ANSWERS,
    Answers,
    Controller,
    DeletedUIDs,
    Lookup,
    ObjectChange,
    Step,
)
from moorage.controllers.controller_ref_manager import with_owners, without_finalizer

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"

OWNER = "owner"  # the index of objects by the uids of their owners
UID = "uid"

VANISHED_MAX = 10_000

_IGNORED = ("Binding", "Event")  # bindings are never stored; events expire


def _by_group_and_name(kinds: Iterable[Kind]) -> dict[tuple[str, str], Kind]:
    """Return kinds in their hub version, by group and name: references name any version."""
    return {
        (kind.group, kind.name): kind
        for kind in kinds
        if kind.api_version == kind.hub_version and kind.name not in _IGNORED
    }


KINDS = _by_group_and_name(SERVED)
STRUCTS: tuple[type[Any], ...] = tuple(dict.fromkeys(kind.struct for kind in KINDS.values()))


class GarbageCollector(Controller):
    """Deletes what nobody owns any more."""

    name: ClassVar[str] = "garbage-collector-controller"
    kinds = STRUCTS
    has_independent_steps = True

    def __init__(self) -> None:
        self._vanished = DeletedUIDs(VANISHED_MAX)

    def add_indexes(self, objects: Indexer) -> None:
        """Index all kinds by uid and by owners."""
        for struct in STRUCTS:
            objects.index(struct, UID, lambda value: (value.metadata.uid,))
            objects.index(struct, OWNER, _owner_uids)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the uids that a change affects: its own, and owners that it no longer blocks."""
        self._note(change)
        old, new = change.old, change.new
        if change.gone is None and old is not None and _stance(old) == _stance(new):
            return ()  # Most changes are of the status, and have no effect here.
        return self._keys(objects, change)

    def _keys(self, objects: Indexer, change: ObjectChange) -> Iterator[ObjectKey]:
        if _matters(change) and not self._has_all_owners(objects, change.new):
            yield "", change.value.metadata.uid
        if change.gone is not None:
            yield "", change.gone.metadata.uid
        if change.old is not None:
            now = _holds(change.new) if change.gone is None else set()
            yield from sorted(("", uid) for uid, _ in _holds(change.old) - now)

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield what follows from the state of the object of a uid."""
        return _asked_once(plan(objects, key[1], answers, self._vanished))

    def _has_all_owners(self, objects: Indexer, value: Any) -> bool:
        """Return whether an object needs nothing: it stays, and all of its owners exist."""
        if value.metadata.deletion_timestamp is not None:
            return False
        owners = _owners(objects, value, NO_ANSWERS, self._vanished)
        return not (owners.waiting or owners.dangling or owners.asks)

    def _note(self, change: ObjectChange) -> None:
        if change.gone is not None:
            self._vanished.note(change.gone.metadata.uid)
        if change.new is not None:
            self._vanished.forget(change.new.metadata.uid)


def _owner_uids(value: Any) -> set[str]:
    return {reference.uid for reference in value.metadata.owner_references}


def _holds(value: Any) -> set[tuple[str, bool]]:
    references = value.metadata.owner_references
    return {(each.uid, bool(each.block_owner_deletion)) for each in references}


def _matters(change: ObjectChange) -> bool:
    """Return whether an object has owners, or waits for others, as it did not before."""
    if change.new is None:
        return False
    owners, _, is_held = _stance(change.new)
    return bool(owners) or is_held


def _stance(value: Any) -> tuple[Any, bool, bool]:
    metadata = value.metadata
    if metadata.deletion_timestamp is None:
        return metadata.owner_references, False, False
    is_held = bool({ORPHAN, FOREGROUND} & set(metadata.finalizers))
    return metadata.owner_references, True, is_held


def plan(
    objects: Indexer, uid: str, answers: Answers, vanished: Container[str] = ()
) -> Iterator[Step]:
    """Yield the steps about an object and its dependents; `vanished` were seen to go."""
    found = next((v for struct in STRUCTS for v in objects.by_index(struct, UID, uid)), None)
    dependents = dependents_of(objects, uid)
    if found is None:
        for dependent in dependents:
            yield from _judge(objects, dependent, answers, vanished)
    elif found.metadata.deletion_timestamp is None:
        yield from _judge(objects, found, answers, vanished)
    elif ORPHAN in found.metadata.finalizers:
        yield from _orphan(found, dependents)
    elif FOREGROUND in found.metadata.finalizers:
        yield from _wait(objects, found, dependents, answers, vanished)


def _asked_once(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps with each question once: many dependents have the same owner."""
    asked: set[Lookup] = set()
    for step in steps:
        if isinstance(step, Lookup):
            if step in asked:
                continue
            asked.add(step)
        yield step


def dependents_of(objects: Indexer, uid: str) -> list[Any]:
    """Return all objects that name an owner of this uid."""
    return [value for struct in STRUCTS for value in objects.by_index(struct, OWNER, uid)]


def _orphan(owner: Any, dependents: list[Any]) -> Iterator[Step]:
    """Free all dependents; the owner goes once the copy has none left."""
    if not dependents:
        yield without_finalizer(owner, ORPHAN)
    for each in dependents:
        yield _without(each, {owner.metadata.uid})


def _wait(
    objects: Indexer,
    owner: Any,
    dependents: list[Any],
    answers: Answers,
    vanished: Container[str],
) -> Iterator[Step]:
    """Delete the dependents first; those that do not block are not waited for."""
    if not any(_blocks(each, owner) for each in dependents):
        yield without_finalizer(owner, FOREGROUND)
    for each in dependents:
        yield from _judge(objects, each, answers, vanished)


def _blocks(dependent: Any, owner: Any) -> bool:
    return any(
        reference.uid == owner.metadata.uid and reference.block_owner_deletion
        for reference in dependent.metadata.owner_references
    )


# --- one dependent ----------------------------------------------------------------------------


class OwnerStates(NamedTuple):
    """The owners of an object by state, as far as informers and lookups know."""

    solid: list[OwnerReference]
    waiting: list[OwnerReference]
    dangling: list[OwnerReference]
    asks: list[Lookup]


def _judge(
    objects: Indexer, value: Any, answers: Answers, vanished: Container[str]
) -> Iterator[Step]:
    """Yield the steps with an object because of its owners."""
    metadata = value.metadata
    if metadata.deletion_timestamp is not None or not metadata.owner_references:
        return
    owners = _owners(objects, value, answers, vanished)
    lost = {reference.uid for reference in (*owners.dangling, *owners.waiting)}
    if owners.asks:
        yield from owners.asks
    elif owners.solid:
        if lost:
            yield _without(value, lost)
    elif owners.waiting:
        yield from _delete_before_owner(objects, value)
    else:
        yield _delete(value, _policy(value))


def _owners(
    objects: Indexer, value: Any, answers: Answers, vanished: Container[str]
) -> OwnerStates:
    found = OwnerStates([], [], [], [])
    for reference in value.metadata.owner_references:
        kind = KINDS.get((reference.api_version.rpartition("/")[0], reference.kind))
        if kind is None or (kind.namespaced and not value.metadata.namespace):
            found.solid.append(reference)  # unclear: nobody can say that it is gone
            continue
        namespace = value.metadata.namespace if kind.namespaced else ""
        owner: Any = objects.get(kind.struct, namespace, reference.name)
        if owner is None or owner.metadata.uid != reference.uid:
            if reference.uid in vanished:
                found.dangling.append(reference)
                continue
            ask = Lookup(kind.struct, namespace, reference.name)
            if ask not in answers:
                found.asks.append(ask)
                continue
            owner = answers[ask]
        if owner is None or owner.metadata.uid != reference.uid:
            found.dangling.append(reference)
        elif owner.metadata.deletion_timestamp and FOREGROUND in owner.metadata.finalizers:
            found.waiting.append(reference)
        else:
            found.solid.append(reference)
    return found


def _delete_before_owner(objects: Indexer, value: Any) -> Iterator[Step]:
    """Delete an object whose owner waits for it, together with its own dependents."""
    dependents = dependents_of(objects, value.metadata.uid)
    if not dependents:
        yield _delete(value, _policy(value))
        return
    if any(_is_waiting(each) for each in dependents):
        # It may be a circle, in which each would wait for the next: this one waits for nobody.
        metadata = value.metadata
        freed = tuple(replace_block(each) for each in metadata.owner_references)
        if freed != metadata.owner_references:
            yield with_owners(value, freed)
            return
    yield _delete(value, "Foreground")


def replace_block(reference: OwnerReference) -> OwnerReference:
    """Return a reference that does not block its owner."""
    return OwnerReference(
        api_version=reference.api_version,
        kind=reference.kind,
        name=reference.name,
        uid=reference.uid,
        controller=reference.controller,
        block_owner_deletion=False if reference.block_owner_deletion else None,
    )


def _is_waiting(value: Any) -> bool:
    metadata = value.metadata
    return metadata.deletion_timestamp is not None and FOREGROUND in metadata.finalizers


def _policy(value: Any) -> str:
    if ORPHAN in value.metadata.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in value.metadata.finalizers else "Background"


def _delete(value: Any, policy: str) -> Delete:
    return Delete(Target.of(value), revision=value.metadata.resource_version, propagation=policy)


def _without(value: Any, uids: set[str]) -> Step:
    owners = tuple(r for r in value.metadata.owner_references if r.uid not in uids)
    return with_owners(value, owners)
