"""Rules for the containers of a pod, of all three sorts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from mooring.api.core.container import Container, EphemeralContainer
from mooring.api.core.pod import PodSpec
from mooring.api.core.resources import ResourceRequirements
from mooring.api.fieldpath import Path
from mooring.validation.checks import label
from mooring.validation.errors import (
    Errors,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from mooring.validation.pod.environment import check_environment
from mooring.validation.pod.mounts import check_mounts
from mooring.validation.pod.ports import check_host_ports, check_ports
from mooring.validation.pod.probes import check_no_probes, check_probes
from mooring.validation.pod.resources import check_container_resources
from mooring.validation.pod.restarts import (
    check_init_restarts,
    check_resize_policy,
    check_restarts,
)
from mooring.validation.pod.security import check_container_security
from mooring.validation.pod.volumes import PULL_POLICIES, Volumes

BLANKS = "must not have leading or trailing whitespace"
_NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"


class Surroundings(NamedTuple):
    """What the containers of a pod share, and refer to."""

    spec: PodSpec
    claims: Set[str]
    volumes: Volumes

    def check_probes(self, container: Container, path: Path) -> Errors:
        """Check the hooks and probes of a container."""
        return check_probes(container, self.spec.termination_grace_period_seconds, path)


def check_containers(spec: PodSpec, volumes: Volumes, path: Path) -> Errors:
    """Check the containers of all three sorts."""
    claims = {claim.name for claim in spec.resource_claims if claim.name}
    around = Surroundings(spec, claims, volumes)
    return (
        _check_regular(around, path.child("containers"))
        + _check_init(around, path.child("initContainers"))
        + _check_ephemeral(around, path.child("ephemeralContainers"))
    )


def with_paths(spec: PodSpec, path: Path) -> Iterator[tuple[Container, Path]]:
    """Return all containers with their places, init containers first."""
    for name, containers in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    ):
        for position, container in enumerate(containers):
            yield container, path.child(name).index(position)


def check_images(containers: Iterable[Container], path: Path) -> Errors:
    """Check that no image has blanks around it."""
    return [
        invalid(path.index(position).child("image"), container.image, BLANKS)
        for position, container in enumerate(containers)
        if container.image != container.image.strip()
    ]


def _check_regular(around: Surroundings, path: Path) -> Errors:
    spec = around.spec
    if not spec.containers:
        return [required(path)]
    found: Errors = []
    taken: set[str] = set()
    for position, container in enumerate(spec.containers):
        place = path.index(position)
        found += _check_container(container, around, place)
        if container.name in taken:
            found.append(duplicate(place.child("name"), container.name))
        taken.add(container.name)
        found += around.check_probes(container, place)
        found += check_restarts(container, place)
    return found + check_host_ports(spec.containers, path)


def _check_init(around: Surroundings, path: Path) -> Errors:
    spec = around.spec
    found: Errors = []
    taken = {container.name for container in spec.containers}
    for position, container in enumerate(spec.init_containers):
        place = path.index(position)
        found += _check_container(container, around, place)
        found += check_init_restarts(container, place)
        if container.name in taken:
            found.append(duplicate(place.child("name"), container.name))
        elif container.name:
            taken.add(container.name)
        # Init containers run one after the other, so each has the host's ports to itself.
        found += check_host_ports((container,), path)
        if container.is_sidecar:
            found += around.check_probes(container, place)
        else:
            found += check_no_probes(container, place)
    return found


def _check_ephemeral(around: Surroundings, path: Path) -> Errors:
    spec = around.spec
    found: Errors = []
    others = {container.name for container in (*spec.containers, *spec.init_containers)}
    taken = set(others)
    for position, container in enumerate(spec.ephemeral_containers):
        place = path.index(position)
        found += _check_container(container, around, place)
        if container.image != container.image.strip():
            found.append(invalid(place.child("image"), container.image, BLANKS))
        if container.name in taken:
            found.append(duplicate(place.child("name"), container.name))
        taken.add(container.name)
        target = container.target_container_name
        if target and target not in others:
            found.append(not_found(place.child("targetContainerName"), target))
        found += _check_only_ephemeral(container, place)
        found += _check_no_sub_paths(container, place.child("volumeMounts"))
    return found


def _check_no_sub_paths(container: EphemeralContainer, path: Path) -> Errors:
    return [
        forbidden(path.index(position).child(name), _NOT_EPHEMERAL)
        for position, mount in enumerate(container.volume_mounts)
        for name in ("subPath", "subPathExpr")
        if mount.get(name)
    ]


def _check_only_ephemeral(container: EphemeralContainer, path: Path) -> Errors:
    """Check that nothing is set that only the containers a pod starts with may have."""
    fields = {
        "ports": container.ports,
        "resources": container.resources != ResourceRequirements(),
        "resizePolicy": container.resize_policy,
        "restartPolicy": container.restart_policy is not None,
        "restartPolicyRules": container.restart_policy_rules,
        "livenessProbe": container.liveness_probe is not None,
        "readinessProbe": container.readiness_probe is not None,
        "startupProbe": container.startup_probe is not None,
        "lifecycle": container.lifecycle is not None,
    }
    return [
        forbidden(path.child(name), _NOT_EPHEMERAL) for name, is_set in fields.items() if is_set
    ]


def _check_container(container: Container, around: Surroundings, path: Path) -> Errors:
    found: Errors = []
    if container.name:
        found += label(container.name, path.child("name"))
    else:
        found.append(required(path.child("name")))
    if not container.image:
        found.append(required(path.child("image")))
    found += check_choice(
        container.termination_message_policy,
        ("File", "FallbackToLogsOnError"),
        path.child("terminationMessagePolicy"),
    )
    found += check_ports(container.ports, path.child("ports"))
    found += check_environment(container, path)
    found += check_mounts(container, around.volumes, path)
    policy_path = path.child("imagePullPolicy")
    found += check_choice(container.image_pull_policy, PULL_POLICIES, policy_path)
    resources_path = path.child("resources")
    found += check_container_resources(container.resources, resources_path, around.claims)
    found += check_resize_policy(
        container.resize_policy, around.spec.restart_policy, path.child("resizePolicy")
    )
    return found + check_container_security(
        container.security_context, around.spec, path.child("securityContext")
    )


def check_choice(value: str, supported: tuple[str, ...], path: Path) -> Errors:
    """Check a word that must be given and be one of a few."""
    if not value:
        return [required(path)]
    return [] if value in supported else [not_supported(path, value, supported)]
