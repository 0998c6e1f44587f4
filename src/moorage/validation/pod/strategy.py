"""The strategy of Pods.

A field of a disabled feature is dropped unless the old pod uses it already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from msgspec.structs import replace

from moorage.api.core.pod import (
    PENDING,
    POD_SCHEDULED,
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceStatus,
)
from moorage.api.gates import Gate, Gates
from moorage.api.names import byte_length
from moorage.api.timestamp import Timestamp
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, forbidden
from moorage.validation.field_rules import value_or
from moorage.validation.metadata import validate_metadata_update
from moorage.validation.pod.affinity import with_label_keys
from moorage.validation.pod.annotations import (
    validate_annotations_update,
    validate_profiles,
    with_app_armor,
    without_obsolete,
)
from moorage.validation.pod.defaults import default_new_pod, default_pod, default_status_of
from moorage.validation.pod.resources import default_whole_resources, qos_class
from moorage.validation.pod.security_context import PROFILE_MAX_BYTES
from moorage.validation.pod.spec import SPEC, validate_pod
from moorage.validation.pod.status import validate_pod_status
from moorage.validation.pod.update import validate_pod_update
from moorage.validation.pod.warnings import address_warnings, pod_warnings
from moorage.validation.strategy import Context, Strategy

GATED_REASON = "SchedulingGated"
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"

C = TypeVar("C", bound=Container)
T = TypeVar("T")


class PodStrategy(Strategy[Pod]):
    """The strategy of Pods."""

    def default(self, value: Pod, api_version: str, context: Context) -> Pod:  # noqa: ARG002
        """Set every default."""
        return default_new_pod(value) if context.verb == "create" else default_pod(value)

    def default_for_status_update(self, value: Pod, api_version: str, context: Context) -> Pod:  # noqa: ARG002
        """Set the defaults of the status; the spec stays the stored one."""
        return default_status_of(value)

    def prepare_for_create(self, new: Pod, context: Context) -> Pod:
        """Return the pod as it starts out: pending, in generation 1, without disabled fields."""
        spec = drop_disabled_spec(new.spec, None, context.gates)
        spec = with_label_keys(default_whole_resources(spec), new.metadata.labels)
        spec = with_app_armor_profiles(spec, new.metadata.annotations)
        conditions = (_gated_condition(context.now),) if spec.scheduling_gates else ()
        status = PodStatus(phase=PENDING, conditions=conditions, qos_class=qos_class(spec))
        metadata = replace(without_obsolete(new.metadata), generation=1)
        return with_app_armor(replace(new, metadata=metadata, spec=spec, status=status))[0]

    def warnings_on_prepare(self, new: Pod) -> list[str]:
        """Return warnings about annotations that become fields."""
        return with_app_armor(new)[1]

    def warnings_on_create(self, new: Pod) -> list[str]:
        """Return warnings about fields."""
        return pod_warnings(new)

    def warnings_on_update(self, new: Pod, old: Pod) -> list[str]:  # noqa: ARG002
        """Return none: updates of pods come from programs, and often."""
        return []

    def warnings_on_status_update(self, new: Pod) -> list[str]:
        """Return warnings about addresses."""
        status = new.status
        found: list[str] = []
        for name, addresses in (("podIPs", status.pod_ips), ("hostIPs", status.host_ips)):
            for position, address in enumerate(addresses):
                found += address_warnings(f"status.{name}[{position}].ip", address.ip)
        return found

    def validate(self, new: Pod, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything."""
        found = validate_pod(new)
        if new.spec.ephemeral_containers:
            found.append(forbidden(SPEC.child("ephemeralContainers"), "cannot be set on create"))
        if new.spec.node_name and new.spec.scheduling_gates:
            detail = "cannot be set until all schedulingGates have been cleared"
            found.append(forbidden(SPEC.child("nodeName"), detail))
        return found + validate_profiles(new.metadata.annotations, new.spec, SPEC)

    def prepare_for_update(self, new: Pod, old: Pod, context: Context) -> Pod:
        """Return the pod with its old status; a changed spec is a new generation."""
        spec = new.spec
        if spec.resources is None:
            # Clients that do not know pod-level resources leave them out.
            spec = replace(spec, resources=old.spec.resources)
        spec = drop_disabled_spec(spec, old.spec, context.gates)
        new = replace(new, metadata=without_obsolete(new.metadata), spec=spec, status=old.status)
        if semantic_equal(spec, old.spec):
            return new
        return replace(new, metadata=replace(new.metadata, generation=new.metadata.generation + 1))

    def validate_update(self, new: Pod, old: Pod, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything, and that only fields that may change did."""
        return validate_pod_update(new, old)

    def prepare_for_status_update(self, new: Pod, old: Pod, context: Context) -> Pod:
        """Return the old pod with the new status.

        Claim statuses that a client leaves out are kept; an empty list clears them.
        """
        metadata = replace(
            new.metadata,
            deletion_timestamp=old.metadata.deletion_timestamp,
            owner_references=old.metadata.owner_references,
        )
        status = _keep_observed_generations(_keep_claims(new.status, old.status), old.status)
        status = _drop_disabled_status(status, old, context.gates)
        return replace(new, metadata=metadata, spec=old.spec, status=_without_empty_lists(status))

    def validate_status_update(self, new: Pod, old: Pod, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate the status."""
        found = validate_metadata_update(new.metadata, old.metadata)
        return found + validate_annotations_update(new, old) + validate_pod_status(new, old)


def _gated_condition(now: Timestamp) -> PodCondition:
    return PodCondition(
        type=POD_SCHEDULED,
        status="False",
        last_transition_time=now,
        reason=GATED_REASON,
        message=GATED_MESSAGE,
    )


# --- spec ---------------------------------------------------------------------------------


def drop_disabled_spec(new: PodSpec, old: PodSpec | None, gates: Gates) -> PodSpec:
    """Return the spec without fields of disabled features that the old one does not use."""
    if not gates.enabled(Gate.DYNAMIC_RESOURCE_ALLOCATION) and not (old and old.resource_claims):
        new = replace(
            new,
            resource_claims=(),
            containers=_without_claims(new.containers),
            init_containers=_without_claims(new.init_containers),
            ephemeral_containers=_without_claims(new.ephemeral_containers),
        )
    is_dropped = not gates.enabled(Gate.GENERIC_WORKLOAD) and not (old and old.scheduling_group)
    return replace(new, scheduling_group=None) if is_dropped and new.scheduling_group else new


def _without_claims(containers: tuple[C, ...]) -> tuple[C, ...]:
    return tuple(replace(c, resources=replace(c.resources, claims=())) for c in containers)


APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_LOCALHOST = "localhost/"
_APPARMOR_TYPES = {"unconfined": "Unconfined", "runtime/default": "RuntimeDefault"}


def with_app_armor_profiles(spec: PodSpec, annotations: Mapping[str, str]) -> PodSpec:
    """Return the spec with the AppArmor profiles that only deprecated annotations name."""
    if not any(key.startswith(APPARMOR_ANNOTATION) for key in annotations):
        return spec
    if isinstance(spec.os, dict) and spec.os.get("name") == "windows":
        return spec
    whole = spec.security_context if isinstance(spec.security_context, dict) else {}

    def profiled(container: C) -> C:
        text = annotations.get(APPARMOR_ANNOTATION + container.name, "")
        profile = _app_armor_profile(text)
        context = {} if container.security_context is None else container.security_context
        is_set = not isinstance(context, dict) or context.get("appArmorProfile") is not None
        if profile is None or is_set or profile == whole.get("appArmorProfile"):
            return container
        return replace(container, security_context={**context, "appArmorProfile": profile})

    return replace(
        spec,
        containers=tuple(map(profiled, spec.containers)),
        init_containers=tuple(map(profiled, spec.init_containers)),
    )


def _app_armor_profile(annotation: str) -> dict[str, str] | None:
    """Return the profile that an annotation names, if it would be valid."""
    if annotation in _APPARMOR_TYPES:
        return {"type": _APPARMOR_TYPES[annotation]}
    name = annotation.removeprefix(_LOCALHOST)
    is_valid = name == name.strip() != "" and byte_length(name) <= PROFILE_MAX_BYTES
    if not annotation.startswith(_LOCALHOST) or not is_valid:
        return None
    return {"type": "Localhost", "localhostProfile": name}


# --- status -------------------------------------------------------------------------------


def _keep_claims(new: PodStatus, old: PodStatus) -> PodStatus:
    return replace(
        new,
        qos_class=new.qos_class or old.qos_class,
        resource_claim_statuses=value_or(new.resource_claim_statuses, old.resource_claim_statuses),
        extended_resource_claim_status=value_or(
            new.extended_resource_claim_status, old.extended_resource_claim_status
        ),
        node_allocatable_resource_claim_statuses=value_or(
            new.node_allocatable_resource_claim_statuses,
            old.node_allocatable_resource_claim_statuses,
        ),
    )


def _without_empty_lists(status: PodStatus) -> PodStatus:
    """Return the status in its stored form, which has no empty lists."""
    return replace(
        status,
        resource_claim_statuses=status.resource_claim_statuses or None,
        node_allocatable_resource_claim_statuses=(
            status.node_allocatable_resource_claim_statuses or None
        ),
    )


def _keep_observed_generations(new: PodStatus, old: PodStatus) -> PodStatus:
    """Return the status with the old generations where the new one has none.

    Conditions of one type are matched in order: there may be several.
    """
    remembered: dict[str, list[int]] = {}
    for condition in old.conditions:
        remembered.setdefault(condition.type, []).append(condition.observed_generation)
    conditions = []
    for condition in new.conditions:
        waiting = remembered.get(condition.type)
        generation = waiting.pop(0) if waiting else 0
        kept = condition.observed_generation or generation
        conditions.append(replace(condition, observed_generation=kept))
    return replace(
        new,
        observed_generation=new.observed_generation or old.observed_generation,
        conditions=tuple(conditions),
    )


def _drop_disabled_status(new: PodStatus, old: Pod, gates: Gates) -> PodStatus:
    status = old.status
    if not gates.enabled(Gate.DYNAMIC_RESOURCE_ALLOCATION) and not old.spec.resource_claims:
        new = replace(new, resource_claim_statuses=None)
    if (
        not gates.enabled(Gate.DRA_EXTENDED_RESOURCE)
        and status.extended_resource_claim_status is None
    ):
        new = replace(new, extended_resource_claim_status=None)
    if not gates.enabled(Gate.RESOURCE_HEALTH_STATUS) and not any(_healths(status)):
        new = _each_container(new, lambda c: replace(c, allocated_resources_status=()))
    if not gates.enabled(Gate.RESOURCE_HEALTH_STATUS_MESSAGE) and not _has_health_message(status):
        new = _each_container(new, _without_health_messages)
    if (
        not gates.enabled(Gate.DRA_NODE_ALLOCATABLE_RESOURCES)
        and not status.node_allocatable_resource_claim_statuses
    ):
        new = replace(new, node_allocatable_resource_claim_statuses=None)
    if new.volume_health and not status.volume_health:  # CSIVolumeHealth, which Moorage lacks
        new = replace(new, volume_health=())
    return new


def _each_container(
    status: PodStatus, change: Callable[[ContainerStatus], ContainerStatus]
) -> PodStatus:
    return replace(
        status,
        container_statuses=tuple(map(change, status.container_statuses)),
        init_container_statuses=tuple(map(change, status.init_container_statuses)),
        ephemeral_container_statuses=tuple(map(change, status.ephemeral_container_statuses)),
    )


def _without_health_messages(container: ContainerStatus) -> ContainerStatus:
    statuses = (
        replace(status, resources=tuple(replace(r, message=None) for r in status.resources))
        for status in container.allocated_resources_status
    )
    return replace(container, allocated_resources_status=tuple(statuses))


def _healths(status: PodStatus) -> Iterator[ResourceStatus]:
    for container in (
        *status.container_statuses,
        *status.init_container_statuses,
        *status.ephemeral_container_statuses,
    ):
        yield from container.allocated_resources_status


def _has_health_message(status: PodStatus) -> bool:
    healths = (health for of_name in _healths(status) for health in of_name.resources)
    return any(health.message is not None for health in healths)
