"""Persistent volumes: binds claims, provisions volumes in host directories, reclaims volumes.

A claim that names no volume gets the smallest free one that fits. If there is none and the
provisioner of its class is `kubernetes.io/host-path`, the controller provisions a new volume: a
directory below the class's parameter `path`, on the node of the claim's first pod if the class
waits for one, otherwise on any node. The directory itself is created when it is mounted.

A key without a namespace is a volume, any other key a claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.core.node import Node
from moorage.api.core.persistent_volume import (
    AVAILABLE,
    BIND_COMPLETED,
    BOUND,
    BOUND_BY_CONTROLLER,
    DELETE,
    FILESYSTEM,
    LOST,
    PENDING,
    PROVISIONED_BY,
    RELEASED,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    PersistentVolume,
    PersistentVolumeClaim,
    storage_class_of,
)
from moorage.api.core.placement import NodeSelector
from moorage.api.core.pod import Pod
from moorage.api.labels import Selector, read_selector
from moorage.api.node_affinity import NodeQuery, read_node_selector
from moorage.api.storage import WAIT_FOR_FIRST_CONSUMER, StorageClass
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Delete, RecordEvent, Target, Update
from moorage.controllers.controller import Answers, Controller, ObjectChange, Step
from moorage.controllers.pod_control import with_status
from moorage.controllers.volume_provisioning import HOST_PATH, NOTHING, provision, reference

CLASS: Final = "class"  # the index of volumes by their class
CLAIM: Final = "claim"  # the index of volumes and pods by claim


class PersistentVolumeBinder(Controller):
    """Binds claims and volumes to each other."""

    name: ClassVar[str] = "persistentvolume-binder-controller"
    kinds = (PersistentVolumeClaim, PersistentVolume, StorageClass, Pod, Node)

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""
        objects.index(PersistentVolume, CLASS, lambda volume: (storage_class_of(volume),))
        objects.index(PersistentVolume, CLAIM, _claim_of)
        objects.index(PersistentVolumeClaim, CLASS, lambda claim: (storage_class_of(claim),))
        objects.index(Pod, CLAIM, claims_of_pod)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the claim or volume that changed, and claims that may be bound now."""
        value = change.value
        match value:
            case PersistentVolumeClaim():
                keys = {object_key(value)}
                if value.spec.volume_name:
                    keys.add(("", value.spec.volume_name))
                keys |= {("", v.metadata.name) for v in _volumes_for(objects, value)}
                return sorted(keys)
            case PersistentVolume():
                keys = {("", value.metadata.name)}
                if value.spec.claim_ref is not None:
                    keys.add((value.spec.claim_ref.namespace, value.spec.claim_ref.name))
                else:
                    keys |= _waiting(objects, storage_class_of(value))
                return sorted(keys)
            case StorageClass():
                return sorted(_waiting(objects, value.metadata.name))
            case Pod() if change.old is None or change.old.spec.node_name != value.spec.node_name:
                return claim_keys_of_pod(value)
        return ()

    def reconcile(
        self,
        objects: Indexer,
        key: ObjectKey,
        now: Timestamp,
        answers: Answers,
    ) -> Iterable[Step]:
        """Yield the writes for a claim or a volume."""
        if not key[0]:
            volume = objects.get(PersistentVolume, "", key[1])
            return () if volume is None else _volume_steps(objects, volume)
        claim = objects.get(PersistentVolumeClaim, *key)
        return () if claim is None else _claim_steps(objects, claim)


def claims_of_pod(pod: Pod) -> tuple[str, ...]:
    """Return the claims that a pod uses, as values of an index."""
    found = []
    for volume in pod.spec.volumes:
        name = _claim_name(pod, volume) if isinstance(volume, dict) else None
        if isinstance(name, str):
            found.append(f"{pod.metadata.namespace}/{name}")
    return tuple(found)


def claim_keys_of_pod(pod: Pod) -> list[ObjectKey]:
    """Return the keys of the claims that a pod uses."""
    keys = (text.partition("/") for text in claims_of_pod(pod))
    return sorted((namespace, name) for namespace, _, name in keys)


def _claim_name(pod: Pod, volume: dict[str, Any]) -> Any:
    if volume.get("ephemeral") is not None:
        return ephemeral_claim_name(pod, volume)
    source = volume.get("persistentVolumeClaim")
    return source.get("claimName") if isinstance(source, dict) else None


def ephemeral_claim_name(pod: Pod, volume: dict[str, Any]) -> str:
    """Return the name of the claim of an ephemeral volume of a pod."""
    return f"{pod.metadata.name}-{volume.get('name', '')}"


def _claim_of(volume: PersistentVolume) -> tuple[str, ...]:
    claim = volume.spec.claim_ref
    return () if claim is None else (f"{claim.namespace}/{claim.name}",)


