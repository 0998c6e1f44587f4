"""Rules of ports, host namespaces, host names and DNS."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from moorage.api.core.pod import Container, ContainerPort, PodSpec
from moorage.api.field_path import Path
from moorage.api.names import byte_length, dns1123_subdomain_with_underscore
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from moorage.validation.field_rules import each, each_invalid, label, subdomain
from moorage.validation.pod.field_rules import Tree

NAMESERVERS_MAX = 3
SEARCHES_MAX = 32
SEARCHES_MAX_CHARACTERS = 2048
HOSTNAME_MAX = 64

_NOT_AN_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_is_sloppy_ipv4 = re.compile(r"(\d{1,8})\.(\d{1,8})\.(\d{1,8})\.(\d{1,8})", re.ASCII).fullmatch


def validate_host_namespaces(
    spec: PodSpec, containers: Iterable[tuple[Container, Path]], path: Path
) -> ErrorList:
    """Validate the host namespaces of a pod, and that none is shared in a user namespace."""
    found: ErrorList = []
    if spec.share_process_namespace and spec.host_pid:
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(invalid(path.child("shareProcessNamespace"), True, detail))
    if spec.host_users is not False:
        return found
    detail = "when `hostUsers` is false"
    # The spelling of two of these paths is Kubernetes'.
    for name, is_shared in (
        ("hostNetwork", spec.host_network),
        ("HostPID", spec.host_pid),
        ("HostIPC", spec.host_ipc),
    ):
        if is_shared:
            found.append(forbidden(path.child(name), detail))
    return found + [
        forbidden(place.child("volumeDevices"), detail)
        for container, place in containers
        if container.volume_devices
    ]


def validate_host_network(spec: PodSpec, path: Path, *, is_pod: bool) -> ErrorList:
    """Validate that hostPort equals containerPort on the host network.

    A template may omit hostPort: it is set in its pods.
    """
    if not spec.host_network:
        return []
    detail = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid(path.index(i).child("ports").index(j).child("hostPort"), port.host_port, detail)
        for i, container in enumerate(spec.containers)
        for j, port in enumerate(container.ports)
        if port.host_port != port.container_port and (is_pod or port.host_port)
    ]


def validate_names(spec: PodSpec, path: Path) -> ErrorList:
    """Validate hostname, subdomain and host aliases."""
    found: ErrorList = []
    if spec.hostname_override is not None:
        found += _validate_override(spec, path.child("hostnameOverride"))
    for name, value in (("hostname", spec.hostname), ("subdomain", spec.subdomain)):
        if value:
            found += label(value, path.child(name))
    for position, alias in enumerate(spec.host_aliases):
        place = path.child("hostAliases").index(position)
        found += validate_address(alias.get("ip", ""), place.child("ip"))
        found += each(alias.get("hostnames", ()), subdomain, place.child("hostnames"))
    return found


def _validate_override(spec: PodSpec, path: Path) -> ErrorList:
    found: ErrorList = []
    name = spec.hostname_override or ""
    if spec.set_hostname_as_fqdn:
        found.append(forbidden(path, "may not be specified when setHostnameAsFQDN is true"))
    if spec.host_network:
        found.append(forbidden(path, "may not be specified when hostNetwork is true"))
    if byte_length(name) > HOSTNAME_MAX:
        found.append(too_long(path, HOSTNAME_MAX))
    return found + subdomain(name, path)


def validate_address(text: str, path: Path) -> ErrorList:
    """Validate an IP address; numbers of an IPv4 address have no leading zeros."""
    try:
        IPv4Address(text)
    except AddressValueError:
        pass
    else:
        return []
    match = _is_sloppy_ipv4(text)
    if match and all(int(number) <= 255 for number in match.groups()):
        return [invalid(path, text, "must not have leading 0s")]
    try:
        address = IPv6Address(text)
    except AddressValueError:
        return [invalid(path, text, _NOT_AN_ADDRESS)]
    if "%" in text:
        return [invalid(path, text, _NOT_AN_ADDRESS)]
    if address.ipv4_mapped is not None:
        return [invalid(path, text, "must not be an IPv4-mapped IPv6 address")]
    return []


# --- DNS ----------------------------------------------------------------------------------


def validate_dns(spec: PodSpec, path: Path) -> ErrorList:
    """Validate the DNS configuration."""
    config: Tree | None = spec.dns_config
    if spec.dns_policy == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(path.child("nameservers"), detail)]
    if config is None:
        return []
    found = _validate_nameservers(config.get("nameservers", []), path.child("nameservers"))
    found += _validate_searches(config.get("searches", []), path.child("searches"))
    for position, option in enumerate(config.get("options", ())):
        if not option.get("name"):
            found.append(required(path.child("options").index(position), "must not be empty"))
    return found


def _validate_nameservers(servers: list[str], path: Path) -> ErrorList:
    found: ErrorList = []
    if len(servers) > NAMESERVERS_MAX:
        detail = f"must not have more than {NAMESERVERS_MAX} nameservers"
        found.append(invalid(path, servers, detail))
    return found + each(servers, validate_address, path)


def _validate_searches(searches: list[str], path: Path) -> ErrorList:
    found: ErrorList = []
    if len(searches) > SEARCHES_MAX:
        detail = f"must not have more than {SEARCHES_MAX} search paths"
        found.append(invalid(path, searches, detail))
    if byte_length(" ".join(searches)) > SEARCHES_MAX_CHARACTERS:
        detail = (
            f"must not have more than {SEARCHES_MAX_CHARACTERS} characters (including spaces) in "
            "the search list"
        )
        found.append(invalid(path, searches, detail))
    for position, search in enumerate(searches):
        if search != ".":
            bare = search.removesuffix(".")
            messages = dns1123_subdomain_with_underscore(bare)
            found += each_invalid(path.index(position), bare, messages)
    return found


# --- ports --------------------------------------------------------------------------------

PORT_NAME_MAX = 15
PORT_MAX = 65535
PROTOCOLS = ("SCTP", "TCP", "UDP")

_has_port_characters = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search


def validate_ports(ports: tuple[ContainerPort, ...], path: Path) -> ErrorList:
    """Validate the ports of one container."""
    found: ErrorList = []
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
            found += validate_port_number(port.container_port, place.child("containerPort"))
        if port.host_port != 0:
            found += validate_port_number(port.host_port, place.child("hostPort"))
        if not port.protocol:
            found.append(required(place.child("protocol")))
        elif port.protocol not in PROTOCOLS:
            found.append(not_supported(place.child("protocol"), port.protocol, PROTOCOLS))
    return found


def validate_port_number(number: int, path: Path) -> ErrorList:
    """Validate the number of a port."""
    if 1 <= number <= PORT_MAX:
        return []
    return [invalid(path, number, f"must be between 1 and {PORT_MAX}, inclusive")]


def port_name_faults(name: str) -> list[str]:
    """Return the rules for port names that a text breaks."""
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


def validate_host_ports(containers: tuple[Container, ...], path: Path) -> ErrorList:
    """Validate that each host port is used once."""
    found: ErrorList = []
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
