"""Rules of a pod spec: the parts together, resource claims, placement, tolerations."""

from __future__ import annotations

from typing import Any

from moorage.api.core.pod import (
    MIRROR_POD_ANNOTATION,
    Pod,
    PodResourceClaim,
    PodSchedulingGate,
    PodSchedulingGroup,
    PodSpec,
)
from moorage.api.core.resources import ResourceRequirements
from moorage.api.field_path import Path, root
from moorage.api.meta import ObjectMeta
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    forbidden,
    invalid,
    required,
)
from moorage.validation.field_rules import (
    NEGATIVE,
    label,
    label_name,
    subdomain,
    validate_labels,
)
from moorage.validation.metadata import validate_metadata
from moorage.validation.pod.affinity import validate_affinity, validate_spreading
from moorage.validation.pod.annotations import ANNOTATIONS, Annotations, validate_annotations
from moorage.validation.pod.container_fields import validate_file_volumes
from moorage.validation.pod.containers import validate_containers, validate_images, with_paths
from moorage.validation.pod.defaults import NEW_SPECS
from moorage.validation.pod.field_rules import required_one_of
from moorage.validation.pod.networking import (
    validate_dns,
    validate_host_namespaces,
    validate_host_network,
    validate_names,
)
from moorage.validation.pod.resources import validate_container_resources, validate_whole_resources
from moorage.validation.pod.security_context import (
    validate_host_processes,
    validate_os,
    validate_pod_security,
)
from moorage.validation.pod.tolerations import validate_tolerations
from moorage.validation.pod.volumes import Volumes, validate_volumes

SPEC = root("spec")

PROJECTED_TOKEN = "serviceAccountToken"  # noqa: S105  # a field
ACTIVE_DEADLINE_MAX = 2**31 - 1


def validate_pod(pod: Pod, old: Annotations | None = None) -> ErrorList:
    """Validate metadata and spec of a pod, new or changed; `old` are its annotations before."""
    found = validate_metadata(pod.metadata, namespaced=True)
    found += validate_annotations(pod.metadata.annotations, pod.spec, ANNOTATIONS, old)
    found += validate_pod_spec(pod.spec, pod.metadata, SPEC)
    if old is not None:
        found += _validate_tokens(pod.spec)
    grace_period = pod.spec.termination_grace_period_seconds
    if grace_period is not None and grace_period < 0:
        path = SPEC.child("terminationGracePeriodSeconds")
        found.append(invalid(path, grace_period, NEGATIVE))
    found += validate_images(pod.spec.containers, SPEC.child("containers"))
    return found + validate_images(pod.spec.init_containers, SPEC.child("initContainers"))


def _validate_tokens(spec: PodSpec) -> ErrorList:
    """Validate that a pod without a service account has no volumes with its tokens.

    New pods get an account on admission, and those that do not, mirror pods, are refused there.
    """
    if spec.service_account_name:
        return []
    detail = "must not be specified when serviceAccountName is not set"
    return [
        forbidden(
            SPEC.child("volumes")
            .index(i)
            .child("projected", "sources")
            .index(j)
            .child(PROJECTED_TOKEN),
            detail,
        )
        for i, volume in enumerate(spec.volumes)
        for j, source in enumerate(volume.get("projected", {}).get("sources") or ())
        if PROJECTED_TOKEN in source
    ]


def validate_pod_spec(spec: PodSpec, metadata: ObjectMeta | None, path: Path) -> ErrorList:
    """Validate the spec of a pod or pod template; the latter has no metadata."""
    found: ErrorList = []
    if spec.termination_grace_period_seconds is None:
        found.append(required(path.child("terminationGracePeriodSeconds")))
    faults, volumes = validate_volumes(spec.volumes, metadata, path.child("volumes"))
    found += faults
    found += validate_resource_claims(spec.resource_claims, metadata, path.child("resourceClaims"))
    is_valid = ("valid", metadata is not None)  # but for volumes and claims, which depend on names
    if not faults and NEW_SPECS.has(spec, is_valid):
        return found
    rest = _validate_parts(spec, volumes, path, is_pod=metadata is not None)
    if not faults and not rest:
        NEW_SPECS.note(spec, is_valid)
    return found + rest


def _validate_parts(spec: PodSpec, volumes: Volumes, path: Path, *, is_pod: bool) -> ErrorList:
    """Validate what depends on the spec alone."""
    found = validate_containers(spec, volumes, path)
    found += validate_whole_resources(spec, path.child("resources"))
    found += validate_host_network(spec, path.child("containers"), is_pod=is_pod)
    found += required_one_of(
        spec.restart_policy, ("Always", "OnFailure", "Never"), path.child("restartPolicy")
    )
    found += required_one_of(
        spec.dns_policy,
        ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
        path.child("dnsPolicy"),
    )
    found += validate_pod_security(spec.security_context, spec, path.child("securityContext"))
    found += validate_dns(spec, path.child("dnsConfig"))
    found += validate_names(spec, path)
    return found + _validate_whole(spec, path) + _validate_placement(spec, path)


