"""Protection of storage in use: deleted claims and volumes stay while something uses them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from msgspec.structs import replace

from moorage.api.core.persistent_volume import (
    BOUND,
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
    PersistentVolume,
    PersistentVolumeClaim,
)
from moorage.api.core.pod import FAILED, SUCCEEDED, Pod
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Update
from moorage.controllers.controller import Answers, Controller, ObjectChange, Step
from moorage.controllers.persistent_volumes import CLAIM, claim_keys_of_pod, claims_of_pod


class ClaimProtection(Controller):
    """Removes the finalizer of deleted claims once no pod uses them."""

    name: ClassVar[str] = "persistentvolumeclaim-protection-controller"
    kinds = (PersistentVolumeClaim, Pod)

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""
        objects.index(Pod, CLAIM, claims_of_pod)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the claims that a change affects: those of pods that finished or were deleted."""
        value = change.value
        if isinstance(value, PersistentVolumeClaim):
            return (object_key(value),)
        if change.new is not None and value.status.phase not in (SUCCEEDED, FAILED):
            return ()
        return claim_keys_of_pod(value)

    def reconcile(
        self,
        objects: Indexer,
        key: ObjectKey,
        now: Timestamp,
        answers: Answers,
    ) -> Iterable[Step]:
        """Yield the write that removes the finalizer."""
        claim = objects.get(PersistentVolumeClaim, *key)
        if claim is None or claim.metadata.deletion_timestamp is None:
            return
        pods = objects.by_index(Pod, CLAIM, "/".join(key))
        if any(pod.status.phase not in (SUCCEEDED, FAILED) for pod in pods):
            return
        if CLAIM_PROTECTION in claim.metadata.finalizers:
            yield _without(claim, CLAIM_PROTECTION)


class VolumeProtection(Controller):
    """Removes the finalizer of deleted volumes once they are not bound."""

    name: ClassVar[str] = "persistentvolume-protection-controller"
    kinds = (PersistentVolume,)

    def reconcile(
        self,
        objects: Indexer,
        key: ObjectKey,
        now: Timestamp,
        answers: Answers,
    ) -> Iterable[Step]:
        """Yield the write that removes the finalizer."""
        volume = objects.get(PersistentVolume, *key)
        if volume is None or volume.metadata.deletion_timestamp is None:
            return
        if volume.status.phase != BOUND and VOLUME_PROTECTION in volume.metadata.finalizers:
            yield _without(volume, VOLUME_PROTECTION)


def _without(value: Any, finalizer: str) -> Update:
    kept = tuple(each for each in value.metadata.finalizers if each != finalizer)
    return Update(replace(value, metadata=replace(value.metadata, finalizers=kept)))
