"""From a pod's claims to requests for drivers, and from drivers' responses to devices (pure).

Responses are untrusted: they may be about other claims, about too few, or too large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from moorage.api.cdi import CdiId
from moorage.api.core import Pod
from moorage.api.core.pod import Container, PodResourceClaim
from moorage.api.gates import Gate, Gates
from moorage.api.resource.v1 import DeviceRequestAllocationResult, ResourceClaim
from moorage.claims.pod_claims import (
    ClaimFeatures,
    ClaimRejection,
    Named,
    NotNeeded,
    check_made_for_pod,
    reference_of,
)
from moorage.claims.reservations import is_reserved_for
from moorage.node.dra.claim_info import (
    ALL,
    PREPARE,
    UNPREPARE,
    AllocatedDevice,
    ClaimInfo,
    ClaimKey,
    DriverShare,
    PreparedDevice,
)
from moorage.node.errors import TEXT_CHARACTERS_MAX, ResponseError
from moorage.wire import dra_v1_pb2 as dra

GATE_OFF = "DRAOptionalNodeOperations feature gate is disabled on kubelet"
DEVICES_MAX = 1024  # of one driver for one claim; a claim itself has at most 32
NAMES_MAX = 128  # requests or CDI ids of one device
TEXT_BYTES_MAX = 1024  # of one name


class NodeFeatures(Struct, frozen=True):
    """The features that decide how a node handles claims."""

    claims: ClaimFeatures
    extended: bool = True  # claims for extended resources
    optional_operations: bool = True
    health_messages: bool = True


def features_of(gates: Gates) -> NodeFeatures:
    """Return the features that feature gates enable."""
    return NodeFeatures(
        claims=ClaimFeatures.of(gates),
        extended=gates.enabled(Gate.DRA_EXTENDED_RESOURCE),
        optional_operations=gates.enabled(Gate.DRA_OPTIONAL_NODE_OPERATIONS),
        health_messages=gates.enabled(Gate.RESOURCE_HEALTH_STATUS_MESSAGE),
    )


def entries_of(pod: Pod, features: NodeFeatures) -> tuple[PodResourceClaim, ...]:
    """Return the claim entries of a pod; the claim for its extended resources is last."""
    special = pod.status.extended_resource_claim_status
    if special is None or not features.extended:
        return pod.spec.resource_claims
    extended = PodResourceClaim(resource_claim_name=special.resource_claim_name)
    return (*pod.spec.resource_claims, extended)


def claim_name(pod: Pod, entry: PodResourceClaim) -> Named | ClaimRejection | None:
    """Return the claim that an entry means, None if it needs none, or why it is unknown."""
    reference = reference_of(pod, entry)
    if isinstance(reference, NotNeeded):
        return None
    return reference if isinstance(reference, Named) else ClaimRejection(reference.reason)


def check_found(
    pod: Pod, reference: Named, claim: ResourceClaim | None, features: NodeFeatures
) -> ClaimInfo | ClaimRejection:
    """Return the claim as this node needs it, or why the pod cannot have it now."""
    if claim is None:
        name = reference.name
        text = f'resourceclaims.resource.k8s.io "{name}" not found'
        return ClaimRejection(f"fetch ResourceClaim {name}: {text}")
    return check_claim(pod, claim, features, is_generated=reference.is_generated)


def check_claim(
    pod: Pod, claim: ResourceClaim, features: NodeFeatures, *, is_generated: bool
) -> ClaimInfo | ClaimRejection:
    """Return the claim as this node needs it, or why the pod may not use it."""
    name = claim.metadata.name
    if is_generated and (refused := check_made_for_pod(claim, pod, features.claims)):
        return refused
    if not is_reserved_for(claim, pod, features.claims):
        return ClaimRejection(
            f"pod {pod.metadata.name} ({pod.metadata.uid}) is not allowed to use "
            f"ResourceClaim {name} ({claim.metadata.uid})"
        )
    if claim.status.allocation is None:
        return ClaimRejection(f"ResourceClaim {name}: not allocated")
    results = claim.status.allocation.devices.results
    drivers = driver_shares(results)
    if not features.optional_operations and any(share.skips for share in drivers.values()):
        return ClaimRejection(f"ResourceClaim {name}: {GATE_OFF}")
    return ClaimInfo(
        ClaimKey(claim.metadata.namespace, name),
        claim.metadata.uid,
        drivers=drivers,
        allocated=frozenset(
            AllocatedDevice(each.driver, each.pool, each.device, each.share_id or "")
            for each in results
            if not each.admin_access
        ),
    )


def driver_shares(results: tuple[DeviceRequestAllocationResult, ...]) -> dict[str, DriverShare]:
    """Return the drivers of a claim, each with the operations that all its results skip."""
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

    A claim that does not exist yet is skipped; preparing the pod reports it.
    """
    for entry in pod.spec.resource_claims:
        reference = reference_of(pod, entry)
        if isinstance(reference, Named):
            for used in container.resources.claims:
                if used.name == entry.name:
                    yield ClaimKey(pod.metadata.namespace, reference.name), used.request
    yield from extended_requests_of(pod, container, features)


