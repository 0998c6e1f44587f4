"""discovery.k8s.io/v1: the addresses behind a service."""

from __future__ import annotations

from moorage.api.core.namespace import ObjectReference
from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import Json, ObjectMeta
from moorage.api.structs import Int32, Open, always

GROUP = "discovery.k8s.io"
API_VERSION = f"{GROUP}/v1"

SERVICE_NAME_LABEL = "kubernetes.io/service-name"
MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by"

IPV4 = "IPv4"  # types of addresses
IPV6 = "IPv6"
FQDN = "FQDN"


class EndpointConditions(Open, frozen=True, gc=False):
    """Whether an endpoint may get connections; None counts as yes for ready and serving."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Endpoint(Open, frozen=True, gc=False):
    """The addresses of one pod, or of another place."""

    addresses: tuple[str, ...] = always(())
    conditions: EndpointConditions = always(EndpointConditions())
    hostname: str | None = None
    target_ref: ObjectReference | None = None
    deprecated_topology: Json = None
    node_name: str | None = None
    zone: str | None = None
    hints: Json = None


class EndpointPort(Open, frozen=True, gc=False):
    """A port of all endpoints of a slice."""

    name: str | None = None
    protocol: str | None = None
    port: Int32 | None = None
    app_protocol: str | None = None


class EndpointSlice(Open, frozen=True, gc=False):
    """Some of the endpoints of a service; all have the same ports."""

    api_version: str = always(API_VERSION)
    kind: str = always("EndpointSlice")
    metadata: ObjectMeta = always(ObjectMeta())
    address_type: str = always("")
    endpoints: tuple[Endpoint, ...] = always(())
    ports: tuple[EndpointPort, ...] = always(())


KINDS: tuple[Kind, ...] = (declare_kind(EndpointSlice, "endpointslices"),)