def _waiting(objects: Indexer, class_name: str) -> set[ObjectKey]:
    """Return the claims of a class without a volume."""
    claims = objects.by_index(PersistentVolumeClaim, CLASS, class_name)
    return {object_key(claim) for claim in claims if not claim.spec.volume_name}


def _volumes_for(objects: Indexer, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
    text = f"{claim.metadata.namespace}/{claim.metadata.name}"
    return sorted(objects.by_index(PersistentVolume, CLAIM, text), key=object_key)


# --- claims ------------------------------------------------------------------------------------


def _claim_steps(objects: Indexer, claim: PersistentVolumeClaim) -> Iterator[Step]:
    if claim.spec.volume_name:
        volume = objects.get(PersistentVolume, "", claim.spec.volume_name)
        yield from _named(claim, volume)
        return
    if claim.metadata.deletion_timestamp is not None:
        return
    promised = [v for v in _volumes_for(objects, claim) if _is_for(v, claim)]
    volume = promised[0] if promised else None
    found = objects.get(StorageClass, "", storage_class_of(claim))
    node = _node_of(objects, claim)
    if volume is None and _waits(found) and not node:
        words = "waiting for first consumer to be created before binding"
        yield RecordEvent(claim, "WaitForFirstConsumer", words)
        yield from _phase(claim, PENDING)
        return
    if volume is None:
        volume = _best(objects, claim, node)
    if volume is not None:
        yield from _bind(claim, volume)
        return
    yield from _phase(claim, PENDING)
    if found is not None and found.provisioner == HOST_PATH:
        yield from provision(objects, claim, found, node)
    elif found is not None and STORAGE_PROVISIONER not in claim.metadata.annotations:
        yield _annotated(claim, {STORAGE_PROVISIONER: found.provisioner})
    elif found is None:
        name = storage_class_of(claim)
        words = "no persistent volumes available for this claim and no storage class is set"
        if name:
            words = f'storageclass.storage.k8s.io "{name}" not found'
        reason = "ProvisioningFailed" if name else "FailedBinding"
        yield RecordEvent(claim, reason, words, is_warning=bool(name))


def _waits(found: StorageClass | None) -> bool:
    return found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _node_of(objects: Indexer, claim: PersistentVolumeClaim) -> str:
    """Return the node that the scheduler chose for the claim, or the node of its pod."""
    selected = claim.metadata.annotations.get(SELECTED_NODE)
    if selected:
        return selected
    text = f"{claim.metadata.namespace}/{claim.metadata.name}"
    pods = sorted(objects.by_index(Pod, CLAIM, text), key=object_key)
    return next((pod.spec.node_name for pod in pods if pod.spec.node_name), "")


def _named(claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> Iterator[Step]:
    """Yield the writes for a claim that names its volume."""
    is_bound = BIND_COMPLETED in claim.metadata.annotations
    if volume is None or (is_bound and not _is_for(volume, claim)):
        if is_bound:
            if claim.status.phase != LOST:
                words = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
                yield RecordEvent(claim, "ClaimLost", words, is_warning=True)
            yield from _phase(claim, LOST)
        else:
            yield from _phase(claim, PENDING)
        return
    if is_bound:
        yield from _bound_status(claim, volume)
    elif _is_for(volume, claim):
        yield from _bind(claim, volume)
    elif volume.spec.claim_ref is None:
        if mismatch := _mismatch(claim, volume):
            words = f'Cannot bind to requested volume "{volume.metadata.name}": {mismatch}'
            yield RecordEvent(claim, "VolumeMismatch", words, is_warning=True)
            yield from _phase(claim, PENDING)
        else:
            yield from _bind(claim, volume)
    else:
        words = f'volume "{volume.metadata.name}" already bound to a different claim.'
        yield RecordEvent(claim, "FailedBinding", words, is_warning=True)
        yield from _phase(claim, PENDING)


def _mismatch(claim: PersistentVolumeClaim, volume: PersistentVolume) -> str:
    """Return why a volume does not satisfy a claim, or "" if it does."""
    wanted, offered = claim.spec, volume.spec
    if volume.metadata.deletion_timestamp is not None:
        return f'the volume is marked for deletion "{volume.metadata.name}"'
    if offered.capacity.get("storage", NOTHING) < wanted.resources.requests.get("storage", NOTHING):
        return "requested PV is too small"
    if storage_class_of(claim) != storage_class_of(volume):
        return "storageClassName does not match"
    if (wanted.volume_attributes_class_name or "") != (offered.volume_attributes_class_name or ""):
        return "volumeAttributesClassName does not match"
    if (wanted.volume_mode or FILESYSTEM) != (offered.volume_mode or FILESYSTEM):
        return "incompatible volumeMode"
    if not set(wanted.access_modes) <= set(offered.access_modes):
        return "incompatible accessMode"
    return ""


def _is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume is reserved for a claim."""
    wanted, metadata = volume.spec.claim_ref, claim.metadata
    if wanted is None or (wanted.namespace, wanted.name) != (metadata.namespace, metadata.name):
        return False
    return wanted.uid in ("", metadata.uid)


def _bind(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Iterator[Step]:
    """Yield the writes that bind a claim and a volume to each other, the volume first."""
    metadata = claim.metadata
    if volume.spec.claim_ref is None or volume.spec.claim_ref.uid != metadata.uid:
        marked = dict(volume.metadata.annotations)
        if volume.spec.claim_ref is None:
            marked[BOUND_BY_CONTROLLER] = "yes"
        kept = replace(volume.spec, claim_ref=reference(claim))
        yield Update(
            replace(volume, spec=kept, metadata=replace(volume.metadata, annotations=marked))
        )
    annotations = {**metadata.annotations, BIND_COMPLETED: "yes"}
    if not claim.spec.volume_name:
        annotations[BOUND_BY_CONTROLLER] = "yes"
    spec = replace(claim.spec, volume_name=volume.metadata.name)
    changed = replace(claim, spec=spec, metadata=replace(metadata, annotations=annotations))
    yield Update(changed)
    yield from _bound_status(changed, volume)


def _bound_status(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Iterator[Step]:
    status = replace(
        claim.status,
        phase=BOUND,
        access_modes=volume.spec.access_modes,
        capacity=volume.spec.capacity,
    )
    if (changed := with_status(claim, status)) is not None:
        yield Update(changed, "status")


def _phase(claim: PersistentVolumeClaim, phase: str) -> Iterator[Step]:
    status = replace(claim.status, phase=phase)
    if (changed := with_status(claim, status)) is not None:
        yield Update(changed, "status")


def _annotated(claim: PersistentVolumeClaim, more: dict[str, str]) -> Update:
    annotations = {**claim.metadata.annotations, **more}
    return Update(replace(claim, metadata=replace(claim.metadata, annotations=annotations)))


def _best(objects: Indexer, claim: PersistentVolumeClaim, node: str) -> PersistentVolume | None:
    """Return the smallest free volume that fits a claim, on the claim's node if it has one."""
    fitting = [
        volume
        for volume in objects.by_index(PersistentVolume, CLASS, storage_class_of(claim))
        if volume.spec.claim_ref is None
        and not _mismatch(claim, volume)
        and _selects(claim, volume)
        and (not node or _is_on(objects, volume, node))
    ]
    return min(
        fitting,
        key=lambda v: (v.spec.capacity.get("storage", NOTHING).nano, v.metadata.name),
        default=None,
    )


def _selects(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    if claim.spec.selector is None:
        return True
    selector = read_selector(claim.spec.selector)
    return isinstance(selector, Selector) and selector.matches(volume.metadata.labels)


def _nodes(required: Any) -> NodeQuery:
    return read_node_selector(decode_tree(required, NodeSelector).value)


def _is_on(objects: Indexer, volume: PersistentVolume, node: str) -> bool:
    affinity = volume.spec.node_affinity
    required = affinity.get("required") if isinstance(affinity, dict) else None
    if required is None:
        return True
    found = objects.get(Node, "", node)
    return found is not None and _nodes(required).matches(node, found.metadata.labels)


# --- volumes -----------------------------------------------------------------------------------


def _volume_steps(objects: Indexer, volume: PersistentVolume) -> Iterator[Step]:
    wanted = volume.spec.claim_ref
    if wanted is None:
        yield from _volume_phase(volume, AVAILABLE)
        return
    claim = objects.get(PersistentVolumeClaim, wanted.namespace, wanted.name)
    if claim is not None and wanted.uid in ("", claim.metadata.uid):
        is_bound = claim.spec.volume_name == volume.metadata.name
        yield from _volume_phase(volume, BOUND if is_bound and wanted.uid else AVAILABLE)
        return
    if not wanted.uid:
        yield from _volume_phase(
            volume, AVAILABLE
        )  # It waits for the claim that it is reserved for.
        return
    yield from _volume_phase(volume, RELEASED)
    is_ours = volume.metadata.annotations.get(PROVISIONED_BY) == HOST_PATH
    policy = volume.spec.persistent_volume_reclaim_policy
    if policy == DELETE and is_ours and volume.metadata.deletion_timestamp is None:
        yield Delete(Target.of(volume))


def _volume_phase(volume: PersistentVolume, phase: str) -> Iterator[Step]:
    if volume.status.phase != phase:
        yield Update(replace(volume, status=replace(volume.status, phase=phase)), "status")
