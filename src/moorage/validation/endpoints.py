"""Strategies of EndpointSlices, Endpoints and ControllerRevisions."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Any

from msgspec.structs import replace

from moorage.api.apps import ControllerRevision
from moorage.api.core.service import Endpoints
from moorage.api.discovery import FQDN, IPV4, IPV6, Endpoint, EndpointPort, EndpointSlice
from moorage.api.field_path import Path, root
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    invalid,
    not_supported,
    required,
    too_many,
)
from moorage.validation.field_rules import (
    label,
    label_name,
    label_value,
    node_name,
    not_negative,
    subdomain,
    unchanged,
    value_or,
)
from moorage.validation.metadata import IMMUTABLE
from moorage.validation.pod.networking import validate_address
from moorage.validation.strategy import Context, ObjectStrategy, Strategy

ENDPOINTS_MAX = 1000  # of a slice
PORTS_MAX = 20_000
ADDRESSES_MAX = 100
HINTS_MAX = 8  # zones or nodes for which an endpoint is meant

_TYPES = (FQDN, IPV4, IPV6)
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_LINK_LOCAL_MULTICAST = (ip_network("224.0.0.0/24"), ip_network("ff02::/16"))


class EndpointSliceStrategy(ObjectStrategy[EndpointSlice]):
    """The strategy of EndpointSlices."""

    rechecks_metadata = True

    def default(self, value: EndpointSlice, api_version: str, context: Context) -> EndpointSlice:  # noqa: ARG002
        """Set the name and the protocol of ports."""
        ports = tuple(
            replace(port, name=value_or(port.name, ""), protocol=value_or(port.protocol, "TCP"))
            for port in value.ports
        )
        return replace(value, ports=ports)

    def prepare_for_create(self, new: EndpointSlice, context: Context) -> EndpointSlice:  # noqa: ARG002
        """Start in generation 1."""
        return replace(new, metadata=replace(new.metadata, generation=1))

    def prepare_for_update(
        self,
        new: EndpointSlice,
        old: EndpointSlice,
        context: Context,  # noqa: ARG002
    ) -> EndpointSlice:
        """Count generations: any change but one of the metadata is a new one."""
        generation = old.metadata.generation
        if replace(new, metadata=old.metadata) != old:
            generation += 1
        return replace(new, metadata=replace(new.metadata, generation=generation))

    def validate_fields(self, new: EndpointSlice) -> ErrorList:
        """Validate type, endpoints and ports."""
        found = _validate_ports(new.ports, root("ports"))
        path = root("addressType")
        if not new.address_type:
            found.append(required(path))
        elif new.address_type not in _TYPES:
            found.append(not_supported(path, new.address_type, _TYPES))
        path = root("endpoints")
        if len(new.endpoints) > ENDPOINTS_MAX:
            found.append(too_many(path, len(new.endpoints), ENDPOINTS_MAX))
            return found
        for position, endpoint in enumerate(new.endpoints):
            found += _validate_endpoint(endpoint, new.address_type, path.index(position))
        return found

    def validate_changes(self, new: EndpointSlice, old: EndpointSlice) -> ErrorList:
        """Validate that the type is unchanged."""
        path = root("addressType")
        is_same = new.address_type == old.address_type
        return [] if is_same else [invalid(path, None, IMMUTABLE, declared=True)]


def _validate_endpoint(endpoint: Endpoint, kind: str, path: Path) -> ErrorList:
    found: ErrorList = []
    place = path.child("addresses")
    if not endpoint.addresses:
        found.append(required(place))
    elif len(endpoint.addresses) > ADDRESSES_MAX:
        found.append(too_many(place, len(endpoint.addresses), ADDRESSES_MAX))
    for position, address in enumerate(endpoint.addresses[:ADDRESSES_MAX]):
        at = place.index(position)
        if kind == FQDN:
            found += subdomain(address, at)
            continue
        found += validate_address(address, at) or _validate_reach(address, at)
        if kind in _TYPES and (kind == IPV6) != (":" in address):
            detail = f"must be an {kind} address"
            found.append(invalid(place, address, detail))
    if endpoint.hostname is not None:
        found += label(endpoint.hostname, path.child("hostname"))
    if endpoint.node_name is not None:
        found += subdomain(endpoint.node_name, path.child("nodeName"))
    return found + _validate_hints(endpoint.hints, path.child("hints"))


def _validate_hints(hints: Any, path: Path) -> ErrorList:
    """Validate the zones and nodes for which an endpoint is meant."""
    found: ErrorList = []
    for field, rule in (("forZones", label_value), ("forNodes", node_name)):
        targets = (hints or {}).get(field) or ()
        place = path.child(field)
        if len(targets) > HINTS_MAX:
            found.append(too_many(place, len(targets), HINTS_MAX))
            continue
        seen: set[str] = set()
        for position, target in enumerate(targets):
            at, name = place.index(position).child("name"), (target or {}).get("name") or ""
            if name in seen:
                found.append(duplicate(at, name))
            seen.add(name)
            found += rule(name, at)
    return found


def _validate_reach(address: str, path: Path) -> ErrorList:
    """Validate that an address is that of an endpoint.

    Unlike Kubernetes, loopback addresses are some: those of pods with the machine's network.
    """
    found = ip_address(address)
    if found.is_unspecified:
        return [invalid(path, address, f"may not be unspecified ({address})")]
    if found.is_link_local:
        detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        return [invalid(path, address, detail)]
    if any(found in each for each in _LINK_LOCAL_MULTICAST):
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        return [invalid(path, address, detail)]
    return []


def _validate_ports(ports: tuple[EndpointPort, ...], path: Path) -> ErrorList:
    if len(ports) > PORTS_MAX:
        return [too_many(path, len(ports), PORTS_MAX)]
    found: ErrorList = []
    seen: set[str] = set()
    for position, port in enumerate(ports):
        place = path.index(position)
        name = port.name or ""
        if name:
            found += label(name, place.child("name"))
        if name in seen:
            found.append(duplicate(place.child("name"), name))
        seen.add(name)
        if port.protocol not in _PROTOCOLS:
            found.append(not_supported(place.child("protocol"), port.protocol, _PROTOCOLS))
        if port.app_protocol is not None:
            found += label_name(port.app_protocol, place.child("appProtocol"))
    return found


class EndpointsStrategy(ObjectStrategy[Endpoints]):
    """The strategy of Endpoints, which EndpointSlices replaced."""

    def warnings_on_create(self, new: Endpoints) -> list[str]:  # noqa: ARG002
        """Warn of the old kind."""
        return ["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]

    def default(self, value: Endpoints, api_version: str, context: Context) -> Endpoints:  # noqa: ARG002
        """Set the protocol of ports."""
        return replace(value, subsets=tuple(map(_with_protocols, value.subsets)))


def _with_protocols(subset: object) -> object:
    if not isinstance(subset, dict) or not isinstance(ports := subset.get("ports"), list):
        return subset
    return {**subset, "ports": [_with_protocol(port) for port in ports]}


def _with_protocol(port: object) -> object:
    return {**port, "protocol": port.get("protocol") or "TCP"} if isinstance(port, dict) else port


class ControllerRevisionStrategy(ObjectStrategy[ControllerRevision]):
    """The strategy of ControllerRevisions."""

    rechecks_metadata = True

    def validate(self, new: ControllerRevision, context: Context) -> ErrorList:
        """Validate everything; a new revision needs data."""
        found = super().validate(new, context)
        if not isinstance(new.data, dict):
            is_missing = new.data is None
            detail = "data is mandatory" if is_missing else "data must be a valid JSON object"
            found.append(required(root("data"), detail))
        return found

    def validate_fields(self, new: ControllerRevision) -> ErrorList:
        """Validate the number."""
        return not_negative(new.revision, root("revision"))

    def validate_changes(self, new: ControllerRevision, old: ControllerRevision) -> ErrorList:
        """Validate that the data is unchanged."""
        return unchanged(new.data, old.data, root("data"))


ENDPOINT_STRATEGIES: Mapping[str, Strategy[Any]] = {
    "ControllerRevision": ControllerRevisionStrategy(),
    "EndpointSlice": EndpointSliceStrategy(),
    "Endpoints": EndpointsStrategy(),
}
