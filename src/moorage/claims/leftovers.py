"""Leftover allocations: a claim has devices of a scheduler, and is reserved for nobody.

A scheduler, Moorage's as well as kube-scheduler, stores the devices of a claim and its reservation
in one write, and whoever removes the last reservation should remove the devices. Where that went
wrong, Kubernetes keeps the devices until a pod uses the claim or it is deleted. Others may give
devices to a claim before anybody uses it: a user, a driver, another controller. These wait for
their first consumer. The API server's managedFields tell both kinds apart.

The resource claim controller frees a leftover when all of this holds:

1. The claim has devices, its finalizer and no reservation, and is not being deleted.
2. Of status.allocation only schedulers are field managers. Where nobody is known, it stays.
3. The controller has seen it so for a minute. A scheduler that tries a pod again reserves sooner.
4. No pod that is on a node uses it; such a pod gets its reservation, as it may run.

The write names the version that was looked at. So if a scheduler reserves the claim meanwhile, the
controller is refused and looks again; if the controller is first, the scheduler is refused, reads
the claim and decides anew. Neither order loses a reservation or gives a device two owners.
"""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.api.meta import ManagedFieldsEntry
from moorage.api.resource.v1 import FINALIZER, ResourceClaim

SCHEDULER_MANAGER: Final = "kube-scheduler"  # as whom every scheduler writes fields
LEFT_AFTER_S: Final = 60.0
# What everybody says of such a claim, and how its devices become free.
UNRESERVED: Final = "reserved for nobody"
HOW_TO_FREE: Final = "delete it, or clear its status.allocation"


def is_unreserved(claim: ResourceClaim) -> bool:
    """Return whether a claim has devices, and is reserved for nobody."""
    return claim.status.allocation is not None and not claim.status.reserved_for


def freeing_command(claim: ResourceClaim) -> str:
    """Return the command that frees the devices of a claim and keeps the claim."""
    metadata = claim.metadata
    namespace = f" -n {metadata.namespace}" if metadata.namespace else ""
    patch = '{"status":{"allocation":null}}'
    options = f"--subresource=status --type=merge -p '{patch}'"
    return f"kubectl patch resourceclaim {metadata.name}{namespace} {options}"


def may_be_left_over(claim: ResourceClaim) -> bool:
    """Return whether a claim is a leftover if a scheduler allocated it."""
    is_deleting = claim.metadata.deletion_timestamp is not None
    return is_unreserved(claim) and FINALIZER in claim.metadata.finalizers and not is_deleting


def is_allocated_by_scheduler(claim: ResourceClaim) -> bool:
    """Return whether a claim with its managedFields has its devices from a scheduler alone."""
    managers = {each.manager for each in claim.metadata.managed_fields if _owns_allocation(each)}
    return managers == {SCHEDULER_MANAGER}


def _owns_allocation(entry: ManagedFieldsEntry) -> bool:
    try:
        fields = msgspec.json.decode(entry.fields_v1, type=dict[str, msgspec.Raw])
        status = msgspec.json.decode(fields.get("f:status", b"{}"), type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return False
    return "f:allocation" in status
