"""Allocates addresses and node ports of services from ranges, never twice.

The admission cache has those of stored services. Recent allocations, which the cache may not have
yet, are remembered for a while, so that concurrent requests get different ones.

By default the addresses are in the loopback network, because a node on this machine can listen on
each of them without privileges or interfaces.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from ipaddress import IPv4Address, IPv4Network, ip_address
from typing import Final

from msgspec.structs import replace

from moorage.api.core.service import (
    EXTERNAL_NAME,
    HEADLESS,
    LOAD_BALANCER,
    NODE_PORT,
    Service,
    ServiceSpec,
)
from moorage.api.field_path import root
from moorage.api.gates import Gates, Preset
from moorage.apiserver.admission.cache import ServiceCache
from moorage.apiserver.http.status import About, invalid
from moorage.validation.errors import FieldError
from moorage.validation.errors import invalid as invalid_value

CLUSTER_IP_RANGE: Final = "127.96.0.0/16"
KUBERNETES_RANGE: Final = "10.0.0.0/24"  # Kubernetes' default, for its preset
NODE_PORTS: Final = range(30_000, 32_768)
GIVEN_S: Final = 60.0  # longer than any write takes
GIVEN_MAX: Final = 10_000

SERVICES = About("services", "Service", "")
_SPEC = root("spec")
_SINGLE = "SingleStack"


def cluster_ip_range(gates: Gates) -> str:
    """Return the range of addresses of a server with these gates."""
    return CLUSTER_IP_RANGE if gates.preset is Preset.MOORAGE else KUBERNETES_RANGE


class RecentAllocations:
    """Recent allocations for services that may not be stored yet; the oldest are dropped."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until: OrderedDict[Hashable, float] = OrderedDict()

    def add(self, thing: Hashable) -> None:
        """Remember an allocation."""
        self._until[thing] = self._monotonic() + GIVEN_S
        self._until.move_to_end(thing)
        if len(self._until) > GIVEN_MAX:
            self._until.popitem(last=False)

    def __contains__(self, thing: Hashable) -> bool:
        return self._until.get(thing, 0.0) > self._monotonic()


