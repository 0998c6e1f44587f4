"""Services and Endpoints (core/v1): a name and addresses for pods."""

from __future__ import annotations

from msgspec import field

from moorage.api.meta import Condition, Json, ObjectMeta
from moorage.api.structs import Int32, Open, always, named

API_VERSION = "v1"

CLUSTER_IP = "ClusterIP"  # types
NODE_PORT = "NodePort"
LOAD_BALANCER = "LoadBalancer"
EXTERNAL_NAME = "ExternalName"

HEADLESS = "None"  # the clusterIP of a service without an address of its own


class ServicePort(Open, frozen=True, gc=False):
    """A port of a service, and the port of the pods behind it."""

    name: str = ""
    protocol: str = ""
    app_protocol: str | None = None
    port: Int32 = always(0)
    target_port: Json = always(0)  # an integer, or the name of a port
    node_port: Int32 = 0


class ServiceSpec(Open, frozen=True, gc=False):
    """Which pods answer for a service, and how they are reached."""

    ports: tuple[ServicePort, ...] = ()
    selector: dict[str, str] = field(default_factory=dict)
    cluster_ip: str = named("clusterIP", "")
    cluster_ips: tuple[str, ...] = named("clusterIPs", ())
    type: str = ""
    external_ips: tuple[str, ...] = named("externalIPs", ())
    session_affinity: str = ""
    load_balancer_ip: str = named("loadBalancerIP", "")
    load_balancer_source_ranges: tuple[str, ...] = ()
    external_name: str = ""
    external_traffic_policy: str = ""
    health_check_node_port: Int32 = 0
    publish_not_ready_addresses: bool = False
    session_affinity_config: Json = None
    ip_families: tuple[str, ...] = ()
    ip_family_policy: str | None = None
    allocate_load_balancer_node_ports: bool | None = None
    load_balancer_class: str | None = None
    internal_traffic_policy: str | None = None
    traffic_distribution: str | None = None

    @property
    def is_headless(self) -> bool:
        """Whether clients get the addresses of the pods instead of one of the service."""
        return self.cluster_ip == HEADLESS


class LoadBalancerStatus(Open, frozen=True, gc=False):
    """The addresses of a load balancer."""

    ingress: tuple[Json, ...] = ()


class ServiceStatus(Open, frozen=True, gc=False):
    """What a load balancer reported."""

    load_balancer: LoadBalancerStatus = always(LoadBalancerStatus())
    conditions: tuple[Condition, ...] = ()


class Service(Open, frozen=True, gc=False):
    """A name and an address for pods."""

    api_version: str = always(API_VERSION)
    kind: str = always("Service")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ServiceSpec = always(ServiceSpec())
    status: ServiceStatus = always(ServiceStatus())


class Endpoints(Open, frozen=True, gc=False):
    """The addresses behind a service, in the form that EndpointSlices replaced."""

    api_version: str = always(API_VERSION)
    kind: str = always("Endpoints")
    metadata: ObjectMeta = always(ObjectMeta())
    subsets: tuple[Json, ...] = ()
