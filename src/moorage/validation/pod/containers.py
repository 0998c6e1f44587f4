"""Rules of containers, init containers and ephemeral containers, and of their volume mounts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from moorage.api.core.pod import Container, EphemeralContainer, PodSpec
from moorage.api.core.resources import ResourceRequirements
from moorage.api.field_path import Path
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
)
from moorage.validation.field_rules import label
from moorage.validation.pod.container_fields import (
    validate_environment,
    validate_init_restarts,
    validate_no_probes,
    validate_probes,
    validate_resize_policy,
    validate_restarts,
)
from moorage.validation.pod.field_rules import (
    Tree,
    descending_path,
    no_backsteps,
    one_of,
    require,
    required_one_of,
)
from moorage.validation.pod.networking import validate_host_ports, validate_ports
from moorage.validation.pod.resources import validate_container_resources
from moorage.validation.pod.security_context import validate_container_security
from moorage.validation.pod.volumes import PULL_POLICIES, Volumes

BLANKS = "must not have leading or trailing whitespace"
_NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"


class ContainerContext(NamedTuple):
    """The parts of a pod that its containers share and refer to."""

    spec: PodSpec
    claims: Set[str]
    volumes: Volumes

    def validate_probes(self, container: Container, path: Path) -> ErrorList:
        """Validate the hooks and probes of a container."""
        return validate_probes(container, self.spec.termination_grace_period_seconds, path)


def validate_containers(spec: PodSpec, volumes: Volumes, path: Path) -> ErrorList:
    """Validate containers, init containers and ephemeral containers."""
    claims = {claim.name for claim in spec.resource_claims if claim.name}
    context = ContainerContext(spec, claims, volumes)
    return (
        _validate_regular(context, path.child("containers"))
        + _validate_init(context, path.child("initContainers"))
        + _validate_ephemeral(context, path.child("ephemeralContainers"))
    )


def with_paths(spec: PodSpec, path: Path) -> Iterator[tuple[Container, Path]]:
    """Return all containers with their paths, init containers first."""
    for name, containers in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    ):
        for position, container in enumerate(containers):
            yield container, path.child(name).index(position)


def validate_images(containers: Iterable[Container], path: Path) -> ErrorList:
    """Validate that no image has leading or trailing whitespace."""
    return [
        invalid(path.index(position).child("image"), container.image, BLANKS)
        for position, container in enumerate(containers)
        if container.image != container.image.strip()
    ]


def _validate_regular(context: ContainerContext, path: Path) -> ErrorList:
    spec = context.spec
    if not spec.containers:
        return [required(path)]
    found: ErrorList = []
    taken: set[str] = set()
    for position, container in enumerate(spec.containers):
        place = path.index(position)
        found += _validate_container(container, context, place)
        if container.name in taken:
            found.append(duplicate(place.child("name"), container.name))
        taken.add(container.name)
        found += context.validate_probes(container, place)
        found += validate_restarts(container, place)
    return found + validate_host_ports(spec.containers, path)


def _validate_init(context: ContainerContext, path: Path) -> ErrorList:
    spec = context.spec
    found: ErrorList = []
    taken = {container.name for container in spec.containers}
    for position, container in enumerate(spec.init_containers):
        place = path.index(position)
        found += _validate_container(container, context, place)
        found += validate_init_restarts(container, place)
        if container.name in taken:
            found.append(duplicate(place.child("name"), container.name))
        elif container.name:
            taken.add(container.name)
        # Init containers run one after the other, so each has the host's ports to itself.
        found += validate_host_ports((container,), path)
        if container.is_sidecar:
            found += context.validate_probes(container, place)
        else:
            found += validate_no_probes(container, place)
    return found


def _validate_ephemeral(context: ContainerContext, path: Path) -> ErrorList:
    spec = context.spec
    found: ErrorList = []
    others = {container.name for container in (*spec.containers, *spec.init_containers)}
    taken = set(others)
    for position, container in enumerate(spec.ephemeral_containers):
        place = path.index(position)
        found += _validate_container(container, context, place)
        if container.image != container.image.strip():
            found.append(invalid(place.child("image"), container.image, BLANKS))
        if container.name in taken:
            found.append(duplicate(place.child("name"), container.name))
        taken.add(container.name)
        target = container.target_container_name
        if target and target not in others:
            found.append(not_found(place.child("targetContainerName"), target))
        found += _validate_only_ephemeral(container, place)
        found += _validate_no_sub_paths(container, place.child("volumeMounts"))
    return found


def _validate_no_sub_paths(container: EphemeralContainer, path: Path) -> ErrorList:
    return [
        forbidden(path.index(position).child(name), _NOT_EPHEMERAL)
        for position, mount in enumerate(container.volume_mounts)
        for name in ("subPath", "subPathExpr")
        if mount.get(name)
    ]


def _validate_only_ephemeral(container: EphemeralContainer, path: Path) -> ErrorList:
    """Validate that no field is set that an ephemeral container may not have."""
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


def _validate_container(container: Container, context: ContainerContext, path: Path) -> ErrorList:
    found: ErrorList = []
    if container.name:
        found += label(container.name, path.child("name"))
    else:
        found.append(required(path.child("name")))
    if not container.image:
        found.append(required(path.child("image")))
    found += required_one_of(
        container.termination_message_policy,
        ("File", "FallbackToLogsOnError"),
        path.child("terminationMessagePolicy"),
    )
    found += validate_ports(container.ports, path.child("ports"))
    found += validate_environment(container, path)
    found += validate_mounts(container, context.volumes, path)
    policy_path = path.child("imagePullPolicy")
    found += required_one_of(container.image_pull_policy, PULL_POLICIES, policy_path)
    resources_path = path.child("resources")
    found += validate_container_resources(container.resources, resources_path, context.claims)
    found += validate_resize_policy(
        container.resize_policy, context.spec.restart_policy, path.child("resizePolicy")
    )
    return found + validate_container_security(
        container.security_context, context.spec, path.child("securityContext")
    )


# --- volume mounts and devices ------------------------------------------------------------

PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
RECURSIVE_READ_ONLY = ("Disabled", "Enabled", "IfPossible")

_NOT_A_CLAIM = (
    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
)


def validate_mounts(container: Container, volumes: Volumes, path: Path) -> ErrorList:
    """Validate the mounts and block devices of a container."""
    mounted = {m.get("name", ""): m.get("mountPath", "") for m in container.volume_mounts}
    devices = {d.get("name", ""): d.get("devicePath", "") for d in container.volume_devices}
    device_paths = set(devices.values())
    found: ErrorList = []
    taken: set[str] = set()
    for position, mount in enumerate(container.volume_mounts):
        place = path.child("volumeMounts").index(position)
        found += _validate_place(mount, volumes, place, taken)
        found += _validate_not_device(mount, devices.keys(), device_paths, place)
        found += _validate_sub_path(mount, place)
        found += _validate_options(mount, container, place)
    return found + _validate_devices(container, volumes, mounted, path.child("volumeDevices"))


def _validate_place(mount: Tree, volumes: Volumes, path: Path, taken: set[str]) -> ErrorList:
    name, target = mount.get("name", ""), mount.get("mountPath", "")
    found = require(mount, ("name",), path)
    if name not in volumes:
        found.append(not_found(path.child("name"), name))
    found += require(mount, ("mountPath",), path)
    if target in taken:
        found.append(invalid(path.child("mountPath"), target, "must be unique"))
    taken.add(target)
    return found


def _validate_not_device(
    mount: Tree, devices: Set[str], device_paths: Set[str], path: Path
) -> ErrorList:
    name, target = mount.get("name", ""), mount.get("mountPath", "")
    found: ErrorList = []
    if name in devices:
        detail = "must not already exist in volumeDevices"
        found.append(invalid(path.child("name"), name, detail))
    if target in device_paths:
        detail = "must not already exist as a path in volumeDevices"
        found.append(invalid(path.child("mountPath"), target, detail))
    return found


def _validate_sub_path(mount: Tree, path: Path) -> ErrorList:
    """Validate subPath and subPathExpr; Kubernetes omits the index of the mount in their path."""
    mounts = path.parent or path
    target, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    found = descending_path(target, mounts.child("subPath"))
    if target and expression:
        detail = "subPathExpr and subPath are mutually exclusive"
        found.append(invalid(path.child("subPathExpr"), expression, detail))
    return found + descending_path(expression, mounts.child("subPathExpr"))


def _validate_options(mount: Tree, container: Container, path: Path) -> ErrorList:
    mounts = path.parent or path
    propagation, place = mount.get("mountPropagation"), mounts.child("mountPropagation")
    found = one_of(propagation, PROPAGATIONS, place)
    security = container.security_context or {}
    if propagation == "Bidirectional" and not security.get("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        found.append(forbidden(place, detail))
    return found + _validate_recursive(mount, propagation, mounts.child("recursiveReadOnly"))


def _validate_recursive(mount: Tree, propagation: str | None, path: Path) -> ErrorList:
    value = mount.get("recursiveReadOnly")
    found = one_of(value, RECURSIVE_READ_ONLY, path)
    if found or value in (None, "Disabled"):
        return found
    if not mount.get("readOnly"):
        found.append(forbidden(path, "may only be specified when readOnly is true"))
    if propagation not in (None, "None"):
        detail = "may only be specified when mountPropagation is None or not specified"
        found.append(forbidden(path, detail))
    return found


# --- block devices ------------------------------------------------------------------------


def _validate_devices(
    container: Container, volumes: Volumes, mounted: dict[str, str], path: Path
) -> ErrorList:
    found: ErrorList = []
    names: set[str] = set()
    targets: set[str] = set()
    mount_paths = set(mounted.values())
    for position, device in enumerate(container.volume_devices):
        place = path.index(position)
        name, target = device.get("name", ""), device.get("devicePath", "")
        found += _validate_device_name(name, volumes, place.child("name"), names)
        found += _validate_device_path(target, place.child("devicePath"), targets)
        if name in mounted:
            detail = "must not already exist in volumeMounts"
            found.append(invalid(place.child("name"), name, detail))
        if target in mount_paths:
            detail = "must not already exist as a path in volumeMounts"
            found.append(invalid(place.child("devicePath"), target, detail))
        names |= {name} if name else set()
    return found


def _validate_device_name(name: str, volumes: Volumes, path: Path, taken: set[str]) -> ErrorList:
    found: ErrorList = []
    if not name:
        found.append(required(path))
    if name in taken:
        found.append(invalid(path, name, "must be unique"))
    volume = volumes.get(name)
    if volume is None:
        found.append(not_found(path, name))
    elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
        found.append(invalid(path, name, _NOT_A_CLAIM))
    return found


def _validate_device_path(target: str, path: Path, taken: set[str]) -> ErrorList:
    found: ErrorList = []
    if not target:
        found.append(required(path))
    if target in taken:
        found.append(invalid(path, target, "must be unique"))
    if target and no_backsteps(target, path):
        found.append(invalid(path, target, "can not contain backsteps ('..')"))
    else:
        taken.add(target)
    return found
