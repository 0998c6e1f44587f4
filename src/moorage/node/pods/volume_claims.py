"""PersistentVolumeClaims of pods: finds the folder of this machine behind each of them.

    volume of the pod ─► claim, bound ─► volume, bound to that claim ─► hostPath or local path

A volume of another kind needs a driver that this node does not have, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from moorage.api.codec import to_tree
from moorage.api.core import Pod
from moorage.api.core.persistent_volume import (
    BOUND,
    CLAIM_PROTECTION,
    FILESYSTEM,
    PersistentVolume,
    PersistentVolumeClaim,
)
from moorage.client.errors import ClientError
from moorage.node.errors import ConfigError, SourceError
from moorage.node.pods.container_environment import ObjectClient

_OTHERS = frozenset(
    {
        *("accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity"),
        *("persistentVolumeReclaimPolicy", "storageClassName", "volumeMode"),
        "volumeAttributesClassName",
    }
)


class ClaimedVolume(NamedTuple):
    """The folder behind a claim."""

    path: str
    type: str = ""  # of a hostPath


ClaimedVolumes = Mapping[str, ClaimedVolume]  # by the name of the pod's volume


async def claimed_volumes(client: ObjectClient, pod: Pod) -> ClaimedVolumes:
    """Return the folders behind the claims of a pod, or raise ConfigError or SourceError."""
    return {
        volume: await _claimed(client, pod, volume, claim, is_own=is_own)
        for volume, claim, is_own in _claims(pod)
    }


def _claims(pod: Pod) -> Iterator[tuple[str, str, bool]]:
    """Yield volumes with their claims, and whether the pod must own the claim."""
    for each in pod.spec.volumes:
        name = str(each.get("name", ""))
        if (source := each.get("persistentVolumeClaim")) is not None:
            yield name, str(source.get("claimName", "")), False
        elif each.get("ephemeral") is not None:
            yield name, f"{pod.metadata.name}-{name}", True


async def _claimed(
    client: ObjectClient, pod: Pod, volume: str, claim: str, *, is_own: bool
) -> ClaimedVolume:
    namespace = pod.metadata.namespace
    try:
        found = await client.get(PersistentVolumeClaim, namespace, claim)
        fault = _claim_fault(pod, claim, found, is_own=is_own)
        if found is None or fault:
            raise ConfigError(fault)
        behind = await client.get(PersistentVolume, "", found.spec.volume_name)
        return _folder(volume, found, behind)
    except ConfigError as error:
        where = f"error processing PVC {namespace}/{claim}"
        raise ConfigError(_failed(volume, f"{where}: {error}")) from None
    except ClientError as error:
        raise SourceError(
            _failed(volume, f"failed to fetch PVC from API server: {error}")
        ) from None


def _failed(volume: str, text: str) -> str:
    return f'MountVolume.SetUp failed for volume "{volume}" : {text}'


def _claim_fault(pod: Pod, name: str, claim: PersistentVolumeClaim | None, *, is_own: bool) -> str:
    if claim is None:
        missing = f'persistentvolumeclaims "{name}" not found'
        return f"failed to fetch PVC from API server: {missing}"
    metadata = claim.metadata
    if metadata.deletion_timestamp is not None and CLAIM_PROTECTION not in metadata.finalizers:
        return "PVC is being deleted"
    if is_own and all(each.uid != pod.metadata.uid for each in metadata.owner_references):
        place = f"{metadata.namespace}/{metadata.name}"
        own = f"{pod.metadata.namespace}/{pod.metadata.name}"
        return f"PVC {place} was not created for pod {own} (pod is not owner)"
    if claim.status.phase != BOUND:
        return "PVC is not bound"
    return "" if claim.spec.volume_name else "PVC has empty pvc.Spec.VolumeName"


def _folder(
    volume: str, claim: PersistentVolumeClaim, behind: PersistentVolume | None
) -> ClaimedVolume:
    name, uid = claim.spec.volume_name, claim.metadata.uid
    if behind is None:
        missing = f'persistentvolumes "{name}" not found'
        raise ConfigError(f"failed to fetch PV {name} from API server: {missing}")
    reference = behind.spec.claim_ref
    if reference is None:
        text = "has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
        raise ConfigError(f"found PV object {name} but it {text}")
    if reference.uid != uid:
        text = f"its pv.Spec.ClaimRef.UID {reference.uid} does not point to claim.UID {uid}"
        raise ConfigError(f"found PV object {name} but {text}")
    mode = behind.spec.volume_mode or FILESYSTEM
    if mode != FILESYSTEM:
        raise ConfigError(
            f"volume {volume} has volumeMode {mode}, but is specified in volumeMounts"
        )
    return _source(behind)


def _source(volume: PersistentVolume) -> ClaimedVolume:
    for source, type_ in ((volume.spec.host_path, ""), (volume.spec.local, "Directory")):
        if isinstance(source, Mapping):
            return ClaimedVolume(str(source.get("path", "")), str(source.get("type") or type_))
    kinds = ", ".join(_kinds(volume)) or "no kind"
    name = volume.metadata.name
    raise ConfigError(f"PV {name} is of {kinds}, which is not supported by this node")


def _kinds(volume: PersistentVolume) -> Iterator[str]:
    tree: dict[str, Any] = to_tree(volume.spec)
    return (name for name, value in tree.items() if name not in _OTHERS and value)
