"""The claims that a pod uses, found and checked: what must be there before it is scheduled."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from mooring.api.core.pod import Pod, PodResourceClaim
from mooring.api.resource.v1 import ResourceClaim
from mooring.claims.features import Features
from mooring.claims.owners import check_made_for_pod
from mooring.claims.references import Named, NotNeeded, reference_of
from mooring.claims.refusals import Refused

# Finds a claim by namespace and name.
FindClaim = Callable[[str, str], ResourceClaim | None]


class Use(Struct, frozen=True):
    """An entry of the pod and the claim that it means."""

    entry: PodResourceClaim
    claim: ResourceClaim


def uses_of(pod: Pod, find: FindClaim, features: Features) -> tuple[Use, ...] | Refused:
    """Return the claims that the pod uses, in order, or why the first of them is not to be had."""
    uses = []
    for entry in pod.spec.resource_claims:
        match _use(pod, entry, find, features):
            case Use() as use:
                uses.append(use)
            case Refused() as refused:
                return refused
            case None:
                pass
    return tuple(uses)


def _use(
    pod: Pod, entry: PodResourceClaim, find: FindClaim, features: Features
) -> Use | Refused | None:
    reference = reference_of(pod, entry)
    if isinstance(reference, NotNeeded):
        return None
    if not isinstance(reference, Named):
        return Refused(reference.reason)
    namespace = pod.metadata.namespace
    claim = find(namespace, reference.name)
    if claim is None:
        return Refused(f'could not find ResourceClaim "{namespace}/{reference.name}"')
    if claim.metadata.deletion_timestamp is not None:
        return Refused(f'resourceclaim "{claim.metadata.name}" is being deleted')
    if reference.is_generated and (refused := check_made_for_pod(claim, pod, features)):
        return refused
    return Use(entry, claim)
