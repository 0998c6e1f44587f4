"""Strategies of Deployments, ReplicaSets, DaemonSets and StatefulSets."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from moorage.api import names
from moorage.api.apps import (
    DaemonSet,
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    ReplicaSet,
    StatefulSet,
    StatefulSetSpec,
)
from moorage.api.core.pod import PodTemplateSpec
from moorage.api.field_path import Path, root
from moorage.api.meta import LabelSelector
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, invalid, not_supported, required
from moorage.validation.field_rules import label, not_negative, unchanged, value_or
from moorage.validation.go_layout import internal_form
from moorage.validation.metadata import next_generation
from moorage.validation.pod.volumes import validate_claim_spec
from moorage.validation.pod_template import (
    TemplateStrategy,
    validate_at_most,
    validate_collisions,
    validate_counts,
    validate_daemon_strategy,
    validate_deployment_strategy,
    validate_matching,
    validate_running,
    validate_selected,
    validate_selector,
    validate_stateful_strategy,
    validate_template,
)
from moorage.validation.selectors import is_empty
from moorage.validation.strategy import Context
from moorage.validation.template_defaults import (
    default_daemon_set,
    default_deployment,
    default_stateful_set,
    default_template,
)

SPEC = root("spec")
STATUS = root("status")


class DeploymentStrategy(TemplateStrategy[Deployment]):
    """The strategy of Deployments."""

    set_defaults = staticmethod(default_deployment)

    def validate_fields(self, new: Deployment) -> ErrorList:
        """Validate the spec."""
        spec = new.spec
        found = not_negative(spec.replicas, SPEC.child("replicas"))
        found += _validate_pods(spec.selector, spec.template)
        found += validate_deployment_strategy(spec.strategy, SPEC.child("strategy"))
        found += not_negative(spec.min_ready_seconds, SPEC.child("minReadySeconds"))
        found += not_negative(spec.revision_history_limit, SPEC.child("revisionHistoryLimit"))
        return found + _validate_deadline(spec, SPEC.child("progressDeadlineSeconds"))

    def prepare_for_update(self, new: Deployment, old: Deployment, context: Context) -> Deployment:
        """Keep the status; changed annotations are a new generation, too."""
        after = super().prepare_for_update(new, old, context)
        generation = old.metadata.generation
        if after.metadata.generation != generation or semantic_equal(
            after.metadata.annotations, old.metadata.annotations
        ):
            return after
        metadata = replace(after.metadata, generation=next_generation(generation))
        return replace(after, metadata=metadata)

    def prepare_for_status_update(
        self, new: Deployment, old: Deployment, context: Context
    ) -> Deployment:
        """Keep everything but the status and the metadata; of the metadata keep the labels."""
        new = super().prepare_for_status_update(new, old, context)
        return replace(new, metadata=replace(new.metadata, labels=old.metadata.labels))

    def validate_status(self, new: Deployment, old: Deployment) -> ErrorList:
        """Validate the counts of pods."""
        status = new.status
        found = validate_counts(status, _DEPLOYMENT_COUNTS, STATUS)
        found += validate_at_most(
            status, ("updatedReplicas", "readyReplicas", "availableReplicas"), STATUS
        )
        found += _validate_available(status.available_replicas, status.ready_replicas)
        before: DeploymentStatus = old.status
        return found + validate_collisions(status.collision_count, before.collision_count, STATUS)


class ReplicaSetStrategy(TemplateStrategy[ReplicaSet]):
    """The strategy of ReplicaSets."""

    @staticmethod
    def set_defaults(value: ReplicaSet) -> ReplicaSet:
        """Set every default."""
        template = default_template(value.spec.template)
        spec = replace(value.spec, replicas=value_or(value.spec.replicas, 1), template=template)
        return replace(value, spec=spec)

    def validate_fields(self, new: ReplicaSet) -> ErrorList:
        """Validate the spec."""
        spec = new.spec
        found = not_negative(spec.replicas, SPEC.child("replicas"))
        found += not_negative(spec.min_ready_seconds, SPEC.child("minReadySeconds"))
        return found + _validate_pods(spec.selector, spec.template)

    def validate_status(self, new: ReplicaSet, old: ReplicaSet) -> ErrorList:  # noqa: ARG002
        """Validate the counts of pods."""
        status = new.status
        found = validate_counts(status, _REPLICA_SET_COUNTS, STATUS)
        found += validate_at_most(
            status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), STATUS
        )
        return found + _validate_available(status.available_replicas, status.ready_replicas)


_DEPLOYMENT_COUNTS = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)
_REPLICA_SET_COUNTS = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
)


def _validate_pods(selector: LabelSelector | None, template: PodTemplateSpec) -> ErrorList:
    # Kubernetes' texts mix deployments and replica sets.
    found = validate_selector(selector, "deployment", SPEC.child("selector"))
    missed, readable = validate_selected(selector, template, "invalid label selector", SPEC)
    found += missed
    if readable is None:
        return found
    path = SPEC.child("template")
    return (
        found + validate_template(template, path) + validate_running(template, "ReplicaSet", path)
    )


def _validate_deadline(spec: DeploymentSpec, path: Path) -> ErrorList:
    deadline = spec.progress_deadline_seconds
    found = not_negative(deadline, path)
    if deadline is not None and deadline <= spec.min_ready_seconds:
        found.append(invalid(path, deadline, "must be greater than minReadySeconds"))
    return found


def _validate_available(available: int, ready: int) -> ErrorList:
    if available <= ready:
        return []
    detail = "cannot be greater than readyReplicas"
    return [invalid(STATUS.child("availableReplicas"), available, detail)]


# --- DaemonSet ----------------------------------------------------------------------------

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_is_count = re.compile(r"[+-]?\d{1,18}", re.ASCII).fullmatch


_DAEMON_SET_COUNTS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


class DaemonSetStrategy(TemplateStrategy[DaemonSet]):
    """The strategy of DaemonSets."""

    set_defaults = staticmethod(default_daemon_set)

    def prepare_for_create(self, new: DaemonSet, context: Context) -> DaemonSet:
        """Start the template generation, which the versions before apps/v1 had."""
        counted = _template_generation(new)
        return _with_template_generation(super().prepare_for_create(new, context), max(counted, 1))

    def prepare_for_update(self, new: DaemonSet, old: DaemonSet, context: Context) -> DaemonSet:
        """Keep the status; a changed template is a new template generation."""
        counted = _template_generation(old)
        if not semantic_equal(new.spec.template, old.spec.template):
            counted += 1
        return _with_template_generation(super().prepare_for_update(new, old, context), counted)

    def validate_fields(self, new: DaemonSet) -> ErrorList:
        """Validate the spec."""
        spec = new.spec
        path = SPEC.child("template")
        found = _validate_daemon_selector(new)
        found += validate_template(spec.template, path)
        found += validate_running(spec.template, "DaemonSet", path)
        found += not_negative(spec.min_ready_seconds, SPEC.child("minReadySeconds"))
        found += validate_daemon_strategy(spec.update_strategy, SPEC.child("updateStrategy"))
        return found + not_negative(spec.revision_history_limit, SPEC.child("revisionHistoryLimit"))

    def validate_status(self, new: DaemonSet, old: DaemonSet) -> ErrorList:
        """Validate the counts of pods."""
        found = validate_counts(new.status, _DAEMON_SET_COUNTS, STATUS)
        counts = (new.status.collision_count, old.status.collision_count)
        return found + validate_collisions(*counts, STATUS)


def _template_generation(daemon_set: DaemonSet) -> int:
    text = daemon_set.metadata.annotations.get(TEMPLATE_GENERATION, "")
    return int(text) if _is_count(text) else 0


def _with_template_generation(daemon_set: DaemonSet, generation: int) -> DaemonSet:
    annotations = {**daemon_set.metadata.annotations, TEMPLATE_GENERATION: str(generation)}
    return replace(daemon_set, metadata=replace(daemon_set.metadata, annotations=annotations))


def _validate_daemon_selector(new: DaemonSet) -> ErrorList:
    selector = new.spec.selector
    found = validate_matching(selector, new.spec.template, SPEC)
    if selector is not None and is_empty(selector):
        detail = "empty selector is invalid for daemonset"
        found.append(invalid(SPEC.child("selector"), selector, detail))
    return found


# --- StatefulSet --------------------------------------------------------------------------

_STATEFUL_SET_COUNTS = (
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
)
_STATEFUL_SET_PARTS = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")


def _unchanged_claims(spec: StatefulSetSpec, before: StatefulSetSpec) -> ErrorList:
    templates = spec.volume_claim_templates
    if semantic_equal(templates, before.volume_claim_templates):
        return []
    shown = [internal_form(template, "PersistentVolumeClaim") for template in templates]
    path = SPEC.child("volumeClaimTemplates")
    return [invalid(path, shown or None, "field is immutable")]


class StatefulSetStrategy(TemplateStrategy[StatefulSet]):
    """The strategy of StatefulSets."""

    validate_name = staticmethod(names.dns1123_label)  # Pods are called after it.

    set_defaults = staticmethod(default_stateful_set)

    def validate(self, new: StatefulSet, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything; updates validate neither service name nor claims, which stay."""
        found = self.validate_metadata(new) + _validate_keeping(new.spec)
        for position, claim in enumerate(new.spec.volume_claim_templates):
            place = SPEC.child("volumeClaimTemplates").index(position).child("spec")
            found += validate_claim_spec(claim.get("spec", {}), place)
        if new.spec.service_name:
            found += label(new.spec.service_name, SPEC.child("serviceName"))
        return found + _validate_stateful_pods(new.spec)

    def validate_fields(self, new: StatefulSet) -> ErrorList:
        """Validate the spec."""
        return _validate_keeping(new.spec) + _validate_stateful_pods(new.spec)

    def warnings_on_create(self, new: StatefulSet) -> list[str]:
        """Warn of a limit that limits nothing."""
        if (new.spec.revision_history_limit or 0) >= 0:
            return []
        advice = "a negative value retains all historical revisions; a value >= 0 is recommended"
        return [f"spec.revisionHistoryLimit: {advice}"]

    def validate_changes(self, new: StatefulSet, old: StatefulSet) -> ErrorList:
        """Validate that the fields that identify pods and their storage are unchanged."""
        spec, before = new.spec, old.spec
        return (
            unchanged(spec.selector, before.selector, SPEC.child("selector"))
            + _unchanged_claims(spec, before)
            + unchanged(spec.service_name, before.service_name, SPEC.child("serviceName"))
            + unchanged(
                spec.pod_management_policy,
                before.pod_management_policy,
                SPEC.child("podManagementPolicy"),
            )
        )

    def validate_status(self, new: StatefulSet, old: StatefulSet) -> ErrorList:
        """Validate the counts of pods."""
        status = new.status
        found = validate_counts(status, _STATEFUL_SET_COUNTS, STATUS) + validate_at_most(
            status, _STATEFUL_SET_PARTS, STATUS
        )
        if status.available_replicas > status.ready_replicas:
            detail = "cannot be greater than status.readyReplicas"
            place = STATUS.child("availableReplicas")
            found.append(invalid(place, status.available_replicas, detail))
        counts = (status.collision_count, old.status.collision_count)
        return found + validate_collisions(*counts, STATUS)


