"""Rules for the ports of containers, and of the host that they take."""

from __future__ import annotations

import re

from mooring.api.core.container import Container, ContainerPort
from mooring.api.fieldpath import Path
from mooring.api.names import byte_length
from mooring.validation.checks import each_invalid
from mooring.validation.errors import Errors, duplicate, invalid, not_supported, required

PORT_NAME_MAX = 15
PORT_MAX = 65535
PROTOCOLS = ("SCTP", "TCP", "UDP")

_has_port_characters = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search


def check_ports(ports: tuple[ContainerPort, ...], path: Path) -> Errors:
    """Check the ports of one container."""
    found: Errors = []
    taken: set[str] = set()
    for position, port in enumerate(ports):
        place = path.index(position)
        if port.name:
            messages = port_name_faults(port.name)
            found += each_invalid(place.child("name"), port.name, messages)
            if not messages and port.name in taken:
                found.append(duplicate(place.child("name"), port.name))
            elif not messages:
                taken.add(port.name)
        if port.container_port == 0:
            found.append(required(place.child("containerPort")))
        else:
            found += check_port_number(port.container_port, place.child("containerPort"))
        if port.host_port != 0:
            found += check_port_number(port.host_port, place.child("hostPort"))
        if not port.protocol:
            found.append(required(place.child("protocol")))
        elif port.protocol not in PROTOCOLS:
            found.append(not_supported(place.child("protocol"), port.protocol, PROTOCOLS))
    return found


def check_port_number(number: int, path: Path) -> Errors:
    """Check the number of a port."""
    if 1 <= number <= PORT_MAX:
        return []
    return [invalid(path, number, f"must be between 1 and {PORT_MAX}, inclusive")]


def port_name_faults(name: str) -> list[str]:
    """Return the rules for names of ports that a text breaks."""
    messages = []
    if byte_length(name) > PORT_NAME_MAX:
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


def check_host_ports(containers: tuple[Container, ...], path: Path) -> Errors:
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
