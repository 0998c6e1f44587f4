"""What could not be read of a live cluster: nothing is said about it as if it were known.

Whoever may not list slices sees a cluster without devices. That no driver publishes any is not the
cause then; that nobody may look is. The scheduler may look, so its own words are passed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from moorage.api.core.pod import POD_SCHEDULED
from moorage.claims.extended_resources import is_device_resource
from moorage.claims.pod_claims import Named, group_name, reference_of
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.messages import listed

WORDS_MAX: Final = 300


class _Need(NamedTuple):
    """A kind that decides about a pod, and what is not known without its objects."""

    kind: str
    resource: str
    unknown: str


NODES: Final = _Need("Node", "nodes", "which node would take the pod")
CLASSES: Final = _Need("DeviceClass", "deviceclasses", "which devices its claims may have")
SLICES: Final = _Need("ResourceSlice", "resourceslices", "which devices there are")


def unread_findings(case: Case) -> Iterator[Finding]:
    """Find what decides about the pod and could not be read."""
    hidden = [need for need in _needs(case) if _is_hidden(case, need.kind)]
    if not hidden:
        return
    resources = listed([each.resource for each in hidden])
    yield Finding(
        f"{resources} may not be read with these rights, so {hidden[0].unknown} is not known",
        (*_words_of_scheduler(case), Proposal(_advice(resources), FixRank.ADVICE)),
    )


def _advice(resources: str) -> str:
    return (
        f"ask an administrator for the right to list {resources}, or for an archive of moor "
        "snapshot, which --on reads"
    )


def _words_of_scheduler(case: Case) -> Iterator[Proposal]:
    for each in case.pod.status.conditions:
        if each.type == POD_SCHEDULED and each.status == "False" and each.message:
            theirs, sign, ours = each.message.partition("Moorage: ")
            words = ours if sign else theirs
            yield Proposal(f"see what the scheduler says: {words[:WORDS_MAX]}", FixRank.ADVICE)


def _needs(case: Case) -> Iterator[_Need]:
    """Yield the kinds that decide about the pod, as far as they are in question."""
    pod = case.pod
    for entry in pod.spec.resource_claims:
        found = reference_of(pod, entry)
        if isinstance(found, Named):
            if case.cluster.find_claim(case.namespace, found.name) is None:
                yield _Need("ResourceClaim", "resourceclaims", f"whether claim {found.name} exists")
        elif entry.resource_claim_template_name is not None:
            name = entry.resource_claim_template_name
            if case.sources.find("ResourceClaimTemplate", case.namespace, name) is None:
                unknown = f"whether template {name} exists"
                yield _Need("ResourceClaimTemplate", "resourceclaimtemplates", unknown)
    group = group_name(pod)
    if group is not None and (case.namespace, group) not in case.cluster.groups:
        yield _Need("PodGroup", "podgroups", f"whether pod group {group} exists")
    yield NODES
    resources = (r for c in pod.spec.containers for r in c.resources.requests)
    if pod.spec.resource_claims or any(map(is_device_resource, resources)):
        yield from (SLICES, CLASSES)


def _is_hidden(case: Case, kind: str) -> bool:
    """Whether objects of a kind that the pod may use could not be read."""
    return kind in case.unread and case.namespace not in case.unread[kind]
