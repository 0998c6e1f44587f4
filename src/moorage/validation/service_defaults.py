"""Defaults of Services, and what an update keeps of what was allocated for the old type."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from moorage.api.core.service import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NODE_PORT,
    ServicePort,
    ServiceSpec,
)
from moorage.validation.field_rules import value_or

AFFINITY_S = 10_800


def is_external(spec: ServiceSpec) -> bool:
    """Return whether a service can be reached from outside the cluster."""
    is_published = spec.type in (LOAD_BALANCER, NODE_PORT)
    return is_published or (spec.type == CLUSTER_IP and bool(spec.external_ips))


# --- defaults ----------------------------------------------------------------------------------


def default_service(spec: ServiceSpec) -> ServiceSpec:
    """Return a spec with every default that needs no allocation."""
    kind = spec.type or CLUSTER_IP
    affinity = spec.session_affinity or "None"
    spec = replace(
        spec,
        type=kind,
        session_affinity=affinity,
        session_affinity_config=_affinity_config(affinity, spec.session_affinity_config),
        ports=tuple(_defaulted_port(port) for port in spec.ports),
    )
    policy = spec.external_traffic_policy
    inner = spec.internal_traffic_policy
    if inner is None and kind in (CLUSTER_IP, NODE_PORT, LOAD_BALANCER):
        inner = "Cluster"
    allocates = spec.allocate_load_balancer_node_ports
    addresses = spec.cluster_ips
    if spec.cluster_ip and not addresses:
        addresses = (spec.cluster_ip,)
    return replace(
        spec,
        external_traffic_policy=policy or ("Cluster" if is_external(spec) else ""),
        internal_traffic_policy=inner,
        allocate_load_balancer_node_ports=(
            value_or(allocates, True) if kind == LOAD_BALANCER else allocates
        ),
        cluster_ips=addresses,
    )


def _defaulted_port(port: ServicePort) -> ServicePort:
    target = port.port if port.target_port in (0, "", None) else port.target_port
    return replace(port, protocol=port.protocol or "TCP", target_port=target)


def _affinity_config(affinity: str, config: Any) -> Any:
    if affinity == "None":
        return None
    if affinity != "ClientIP":
        return config
    match config:
        case {"clientIP": {"timeoutSeconds": int()}}:
            return config
    return {"clientIP": {"timeoutSeconds": AFFINITY_S}}


# --- updates -----------------------------------------------------------------------------------


def without_unused(spec: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    """Return the spec without what its old type needed, unless the user changed that, too."""
    if old.type != EXTERNAL_NAME and spec.type == EXTERNAL_NAME:
        if (spec.cluster_ip, spec.cluster_ips) == (old.cluster_ip, old.cluster_ips):
            spec = replace(spec, cluster_ip="", cluster_ips=())
        if spec.ip_families == old.ip_families:
            spec = replace(spec, ip_families=())
        if spec.ip_family_policy == old.ip_family_policy:
            spec = replace(spec, ip_family_policy=None)
    had = {port.node_port for port in old.ports}
    has = {port.node_port for port in spec.ports} - {0}
    if _has_node_ports(old) and not _has_node_ports(spec) and has <= had:
        spec = replace(spec, ports=tuple(replace(port, node_port=0) for port in spec.ports))
    had_check = needs_health_check(old) and not needs_health_check(spec)
    if had_check and spec.health_check_node_port == old.health_check_node_port:
        spec = replace(spec, health_check_node_port=0)
    if old.type == LOAD_BALANCER != spec.type:
        if spec.allocate_load_balancer_node_ports == old.allocate_load_balancer_node_ports:
            spec = replace(spec, allocate_load_balancer_node_ports=None)
        if spec.load_balancer_class == old.load_balancer_class:
            spec = replace(spec, load_balancer_class=None)
    was_external = is_external(old) and not is_external(spec)
    if was_external and spec.external_traffic_policy == old.external_traffic_policy:
        spec = replace(spec, external_traffic_policy="")
    return spec


def with_allocated(spec: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    """Return the spec with what was allocated, where the user left it out."""
    if spec.type != EXTERNAL_NAME and old.type != EXTERNAL_NAME:
        if not spec.cluster_ip and not spec.cluster_ips:
            spec = replace(spec, cluster_ip=old.cluster_ip, cluster_ips=old.cluster_ips)
        elif spec.cluster_ip != old.cluster_ip and spec.cluster_ips == old.cluster_ips:
            addresses = (spec.cluster_ip, *spec.cluster_ips[1:]) if spec.cluster_ip else ()
            spec = replace(spec, cluster_ips=addresses)
        spec = replace(
            spec,
            ip_families=spec.ip_families or old.ip_families,
            ip_family_policy=spec.ip_family_policy or old.ip_family_policy,
        )
    if _has_node_ports(spec) and _has_node_ports(old):
        known = {(port.protocol, port.port): port.node_port for port in old.ports}
        taken = {port.node_port for port in spec.ports}
        ports = []
        for port in spec.ports:
            kept = known.get((port.protocol, port.port), 0)
            if not port.node_port and kept and kept not in taken:
                port = replace(port, node_port=kept)
            ports.append(port)
        spec = replace(spec, ports=tuple(ports))
    if needs_health_check(spec) and needs_health_check(old) and not spec.health_check_node_port:
        spec = replace(spec, health_check_node_port=old.health_check_node_port)
    return spec


def _has_node_ports(spec: ServiceSpec) -> bool:
    return spec.type in (NODE_PORT, LOAD_BALANCER)


def needs_health_check(spec: ServiceSpec) -> bool:
    """Return whether nodes answer health checks of a load balancer."""
    return spec.type == LOAD_BALANCER and spec.external_traffic_policy == "Local"
