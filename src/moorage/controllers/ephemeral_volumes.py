"""Ephemeral volumes: creates a claim for each, which is deleted with its pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.core.persistent_volume import PersistentVolumeClaim
from moorage.api.core.pod import Pod
from moorage.api.errors import DecodeError
from moorage.api.meta import ObjectMeta
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Create, RecordEvent
from moorage.controllers.controller import Answers, Controller, ObjectChange, ReconcileFailed, Step
from moorage.controllers.controller_ref_manager import is_controlled_by, reference_to
from moorage.controllers.persistent_volumes import CLAIM, claims_of_pod, ephemeral_claim_name


class EphemeralVolumeController(Controller):
    """Creates the claims of ephemeral volumes."""

    name: ClassVar[str] = "ephemeral-volume-controller"
    kinds = (Pod, PersistentVolumeClaim)

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""
        objects.index(Pod, CLAIM, claims_of_pod)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the pods that a change affects: new ones, and those whose claim was deleted."""
        value = change.value
        if isinstance(value, Pod):
            is_new = change.old is None and change.new is not None
            return (object_key(value),) if is_new and any(_volumes(value)) else ()
        if change.new is not None:
            return ()
        pods = objects.by_index(Pod, CLAIM, "/".join(object_key(value)))
        return sorted(object_key(pod) for pod in pods if any(_volumes(pod)))

    def reconcile(
        self,
        objects: Indexer,
        key: ObjectKey,
        now: Timestamp,
        answers: Answers,
    ) -> Iterable[Step]:
        """Yield the creations of missing claims."""
        pod = objects.get(Pod, *key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        for volume in _volumes(pod):
            yield from _steps(objects, pod, volume)


def _volumes(pod: Pod) -> Iterator[dict[str, Any]]:
    for volume in pod.spec.volumes:
        if isinstance(volume, dict) and isinstance(volume.get("ephemeral"), dict):
            yield volume


def _steps(objects: Indexer, pod: Pod, volume: dict[str, Any]) -> Iterator[Step]:
    namespace, name = pod.metadata.namespace, ephemeral_claim_name(pod, volume)
    claim = objects.get(PersistentVolumeClaim, namespace, name)
    if claim is None:
        made = _claim(pod, volume, name)
        if made is not None:
            yield Create(made)
    elif not is_controlled_by(claim, pod):
        whose = f"PVC {namespace}/{name} was not created for pod {namespace}/{pod.metadata.name}"
        words = f"ephemeral volume {volume.get('name', '')}: {whose} (pod is not owner)"
        yield RecordEvent(pod, "FailedBinding", words, is_warning=True)
        yield ReconcileFailed(words)


def _claim(pod: Pod, volume: dict[str, Any], name: str) -> PersistentVolumeClaim | None:
    template = volume["ephemeral"].get("volumeClaimTemplate") or {}
    try:
        wanted: PersistentVolumeClaim = decode_tree(template, PersistentVolumeClaim).value
    except DecodeError:
        return None  # Validation rejects such pods, but older ones may be stored.
    metadata = ObjectMeta(
        name=name,
        namespace=pod.metadata.namespace,
        labels=wanted.metadata.labels,
        annotations=wanted.metadata.annotations,
        owner_references=(reference_to(pod),),
    )
    return replace(wanted, metadata=metadata)
