"""What a claim means for this node: which drivers are to be asked, and whether a pod may use it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mooring.api.core import Pod
from mooring.api.core.container import Container
from mooring.api.core.pod import PodResourceClaim
from mooring.api.gates import Gate, Gates
from mooring.api.resource.v1 import DeviceRequestAllocationResult, ResourceClaim
from mooring.claims.consumers import is_reserved_for
from mooring.claims.features import Features
from mooring.claims.owners import check_made_for_pod
from mooring.claims.references import Named, NotNeeded, reference_of
from mooring.claims.refusals import Refused
from mooring.node.dra.claimstates import ALL, ClaimKey, ClaimState, DriverShare, Slot

GATE_OFF = "DRAOptionalNodeOperations feature gate is disabled on kubelet"


class NodeFeatures(Struct, frozen=True):
    """The features that decide how claims are handled on a node."""

    claims: Features
    extended: bool = True  # claims for extended resources
    optional_operations: bool = True
    health_messages: bool = True


def features_of(gates: Gates) -> NodeFeatures:
    """Return the features of a node that gates switch on."""
    return NodeFeatures(
        claims=Features.of(gates),
        extended=gates.enabled(Gate.DRA_EXTENDED_RESOURCE),
        optional_operations=gates.enabled(Gate.DRA_OPTIONAL_NODE_OPERATIONS),
        health_messages=gates.enabled(Gate.RESOURCE_HEALTH_STATUS_MESSAGE),
    )


def entries_of(pod: Pod, features: NodeFeatures) -> tuple[PodResourceClaim, ...]:
    """Return the entries of a pod; the claim for its extended resources is the last one."""
    special = pod.status.extended_resource_claim_status
    if special is None or not features.extended:
        return pod.spec.resource_claims
    extended = PodResourceClaim(resource_claim_name=special.resource_claim_name)
    return (*pod.spec.resource_claims, extended)


def claim_name(pod: Pod, entry: PodResourceClaim) -> Named | Refused | None:
    """Return which claim an entry means, None for one that needs none, or why that is not known."""
    reference = reference_of(pod, entry)
    if isinstance(reference, NotNeeded):
        return None
    return reference if isinstance(reference, Named) else Refused(reference.reason)


def check_found(
    pod: Pod, reference: Named, claim: ResourceClaim | None, features: NodeFeatures
) -> ClaimState | Refused:
    """Return what a claim means that was looked up, or why the pod cannot have it now."""
    if claim is None:
        name = reference.name
        text = f'resourceclaims.resource.k8s.io "{name}" not found'
        return Refused(f"fetch ResourceClaim {name}: {text}")
    return check_claim(pod, claim, features, is_generated=reference.is_generated)


def check_claim(
    pod: Pod, claim: ResourceClaim, features: NodeFeatures, *, is_generated: bool
) -> ClaimState | Refused:
    """Return what the claim means for this node, or why the pod may not use it."""
    name = claim.metadata.name
    if is_generated and (refused := check_made_for_pod(claim, pod, features.claims)):
        return refused
    if not is_reserved_for(claim, pod, features.claims):
        return Refused(
            f"pod {pod.metadata.name} ({pod.metadata.uid}) is not allowed to use "
            f"ResourceClaim {name} ({claim.metadata.uid})"
        )
    if claim.status.allocation is None:
        return Refused(f"ResourceClaim {name}: not allocated")
    results = claim.status.allocation.devices.results
    drivers = driver_shares(results)
    if not features.optional_operations and any(share.skips for share in drivers.values()):
        return Refused(f"ResourceClaim {name}: {GATE_OFF}")
    return ClaimState(
        ClaimKey(claim.metadata.namespace, name),
        claim.metadata.uid,
        drivers=drivers,
        allocated=frozenset(
            Slot(each.driver, each.pool, each.device, each.share_id or "")
            for each in results
            if not each.admin_access
        ),
    )


def driver_shares(results: tuple[DeviceRequestAllocationResult, ...]) -> dict[str, DriverShare]:
    """Return the drivers of a claim, each with the operations that all of its results skip."""
    skipped: dict[str, set[str]] = {}
    for result in results:
        named = set(result.skip_node_operations)
        before = skipped.get(result.driver)
        if before is None:
            skipped[result.driver] = named
        elif ALL in before or ALL in named:
            skipped[result.driver] = named if ALL in before else before
        else:
            skipped[result.driver] = before & named
    return {
        driver: DriverShare(skips=(ALL,) if ALL in names else tuple(sorted(names)))
        for driver, names in skipped.items()
    }


def requests_of(
    pod: Pod, container: Container, features: NodeFeatures
) -> Iterator[tuple[ClaimKey, str]]:
    """Yield claim and request (empty: all) of everything that a container uses.

    A claim that is not made yet is not used; whoever prepares the pod says so.
    """
    for entry in pod.spec.resource_claims:
        reference = reference_of(pod, entry)
        if isinstance(reference, Named):
            for used in container.resources.claims:
                if used.name == entry.name:
                    yield ClaimKey(pod.metadata.namespace, reference.name), used.request
    special = pod.status.extended_resource_claim_status
    if special is None or not features.extended:
        return
    for mapping in special.request_mappings:
        amount = container.resources.requests.get(mapping.resource_name)
        if mapping.container_name == container.name and amount is not None and not amount.is_zero:
            key = ClaimKey(pod.metadata.namespace, special.resource_claim_name)
            yield key, mapping.request_name


def container_of(pod: Pod, name: str) -> Container | None:
    """Return a container of a pod, of whatever sort."""
    spec = pod.spec
    everything = (*spec.init_containers, *spec.containers, *spec.ephemeral_containers)
    return next((each for each in everything if each.name == name), None)