def extended_requests_of(
    pod: Pod, container: Container, features: NodeFeatures
) -> Iterator[tuple[ClaimKey, str]]:
    """Yield the special claim and its requests that serve a container's extended resources."""
    special = pod.status.extended_resource_claim_status
    if special is None or not features.extended:
        return
    for mapping in special.request_mappings:
        amount = container.resources.requests.get(mapping.resource_name)
        if mapping.container_name == container.name and amount is not None and not amount.is_zero:
            key = ClaimKey(pod.metadata.namespace, special.resource_claim_name)
            yield key, mapping.request_name


def container_of(pod: Pod, name: str) -> Container | None:
    """Return a container of a pod, of any kind."""
    spec = pod.spec
    everything = (*spec.init_containers, *spec.containers, *spec.ephemeral_containers)
    return next((each for each in everything if each.name == name), None)


# --- responses ------------------------------------------------------------------------------------


def request_for(claims: Sequence[ClaimInfo], request: type[Any]) -> Any:
    """Return the message that names claims."""
    return request(
        claims=[dra.Claim(namespace=c.key.namespace, uid=c.uid, name=c.key.name) for c in claims]
    )


def read_prepared(
    claims: Sequence[ClaimInfo], answers: Mapping[str, dra.NodePrepareResourceResponse]
) -> Iterator[tuple[ClaimInfo, tuple[PreparedDevice, ...]]]:
    """Yield the devices of each claim; raises ResponseError at the first that failed."""
    for claim, answer in _matched(PREPARE, claims, answers):
        if len(answer.devices) > DEVICES_MAX:
            text = f"{len(answer.devices)} devices are more than {DEVICES_MAX}"
            raise ResponseError(_failed(PREPARE, claim, text))
        try:
            yield claim, tuple(_prepared_device(each) for each in answer.devices)
        except ValueError as error:
            raise ResponseError(_failed(PREPARE, claim, f"bad device: {error}")) from error
    _check_complete(PREPARE, claims, answers)


def check_unprepared(
    claims: Sequence[ClaimInfo], answers: Mapping[str, dra.NodeUnprepareResourceResponse]
) -> None:
    """Raise ResponseError unless all claims were unprepared."""
    for _ in _matched(UNPREPARE, claims, answers):
        pass
    _check_complete(UNPREPARE, claims, answers)


def _matched(
    operation: str, claims: Sequence[ClaimInfo], answers: Mapping[str, Any]
) -> Iterator[tuple[ClaimInfo, Any]]:
    by_uid = {claim.uid: claim for claim in claims}
    for uid in sorted(answers):
        if uid not in by_uid:
            raise ResponseError(f"{operation} returned result for unknown claim UID {uid[:256]}")
    for uid, claim in by_uid.items():
        if uid not in answers:
            continue
        if answers[uid].error:
            raise ResponseError(_failed(operation, claim, answers[uid].error))
        yield claim, answers[uid]


def _check_complete(
    operation: str, claims: Sequence[ClaimInfo], answers: Mapping[str, Any]
) -> None:
    if missing := sum(claim.uid not in answers for claim in claims):
        raise ResponseError(f"{operation} skipped {missing} ResourceClaims")


def _failed(operation: str, claim: ClaimInfo, text: str) -> str:
    bounded = text if len(text) <= TEXT_CHARACTERS_MAX else text[:TEXT_CHARACTERS_MAX] + "…"
    return f"{operation} failed for ResourceClaim {claim.key.name}: {bounded}"


def _prepared_device(device: dra.Device) -> PreparedDevice:
    for names in (device.request_names, device.cdi_device_ids):
        if len(names) > NAMES_MAX:
            raise ValueError(f"{len(names)} names are more than {NAMES_MAX}")
    ids = tuple(device.cdi_device_ids)
    for text in (*device.request_names, *ids, device.pool_name, device.device_name):
        if len(text.encode()) > TEXT_BYTES_MAX:
            raise ValueError(f"{text[:64]!r}… is longer than {TEXT_BYTES_MAX} bytes")
    for each in ids:
        CdiId.parse(each)
    return PreparedDevice(
        pool=device.pool_name,
        name=device.device_name,
        share_id=device.share_id if device.HasField("share_id") else None,
        requests=tuple(device.request_names),
        cdi_ids=ids,
    )
