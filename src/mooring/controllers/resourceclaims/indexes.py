"""How claims, pods and groups are found by each other; every key is `namespace/what`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from mooring.api.core.pod import Pod
from mooring.api.resource.v1 import ResourceClaim
from mooring.api.scheduling import PodGroup
from mooring.claims.owners import Owner, controller_of, group_name, is_group, is_pod
from mooring.claims.references import claim_names
from mooring.client.objects import Objects

BY_CLAIM = "claims used"
BY_TEMPLATE = "claim templates"
BY_GROUP = "pod group"
BY_OWNER = "claim owner"
BY_CONSUMER = "claim consumers"


def prepare(objects: Objects) -> None:
    """Keep all indexes of this package."""
    for struct in (Pod, PodGroup):
        objects.index(struct, BY_CLAIM, _claims)
        objects.index(struct, BY_TEMPLATE, _templates)
    objects.index(Pod, BY_GROUP, _group)
    objects.index(ResourceClaim, BY_OWNER, _owner)
    objects.index(ResourceClaim, BY_CONSUMER, _consumers)


def owned_claims(objects: Objects, owner: Owner) -> Collection[ResourceClaim]:
    """Return the claims that this very pod or group controls."""
    key = f"{owner.metadata.namespace}/{owner.metadata.uid}"
    return objects.by(ResourceClaim, BY_OWNER, key)


def reserved_claims(objects: Objects, consumer: Owner) -> Collection[ResourceClaim]:
    """Return the claims that are reserved for this very pod or group."""
    key = f"{consumer.metadata.namespace}/{consumer.metadata.uid}"
    return objects.by(ResourceClaim, BY_CONSUMER, key)


def members(objects: Objects, namespace: str, group: str) -> Collection[Pod]:
    """Return the pods of a group, whether it is there or not."""
    return objects.by(Pod, BY_GROUP, f"{namespace}/{group}")


def owner_names(claim: ResourceClaim | None, *, groups: bool) -> Iterator[str]:
    """Give the name of the pod, or of the group, that controls a claim."""
    controller = None if claim is None else controller_of(claim.metadata)
    if controller is not None and (is_group if groups else is_pod)(controller):
        yield controller.name


def _claims(owner: Owner) -> Iterable[str]:
    if not owner.spec.resource_claims:
        return ()
    return [f"{owner.metadata.namespace}/{name}" for name in claim_names(owner)]


def _templates(owner: Owner) -> Iterable[str]:
    names = {each.resource_claim_template_name for each in owner.spec.resource_claims}
    return [f"{owner.metadata.namespace}/{name}" for name in names if name is not None]


def _group(pod: Pod) -> Iterable[str]:
    name = group_name(pod)
    return () if name is None else (f"{pod.metadata.namespace}/{name}",)


def _owner(claim: ResourceClaim) -> Iterable[str]:
    controller = controller_of(claim.metadata)
    return () if controller is None else (f"{claim.metadata.namespace}/{controller.uid}",)


def _consumers(claim: ResourceClaim) -> Iterable[str]:
    return {f"{claim.metadata.namespace}/{each.uid}" for each in claim.status.reserved_for}
