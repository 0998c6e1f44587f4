"""Claims made from manifests, compared with a control plane of Kubernetes 1.37."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import pytest
from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.documents import KUBERNETES, read
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.object_reader import read_document
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceSlice,
)
from moorage.api.scheduling import PodGroup
from moorage.api.timestamp import Timestamp
from moorage.claims import (
    ALL_FEATURES,
    AllocatedClaim,
    ClaimRejection,
    claim_from_template,
    claim_statuses,
    consumer_of,
    extended_needs,
    extended_requests,
    extended_status,
    finder,
    group_claim_statuses,
    needs_on_node,
    pod_claim_statuses,
    pod_consumer,
    protected,
    special_claim,
    to_create,
    uses_of,
    with_requests,
)
from moorage.validation.registry import defaulted_hub
from moorage.validation.strategy import Context
from tests.claims.parts import index
from tests.corpus import corpus

S = TypeVar("S")

CONTEXT = Context(gates=Gates.parse(), now=Timestamp(datetime(2026, 1, 1, tzinfo=UTC)))

FROM_TEMPLATES = ("01-basic", "12-podgroup", "14-node-allocatable")
EXTENDED = ("04-extended-explicit", "05-extended-implicit")


class Scene(NamedTuple):
    """The objects that were applied, and those that were recorded."""

    applied: list[Any]
    recorded: dict[str, Any]

    def kept(self, key: str, kind: type[S]) -> dict[str, S]:
        """Return the recorded objects of a kind by name."""
        trees = self.recorded[key]
        return {tree["metadata"]["name"]: decode_tree(tree, kind).value for tree in trees}

    def written(self, kind: type[S]) -> list[S]:
        """Return the applied objects of a kind."""
        return [self._with_uid(each) for each in self.applied if isinstance(each, kind)]

    def _with_uid(self, applied: Any) -> Any:
        """Return an applied object with the uid that it got, if it was recorded."""
        for key in ("pods", "podgroups"):
            for tree in self.recorded[key]:
                if (tree["kind"], tree["metadata"]["name"]) == (
                    applied.kind,
                    applied.metadata.name,
                ):
                    metadata = replace(applied.metadata, uid=tree["metadata"]["uid"])
                    return replace(applied, metadata=metadata)
        return applied


def scene(name: str) -> Scene:
    recorded = json.loads(corpus("golden", f"{name}.json").read_text())
    scenarios = json.loads(corpus("golden", "scenarios.json").read_text())
    names = next(each["apply"] for each in scenarios if each["scenario"] == name)
    applied = []
    for each in names:
        data = corpus("golden", "manifests", f"{each}.yaml").read_bytes()
        for document in read(data, source=each, schema=KUBERNETES):
            reading = read_document(document, gates=CONTEXT.gates)
            applied.append(defaulted_hub(reading.value, reading.kind, CONTEXT))
    return Scene(applied, recorded)


def as_created(claim: ResourceClaim) -> ResourceClaim:
    """Return a recorded claim without what the server and the scheduler added."""
    metadata = claim.metadata
    made = ObjectMeta(
        generate_name=metadata.generate_name,
        namespace=metadata.namespace,
        labels=metadata.labels,
        annotations=metadata.annotations,
        owner_references=metadata.owner_references,
    )
    return replace(claim, metadata=made, status=ResourceClaimStatus())


def made_for(owner: Pod | PodGroup, found: Scene) -> dict[str, ResourceClaim]:
    """Return the claims that we make for the entries of a pod or group."""
    templates = {each.metadata.name: each for each in found.written(ResourceClaimTemplate)}
    made = {}
    for entry in owner.spec.resource_claims:
        template = templates.get(entry.resource_claim_template_name or "")
        if template is not None:
            claim = claim_from_template(owner, entry.name, template, ALL_FEATURES)
            assert isinstance(claim, ResourceClaim)
            made[entry.name] = claim
    return made


@pytest.mark.parametrize("name", FROM_TEMPLATES)
def test_claims_made_from_templates_are_those_that_were_recorded(name: str) -> None:
    found = scene(name)
    recorded = found.kept("resourceclaims", ResourceClaim)
    names_made: dict[str, str] = {}
    for group in found.written(PodGroup):
        kept = found.kept("podgroups", PodGroup)[group.metadata.name]
        names_made = {
            s.name: s.resource_claim_name or "" for s in kept.status.resource_claim_statuses
        }
        for entry, claim in made_for(group, found).items():
            assert claim == as_created(recorded[names_made[entry]])
        assert group_claim_statuses(group, names_made) == kept.status.resource_claim_statuses
    for pod in found.written(Pod):
        kept_pod = found.kept("pods", Pod)[pod.metadata.name]
        statuses = kept_pod.status.resource_claim_statuses or ()
        own = {status.name: status.resource_claim_name or "" for status in statuses}
        assert pod_claim_statuses(pod, own) == statuses
        if own != names_made:
            for entry, claim in made_for(pod, found).items():
                assert claim == as_created(recorded[own[entry]])


@pytest.mark.parametrize("name", FROM_TEMPLATES)
def test_claims_are_found_and_reserved_for_whom_they_were(name: str) -> None:
    found = scene(name)
    recorded = found.kept("resourceclaims", ResourceClaim)
    groups = found.kept("podgroups", PodGroup)
    for pod in found.kept("pods", Pod).values():
        uses = uses_of(pod, lambda _, claim: recorded.get(claim), ALL_FEATURES)
        assert not isinstance(uses, ClaimRejection)
        assert len(uses) == len(pod.spec.resource_claims)
        for use in uses:
            group = pod.spec.scheduling_group
            owner = None if group is None else groups[group.pod_group_name or ""]
            consumer = consumer_of(pod, use.entry, owner)
            assert consumer in use.claim.status.reserved_for
            assert protected(use.claim) == use.claim


@pytest.mark.parametrize("name", EXTENDED)
def test_the_special_claim_and_the_status_of_its_pod_are_those_that_were_recorded(
    name: str,
) -> None:
    found = scene(name)
    classes = index(*found.written(DeviceClass))
    recorded = found.kept("resourceclaims", ResourceClaim)
    kept = found.kept("pods", Pod)
    pods = [pod for pod in found.written(Pod) if pod.metadata.name in kept]
    assert len(pods) == len(kept) == len(recorded)
    for pod in pods:
        status = kept[pod.metadata.name].status.extended_resource_claim_status
        assert status is not None
        node = {"cpu": Quantity.parse("16"), "memory": Quantity.parse("64Gi")}
        served = needs_on_node(extended_needs(pod, classes), node, classes)
        assert not isinstance(served, ClaimRejection)
        wanted = extended_requests(pod, served, classes)
        claim = recorded[status.resource_claim_name]
        made = to_create(with_requests(special_claim(pod, uid="made-up"), wanted))
        assert made == as_created(claim)
        assert extended_status(status.resource_claim_name, wanted.mappings) == status
        assert claim.status.reserved_for == (pod_consumer(pod),)


def test_node_resources_of_claims_are_those_that_were_recorded() -> None:
    found = scene("14-node-allocatable")
    recorded = found.kept("resourceclaims", ResourceClaim)
    find = finder(found.written(ResourceSlice), lambda device: True)
    for pod in found.kept("pods", Pod).values():
        uses = uses_of(pod, lambda _, claim: recorded.get(claim), ALL_FEATURES)
        assert not isinstance(uses, ClaimRejection)
        held = [
            AllocatedClaim(use.claim, use.claim.status.allocation, frozenset({use.entry.name}))
            for use in uses
            if use.claim.status.allocation is not None
        ]
        assert held
        expected = pod.status.node_allocatable_resource_claim_statuses
        assert claim_statuses(pod, held, find) == expected


PENDING = {
    "20-pending-f-noclaim": r'could not find ResourceClaim ".+/.+"',
    "20-pending-g-notemplate": r'pod ".+/.+": ResourceClaim not created yet',
    "20-pending-z-claim-deleting": r'resourceclaim ".+" is being deleted',
}


@pytest.mark.parametrize("name", PENDING)
def test_pods_that_wait_for_a_claim_are_refused(name: str) -> None:
    found = scene(name)
    recorded = found.kept("resourceclaims", ResourceClaim)
    refused = []
    for pod in found.kept("pods", Pod).values():
        uses = uses_of(pod, lambda _, claim: recorded.get(claim), ALL_FEATURES)
        if isinstance(uses, ClaimRejection):
            refused.append(uses.reason)
            assert not pod.spec.node_name
    assert len(refused) == 1
    assert re.fullmatch(PENDING[name], refused[0])
