"""The strategy of Services: what belongs to which type of service, ports, addresses and policies.

The server allocates addresses and node ports after validation, so a new service need not have any.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from msgspec.structs import replace

from moorage.api import names
from moorage.api.core.service import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    HEADLESS,
    LOAD_BALANCER,
    NODE_PORT,
    LoadBalancerStatus,
    Service,
    ServicePort,
    ServiceSpec,
)
from moorage.api.field_path import Path, root
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.validation.field_rules import (
    each,
    each_invalid,
    label,
    label_name,
    subdomain,
    validate_labels,
)
from moorage.validation.pod.networking import (
    port_name_faults,
    validate_address,
    validate_port_number,
)
from moorage.validation.service_defaults import (
    default_service,
    is_external,
    needs_health_check,
    with_allocated,
    without_unused,
)
from moorage.validation.strategy import Context, ObjectStrategy

SPEC = root("spec")
CLUSTER_IPS = SPEC.child("clusterIPs")

_TYPES = (CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT)
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_AFFINITIES = ("ClientIP", "None")
_POLICIES = ("Cluster", "Local")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_CIDR_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_ONLY_BALANCERS = "may only be used when `type` is 'LoadBalancer'"
_AFFINITY_S_MAX = 86_400


class ServiceStrategy(ObjectStrategy[Service]):
    """The strategy of Services."""

    keeps_metadata_with_status = False
    validate_name = staticmethod(names.dns1123_label)

    def default(self, value: Service, api_version: str, context: Context) -> Service:  # noqa: ARG002
        """Set every default that does not need an allocation."""
        balancer = value.status.load_balancer
        ingress = tuple(map(_with_mode, balancer.ingress))
        status = replace(value.status, load_balancer=replace(balancer, ingress=ingress))
        return replace(value, spec=default_service(value.spec), status=status)

    def prepare_for_update(self, new: Service, old: Service, context: Context) -> Service:
        """Keep the status and what was allocated; drop what the new type has no use for."""
        new = super().prepare_for_update(new, old, context)
        spec = with_allocated(without_unused(new.spec, old.spec), old.spec)
        status = new.status
        if spec.type != LOAD_BALANCER:
            status = replace(status, load_balancer=LoadBalancerStatus())
        return replace(new, spec=spec, status=status)

    def validate_fields(self, new: Service) -> ErrorList:
        """Validate the spec."""
        spec = new.spec
        found = _validate_type(spec) + _validate_ports(spec)
        found += validate_labels(spec.selector, SPEC.child("selector"))
        found += _validate_affinity(spec) + _validate_addresses(spec)
        for position, address in enumerate(spec.external_ips):
            found += validate_address(address, SPEC.child("externalIPs").index(position))
        if spec.type not in _TYPES:
            found.append(not_supported(SPEC.child("type"), spec.type, _TYPES))
        found += _validate_balancer(new)
        return found + _validate_policies(spec)

    def validate_changes(self, new: Service, old: Service) -> ErrorList:
        """Validate that addresses are unchanged."""
        spec, before = new.spec, old.spec
        if EXTERNAL_NAME in (spec.type, before.type) or (spec.is_headless and before.is_headless):
            return []
        found: ErrorList = []
        if before.cluster_ips and not spec.cluster_ips:
            detail = "primary clusterIP can not be unset"
            found.append(invalid(CLUSTER_IPS.index(0), list(spec.cluster_ips), detail))
        for position, pair in enumerate(zip(before.cluster_ips, spec.cluster_ips, strict=False)):
            if pair[0] != pair[1]:
                place = CLUSTER_IPS.index(position)
                found.append(invalid(place, list(spec.cluster_ips), "may not change once set"))
        if needs_health_check(spec) and needs_health_check(before):
            place = SPEC.child("healthCheckNodePort")
            if spec.health_check_node_port != before.health_check_node_port:
                found.append(forbidden(place, "field is immutable"))
        if before.type == spec.type == LOAD_BALANCER:
            classes = (spec.load_balancer_class, before.load_balancer_class)
            if classes[0] != classes[1]:
                place = SPEC.child("loadBalancerClass")
                found.append(invalid(place, classes[0], "may not change once set"))
        return found

    def validate_status(self, new: Service, old: Service) -> ErrorList:  # noqa: ARG002
        """Validate the addresses that a load balancer reports."""
        path = root("status").child("loadBalancer", "ingress")
        ingress = new.status.load_balancer.ingress
        if ingress and new.spec.type != LOAD_BALANCER:
            return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
        return each(ingress, _validate_ingress, path)

    def warnings_on_create(self, new: Service) -> list[str]:
        """Warn of what has no effect or is deprecated."""
        return _warnings(new.spec)

    def warnings_on_update(self, new: Service, old: Service) -> list[str]:
        """Warn of what has no effect or is deprecated, if the spec changed."""
        return [] if new.spec == old.spec else _warnings(new.spec)


# --- status ------------------------------------------------------------------------------------

_MODES = ("Proxy", "VIP")


def _with_mode(ingress: Any) -> Any:
    """Return an address of a load balancer with the default of its mode."""
    has_none = isinstance(ingress, dict) and ingress.get("ip") and ingress.get("ipMode") is None
    return {**ingress, "ipMode": "VIP"} if has_none else ingress


def _validate_ingress(ingress: Any, path: Path) -> ErrorList:
    address, mode, host = (ingress.get(name) for name in ("ip", "ipMode", "hostname"))
    found = validate_address(address, path.child("ip")) if address else []
    place = path.child("ipMode")
    if mode is not None and not address:
        found.append(forbidden(place, "may not be specified when `ip` is not set"))
    elif mode is not None and mode not in _MODES:
        found.append(not_supported(place, mode, _MODES))
    return found + subdomain(host, path.child("hostname")) if host else found


# --- rules -------------------------------------------------------------------------------------


def _is_headless(spec: ServiceSpec) -> bool:
    return spec.cluster_ips[:1] == (HEADLESS,)


def _validate_type(spec: ServiceSpec) -> ErrorList:
    found: ErrorList = []
    if not spec.ports and not _is_headless(spec) and spec.type != EXTERNAL_NAME:
        found.append(required(SPEC.child("ports")))
    if spec.type in (LOAD_BALANCER, NODE_PORT) and _is_headless(spec):
        detail = f"may not be set to 'None' for {spec.type} services"
        found.append(invalid(CLUSTER_IPS.index(0), HEADLESS, detail))
    if spec.type == EXTERNAL_NAME:
        given = {
            "clusterIPs": spec.cluster_ips,
            "ipFamilies": spec.ip_families,
            "ipFamilyPolicy": spec.ip_family_policy,
        }
        detail = "may not be set for ExternalName services"
        found += [forbidden(SPEC.child(name), detail) for name, value in given.items() if value]
        name = spec.external_name.removesuffix(".")
        place = SPEC.child("externalName")
        found += subdomain(name, place) if name else [required(place)]
    return found


def _validate_ports(spec: ServiceSpec) -> ErrorList:
    found: ErrorList = []
    path = SPEC.child("ports")
    seen: set[str] = set()
    for position, port in enumerate(spec.ports):
        found += _validate_port(port, path.index(position), seen, needs_name=len(spec.ports) > 1)
        if spec.type == CLUSTER_IP and port.node_port:
            detail = "may not be used when `type` is 'ClusterIP'"
            found.append(forbidden(path.index(position).child("nodePort"), detail))
    node_ports: set[tuple[str, int]] = set()
    ports: set[tuple[str, int]] = set()
    for position, port in enumerate(spec.ports):
        if port.node_port and (port.protocol, port.node_port) in node_ports:
            found.append(duplicate(path.index(position).child("nodePort"), port.node_port))
        node_ports.add((port.protocol, port.node_port))
        if (port.protocol, port.port) in ports:
            shown = {
                "Name": "",
                "Protocol": port.protocol,
                "AppProtocol": None,
                "Port": port.port,
                "TargetPort": 0,
                "NodePort": 0,
            }
            found.append(duplicate(path.index(position), shown))
        ports.add((port.protocol, port.port))
    return found


def _validate_port(port: ServicePort, path: Path, seen: set[str], *, needs_name: bool) -> ErrorList:
    found: ErrorList = []
    if port.name:
        found += label(port.name, path.child("name"))
        if port.name in seen:
            found.append(duplicate(path.child("name"), port.name))
        seen.add(port.name)
    elif needs_name:
        found.append(required(path.child("name")))
    found += validate_port_number(port.port, path.child("port"))
    if port.protocol not in _PROTOCOLS:
        found.append(not_supported(path.child("protocol"), port.protocol, _PROTOCOLS))
    target = port.target_port
    if isinstance(target, int):
        found += validate_port_number(target, path.child("targetPort"))
    else:
        found += each_invalid(path.child("targetPort"), target, port_name_faults(str(target)))
    if port.app_protocol is not None:
        found += label_name(port.app_protocol, path.child("appProtocol"))
    return found


def _validate_affinity(spec: ServiceSpec) -> ErrorList:
    path = SPEC.child("sessionAffinity")
    if spec.session_affinity not in _AFFINITIES:
        return [not_supported(path, spec.session_affinity, _AFFINITIES)]
    match spec.session_affinity_config:
        case {"clientIP": {"timeoutSeconds": int(seconds)}} if spec.session_affinity == "ClientIP":
            if not 0 < seconds <= _AFFINITY_S_MAX:
                place = SPEC.child("sessionAffinityConfig", "clientIP", "timeoutSeconds")
                detail = f"must be greater than 0 and less than {_AFFINITY_S_MAX}"
                return [invalid(place, seconds, detail)]
    return []


def _validate_addresses(spec: ServiceSpec) -> ErrorList:
    if spec.type == EXTERNAL_NAME:
        return []
    found: ErrorList = []
    addresses = spec.cluster_ips
    if spec.cluster_ip and addresses[:1] != (spec.cluster_ip,):
        detail = "first value must match `clusterIP`"
        found.append(invalid(CLUSTER_IPS, list(addresses), detail))
    elif not spec.cluster_ip and addresses:
        detail = "must be empty when `clusterIP` is not specified"
        found.append(invalid(CLUSTER_IPS, list(addresses), detail))
    for position, family in enumerate(spec.ip_families):
        place = SPEC.child("ipFamilies").index(position)
        if family not in _FAMILIES:
            found.append(not_supported(place, family, _FAMILIES))
        if family in spec.ip_families[:position]:
            found.append(duplicate(place, family))
    policy = spec.ip_family_policy
    if policy is not None and policy not in _FAMILY_POLICIES:
        found.append(not_supported(SPEC.child("ipFamilyPolicy"), policy, _FAMILY_POLICIES))
    faults: ErrorList = []
    if HEADLESS in addresses[:1] and len(addresses) > 1:
        detail = "'None' must be the first and only value"
        faults.append(invalid(CLUSTER_IPS, list(addresses), detail))
    for position, address in enumerate(addresses):
        if position or address != HEADLESS:
            faults += validate_address(address, CLUSTER_IPS.index(position))
    if len(addresses) > 2:
        found.append(invalid(CLUSTER_IPS, list(addresses), "may only hold up to 2 values"))
    return found + faults if faults else found + _validate_families(spec)


def _validate_families(spec: ServiceSpec) -> ErrorList:
    found: ErrorList = []
    addresses = spec.cluster_ips
    kinds = [":" in address for address in addresses]
    if len(addresses) > 1 and len(set(kinds)) != len(kinds):
        detail = "may specify no more than one IP for each IP family"
        found.append(invalid(CLUSTER_IPS, list(addresses), detail))
    if _is_headless(spec):
        return found
    for position, (address, family) in enumerate(zip(addresses, spec.ip_families, strict=False)):
        if (family == "IPv6") != (":" in address) and family in _FAMILIES:
            detail = f"expected an {family} value as indicated by `ipFamilies[{position}]`"
            found.append(invalid(CLUSTER_IPS.index(position), address, detail))
    return found


def _validate_balancer(new: Service) -> ErrorList:
    spec = new.spec
    found: ErrorList = []
    is_balancer = spec.type == LOAD_BALANCER
    ranges = spec.load_balancer_source_ranges
    path = SPEC.child("LoadBalancerSourceRanges")  # as Kubernetes spells it
    if ranges and not is_balancer:
        found.append(forbidden(path, _ONLY_BALANCERS))
    for position, text in enumerate(ranges):
        if not _is_network(text.strip()):
            found.append(invalid(path.index(position), text.strip(), _CIDR_RULE))
    if not ranges and (said := new.metadata.annotations.get(_SOURCE_RANGES)) is not None:
        place = root("metadata").child("annotations").key(_SOURCE_RANGES)
        if not is_balancer:
            found.append(forbidden(place, _ONLY_BALANCERS))
        for text in filter(None, map(str.strip, said.split(","))):
            if not _is_network(text):
                found.append(invalid(place, text, _CIDR_RULE))
    if spec.allocate_load_balancer_node_ports is not None and not is_balancer:
        found.append(forbidden(SPEC.child("allocateLoadBalancerNodePorts"), _ONLY_BALANCERS))
    if spec.load_balancer_class is not None:
        place = SPEC.child("loadBalancerClass")
        if not is_balancer:
            found.append(forbidden(place, _ONLY_BALANCERS))
        else:
            found += label_name(spec.load_balancer_class, place)
    return found


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def _validate_policies(spec: ServiceSpec) -> ErrorList:
    found: ErrorList = []
    outer, inner = spec.external_traffic_policy, spec.internal_traffic_policy
    path = SPEC.child("externalTrafficPolicy")
    if not is_external(spec) and outer:
        found.append(invalid(path, outer, "may only be set for externally-accessible services"))
    elif is_external(spec) and outer not in _POLICIES:
        found.append(not_supported(path, outer, _POLICIES))
    port = spec.health_check_node_port
    place = SPEC.child("healthCheckNodePort")
    if port and not needs_health_check(spec):
        detail = (
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        )
        found.append(invalid(place, port, detail))
    elif port:
        found += validate_port_number(port, place)
    if inner is not None and inner not in _POLICIES:
        found.append(not_supported(SPEC.child("internalTrafficPolicy"), inner, _POLICIES))
    spread = spec.traffic_distribution
    if spread is not None and spread not in _DISTRIBUTIONS:
        found.append(not_supported(SPEC.child("trafficDistribution"), spread, _DISTRIBUTIONS))
    return found


def _warnings(spec: ServiceSpec) -> list[str]:
    found = []
    is_headless = spec.type == CLUSTER_IP and spec.is_headless
    if is_headless:
        if spec.load_balancer_ip:
            found.append("spec.loadBalancerIP is ignored for headless services")
        if spec.external_ips:
            found.append("spec.externalIPs is ignored for headless services")
        if spec.session_affinity != "None":
            found.append("spec.SessionAffinity is ignored for headless services")
    elif spec.external_ips and spec.type != EXTERNAL_NAME:
        found.append(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
        )
    if spec.type == EXTERNAL_NAME and spec.external_ips:
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if spec.type != EXTERNAL_NAME and spec.external_name:
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.traffic_distribution == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found
