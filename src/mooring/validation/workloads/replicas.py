"""How Deployments and ReplicaSets are admitted."""

from __future__ import annotations

from mooring.api.apps import Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet
from mooring.api.core.pod import PodTemplateSpec
from mooring.api.fieldpath import Path, root
from mooring.api.meta import LabelSelector
from mooring.api.timestamp import Timestamp
from mooring.validation.checks import not_negative, unchanged
from mooring.validation.errors import Errors, invalid
from mooring.validation.workloads.defaults import default_deployment, default_replica_set
from mooring.validation.workloads.rollouts import check_deployment_strategy
from mooring.validation.workloads.statuses import (
    check_at_most,
    check_collisions,
    check_counts,
)
from mooring.validation.workloads.templates import (
    TemplateStrategy,
    check_running,
    check_selected,
    check_selector,
    check_template,
)

SPEC = root("spec")
STATUS = root("status")


class DeploymentStrategy(TemplateStrategy[Deployment]):
    """Admission of Deployments."""

    def default(
        self,
        value: Deployment,
        api_version: str,  # noqa: ARG002
        now: Timestamp,  # noqa: ARG002
    ) -> Deployment:
        """Set what Kubernetes sets."""
        return default_deployment(value)

    def rules(self, new: Deployment) -> Errors:
        """Check the spec."""
        spec = new.spec
        found = not_negative(spec.replicas, SPEC.child("replicas"))
        found += _check_pods(spec.selector, spec.template)
        found += check_deployment_strategy(spec.strategy, SPEC.child("strategy"))
        found += not_negative(spec.min_ready_seconds, SPEC.child("minReadySeconds"))
        found += not_negative(spec.revision_history_limit, SPEC.child("revisionHistoryLimit"))
        return found + _check_deadline(spec, SPEC.child("progressDeadlineSeconds"))

    def changes(self, new: Deployment, old: Deployment) -> Errors:
        """Check that the selector stays."""
        return unchanged(new.spec.selector, old.spec.selector, SPEC.child("selector"))

    def status_rules(self, new: Deployment, old: Deployment) -> Errors:
        """Check the counts of pods."""
        status = new.status
        found = check_counts(status, _DEPLOYMENT_COUNTS, STATUS)
        found += check_at_most(
            status, ("updatedReplicas", "readyReplicas", "availableReplicas"), STATUS
        )
        found += _check_available(status.available_replicas, status.ready_replicas)
        before: DeploymentStatus = old.status
        return found + check_collisions(status.collision_count, before.collision_count, STATUS)


class ReplicaSetStrategy(TemplateStrategy[ReplicaSet]):
    """Admission of ReplicaSets."""

    def default(
        self,
        value: ReplicaSet,
        api_version: str,  # noqa: ARG002
        now: Timestamp,  # noqa: ARG002
    ) -> ReplicaSet:
        """Set what Kubernetes sets."""
        return default_replica_set(value)

    def rules(self, new: ReplicaSet) -> Errors:
        """Check the spec."""
        spec = new.spec
        found = not_negative(spec.replicas, SPEC.child("replicas"))
        found += not_negative(spec.min_ready_seconds, SPEC.child("minReadySeconds"))
        return found + _check_pods(spec.selector, spec.template)

    def changes(self, new: ReplicaSet, old: ReplicaSet) -> Errors:
        """Check that the selector stays."""
        return unchanged(new.spec.selector, old.spec.selector, SPEC.child("selector"))

    def status_rules(self, new: ReplicaSet, old: ReplicaSet) -> Errors:  # noqa: ARG002
        """Check the counts of pods."""
        status = new.status
        found = check_counts(status, _REPLICA_SET_COUNTS, STATUS)
        found += check_at_most(
            status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), STATUS
        )
        return found + _check_available(status.available_replicas, status.ready_replicas)


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


def _check_pods(selector: LabelSelector | None, template: PodTemplateSpec) -> Errors:
    # Kubernetes speaks of deployments and replica sets where it means either.
    found = check_selector(selector, "deployment", SPEC.child("selector"))
    missed, readable = check_selected(selector, template, "invalid label selector", SPEC)
    found += missed
    if readable is None:
        return found
    path = SPEC.child("template")
    return found + check_template(template, path) + check_running(template, "ReplicaSet", path)


def _check_deadline(spec: DeploymentSpec, path: Path) -> Errors:
    deadline = spec.progress_deadline_seconds
    found = not_negative(deadline, path)
    if deadline is not None and deadline <= spec.min_ready_seconds:
        found.append(invalid(path, deadline, "must be greater than minReadySeconds"))
    return found


def _check_available(available: int, ready: int) -> Errors:
    if available <= ready:
        return []
    detail = "cannot be greater than readyReplicas"
    return [invalid(STATUS.child("availableReplicas"), available, detail)]
