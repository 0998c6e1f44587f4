"""Provisions volumes: host directories, as `kubernetes.io/host-path` does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from moorage.api.core.namespace import ObjectReference
from moorage.api.core.node import Node
from moorage.api.core.persistent_volume import (
    BLOCK,
    DELETE,
    FILESYSTEM,
    PROVISIONED_BY,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
)
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.storage import StorageClass
from moorage.client.indexer import Indexer
from moorage.client.writes import Create, RecordEvent
from moorage.controllers.controller import Step

HOST_PATH: Final = "kubernetes.io/host-path"  # the provisioner
FOLDER: Final = "/tmp/hostpath_pv"  # noqa: S108 - where Kubernetes' provisioner puts volumes, too
HOSTNAME: Final = "kubernetes.io/hostname"
NOTHING: Final = Quantity.from_int(0)


def provision(
    objects: Indexer, claim: PersistentVolumeClaim, found: StorageClass, node: str
) -> Iterator[Step]:
    """Yield the creation of a volume for a claim, or an event that says why there is none."""
    if words := _refusal(claim, found):
        yield RecordEvent(claim, "ProvisioningFailed", words, is_warning=True)
        return
    volume = _volume_for(objects, claim, found, node)
    yield Create(volume)
    words = f"Successfully provisioned volume {volume.metadata.name} using {HOST_PATH}"
    yield RecordEvent(claim, "ProvisioningSucceeded", words)


def _refusal(claim: PersistentVolumeClaim, found: StorageClass) -> str:
    """Return what a claim requires that a directory cannot offer, or "" if nothing."""
    wanted = claim.spec
    if wanted.data_source is not None or wanted.data_source_ref is not None:
        only = "Only CSI plugin can provision a claim with a datasource"
        return f'plugin "{HOST_PATH}" is not a CSI plugin. {only}'
    if found.mount_options:
        options = " ".join(found.mount_options)
        has = f'StorageClass "{found.metadata.name}" has mount options [{options}]'
        return f"Mount options are not supported by the provisioner but {has}"
    if wanted.selector is not None:
        return "claim.Spec.Selector is not supported for dynamic provisioning"
    if wanted.volume_mode == BLOCK:
        unsupported = f"{HOST_PATH} does not support block volume provisioning"
        return f"Failed to create provisioner: {unsupported}"
    return ""


def _volume_for(
    objects: Indexer, claim: PersistentVolumeClaim, found: StorageClass, node: str
) -> PersistentVolume:
    """Return the new volume of a claim."""
    name = f"pvc-{claim.metadata.uid}"
    folder = found.parameters.get("path", FOLDER).rstrip("/")
    spec = PersistentVolumeSpec(
        capacity={"storage": claim.spec.resources.requests.get("storage", NOTHING)},
        host_path={"path": f"{folder}/{name}", "type": "DirectoryOrCreate"},
        access_modes=claim.spec.access_modes,
        claim_ref=reference(claim),
        persistent_volume_reclaim_policy=found.reclaim_policy or DELETE,
        storage_class_name=found.metadata.name,
        volume_mode=claim.spec.volume_mode or FILESYSTEM,
        node_affinity=_affinity(objects, node),
    )
    metadata = ObjectMeta(name=name, annotations={PROVISIONED_BY: HOST_PATH})
    return PersistentVolume(metadata=metadata, spec=spec)


def _affinity(objects: Indexer, node: str) -> Any:
    """Return the affinity to a node, because a directory exists on one node only."""
    if not node:
        return None
    found = objects.get(Node, "", node)
    host = node if found is None else found.metadata.labels.get(HOSTNAME, "")
    rule = {"key": HOSTNAME, "operator": "In", "values": [host]}
    term: dict[str, Any] = {"matchExpressions": [rule]}
    if not host:
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"required": {"nodeSelectorTerms": [term]}}


def reference(claim: PersistentVolumeClaim) -> ObjectReference:
    """Return the reference that reserves a volume for a claim."""
    metadata = claim.metadata
    return ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )
