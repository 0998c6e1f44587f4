"""Volume claims as their cluster would bind them before anything is scheduled.

Claims that a cluster has stored stay as they are. A new one gets a volume that is there, as the
binder of the controllers decides, and else one that is supposed: its class makes volumes, or is not
among the objects. A supposed volume can be reached from every node. A claim whose class waits for
its first consumer stays unbound, and restricts no nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from moorage.api.core.persistent_volume import (
    BOUND,
    PersistentVolume,
    PersistentVolumeClaim,
    storage_class_of,
)
from moorage.api.meta import ObjectMeta
from moorage.api.storage import WAIT_FOR_FIRST_CONSUMER, StorageClass
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, object_key
from moorage.client.writes import Update
from moorage.controllers.persistent_volumes import PersistentVolumeBinder
from moorage.insight.messages import Concern, listed, titled
from moorage.insight.snapshot.snapshot import Snapshot, identified, is_new

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


def with_bound_claims(snapshot: Snapshot, now: Timestamp) -> tuple[Snapshot, list[Concern]]:
    """Return the snapshot with a volume for each claim that would have one."""
    if not snapshot.volume_claims:
        return snapshot, []
    classes = {each.metadata.name: each for each in snapshot.storage_classes}
    world = Indexer()
    binder = PersistentVolumeBinder()
    binder.add_indexes(world)
    for claim in snapshot.volume_claims:
        world.put(_with_default_class(claim, classes) if is_new(claim) else claim)
    for value in (*snapshot.volumes, *snapshot.storage_classes):
        world.put(value)
    supposed = [
        claim
        for claim in snapshot.volume_claims
        if _is_supposed(world, claim, now, binder, classes, knows_volumes=bool(snapshot.volumes))
    ]
    for claim in supposed:
        _suppose(world, claim)
    known = [world.get(PersistentVolumeClaim, *object_key(c)) for c in snapshot.volume_claims]
    changed = replace(
        snapshot,
        volume_claims=tuple(each for each in known if each is not None),
        volumes=tuple(sorted(world.list(PersistentVolume), key=object_key)),
    )
    return changed, [*_concerns(supposed)]


def _is_supposed(
    world: Indexer,
    claim: PersistentVolumeClaim,
    now: Timestamp,
    binder: PersistentVolumeBinder,
    classes: dict[str, StorageClass],
    *,
    knows_volumes: bool,
) -> bool:
    """Bind a new claim, and return whether a claim has a volume of which nothing is known."""
    if not is_new(claim):
        return bool(claim.spec.volume_name) and claim.status.phase == BOUND and not knows_volumes
    key = object_key(claim)
    current = world.get(PersistentVolumeClaim, *key)
    assert current is not None
    name = storage_class_of(current)
    found = classes.get(name)
    makes_volumes = found is not None and found.provisioner != NO_PROVISIONER
    waits = found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    for step in binder.reconcile(world, key, now, {}):
        if isinstance(step, Update):
            world.put(step.value)
    current = world.get(PersistentVolumeClaim, *key)
    if current is None or current.status.phase == BOUND or current.spec.volume_name or waits:
        return False
    return makes_volumes or (found is None and current.spec.storage_class_name != "")


def _with_default_class(
    claim: PersistentVolumeClaim, classes: dict[str, StorageClass]
) -> PersistentVolumeClaim:
    """Return the claim with the class that admission gives it."""
    defaults = sorted(name for name, each in classes.items() if each.is_default)
    if claim.spec.storage_class_name is not None or storage_class_of(claim) or not defaults:
        return claim
    return replace(claim, spec=replace(claim.spec, storage_class_name=defaults[0]))


def _suppose(world: Indexer, claim: PersistentVolumeClaim) -> None:
    """Give a claim a volume that every node reaches."""
    name = claim.spec.volume_name or f"pvc-{claim.metadata.uid}"
    world.put(identified(PersistentVolume(metadata=ObjectMeta(name=name))))
    spec = replace(claim.spec, volume_name=name)
    world.put(replace(claim, spec=spec, status=replace(claim.status, phase=BOUND)))


def _concerns(supposed: list[PersistentVolumeClaim]) -> Iterator[Concern]:
    if supposed:
        fact = f"nothing is known of the volume of {listed([titled(c) for c in supposed])}"
        yield Concern("unknown-volume", fact, "it counts as one that every node reaches")
