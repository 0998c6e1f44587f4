"""Rules for the containers of a pod.

Volumes, environments, probes and security contexts are not checked: nothing here reads them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from mooring.api.core.container import Container, ContainerPort, EphemeralContainer
from mooring.api.core.pod import PodSpec
from mooring.api.core.resources import ResourceRequirements
from mooring.api.fieldpath import Path
from mooring.validation.checks import each_invalid, label
from mooring.validation.errors import (
    Errors,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from mooring.validation.pod.resources import check_container_resources

PORT_NAME_MAX = 15
PORT_MAX = 65535

_has_port_characters = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search

BLANKS = "must not have leading or trailing whitespace"
_NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"


def check_containers(spec: PodSpec, path: Path) -> Errors:
    """Check the containers of all three sorts."""
    pod_claims = {claim.name for claim in spec.resource_claims if claim.name}
    return (
        _check_regular(spec, path.child("containers"), pod_claims)
        + _check_init(spec, path.child("initContainers"), pod_claims)
        + _check_ephemeral(spec, path.child("ephemeralContainers"), pod_claims)
    )


def check_images(containers: Iterable[Container], path: Path) -> Errors:
    """Check that no image has blanks around it."""
    return [
        invalid(path.index(position).child("image"), container.image, BLANKS)
        for position, container in enumerate(containers)
        if container.image != container.image.strip()
    ]


def _check_regular(spec: PodSpec, path: Path, pod_claims: Collection[str]) -> Errors:
    if not spec.containers:
        return [required(path)]
    found: Errors = []
    taken: set[str] = set()
    for position, container in enumerate(spec.containers):
        place = path.index(position)
        found += _check_container(container, place, pod_claims)
        if container.name in taken:
            found.append(duplicate(place.child("name"), container.name))
        taken.add(container.name)
    return found + _check_host_ports(spec.containers, path)


def _check_init(spec: PodSpec, path: Path, pod_claims: Collection[str]) -> Errors:
    found: Errors = []
    taken = {container.name for container in spec.containers}
    for position, container in enumerate(spec.init_containers):
        place = path.index(position)
        found += _check_container(container, place, pod_claims)
        if container.name in taken:
            found.append(duplicate(place.child("name"), container.name))
        elif container.name:
            taken.add(container.name)
        # Init containers run one after the other, so each has the host's ports to itself.
        found += _check_host_ports((container,), path)
    return found


def _check_ephemeral(spec: PodSpec, path: Path, pod_claims: Collection[str]) -> Errors:
    found: Errors = []
    others = {container.name for container in (*spec.containers, *spec.init_containers)}
    taken = set(others)
    for position, container in enumerate(spec.ephemeral_containers):
        place = path.index(position)
        found += _check_container(container, place, pod_claims)
        if container.image != container.image.strip():
            found.append(invalid(place.child("image"), container.image, BLANKS))
        if container.name in taken:
            found.append(duplicate(place.child("name"), container.name))
        taken.add(container.name)
        target = container.target_container_name
        if target and target not in others:
            found.append(not_found(place.child("targetContainerName"), target))
        found += _check_only_ephemeral(container, place)
    return found


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


def _check_container(container: Container, path: Path, pod_claims: Collection[str]) -> Errors:
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
    found += _check_ports(container.ports, path.child("ports"))
    found += check_choice(
        container.image_pull_policy,
        ("Always", "IfNotPresent", "Never"),
        path.child("imagePullPolicy"),
    )
    resources_path = path.child("resources")
    return found + check_container_resources(container.resources, resources_path, pod_claims)


def check_choice(value: str, supported: tuple[str, ...], path: Path) -> Errors:
    """Check a word that must be given and be one of a few."""
    if not value:
        return [required(path)]
    return [] if value in supported else [not_supported(path, value, supported)]


# --- ports --------------------------------------------------------------------------------


def _check_ports(ports: tuple[ContainerPort, ...], path: Path) -> Errors:
    found: Errors = []
    taken: set[str] = set()
    for position, port in enumerate(ports):
        place = path.index(position)
        if port.name:
            messages = _port_name(port.name)
            found += each_invalid(place.child("name"), port.name, messages)
            if not messages and port.name in taken:
                found.append(duplicate(place.child("name"), port.name))
            taken.add(port.name)
        if port.container_port == 0:
            found.append(required(place.child("containerPort")))
        else:
            found += _check_port_number(port.container_port, place.child("containerPort"))
        if port.host_port != 0:
            found += _check_port_number(port.host_port, place.child("hostPort"))
        found += check_choice(port.protocol, ("SCTP", "TCP", "UDP"), place.child("protocol"))
    return found


def _check_port_number(number: int, path: Path) -> Errors:
    if 1 <= number <= PORT_MAX:
        return []
    return [invalid(path, number, f"must be between 1 and {PORT_MAX}, inclusive")]


def _port_name(name: str) -> list[str]:
    messages = []
    if len(name.encode()) > PORT_NAME_MAX:
        messages.append(f"must be no more than {PORT_NAME_MAX} characters")
    if not _has_port_characters(name):
        messages.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(name):
        messages.append("must contain at least one letter (a-z)")
    if "--" in name:
        messages.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        messages.append("must not begin or end with a hyphen")
    return messages


def _check_host_ports(containers: tuple[Container, ...], path: Path) -> Errors:
    """Check that no port of the host is taken twice."""
    found: Errors = []
    taken: set[str] = set()
    for position, container in enumerate(containers):
        ports_path = path.index(position).child("ports")
        for number, port in enumerate(container.ports):
            if port.host_port == 0:
                continue
            socket = f"{port.protocol}/{port.host_ip}/{port.host_port}"
            if socket in taken:
                found.append(duplicate(ports_path.index(number).child("hostPort"), socket))
            taken.add(socket)
    return found