def _validate_whole(spec: PodSpec, path: Path) -> ErrorList:
    """Validate the rules that involve all containers."""
    containers = tuple(with_paths(spec, path))
    found = validate_host_namespaces(spec, containers, path)
    found += validate_host_processes(spec, containers, path)
    found += validate_os(spec, containers, path)
    return found + validate_file_volumes(containers, spec.volumes)


def _validate_placement(spec: PodSpec, path: Path) -> ErrorList:
    found = validate_labels(spec.node_selector, path.child("nodeSelector"))
    found += validate_affinity(spec.affinity, path.child("affinity"))
    found += _validate_readiness(spec.readiness_gates, path.child("readinessGates"))
    found += _validate_gates(spec.scheduling_gates, path.child("schedulingGates"))
    constraints_path = path.child("topologySpreadConstraints")
    found += validate_spreading(spec.topology_spread_constraints, constraints_path)
    for name, value in (
        ("serviceAccountName", spec.service_account_name),
        ("nodeName", spec.node_name),
    ):
        if value:
            found += subdomain(value, path.child(name))
    found += _validate_active_deadline(spec, path.child("activeDeadlineSeconds"))
    found += validate_tolerations(spec.tolerations, path.child("tolerations"))
    if spec.priority_class_name:
        found += subdomain(spec.priority_class_name, path.child("priorityClassName"))
    if spec.runtime_class_name is not None:
        found += subdomain(spec.runtime_class_name, path.child("runtimeClassName"))
    if spec.preemption_policy is not None:
        policies = ("PreemptLowerPriority", "Never")
        found += required_one_of(spec.preemption_policy, policies, path.child("preemptionPolicy"))
    if spec.overhead:
        overhead = ResourceRequirements(limits=spec.overhead)
        found += validate_container_resources(overhead, path.child("overhead"), ())
    if spec.scheduling_group is not None:
        found += _validate_group(spec.scheduling_group, path.child("schedulingGroup"))
    return found


# --- claims -------------------------------------------------------------------------------


def validate_resource_claims(
    claims: tuple[PodResourceClaim, ...], metadata: ObjectMeta | None, path: Path
) -> ErrorList:
    """Validate the resource claims of a pod or pod template; the latter has no metadata."""
    if metadata is not None and MIRROR_POD_ANNOTATION in metadata.annotations:
        detail = "static pods do not support resource claims"
        return [forbidden(Path("[]"), detail) for _ in claims]
    found: ErrorList = []
    taken: set[str] = set()
    for position, claim in enumerate(claims):
        found += _validate_resource_claim(claim, path.index(position), taken)
    return found


def _validate_resource_claim(claim: PodResourceClaim, path: Path, taken: set[str]) -> ErrorList:
    found: ErrorList = []
    if not claim.name:
        found.append(required(path.child("name")))
    elif claim.name in taken:
        found.append(duplicate(path.child("name"), claim.name))
    else:
        found += label(claim.name, path.child("name"))
        taken.add(claim.name)
    name, template = claim.resource_claim_name, claim.resource_claim_template_name
    if name is not None and template is not None:
        detail = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        )
        found.append(invalid(path, _internal(claim), detail))
    if name is None and template is None:
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        found.append(invalid(path, _internal(claim), detail))
    if name is not None:
        found += subdomain(name, path.child("resourceClaimName"))
    if template is not None:
        found += subdomain(template, path.child("resourceClaimTemplateName"))
    return found


def _internal(claim: PodResourceClaim) -> dict[str, Any]:
    """Return the claim as Kubernetes prints it in errors: with the names of its Go fields."""
    return {
        "Name": claim.name,
        "ResourceClaimName": claim.resource_claim_name,
        "ResourceClaimTemplateName": claim.resource_claim_template_name,
    }


# --- placement ----------------------------------------------------------------------------


def _validate_readiness(gates: tuple[Any, ...], path: Path) -> ErrorList:
    """Validate readiness gates."""
    found: ErrorList = []
    for position, gate in enumerate(gates):
        place = path.index(position).child("conditionType")
        found += label_name(gate.get("conditionType", ""), place)
    return found


def _validate_gates(gates: tuple[PodSchedulingGate, ...], path: Path) -> ErrorList:
    found: ErrorList = []
    seen: set[str] = set()
    for position, gate in enumerate(gates):
        place = path.index(position)
        found += label_name(gate.name, place)
        if gate.name in seen:
            found.append(duplicate(place, gate.name))
        seen.add(gate.name)
    return found


def _validate_active_deadline(spec: PodSpec, path: Path) -> ErrorList:
    deadline = spec.active_deadline_seconds
    if deadline is None or 1 <= deadline <= ACTIVE_DEADLINE_MAX:
        return []
    return [invalid(path, deadline, f"must be between 1 and {ACTIVE_DEADLINE_MAX}, inclusive")]


def _validate_group(group: PodSchedulingGroup, path: Path) -> ErrorList:
    path = path.child("podGroupName")
    if group.pod_group_name is None:
        return [invalid(path, None, "must specify one of: `podGroupName`")]
    return subdomain(group.pod_group_name, path)