class ServiceAllocator:
    """Allocates the addresses and node ports of services."""

    def __init__(
        self,
        cache: ServiceCache,
        *,
        cluster_ips: str = CLUSTER_IP_RANGE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cache = cache
        self._network = IPv4Network(cluster_ips)
        self._given = RecentAllocations(monotonic)
        self._next = 0

    @property
    def first_address(self) -> str:
        """The address of the service `kubernetes`."""
        return str(self._network[1])

    def allocate(
        self, new: Service, old: Service | None = None, *, is_trial: bool = False
    ) -> Service:
        """Return the service with all allocations, or raise 422 if a requested one is taken."""
        before = None if old is None else old.spec
        spec = self._with_address(new.spec, before, new.metadata.name, is_trial=is_trial)
        spec = self._with_node_ports(spec, before, new.metadata.name, is_trial=is_trial)
        return new if spec is new.spec else replace(new, spec=spec)

    # --- addresses --------------------------------------------------------------------------

    def _with_address(
        self, spec: ServiceSpec, old: ServiceSpec | None, name: str, *, is_trial: bool
    ) -> ServiceSpec:
        if spec.type == EXTERNAL_NAME:
            return spec
        families = spec.ip_families or ("IPv4",)
        policy = spec.ip_family_policy or _SINGLE
        if "IPv6" in families or policy == "RequireDualStack":
            raise self._refused_family(spec, name)
        spec = replace(spec, ip_families=families, ip_family_policy=policy)
        if spec.cluster_ip == HEADLESS:
            return spec
        if spec.cluster_ip:
            if old is None or old.cluster_ip != spec.cluster_ip:
                self._take_address(spec.cluster_ip, name, is_trial=is_trial)
            return spec
        address = self._free_address(name)
        if not is_trial:
            self._given.add(address)
        return replace(spec, cluster_ip=address, cluster_ips=(address,))

    def _refused_family(self, spec: ServiceSpec, name: str) -> Exception:
        detail = "not configured on this cluster"
        if "IPv6" in spec.ip_families:
            place = _SPEC.child("ipFamilies").index(spec.ip_families.index("IPv6"))
            return invalid(SERVICES, name, [invalid_value(place, "IPv6", detail)])
        place = _SPEC.child("ipFamilyPolicy")
        detail = "this cluster is not configured for dual-stack services"
        return invalid(SERVICES, name, [invalid_value(place, spec.ip_family_policy, detail)])

    def _take_address(self, address: str, name: str, *, is_trial: bool) -> None:
        why = ""
        if ip_address(address) not in self._network or not self._is_usable(address):
            why = "the provided network does not match the current range"
        elif address in self._cache.addresses or address in self._given:
            why = "provided IP is already allocated"
        if why:
            detail = f"failed to allocate IP {address}: {why}"
            fault = invalid_value(_SPEC.child("clusterIPs"), [address], detail)
            raise invalid(SERVICES, name, [fault])
        if not is_trial:
            self._given.add(address)

    def _is_usable(self, address: str) -> bool:
        found = IPv4Address(address)
        return found not in (self._network[0], self._network[-1])

    def _free_address(self, name: str) -> str:
        """Return a free address; the first of the range is for the service `kubernetes`."""
        usable = self._network.num_addresses - 3
        for step in range(max(0, usable)):
            address = str(self._network[2 + (self._next + step) % usable])
            if address not in self._cache.addresses and address not in self._given:
                self._next = (self._next + step + 1) % usable
                return address
        fault = invalid_value(_SPEC.child("clusterIPs"), [], "range is full")
        raise invalid(SERVICES, name, [fault])

    # --- node ports -------------------------------------------------------------------------

    def _with_node_ports(
        self, spec: ServiceSpec, old: ServiceSpec | None, name: str, *, is_trial: bool
    ) -> ServiceSpec:
        if not _wants_node_ports(spec):
            return spec
        had = set() if old is None else {p.node_port for p in old.ports}
        chosen: set[int] = {port.node_port for port in spec.ports} - {0}
        faults: list[FieldError] = []
        ports = []
        for position, port in enumerate(spec.ports):
            number = port.node_port
            # As in Kubernetes, a dry run does not check whether the port is free.
            if number and number not in had and not is_trial:
                faults += self._port_faults(number, position)
            if not number:
                number = self._free_port(chosen)
            chosen.add(number)
            ports.append(replace(port, node_port=number))
        if faults:
            raise invalid(SERVICES, name, faults)
        health = spec.health_check_node_port
        if spec.type == LOAD_BALANCER and spec.external_traffic_policy == "Local" and not health:
            health = self._free_port(chosen)
            chosen.add(health)
        if not is_trial:
            for number in chosen:
                self._given.add(number)
        return replace(spec, ports=tuple(ports), health_check_node_port=health)

    def _port_faults(self, number: int, position: int) -> Iterable[FieldError]:
        place = _SPEC.child("ports").index(position).child("nodePort")
        if number not in NODE_PORTS:
            detail = (
                "provided port is not in the valid range. The range of valid ports is "
                f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
            )
            yield invalid_value(place, number, detail)
        elif number in self._cache.node_ports or number in self._given:
            yield invalid_value(place, number, "provided port is already allocated")

    def _free_port(self, chosen: set[int]) -> int:
        for number in NODE_PORTS:
            is_taken = number in self._cache.node_ports or number in self._given
            if not is_taken and number not in chosen:
                return number
        fault = invalid_value(
            _SPEC.child("ports"), [], "failed to allocate a nodePort: range is full"
        )
        raise invalid(SERVICES, "", [fault])


def _wants_node_ports(spec: ServiceSpec) -> bool:
    if spec.type == NODE_PORT:
        return True
    return spec.type == LOAD_BALANCER and spec.allocate_load_balancer_node_ports is not False
