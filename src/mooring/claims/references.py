"""The claim that an entry of a pod or of a group means, by name.

# entry: one of spec.resourceClaims; it names a claim, or a template to make one from
"""

from __future__ import annotations

from msgspec import Struct

from mooring.api.core.pod import Pod, PodResourceClaim
from mooring.api.core.podstatus import PodResourceClaimStatus
from mooring.api.scheduling import PodGroup, PodGroupResourceClaim, PodGroupResourceClaimStatus
from mooring.claims.owners import Owner, key_of

Entry = PodResourceClaim | PodGroupResourceClaim
EntryStatus = PodResourceClaimStatus | PodGroupResourceClaimStatus

UNSUPPORTED = "none of the supported fields are set"


class Named(Struct, frozen=True):
    """The claim with this name; one that was made from a template must be the owner's."""

    name: str
    is_generated: bool


class NotNeeded(Struct, frozen=True):
    """No claim was made, on purpose; the entry can be ignored."""


class NotCreated(Struct, frozen=True):
    """The claim is still to be made from its template."""

    reason: str


class Unsupported(Struct, frozen=True):
    """The entry is of a form that we do not know."""

    reason: str


Reference = Named | NotNeeded | NotCreated | Unsupported


def reference_of(owner: Owner, entry: Entry) -> Reference:
    """Return the claim that an entry of the pod or group means."""
    if entry.resource_claim_name is not None:
        return Named(entry.resource_claim_name, is_generated=False)
    shown = _shown(owner)
    if entry.resource_claim_template_name is None:
        name = f'"{entry.name}"' if isinstance(owner, Pod) else entry.name
        return Unsupported(f"{shown}, spec.resourceClaim {name}: {UNSUPPORTED}")
    for status in statuses_of(owner):
        if status.name == entry.name:
            name_made = status.resource_claim_name
            return NotNeeded() if name_made is None else Named(name_made, is_generated=True)
    return NotCreated(f"{shown}: ResourceClaim not created yet")


def statuses_of(owner: Owner) -> tuple[EntryStatus, ...]:
    """Return what the status of the pod or group says of claims made for its entries."""
    return owner.status.resource_claim_statuses or ()


def claim_names(owner: Owner) -> tuple[str, ...]:
    """Return the names of the claims that the entries of the pod or group mean, each once."""
    references = (reference_of(owner, entry) for entry in owner.spec.resource_claims)
    return tuple(sorted({each.name for each in references if isinstance(each, Named)}))


def claims_to_release(pod: Pod) -> tuple[str, ...]:
    """Return the names of all claims to look at once the pod needs them no more.

    The special claim for extended resources is among them, whatever the gates are now.
    """
    special = pod.status.extended_resource_claim_status
    return (*claim_names(pod), *(() if special is None else (special.resource_claim_name,)))


def _shown(owner: Owner) -> str:
    key = key_of(owner.metadata)
    return f"PodGroup {key}" if isinstance(owner, PodGroup) else f'pod "{key}"'
