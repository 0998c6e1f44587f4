"""Whose a claim is: the pod or the group that it was made for."""

from __future__ import annotations

from mooring.api.core.pod import API_VERSION as POD_VERSION
from mooring.api.core.pod import Pod
from mooring.api.meta import ObjectMeta, OwnerReference
from mooring.api.resource.v1 import ResourceClaim
from mooring.api.scheduling import API_VERSION as GROUP_VERSION
from mooring.api.scheduling import GROUP as SCHEDULING
from mooring.api.scheduling import PodGroup
from mooring.claims.features import Features
from mooring.claims.refusals import Refused

Owner = Pod | PodGroup

POD = "Pod"
POD_GROUP = "PodGroup"


def controller_reference(owner: Owner) -> OwnerReference:
    """Return the reference that makes an object the owner's."""
    is_pod = isinstance(owner, Pod)
    return OwnerReference(
        api_version=POD_VERSION if is_pod else GROUP_VERSION,
        kind=POD if is_pod else POD_GROUP,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
    )


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """Return the owner that controls an object."""
    return next((owner for owner in metadata.owner_references if owner.controller), None)


def is_controlled_by(claim: ResourceClaim, owner: Owner) -> bool:
    """Tell whether this very pod or group controls the claim."""
    controller = controller_of(claim.metadata)
    return controller is not None and controller.uid == owner.metadata.uid


def is_pod(owner: OwnerReference) -> bool:
    """Tell whether a reference is to a pod."""
    return owner.kind == POD and owner.api_version == POD_VERSION


def is_group(owner: OwnerReference) -> bool:
    """Tell whether a reference is to a group of pods, of whatever version."""
    return owner.kind == POD_GROUP and owner.api_version.startswith(f"{SCHEDULING}/")


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    """Return the pod that a claim was made for, if it was made for one."""
    owners = claim.metadata.owner_references
    return next((owner for owner in owners if owner.controller and is_pod(owner)), None)


def group_name(pod: Pod) -> str | None:
    """Return the name of the group that the pod is scheduled with."""
    group = pod.spec.scheduling_group
    return None if group is None else group.pod_group_name


def check_made_for_pod(claim: ResourceClaim, pod: Pod, features: Features) -> Refused | None:
    """Refuse a claim that was made neither for the pod nor, where that counts, for its group."""
    claim_key, pod_key = key_of(claim.metadata), key_of(pod.metadata)
    if claim.metadata.namespace != pod.metadata.namespace:
        return Refused(f"ResourceClaim {claim_key} is not in the same namespace as Pod {pod_key}")
    if is_controlled_by(claim, pod):
        return None
    group = group_name(pod) if features.group_claims else None
    if group is None:
        owners = "Pod is not owner"
    elif _is_of_group(claim, group):
        return None
    else:
        owners = f"neither Pod nor PodGroup {group} is the owner"
    return Refused(f"ResourceClaim {claim_key} was not created for Pod {pod_key} ({owners})")


def check_made_for_group(claim: ResourceClaim, group: PodGroup) -> Refused | None:
    """Refuse a claim that was not made for the group."""
    claim_key, group_key = key_of(claim.metadata), key_of(group.metadata)
    if claim.metadata.namespace != group.metadata.namespace:
        return Refused(
            f"ResourceClaim {claim_key} is not in the same namespace as PodGroup {group_key}"
        )
    if is_controlled_by(claim, group):
        return None
    return Refused(
        f"ResourceClaim {claim_key} was not created for PodGroup {group_key} "
        "(PodGroup is not owner)"
    )


def key_of(metadata: ObjectMeta) -> str:
    """Return namespace and name: `default/claim`."""
    return f"{metadata.namespace}/{metadata.name}"


def _is_of_group(claim: ResourceClaim, name: str) -> bool:
    # By name, because a pod does not know the uid of its group.
    controller = controller_of(claim.metadata)
    return controller is not None and controller.name == name and is_group(controller)
