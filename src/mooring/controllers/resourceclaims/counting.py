"""What is counted of claims, under Kubernetes' names; those of the KEPs are aliases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mooring.api.resource.v1 import (
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    POD_CLAIM_ANNOTATION,
    ResourceClaim,
)
from mooring.claims.owners import controller_of
from mooring.client.objects import Objects
from mooring.client.writes import Create, Write
from mooring.kit.metrics import Counts, Family, Labels, Level


class ClaimMetrics:
    """The counts that the loops of this package share."""

    def __init__(self) -> None:
        self.creates = Counts(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "Number of ResourceClaim creation requests, by outcome.",
            ("status", "admin_access", "owner_api_group", "owner_api_kind"),
            aliases=("resourceclaim_controller_creates_total",),
        )

    def created(self, write: Write, status: str) -> None:
        """Count a claim that was made, or could not be made; other writes do not count."""
        if isinstance(write, Create) and isinstance(write.value, ResourceClaim):
            claim = write.value
            self.creates.add(status, admin_access(claim), *_owner(claim))

    def families(self, objects: Objects) -> Iterator[Family]:
        """Give all metrics; the number of claims is counted when it is read."""
        yield self.creates
        yield Level(
            "dynamic_resource_allocation_resource_claims",
            "Number of ResourceClaims by allocation, admin access and source: a template, "
            "extended resources, or empty for those that a user made.",
            ("allocated", "admin_access", "source"),
            lambda: claim_counts(objects),
            aliases=("resourceclaim_controller_resource_claims",),
        )


def claim_counts(objects: Objects) -> Counter[Labels]:
    """Return how many claims there are: allocated or not, with admin access or not, by source."""
    return Counter(
        (_word(claim.status.allocation is not None), admin_access(claim), _source(claim))
        for claim in objects.all(ResourceClaim)
    )


def admin_access(claim: ResourceClaim) -> str:
    """Return whether a request wants admin access, as a label."""
    requests = claim.spec.devices.requests or ()
    return _word(any(each.exactly and each.exactly.admin_access for each in requests))


def _source(claim: ResourceClaim) -> str:
    annotations = claim.metadata.annotations
    if annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true":
        return "extended_resource"
    return "resource_claim_template" if annotations.get(POD_CLAIM_ANNOTATION) else ""


def _owner(claim: ResourceClaim) -> tuple[str, str]:
    controller = controller_of(claim.metadata)
    if controller is None:
        return "", ""
    group, slash, _ = controller.api_version.partition("/")
    return (group if slash else ""), controller.kind


def _word(truth: bool) -> str:
    return "true" if truth else "false"
