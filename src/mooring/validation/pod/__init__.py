"""How pods are admitted: defaults, disabled fields, and rules, one module for each part of a pod.

containers, environment, mounts, ports, probes, restarts      what runs
volumes, network_volumes, projections, downward               what it reads and writes
spec, affinity, networking, security, windows, pod_resources  the pod as a whole
"""

from __future__ import annotations

from mooring.api.core.namespace import Binding
from mooring.api.core.pod import Pod
from mooring.api.fieldpath import root
from mooring.api.gates import Gates
from mooring.api.timestamp import Timestamp
from mooring.validation.checks import node_name
from mooring.validation.context import Context
from mooring.validation.errors import Errors, forbidden, not_supported, required
from mooring.validation.metadata import check_metadata_update
from mooring.validation.pod.defaults import default_pod, default_pod_spec
from mooring.validation.pod.features import (
    prepare_pod_create,
    prepare_pod_status_update,
    prepare_pod_update,
)
from mooring.validation.pod.qos import qos_class
from mooring.validation.pod.spec import SPEC, check_pod, check_resource_claims
from mooring.validation.pod.status import check_status, health_name
from mooring.validation.pod.update import check_annotations_update, check_update
from mooring.validation.strategy import Strategy

__all__ = [
    "PodStrategy",
    "check_resource_claims",
    "default_pod",
    "default_pod_spec",
    "health_name",
    "prepare_pod_create",
    "prepare_pod_status_update",
    "prepare_pod_update",
    "qos_class",
    "validate_binding",
    "validate_pod_create",
    "validate_pod_status_update",
    "validate_pod_update",
]


def validate_pod_create(pod: Pod, *, gates: Gates) -> Errors:  # noqa: ARG001 - no rule has a gate
    """Return what is wrong with a new pod."""
    found = check_pod(pod)
    if pod.spec.ephemeral_containers:
        found.append(forbidden(SPEC.child("ephemeralContainers"), "cannot be set on create"))
    if pod.spec.node_name and pod.spec.scheduling_gates:
        detail = "cannot be set until all schedulingGates have been cleared"
        found.append(forbidden(SPEC.child("nodeName"), detail))
    return found


def validate_pod_update(new: Pod, old: Pod, *, gates: Gates) -> Errors:  # noqa: ARG001
    """Return what is wrong with a change of a pod."""
    return check_update(new, old)


def validate_pod_status_update(new: Pod, old: Pod, *, gates: Gates) -> Errors:  # noqa: ARG001
    """Return what is wrong with a change of a pod's status."""
    found = check_metadata_update(new.metadata, old.metadata)
    return found + check_annotations_update(new, old) + check_status(new, old)


def validate_binding(binding: Binding) -> Errors:
    """Return what is wrong with the order to run a pod on a node."""
    target = root("target")
    found: Errors = []
    if binding.target.kind not in ("", "Node"):
        kinds = ("Node", "<empty>")
        found.append(not_supported(target.child("kind"), binding.target.kind, kinds))
    if not binding.target.name:
        found.append(required(target.child("name")))
    elif not found:
        found += node_name(binding.target.name, target.child("name"))
    return found


class PodStrategy(Strategy[Pod]):
    """Admission of Pods."""

    def default(self, value: Pod, api_version: str, now: Timestamp) -> Pod:  # noqa: ARG002
        """Set what Kubernetes sets."""
        return default_pod(value)

    def prepare_create(self, new: Pod, context: Context) -> Pod:
        """Start a new status; drop disabled fields."""
        return prepare_pod_create(new, gates=context.gates, now=context.now)

    def check_create(self, new: Pod, context: Context) -> Errors:
        """Check everything."""
        return validate_pod_create(new, gates=context.gates)

    def prepare_update(self, new: Pod, old: Pod, context: Context) -> Pod:
        """Keep the status; drop disabled fields that were not in use."""
        return prepare_pod_update(new, old, gates=context.gates)

    def check_update(self, new: Pod, old: Pod, context: Context) -> Errors:
        """Check everything, and that only what may change did."""
        return validate_pod_update(new, old, gates=context.gates)

    def prepare_status(self, new: Pod, old: Pod, context: Context) -> Pod:
        """Keep the spec, and what the status leaves out of claims."""
        return prepare_pod_status_update(new, old, gates=context.gates)

    def check_status(self, new: Pod, old: Pod, context: Context) -> Errors:
        """Check the status."""
        return validate_pod_status_update(new, old, gates=context.gates)
