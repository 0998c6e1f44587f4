"""The strategies of two subresources of pods: an update of one changes that part only.

ephemeralcontainers    containers may be added to a running pod; they stay, and stay unchanged
resize                 requests and limits of cpu and memory may change, and how they are applied
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from moorage.api.core.pod import MIRROR_POD_ANNOTATION, Container, Pod, PodSpec
from moorage.api.core.resources import CPU, MEMORY, ResourceList, ResourceRequirements
from moorage.api.field_path import Path
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, forbidden, invalid
from moorage.validation.metadata import metadata_for_status, validate_metadata_update
from moorage.validation.pod.annotations import validate_annotations_update
from moorage.validation.pod.resources import default_whole_resources, qos_class
from moorage.validation.pod.security_context import WINDOWS
from moorage.validation.pod.spec import SPEC, validate_pod
from moorage.validation.pod.strategy import PodStrategy, drop_disabled_spec
from moorage.validation.strategy import Context

NOWHERE = Path("[]")  # as Kubernetes shows the pod as a whole

_ONLY = "only cpu and memory resources are mutable"
_ONLY_INITIAL = "only cpu and memory resources for init or sidecar containers are mutable"
_RESTARTS = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"

C = TypeVar("C", bound=Container)


def _in_next_generation(new: Pod, old: Pod) -> Pod:
    if semantic_equal(new.spec, old.spec):
        return new
    return replace(new, metadata=replace(new.metadata, generation=new.metadata.generation + 1))


class EphemeralContainersStrategy(PodStrategy):
    """The strategy of pods/ephemeralcontainers."""

    def prepare_for_update(self, new: Pod, old: Pod, context: Context) -> Pod:
        """Keep everything but the ephemeral containers."""
        spec = replace(old.spec, ephemeral_containers=new.spec.ephemeral_containers)
        spec = drop_disabled_spec(spec, old.spec, context.gates)
        metadata = metadata_for_status(new.metadata, old.metadata)
        return _in_next_generation(
            replace(new, metadata=metadata, spec=spec, status=old.status), old
        )

    def validate_update(self, new: Pod, old: Pod, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate the pod, and that ephemeral containers were only added."""
        if MIRROR_POD_ANNOTATION in old.metadata.annotations:
            return [forbidden(NOWHERE, "static pods do not support ephemeral containers")]
        found = validate_metadata_update(new.metadata, old.metadata)
        found += validate_pod(new, old.metadata.annotations)
        found += validate_annotations_update(new, old)
        after = {container.name: container for container in new.spec.ephemeral_containers}
        path = SPEC.child("ephemeralContainers")
        for container in old.spec.ephemeral_containers:
            if container.name not in after:
                detail = f'existing ephemeral containers "{container.name}" may not be removed\n'
                found.append(forbidden(path, detail))
            elif not semantic_equal(after[container.name], container):
                detail = f'existing ephemeral containers "{container.name}" may not be changed\n'
                found.append(forbidden(path, detail))
        return found


