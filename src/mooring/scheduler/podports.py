"""Ports of the host that a pod takes."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.core.pod import Pod

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - what a host port without address means
TCP = "TCP"

Port = tuple[str, int]  # protocol and number
HostPort = tuple[str, Port]  # address, protocol and number

# By protocol and number the addresses that are taken, sorted; one that is taken twice twice.
TakenPorts = Mapping[Port, tuple[str, ...]]


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports of containers and sidecars; other init containers do not last."""
    lasting = [container for container in pod.spec.init_containers if container.is_sidecar]
    return tuple(
        (port.host_ip or ALL_ADDRESSES, (port.protocol or TCP, port.host_port))
        for container in (*lasting, *pod.spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def is_free(wanted: HostPort, taken: TakenPorts) -> bool:
    """Return whether no pod has the port: all addresses and any one of them exclude each other."""
    address, port = wanted
    addresses = taken.get(port)
    if not addresses:
        return True
    return address != ALL_ADDRESSES and address not in addresses and ALL_ADDRESSES not in addresses


def with_ports(taken: TakenPorts, ports: tuple[HostPort, ...]) -> TakenPorts:
    """Return the ports with these taken as well."""
    result = dict(taken)
    for address, port in ports:
        result[port] = tuple(sorted((*result.get(port, ()), address)))
    return result


def without_ports(taken: TakenPorts, ports: tuple[HostPort, ...]) -> TakenPorts:
    """Return the ports with these given back, each once."""
    result = dict(taken)
    for address, port in ports:
        addresses = list(result.pop(port))
        addresses.remove(address)
        if addresses:
            result[port] = tuple(addresses)
    return result