def _validate_keeping(spec: StatefulSetSpec) -> ErrorList:
    """Validate replicas, update strategy, pod management and retention."""
    found = _validate_management(spec.pod_management_policy, SPEC.child("podManagementPolicy"))
    found += validate_stateful_strategy(spec.update_strategy, SPEC.child("updateStrategy"))
    found += _validate_retention(spec, SPEC.child("persistentVolumeClaimRetentionPolicy"))
    found += not_negative(spec.replicas, SPEC.child("replicas"))
    found += not_negative(spec.min_ready_seconds, SPEC.child("minReadySeconds"))
    match spec.ordinals:
        case {"start": int(start)}:
            found += not_negative(start, SPEC.child("ordinals.start"))
    return found


def _validate_management(policy: str, path: Path) -> ErrorList:
    if not policy:
        return [required(path)]
    if policy in ("OrderedReady", "Parallel"):
        return []
    return [invalid(path, policy, "must be 'OrderedReady' or 'Parallel'")]


def _validate_retention(spec: StatefulSetSpec, path: Path) -> ErrorList:
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


def _validate_stateful_pods(spec: StatefulSetSpec) -> ErrorList:
    found = validate_selector(spec.selector, "statefulset", SPEC.child("selector"))
    missed, readable = validate_selected(spec.selector, spec.template, "", SPEC)
    found += missed
    path = SPEC.child("template")
    if readable is not None:
        found += validate_template(_with_claims(spec), path)
    return found + validate_running(spec.template, "StatefulSet", path)


def _with_claims(spec: StatefulSetSpec) -> PodTemplateSpec:
    """Return the template as its pods are: with their own host names, and claims as volumes."""
    claims = {t.get("metadata", {}).get("name", ""): t for t in spec.volume_claim_templates}
    added = ({"name": n, "persistentVolumeClaim": {"claimName": n}} for n in claims)
    own = (v for v in spec.template.spec.volumes if v.get("name", "") not in claims)
    pod = replace(spec.template.spec, hostname="", subdomain="", volumes=(*added, *own))
    return replace(spec.template, spec=pod)
