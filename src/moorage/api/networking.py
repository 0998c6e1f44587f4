"""networking.k8s.io/v1: ingresses, network policies, and the addresses of services."""

from __future__ import annotations

from moorage.api.core.namespace import TypedLocalObjectReference
from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import Condition, Json, LabelSelector, ObjectMeta
from moorage.api.structs import Int32, Open, always, named

GROUP = "networking.k8s.io"
API_VERSION = f"{GROUP}/v1"


class NetworkPolicyPort(Open, frozen=True, gc=False):
    """A port, or a range of ports, to which traffic is allowed."""

    protocol: str | None = None
    port: Json = None
    end_port: Int32 | None = None


class IPBlock(Open, frozen=True, gc=False):
    """A range of addresses, and the parts of it that are left out."""

    cidr: str = always("")
    except_: tuple[str, ...] = named("except", ())


class NetworkPolicyPeer(Open, frozen=True, gc=False):
    """Pods or addresses that traffic comes from or goes to."""

    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    ip_block: IPBlock | None = None


class NetworkPolicyIngressRule(Open, frozen=True, gc=False):
    """Traffic that may come in."""

    ports: tuple[NetworkPolicyPort, ...] = ()
    from_: tuple[NetworkPolicyPeer, ...] = named("from", ())


class NetworkPolicyEgressRule(Open, frozen=True, gc=False):
    """Traffic that may go out."""

    ports: tuple[NetworkPolicyPort, ...] = ()
    to: tuple[NetworkPolicyPeer, ...] = ()


class NetworkPolicySpec(Open, frozen=True, gc=False):
    """The pods of a policy, and the traffic that they may have."""

    pod_selector: LabelSelector = always(LabelSelector())
    ingress: tuple[NetworkPolicyIngressRule, ...] = ()
    egress: tuple[NetworkPolicyEgressRule, ...] = ()
    policy_types: tuple[str, ...] = ()


class NetworkPolicy(Open, frozen=True, gc=False):
    """Which traffic pods may have."""

    api_version: str = always(API_VERSION)
    kind: str = always("NetworkPolicy")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: NetworkPolicySpec = always(NetworkPolicySpec())


class ServiceBackendPort(Open, frozen=True, gc=False):
    """A port of a service, by name or by number."""

    name: str = ""
    number: Int32 = 0


class IngressServiceBackend(Open, frozen=True, gc=False):
    """A service that answers requests."""

    name: str = always("")
    port: ServiceBackendPort = always(ServiceBackendPort())


class IngressBackend(Open, frozen=True, gc=False):
    """Who answers requests: a service or another object."""

    service: IngressServiceBackend | None = None
    resource: TypedLocalObjectReference | None = None


class IngressTLS(Open, frozen=True, gc=False):
    """The certificate for some hosts."""

    hosts: tuple[str, ...] = ()
    secret_name: str = ""


class HTTPIngressPath(Open, frozen=True, gc=False):
    """A path, and who answers its requests."""

    path: str = ""
    path_type: str | None = always(None)
    backend: IngressBackend = always(IngressBackend())


class HTTPIngressRuleValue(Open, frozen=True, gc=False):
    """The paths of a host."""

    paths: tuple[HTTPIngressPath, ...] | None = always(None)


class IngressRule(Open, frozen=True, gc=False):
    """The paths of one host, or of all of them."""

    host: str = ""
    http: HTTPIngressRuleValue | None = None


class IngressSpec(Open, frozen=True, gc=False):
    """Which requests go to which services."""

    ingress_class_name: str | None = None
    default_backend: IngressBackend | None = None
    tls: tuple[IngressTLS, ...] = ()
    rules: tuple[IngressRule, ...] = ()


class IngressPortStatus(Open, frozen=True, gc=False):
    """A port of a load balancer, or why there is none."""

    port: Int32 = always(0)
    protocol: str = always("")
    error: str | None = None


class IngressLoadBalancerIngress(Open, frozen=True, gc=False):
    """An address of a load balancer."""

    ip: str = ""
    hostname: str = ""
    ports: tuple[IngressPortStatus, ...] = ()


class IngressLoadBalancerStatus(Open, frozen=True, gc=False):
    """The addresses of a load balancer."""

    ingress: tuple[IngressLoadBalancerIngress, ...] = ()


class IngressStatus(Open, frozen=True, gc=False):
    """Where an ingress is reached."""

    load_balancer: IngressLoadBalancerStatus = always(IngressLoadBalancerStatus())


class Ingress(Open, frozen=True, gc=False):
    """Routes requests from outside to services."""

    api_version: str = always(API_VERSION)
    kind: str = always("Ingress")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: IngressSpec = always(IngressSpec())
    status: IngressStatus = always(IngressStatus())


class IngressClassParametersReference(Open, frozen=True, gc=False):
    """The parameters of a controller."""

    api_group: str | None = None
    kind: str = always("")
    name: str = always("")
    scope: str | None = always(None)
    namespace: str | None = None


class IngressClassSpec(Open, frozen=True, gc=False):
    """The controller that serves the ingresses of a class."""

    controller: str = ""
    parameters: IngressClassParametersReference | None = None


class IngressClass(Open, frozen=True, gc=False):
    """A class of ingresses, which one controller serves."""

    api_version: str = always(API_VERSION)
    kind: str = always("IngressClass")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: IngressClassSpec = always(IngressClassSpec())


class ParentReference(Open, frozen=True, gc=False):
    """The object that has an address."""

    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""


class IPAddressSpec(Open, frozen=True, gc=False):
    """Who has an address."""

    parent_ref: ParentReference | None = None


class IPAddress(Open, frozen=True, gc=False):
    """An address that is in use."""

    api_version: str = always(API_VERSION)
    kind: str = always("IPAddress")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: IPAddressSpec = always(IPAddressSpec())


class ServiceCIDRSpec(Open, frozen=True, gc=False):
    """The ranges of addresses that services get."""

    cidrs: tuple[str, ...] = ()


class ServiceCIDRStatus(Open, frozen=True, gc=False):
    """Whether the ranges can be used."""

    conditions: tuple[Condition, ...] = ()


class ServiceCIDR(Open, frozen=True, gc=False):
    """Ranges of addresses for services."""

    api_version: str = always(API_VERSION)
    kind: str = always("ServiceCIDR")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ServiceCIDRSpec = always(ServiceCIDRSpec())
    status: ServiceCIDRStatus = always(ServiceCIDRStatus())


KINDS: tuple[Kind, ...] = (
    declare_kind(IPAddress, "ipaddresses", "ip", namespaced=False),
    declare_kind(Ingress, "ingresses", "ing", has_status=True),
    declare_kind(IngressClass, "ingressclasses", namespaced=False),
    declare_kind(NetworkPolicy, "networkpolicies", "netpol"),
    declare_kind(ServiceCIDR, "servicecidrs", namespaced=False, has_status=True),
)
