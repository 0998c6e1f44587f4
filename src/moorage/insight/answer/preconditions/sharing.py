"""Claims that as many pods share as can: a second claim, or a claim for each pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moorage.api.codec import to_tree
from moorage.api.core.pod import PodResourceClaim
from moorage.api.resource.v1 import ResourceClaim
from moorage.claims.pod_claims import controller_of
from moorage.insight.answer.changes.edits import Edit, ObjectChange
from moorage.insight.answer.changes.sources import Source
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.answer.holders import waits_for_a_user
from moorage.insight.plan.decisions import is_full_claim
from moorage.validation.resource_claim_status import RESERVED_FOR_MAX


def full_claims(case: Case) -> Iterator[Finding]:
    """Find a claim that cannot be reserved for one pod more."""
    if not is_full_claim(case.explanation.pending):
        return
    for index, entry in enumerate(case.pod.spec.resource_claims):
        name = entry.resource_claim_name
        claim = case.cluster.find_claim(case.namespace, name) if name else None
        if claim is None or len(claim.status.reserved_for) < RESERVED_FOR_MAX:
            continue
        yield Finding(
            f"claim {name} is reserved for {len(claim.status.reserved_for)} pods, and a claim can "
            f"be reserved for {RESERVED_FOR_MAX} at most: the pod is never bound",
            (*_proposals(case, index, entry, claim), *waits_for_a_user(case, claim)),
        )


def _proposals(
    case: Case, index: int, entry: PodResourceClaim, claim: ResourceClaim
) -> Iterator[Proposal]:
    source = case.sources.of_pod(case.pod)
    if source is None:
        return
    name = claim.metadata.name
    if controller_of(case.pod.metadata) is None:
        other = _free_name(case, name)
        tree = _tree("ResourceClaim", other, case.namespace, to_tree(claim)["spec"])
        edit = Edit(("resourceClaims", index, "resourceClaimName"), other)
        text = f"create a second claim, {other}, like {name}, and let the pod use it"
        new = ObjectChange("ResourceClaim", case.namespace, other, new=tree)
        yield Proposal(text, FixRank.GIVE, (new, source.change(edit)))
    yield from _own_claims(case, source, index, entry, claim)


def _own_claims(
    case: Case, source: Source, index: int, entry: PodResourceClaim, claim: ResourceClaim
) -> Iterator[Proposal]:
    """Yield a template with the spec of the claim, from which each pod gets its own."""
    name = claim.metadata.name
    if case.sources.find("ResourceClaimTemplate", case.namespace, name) is not None:
        return
    spec = {"spec": to_tree(claim)["spec"]}
    tree = _tree("ResourceClaimTemplate", name, case.namespace, spec)
    edit = Edit(("resourceClaims", index), {"name": entry.name, "resourceClaimTemplateName": name})
    text = f"give each pod a claim of its own: a ResourceClaimTemplate {name} instead of the claim"
    new = ObjectChange("ResourceClaimTemplate", case.namespace, name, new=tree)
    yield Proposal(text, FixRank.GIVE, (new, source.change(edit)))


def _free_name(case: Case, name: str) -> str:
    """Return the name with the first number that no claim has."""
    taken = {claim.metadata.name for claim in case.snapshot.claims}
    return next(each for n in range(2, len(taken) + 3) if (each := f"{name}-{n}") not in taken)


def _tree(kind: str, name: str, namespace: str, spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
