"""Volume claims of pods, as the plugins VolumeBinding and VolumeRestrictions of Kubernetes do.

A pod waits until its claims exist and are bound; a claim whose class waits for the first consumer
may be bound after the pod has a node. A bound volume restricts the pod to the nodes of its node
affinity. A volume for one pod (ReadWriteOncePod) has one pod at a time. `resolve` replaces the
claims of a pod by what they mean for nodes, so that pods with the same volumes have the same
signature.

In a plan no controller makes the claims of ephemeral volumes: one that is not there counts as made
with its pod, and restricts no nodes. Where nothing is followed, pods with claims stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.core.persistent_volume import (
    BOUND,
    LOST,
    PersistentVolume,
    PersistentVolumeClaim,
    storage_class_of,
)
from moorage.api.core.pod import Pod
from moorage.api.storage import WAIT_FOR_FIRST_CONSUMER, StorageClass
from moorage.scheduler.framework import Unschedulable

PLUGIN: Final = "VolumeBinding"
RESTRICTIONS: Final = "VolumeRestrictions"
NODES: Final = "boundVolumeNodes"  # the source that stands for a bound claim
IN_USE: Final = "inUseByAnotherPod"  # the source that stands for a claim that only one may use
ONE_POD: Final = "ReadWriteOncePod"
UNBOUND = Unschedulable(
    PLUGIN, ("pod has unbound immediate PersistentVolumeClaims",), is_unresolvable=True
)
_AWAITED: Final = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
VOLUME_KINDS: Final = (PersistentVolumeClaim, PersistentVolume, StorageClass)

VolumeObject = PersistentVolumeClaim | PersistentVolume | StorageClass


class VolumeIndex:
    """The claims, volumes and classes of a cluster."""

    def __init__(self) -> None:
        self.is_followed = False
        self.makes_claims = False  # of ephemeral volumes, when their pods are made
        self._claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._classes: dict[str, StorageClass] = {}
        self._users: dict[tuple[str, str], set[str]] = {}  # pods on nodes, by claim

    def put(self, value: VolumeObject) -> None:
        """Take in an object, or its newer version."""
        self.is_followed = True
        metadata = value.metadata
        match value:
            case PersistentVolumeClaim():
                self._claims[metadata.namespace, metadata.name] = value
            case PersistentVolume():
                self._volumes[metadata.name] = value
            case StorageClass():
                self._classes[metadata.name] = value

    def remove(self, value: VolumeObject) -> None:
        """Take in that an object is gone."""
        metadata = value.metadata
        match value:
            case PersistentVolumeClaim():
                self._claims.pop((metadata.namespace, metadata.name), None)
            case PersistentVolume():
                self._volumes.pop(metadata.name, None)
            case StorageClass():
                self._classes.pop(metadata.name, None)

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Return a claim, if there is one."""
        return self._claims.get((namespace, name))

    def volume(self, name: str) -> PersistentVolume | None:
        """Return a volume, if there is one."""
        return self._volumes.get(name)

    def put_user(self, pod: Pod) -> None:
        """Take in that a pod on a node uses its claims."""
        for claim in _claims_of(pod):
            self._users.setdefault(claim, set()).add(pod.metadata.name)

    def remove_user(self, pod: Pod) -> None:
        """Take in that a pod uses its claims no more."""
        for claim in _claims_of(pod):
            users = self._users.get(claim, set())
            users.discard(pod.metadata.name)
            if not users:
                self._users.pop(claim, None)

    def users(self, namespace: str, name: str) -> frozenset[str]:
        """Return the names of the pods on nodes that use a claim."""
        return frozenset(self._users.get((namespace, name), ()))

    def resolve(self, pod: Pod) -> Pod | Unschedulable:
        """Return the pod with what its claims mean for nodes, or why it must wait."""
        if not self.is_followed or not any(map(_claim_source, pod.spec.volumes)):
            return pod
        found: list[Any] = []
        for volume in pod.spec.volumes:
            name = claim_name_of(pod, volume)
            if name is None:
                found.append(volume)
                continue
            key = pod.metadata.namespace, name
            if key not in self._claims and volume.get("ephemeral") is not None:
                if self.makes_claims:
                    continue
                return _stopped(f'{_AWAITED} "{name}"')
            meaning = self._meaning(*key)
            if isinstance(meaning, Unschedulable):
                return meaning
            if key in self._users and ONE_POD in self._claims[key].spec.access_modes:
                found.append({"name": volume.get("name", ""), IN_USE: True})
            if meaning is not None:
                found.append({"name": volume.get("name", ""), NODES: meaning})
        return replace(pod, spec=replace(pod.spec, volumes=tuple(found)))

    def _meaning(self, namespace: str, name: str) -> Any | Unschedulable | None:
        """Return the nodes of a claim's volume, None if any node will do, or why to wait."""
        claim = self._claims.get((namespace, name))
        if claim is None:
            return _stopped(f'persistentvolumeclaim "{name}" not found')
        if claim.metadata.deletion_timestamp is not None:
            return _stopped(f'persistentvolumeclaim "{name}" is being deleted')
        volume_name = claim.spec.volume_name
        if claim.status.phase == LOST:
            lost = f'bound to non-existent persistentvolume "{volume_name}"'
            return _stopped(f'persistentvolumeclaim "{name}" {lost}')
        if claim.status.phase != BOUND or not volume_name:
            return None if self._waits(claim) else UNBOUND
        volume = self._volumes.get(volume_name)
        if volume is None:
            return _stopped(f'persistentvolume "{volume_name}" not found')
        affinity = volume.spec.node_affinity
        return affinity.get("required") if isinstance(affinity, dict) else None

    def _waits(self, claim: PersistentVolumeClaim) -> bool:
        if claim.spec.volume_name:
            return False  # It was promised a volume and is about to be bound.
        found = self._classes.get(storage_class_of(claim))
        return found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _stopped(text: str) -> Unschedulable:
    return Unschedulable(PLUGIN, (text,), is_unresolvable=True)


def _claim_source(volume: Any) -> bool:
    return isinstance(volume, dict) and ("persistentVolumeClaim" in volume or "ephemeral" in volume)


def _claims_of(pod: Pod) -> Iterator[tuple[str, str]]:
    for volume in pod.spec.volumes:
        name = claim_name_of(pod, volume)
        if name is not None:
            yield pod.metadata.namespace, name


def claim_name_of(pod: Pod, volume: Any) -> str | None:
    """Return the name of the claim behind a volume of a pod, if there is one."""
    if not _claim_source(volume):
        return None
    if volume.get("ephemeral") is not None:
        return f"{pod.metadata.name}-{volume.get('name', '')}"
    source = volume.get("persistentVolumeClaim") or {}
    name = source.get("claimName")
    return name if isinstance(name, str) else None
