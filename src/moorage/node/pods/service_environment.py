"""The environment variables with the addresses of services (pure), as a kubelet sets them.

WEB_SERVICE_HOST=10.0.0.7           the address
WEB_SERVICE_PORT=80                 the first port
WEB_SERVICE_PORT_METRICS=9090       a named port
WEB_PORT=tcp://10.0.0.7:80          the first port, and each port, as Docker's links
WEB_PORT_80_TCP, …_PROTO, …_PORT, …_ADDR

The service `kubernetes` is the API server; every container has its variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from moorage.api.core import Service

KUBERNETES: Final = "kubernetes"
HTTPS_PORT: Final = 443


class NamedPort(NamedTuple):
    """A port of a service."""

    number: int
    name: str = ""
    protocol: str = "TCP"


def service_variables(name: str, host: str, ports: Iterable[NamedPort]) -> dict[str, str]:
    """Return the variables of one service; none without ports."""
    listed = tuple(ports)
    if not listed:
        return {}
    prefix = _variable(name)
    first = str(listed[0].number)
    found = {f"{prefix}_SERVICE_HOST": host, f"{prefix}_SERVICE_PORT": first}
    for port in listed:
        if port.name:
            found[f"{prefix}_SERVICE_PORT_{_variable(port.name)}"] = str(port.number)
    return found | _links(prefix, host, listed)


def variables_for(namespace: str, services: Iterable[Service]) -> dict[str, str]:
    """Return the variables of the services of a namespace that have an address."""
    found: dict[str, str] = {}
    for each in sorted(services, key=lambda each: each.metadata.name):
        spec = each.spec
        if each.metadata.namespace == namespace and spec.cluster_ip and not spec.is_headless:
            ports = (NamedPort(own.port, own.name, own.protocol or "TCP") for own in spec.ports)
            found |= service_variables(each.metadata.name, spec.cluster_ip, ports)
    return found


def server_variables(url: str) -> Mapping[str, str]:
    """Return the variables of the service `kubernetes` for the API server at a URL.

    They contain the address that the node uses for the server, because a cluster address would need
    a proxy on the node.
    """
    parts = urlsplit(url)
    if not parts.hostname:
        return {}
    port = NamedPort(parts.port or HTTPS_PORT, "https")
    return service_variables(KUBERNETES, parts.hostname, (port,))


def _links(prefix: str, host: str, ports: tuple[NamedPort, ...]) -> dict[str, str]:
    bracketed = f"[{host}]" if ":" in host else host
    found: dict[str, str] = {}
    for port in ports:
        protocol = port.protocol.lower()
        url = f"{protocol}://{bracketed}:{port.number}"
        found.setdefault(f"{prefix}_PORT", url)
        own = f"{prefix}_PORT_{port.number}_{port.protocol.upper()}"
        found[own] = url
        found |= {f"{own}_PROTO": protocol, f"{own}_PORT": str(port.number), f"{own}_ADDR": host}
    return found


def _variable(name: str) -> str:
    return name.replace("-", "_").upper()
