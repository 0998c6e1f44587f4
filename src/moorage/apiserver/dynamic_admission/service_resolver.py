"""Resolves a port of a service to the address of a ready endpoint, each in turn."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from moorage.api.codec import to_tree
from moorage.apiserver.dynamic_admission.webhook_client import service_error
from moorage.kit.go_quote import go_quote

if TYPE_CHECKING:
    from moorage.apiserver.resources import Resource
    from moorage.apiserver.server_context import ServerContext

SERVICE_LABEL = "kubernetes.io/service-name"
_SLICES = "endpointslices"
_turns = count()


async def resolve_service(
    server: ServerContext, namespace: str, name: str, port: int
) -> tuple[str, int]:
    """Return the host and port of an endpoint of a service, or raise an error."""
    services = server.resources.find("", "v1", "services")
    if services is None:
        raise service_error(f"services {go_quote(name)} not found: this server has no services")
    found = await server.registry.find(services, namespace, name)
    if found is None:
        raise service_error(f"services {go_quote(name)} not found")
    spec = _tree(found).get("spec", {})
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", "")), port
    listed = [each for each in spec.get("ports", ()) if each.get("port") == port]
    if not listed:
        raise service_error(f"no service port {port} found for service {go_quote(name)}")
    slices = server.resources.find("discovery.k8s.io", "v1", _SLICES)
    addresses: list[tuple[str, int]] = []
    if slices is not None:
        addresses = await _addresses(server, slices, namespace, name, listed[0].get("name", ""))
    if not addresses:
        raise service_error(f"no endpoints available for service {go_quote(name)}")
    return addresses[next(_turns) % len(addresses)]


async def _addresses(
    server: ServerContext, slices: Resource, namespace: str, name: str, port_name: str
) -> list[tuple[str, int]]:
    page = await server.registry.store.list(slices.below(namespace))
    found: list[tuple[str, int]] = []
    for value in server.registry.readable(slices, page.entries).values:
        if value.metadata.labels.get(SERVICE_LABEL) != name:
            continue
        tree = _tree(value)
        ports = [each for each in tree.get("ports") or () if (each.get("name") or "") == port_name]
        for endpoint in tree.get("endpoints") or ():
            is_ready = (endpoint.get("conditions") or {}).get("ready") is not False
            for port in ports if is_ready else ():
                found += [(host, int(port["port"])) for host in endpoint.get("addresses", ())[:1]]
    return found


def _tree(value: Any) -> dict[str, Any]:
    tree: dict[str, Any] = value if isinstance(value, dict) else to_tree(value)
    return tree
