"""How StatefulSets are admitted."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mooring.api import names
from mooring.api.apps import StatefulSet, StatefulSetSpec
from mooring.api.core.pod import PodTemplateSpec
from mooring.api.fieldpath import Path, root
from mooring.api.timestamp import Timestamp
from mooring.validation.checks import label, not_negative, unchanged
from mooring.validation.context import Context
from mooring.validation.errors import Errors, invalid, not_supported, required
from mooring.validation.ordinary import OrdinaryStrategy
from mooring.validation.volume_claims import check_claim_spec
from mooring.validation.workloads.defaults import default_stateful_set
from mooring.validation.workloads.rollouts import check_stateful_strategy
from mooring.validation.workloads.statuses import (
    check_at_most,
    check_collisions,
    check_counts,
)
from mooring.validation.workloads.templates import (
    check_running,
    check_selected,
    check_selector,
    check_template,
)

SPEC = root("spec")
STATUS = root("status")

_COUNTS = (
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
)
_PARTS = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")


class StatefulSetStrategy(OrdinaryStrategy[StatefulSet]):
    """Admission of StatefulSets."""

    counts_generations = True
    check_name = staticmethod(names.dns1123_label)  # Pods are called after it.

    def default(
        self,
        value: StatefulSet,
        api_version: str,  # noqa: ARG002
        now: Timestamp,  # noqa: ARG002
    ) -> StatefulSet:
        """Set what Kubernetes sets."""
        return default_stateful_set(value)

    def check_create(self, new: StatefulSet, context: Context) -> Errors:  # noqa: ARG002
        """Check everything; a name of a service that is no label is kept once it is there."""
        found = self.check_metadata(new) + _check_keeping(new.spec)
        if new.spec.service_name:
            found += label(new.spec.service_name, SPEC.child("serviceName"))
        return found + _check_pods(new.spec)

    def rules(self, new: StatefulSet) -> Errors:
        """Check the spec."""
        return _check_keeping(new.spec) + _check_pods(new.spec)

    def changes(self, new: StatefulSet, old: StatefulSet) -> Errors:
        """Check that what pods and their storage are told by stays."""
        spec, before = new.spec, old.spec
        return (
            unchanged(spec.selector, before.selector, SPEC.child("selector"))
            + unchanged(
                spec.volume_claim_templates,
                before.volume_claim_templates,
                SPEC.child("volumeClaimTemplates"),
            )
            + unchanged(spec.service_name, before.service_name, SPEC.child("serviceName"))
            + unchanged(
                spec.pod_management_policy,
                before.pod_management_policy,
                SPEC.child("podManagementPolicy"),
            )
        )

    def status_rules(self, new: StatefulSet, old: StatefulSet) -> Errors:
        """Check the counts of pods."""
        status = new.status
        found = check_counts(status, _COUNTS, STATUS) + check_at_most(status, _PARTS, STATUS)
        if status.available_replicas > status.ready_replicas:
            detail = "cannot be greater than status.readyReplicas"
            place = STATUS.child("availableReplicas")
            found.append(invalid(place, status.available_replicas, detail))
        counts = (status.collision_count, old.status.collision_count)
        return found + check_collisions(*counts, STATUS)


def _check_keeping(spec: StatefulSetSpec) -> Errors:
    """Check how many pods there are, and how they come and go."""
    found = _check_management(spec.pod_management_policy, SPEC.child("podManagementPolicy"))
    found += check_stateful_strategy(spec.update_strategy, SPEC.child("updateStrategy"))
    found += _check_retention(spec, SPEC.child("persistentVolumeClaimRetentionPolicy"))
    for position, claim in enumerate(spec.volume_claim_templates):
        place = SPEC.child("volumeClaimTemplates").index(position).child("spec")
        found += check_claim_spec(claim.get("spec", {}), place)
    found += not_negative(spec.replicas, SPEC.child("replicas"))
    found += not_negative(spec.min_ready_seconds, SPEC.child("minReadySeconds"))
    match spec.ordinals:
        case {"start": int(start)}:
            found += not_negative(start, SPEC.child("ordinals.start"))
    return found


def _check_management(policy: str, path: Path) -> Errors:
    if not policy:
        return [required(path)]
    if policy in ("OrderedReady", "Parallel"):
        return []
    return [invalid(path, policy, "must be 'OrderedReady' or 'Parallel'")]


def _check_retention(spec: StatefulSetSpec, path: Path) -> Errors:
    policies: Any = spec.persistent_volume_claim_retention_policy
    if policies is None:
        return []
    if not isinstance(policies, dict):
        return [invalid(path, policies, "must be a map")]
    supported = ("Retain", "Delete")
    return [
        not_supported(path.child(name), policies.get(name) or "", supported)
        for name in ("whenDeleted", "whenScaled")
        if policies.get(name) not in supported
    ]


def _check_pods(spec: StatefulSetSpec) -> Errors:
    found = check_selector(spec.selector, "statefulset", SPEC.child("selector"))
    missed, readable = check_selected(spec.selector, spec.template, "", SPEC)
    found += missed
    path = SPEC.child("template")
    if readable is not None:
        found += check_template(_with_claims(spec), path)
    return found + check_running(spec.template, "StatefulSet", path)


def _with_claims(spec: StatefulSetSpec) -> PodTemplateSpec:
    """Return the template as its pods are: with names of their own, and claims as volumes."""
    claims = {t.get("metadata", {}).get("name", ""): t for t in spec.volume_claim_templates}
    added = ({"name": n, "persistentVolumeClaim": {"claimName": n}} for n in claims)
    own = (v for v in spec.template.spec.volumes if v.get("name", "") not in claims)
    pod = replace(spec.template.spec, hostname="", subdomain="", volumes=(*added, *own))
    return replace(spec.template, spec=pod)
