"""The service `kubernetes`, by which pods find the server, and its endpoints."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from msgspec.structs import replace

from moorage.api.core.service import Endpoints, Service, ServicePort, ServiceSpec
from moorage.api.discovery import (
    IPV4,
    IPV6,
    SERVICE_NAME_LABEL,
    Endpoint,
    EndpointConditions,
    EndpointPort,
    EndpointSlice,
)
from moorage.api.meta import ObjectMeta
from moorage.apiserver.server_context import ServerContext

NAME, NAMESPACE = "kubernetes", "default"
PORT_NAME, PORT = "https", 443

_SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"


async def publish_kubernetes_service(server: ServerContext, address: str, port: int) -> None:
    """Create or update the service and its endpoints, which point to this server."""
    assert server.admission is not None
    where = reachable(address)
    first = server.admission.services.first_address
    await _ensure(server, ("", "services"), _service(first, port))
    await _ensure(server, ("", "endpoints"), _endpoints(where, port))
    await _ensure(server, ("discovery.k8s.io", "endpointslices"), _slice(where, port))


def reachable(address: str) -> str:
    """Return an address of the server for pods: never a host name or a wildcard address."""
    try:
        found = ip_address(address)
    except ValueError:
        return "127.0.0.1"
    return "127.0.0.1" if found.is_unspecified else str(found)


def _service(address: str, port: int) -> Service:
    listed = ServicePort(name=PORT_NAME, protocol="TCP", port=PORT, target_port=port)
    spec = ServiceSpec(
        ports=(listed,),
        cluster_ip=address,
        cluster_ips=(address,),
        type="ClusterIP",
        session_affinity="None",
        ip_families=("IPv4",),
        ip_family_policy="SingleStack",
        internal_traffic_policy="Cluster",
    )
    return Service(metadata=_metadata({"component": "apiserver", "provider": NAME}), spec=spec)


def _endpoints(address: str, port: int) -> Endpoints:
    listed = {"name": PORT_NAME, "port": port, "protocol": "TCP"}
    subset = {"addresses": [{"ip": address}], "ports": [listed]}
    return Endpoints(metadata=_metadata({_SKIP_MIRROR: "true"}), subsets=(subset,))


def _slice(address: str, port: int) -> EndpointSlice:
    return EndpointSlice(
        metadata=_metadata({SERVICE_NAME_LABEL: NAME}),
        address_type=IPV6 if ":" in address else IPV4,
        endpoints=(Endpoint(addresses=(address,), conditions=EndpointConditions(ready=True)),),
        ports=(EndpointPort(name=PORT_NAME, port=port, protocol="TCP"),),
    )


def _metadata(labels: dict[str, str]) -> ObjectMeta:
    return ObjectMeta(name=NAME, namespace=NAMESPACE, labels=labels)


async def _ensure(server: ServerContext, kind: tuple[str, str], wanted: Any) -> None:
    resource = server.resources.of(*kind)
    found = await server.registry.find(resource, NAMESPACE, NAME)
    if found is None:
        metadata = replace(wanted.metadata, uid=server.new_uid(), creation_timestamp=server.now())
        await server.registry.create(resource, replace(wanted, metadata=metadata))
        return
    if isinstance(wanted, Service):
        spec = replace(wanted.spec, cluster_ip=found.spec.cluster_ip)
        wanted = replace(wanted, spec=replace(spec, cluster_ips=found.spec.cluster_ips))
    if replace(wanted, metadata=found.metadata) == found:
        return

    async def changed(old: Any) -> Any:
        return replace(wanted, metadata=old.metadata)

    await server.registry.change(resource, NAMESPACE, NAME, changed)
