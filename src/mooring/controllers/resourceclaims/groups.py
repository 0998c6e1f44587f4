"""Claims for the entries of groups of pods, from templates."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.gates import Gate, Gates
from mooring.api.resource.v1 import ResourceClaim, ResourceClaimTemplate
from mooring.api.scheduling import PodGroup
from mooring.api.timestamp import Timestamp
from mooring.claims.features import Features
from mooring.client.objects import Key, Objects, key_of
from mooring.client.writes import Write
from mooring.controllers.controller import Answers, Change, Controller, Refused, Step
from mooring.controllers.resourceclaims import indexes
from mooring.controllers.resourceclaims.counting import ClaimMetrics
from mooring.controllers.resourceclaims.entries import group_need
from mooring.controllers.resourceclaims.making import SOURCE, claim_steps, complaint_about


def plan_group(objects: Objects, key: Key, answers: Answers, gates: Gates) -> list[Step]:
    """Return what a group's claims need."""
    group = objects.find(PodGroup, *key)
    if group is None or group.metadata.deletion_timestamp is not None:
        return []
    if not gates.enabled(Gate.DRA_WORKLOAD_RESOURCE_CLAIMS):
        return []
    features = Features.of(gates)
    steps, _ = claim_steps(
        group,
        group.spec.resource_claims,
        lambda entry: group_need(objects, group, entry, answers=answers, features=features),
    )
    return steps


class GroupClaims(Controller):
    """Makes the claims of groups of pods."""

    name = "resourceclaim-controller-groups"
    kinds = (PodGroup, ResourceClaim, ResourceClaimTemplate)
    optional = (PodGroup,)
    source = SOURCE
    workers = 10

    def __init__(self, gates: Gates, metrics: ClaimMetrics | None = None) -> None:
        self._gates = gates
        self._metrics = metrics or ClaimMetrics()

    def prepare(self, objects: Objects) -> None:
        """Keep the indexes that lead from claims and templates to groups."""
        indexes.prepare(objects)

    def keys(self, objects: Objects, change: Change) -> Iterable[Key]:
        """Give the groups whose claims may need something after a change."""
        value = change.value
        namespace, name = key_of(value)
        groups: Iterable[PodGroup] = ()
        match value:
            case PodGroup() if change.new is not None and value.spec.resource_claims:
                groups = (value,)
            case ResourceClaimTemplate() if change.new is not None:
                groups = objects.by(PodGroup, indexes.BY_TEMPLATE, f"{namespace}/{name}")
            case ResourceClaim():
                groups = objects.by(PodGroup, indexes.BY_CLAIM, f"{namespace}/{name}")
                yield from ((namespace, each) for each in indexes.owner_names(value, groups=True))
        yield from (key_of(group) for group in groups)

    def plan(self, objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterable[Step]:  # noqa: ARG002
        """Give what a group's claims need."""
        return plan_group(objects, key, answers, self._gates)

    def wrote(self, objects: Objects, key: Key, write: Write, now: Timestamp) -> Iterable[Step]:  # noqa: ARG002
        """Count claims that were made."""
        self._metrics.created(write, "success")
        return ()

    def refused(self, objects: Objects, key: Key, write: Write, refused: Refused) -> Iterable[Step]:
        """Count claims that could not be made, and tell of them."""
        self._metrics.created(write, "failure")
        return complaint_about(objects.find(PodGroup, *key), write, refused)