class ResizeStrategy(PodStrategy):
    """The strategy of pods/resize."""

    def prepare_for_update(self, new: Pod, old: Pod, context: Context) -> Pod:
        """Keep everything but resources and resize policies.

        Where containers were added, removed or renamed, validation is to see it.
        """
        spec, before = new.spec, old.spec
        is_same_length = (len(spec.containers), len(spec.init_containers)) == (
            len(before.containers),
            len(before.init_containers),
        )
        if is_same_length:
            spec = replace(
                before,
                resources=before.resources if spec.resources is None else spec.resources,
                containers=_resized(spec.containers, before.containers),
                init_containers=_resized(spec.init_containers, before.init_containers),
            )
            metadata = metadata_for_status(new.metadata, old.metadata)
            new = replace(new, metadata=metadata, status=old.status)
        if spec.resources is not None:
            spec = default_whole_resources(spec)
        spec = drop_disabled_spec(spec, before, context.gates)
        return _in_next_generation(replace(new, spec=spec), old)

    def validate_update(self, new: Pod, old: Pod, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate the pod, and that only requests and limits of cpu and memory changed."""
        if MIRROR_POD_ANNOTATION in old.metadata.annotations:
            return [forbidden(NOWHERE, "static pods cannot be resized")]
        if old.spec.os is not None and old.spec.os.get("name") == WINDOWS:
            return [forbidden(NOWHERE, "windows pods cannot be resized")]
        found = validate_metadata_update(new.metadata, old.metadata)
        found += validate_pod(new, old.metadata.annotations)
        if (old.status.qos_class or qos_class(old.spec)) != qos_class(new.spec):
            detail = "Pod QOS Class may not change as a result of resizing"
            found.append(invalid(SPEC, new.status.qos_class, detail))
        if not _is_supported(old):
            found.append(forbidden(SPEC, "Pod running on node without support for resize"))
        found += _validate_whole(new.spec, old.spec)
        if order := _validate_order(new.spec, old.spec):
            return found + order
        found += _validate_removed(new.spec, old.spec)
        return found + _validate_rest(new.spec, old.spec)


def _resized(containers: tuple[C, ...], before: tuple[C, ...]) -> tuple[C, ...]:
    if [each.name for each in containers] != [each.name for each in before]:
        return containers
    return tuple(
        replace(old, resources=new.resources, resize_policy=new.resize_policy)
        for new, old in zip(containers, before, strict=True)
    )


def _is_supported(pod: Pod) -> bool:
    """Return whether the node can resize containers: it says what those that run have."""
    for status in pod.status.container_statuses:
        if status.state.running is not None:
            return status.resources is not None
    return True


def _validate_order(new: PodSpec, old: PodSpec) -> ErrorList:
    """Validate that all containers are where they were."""
    found: ErrorList = []
    for name, after, before in (
        ("containers", new.containers, old.containers),
        ("initContainers", new.init_containers, old.init_containers),
    ):
        path = SPEC.child(name)
        if len(after) != len(before):
            found.append(forbidden(path, f"{name} may not be added or removed on resize"))
            continue
        found += [
            forbidden(
                path.index(position).child("name"),
                f"{name} may not be renamed or reordered on resize",
            )
            for position, (one, other) in enumerate(zip(after, before, strict=True))
            if one.name != other.name
        ]
    return found


def _validate_whole(new: PodSpec, old: PodSpec) -> ErrorList:
    """Validate the resources of the pod as a whole."""
    after, before = new.resources, old.resources
    if not any(each and (each.requests or each.limits) for each in (after, before)):
        return []
    path = SPEC.child("resources")
    if after is None:
        return [forbidden(path, "pod-level resources cannot be removed")]
    found: ErrorList = []
    if before is not None:
        found += _validate_kept(after, before, "pod-level resource", path)
    kept = _without_changes(after, before or ResourceRequirements())
    if not semantic_equal(kept, before or ResourceRequirements()):
        found.append(forbidden(SPEC, f"{_ONLY} at pod-level"))
    return found


def _validate_removed(new: PodSpec, old: PodSpec) -> ErrorList:
    found: ErrorList = []
    for name, after, before in (
        ("initContainers", new.init_containers, old.init_containers),
        ("containers", new.containers, old.containers),
    ):
        for position, (one, other) in enumerate(zip(after, before, strict=True)):
            path = SPEC.child(name).index(position).child("resources")
            found += _validate_kept(one.resources, other.resources, "resource", path)
    return found


def _validate_kept(
    new: ResourceRequirements, old: ResourceRequirements, what: str, path: Path
) -> ErrorList:
    return [
        forbidden(path.child(name), f"{what} {name} cannot be removed")
        for name, after, before in (
            ("requests", new.requests, old.requests),
            ("limits", new.limits, old.limits),
        )
        if before.keys() - after.keys()
    ]


def _validate_rest(new: PodSpec, old: PodSpec) -> ErrorList:
    """Validate that nothing but cpu and memory changed in any container."""
    found: ErrorList = [
        forbidden(SPEC, _ONLY)
        for after, before in zip(new.containers, old.containers, strict=True)
        if not _differs_in_amounts(after, before)
    ]
    for position, (after, before) in enumerate(
        zip(new.init_containers, old.init_containers, strict=True)
    ):
        path = SPEC.child("initContainers").index(position)
        if not _differs_in_amounts(after, before):
            found.append(forbidden(path, _ONLY_INITIAL))
        if not after.is_sidecar and not semantic_equal(after, before):
            found += [
                forbidden(path, _RESTARTS)
                for policy in after.resize_policy
                if policy.get("restartPolicy") == "RestartContainer"
            ]
    return found


def _differs_in_amounts(new: Container, old: Container) -> bool:
    """Return whether two containers are the same, besides amounts of cpu and memory."""
    return semantic_equal(
        replace(new, resources=_without_changes(new.resources, old.resources)), old
    )


def _without_changes(new: ResourceRequirements, old: ResourceRequirements) -> ResourceRequirements:
    return replace(
        new,
        requests=_with_old(new.requests, old.requests),
        limits=_with_old(new.limits, old.limits),
    )


def _with_old(new: ResourceList, old: ResourceList) -> ResourceList:
    kept = {name: amount for name, amount in new.items() if name not in (CPU, MEMORY)}
    return kept | {name: old[name] for name in (CPU, MEMORY) if name in old}
