"""Strategies of NetworkPolicies, IPAddresses and ServiceCIDRs; `ingress` has those of Ingresses."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

from msgspec.structs import replace

from moorage.api import names
from moorage.api.field_path import Path, root
from moorage.api.networking import (
    IPAddress,
    IPBlock,
    NetworkPolicy,
    NetworkPolicyPeer,
    NetworkPolicyPort,
    ParentReference,
    ServiceCIDR,
)
from moorage.validation.errors import ErrorList, forbidden, invalid, not_supported, required
from moorage.validation.field_rules import each, each_invalid, unchanged
from moorage.validation.pod.networking import port_name_faults, validate_port_number
from moorage.validation.selectors import validate_label_selector
from moorage.validation.strategy import Context, ObjectStrategy

SPEC = root("spec")
POLICY_TYPES = ("Ingress", "Egress")
PROTOCOLS = ("TCP", "UDP", "SCTP")
CIDRS_MAX = 2

_NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_BITS = "must not have bits set beyond the prefix length"
_ONE_FAMILY = (
    "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
)
_IMMUTABLE = "field is immutable"


# --- NetworkPolicies ------------------------------------------------------------------------------


class NetworkPolicyStrategy(ObjectStrategy[NetworkPolicy]):
    """The strategy of NetworkPolicies."""

    tracks_generation = True

    def default(self, value: NetworkPolicy, api_version: str, context: Context) -> NetworkPolicy:  # noqa: ARG002
        """Set the types of the policy, and the protocol of ports."""
        spec = value.spec
        types = spec.policy_types
        if not types:
            types = POLICY_TYPES if spec.egress else POLICY_TYPES[:1]
        spec = replace(
            spec,
            policy_types=types,
            ingress=tuple(map(_with_protocols, spec.ingress)),
            egress=tuple(map(_with_protocols, spec.egress)),
        )
        return replace(value, spec=spec)

    def validate_fields(self, new: NetworkPolicy) -> ErrorList:
        """Validate the pods, the rules and the types."""
        spec = new.spec
        found = validate_label_selector(spec.pod_selector, SPEC.child("podSelector"))
        for place, incoming in enumerate(spec.ingress):
            path = SPEC.child("ingress").index(place)
            found += each(incoming.ports, _validate_port, path.child("ports"))
            found += each(incoming.from_, _validate_peer, path.child("from"))
        for place, outgoing in enumerate(spec.egress):
            path = SPEC.child("egress").index(place)
            found += each(outgoing.ports, _validate_port, path.child("ports"))
            found += each(outgoing.to, _validate_peer, path.child("to"))
        return found + _validate_types(spec.policy_types, SPEC.child("policyTypes"))


def _with_protocols(rule: Any) -> Any:
    ports = tuple(
        replace(port, protocol="TCP") if port.protocol is None else port for port in rule.ports
    )
    return replace(rule, ports=ports)


def _validate_types(types: tuple[str, ...], path: Path) -> ErrorList:
    if len(types) > len(POLICY_TYPES):
        return [invalid(path, list(types), "may not specify more than two policyTypes")]
    return [
        not_supported(path.index(place), each_type, POLICY_TYPES)
        for place, each_type in enumerate(types)
        if each_type not in POLICY_TYPES
    ]


def _validate_port(port: NetworkPolicyPort, path: Path) -> ErrorList:
    found: ErrorList = []
    if port.protocol is not None and port.protocol not in PROTOCOLS:
        found.append(not_supported(path.child("protocol"), port.protocol, PROTOCOLS))
    end, end_path = port.end_port, path.child("endPort")
    if port.port is None:
        if end is not None:
            detail = "may not be specified when `port` is not specified"
            found.append(invalid(end_path, end, detail))
        return found
    if isinstance(port.port, str):
        if end is not None:
            found.append(invalid(end_path, end, "may not be specified when `port` is non-numeric"))
        return found + each_invalid(path.child("port"), port.port, port_name_faults(port.port))
    found += validate_port_number(port.port, path.child("port"))
    if end is not None:
        if end < port.port:
            found.append(invalid(end_path, end, "must be greater than or equal to `port`"))
        found += validate_port_number(end, end_path)
    return found


def _validate_peer(peer: NetworkPolicyPeer, path: Path) -> ErrorList:
    found: ErrorList = []
    if peer.pod_selector is not None:
        found += validate_label_selector(peer.pod_selector, path.child("podSelector"))
    if peer.namespace_selector is not None:
        found += validate_label_selector(peer.namespace_selector, path.child("namespaceSelector"))
    if peer.ip_block is not None:
        found += _validate_block(peer.ip_block, path.child("ipBlock"))
    selects = peer.pod_selector is not None or peer.namespace_selector is not None
    if peer.ip_block is None and not selects:
        found.append(required(path, "must specify a peer"))
    elif peer.ip_block is not None and selects:
        found.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return found


def _validate_block(block: IPBlock, path: Path) -> ErrorList:
    if not block.cidr:
        return [required(path.child("cidr"))]
    found = validate_cidr(block.cidr, path.child("cidr"))
    whole = _network(block.cidr)
    if whole is None:
        return found
    for place, text in enumerate(block.except_):
        except_path = path.child("except").index(place)
        found += validate_cidr(text, except_path)
        part = _network(text)
        if part is not None and not _is_strict_part(part, whole):
            found.append(invalid(except_path, text, "must be a strict subset of `cidr`"))
    return found


def _is_strict_part(part: IPv4Network | IPv6Network, whole: IPv4Network | IPv6Network) -> bool:
    if part.version != whole.version or part.prefixlen <= whole.prefixlen:
        return False
    return part.network_address in whole


# --- addresses ------------------------------------------------------------------------------------


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def validate_cidr(text: str, path: Path) -> ErrorList:
    """Validate a range of addresses in its canonical form."""
    network = _network(text)
    if network is None:
        return [invalid(path, text, _NO_CIDR)]
    host = ip_address(text.partition("/")[0])
    if host.version == 6 and host.ipv4_mapped is not None:
        return [invalid(path, text, "must not have an IPv4-mapped IPv6 address")]
    return [] if host == network.network_address else [invalid(path, text, _BITS)]


def is_address(text: str) -> bool:
    """Return whether a text is an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _address_faults(text: str) -> list[str]:
    if not is_address(text):
        return [_NO_ADDRESS]
    canonical = str(ip_address(text))
    return [] if text == canonical else [f'must be in canonical form ("{canonical}")']


class IPAddressStrategy(ObjectStrategy[IPAddress]):
    """The strategy of IPAddresses."""

    namespaced = False
    tracks_generation = True
    qualified_finalizers = False
    validate_name = staticmethod(_address_faults)

    def validate_fields(self, new: IPAddress) -> ErrorList:
        """Validate who has the address."""
        path = SPEC.child("parentRef")
        parent = new.spec.parent_ref
        return [required(path)] if parent is None else _validate_parent(parent, path)

    def validate_changes(self, new: IPAddress, old: IPAddress) -> ErrorList:
        """Validate that the address keeps its owner."""
        return unchanged(new.spec.parent_ref, old.spec.parent_ref, SPEC.child("parentRef"))


def _validate_parent(parent: ParentReference, path: Path) -> ErrorList:
    found: ErrorList = []
    if parent.group:
        messages = names.dns1123_subdomain(parent.group)
        found += each_invalid(path.child("group"), parent.group, messages)
    for name, value in (("resource", parent.resource), ("name", parent.name)):
        if value:
            found += each_invalid(path.child(name), value, names.path_segment(value))
        else:
            found.append(required(path.child(name)))
    messages = names.path_segment(parent.namespace) if parent.namespace else []
    return found + each_invalid(path.child("namespace"), parent.namespace, messages)


class ServiceCIDRStrategy(ObjectStrategy[ServiceCIDR]):
    """The strategy of ServiceCIDRs."""

    namespaced = False
    tracks_generation = True
    qualified_finalizers = False

    def validate_fields(self, new: ServiceCIDR) -> ErrorList:
        """Validate the ranges."""
        cidrs, path = new.spec.cidrs, SPEC.child("cidrs")
        if not cidrs:
            return [required(path, "at least one CIDR required")]
        if len(cidrs) > CIDRS_MAX:
            return [invalid(path, {"CIDRs": list(cidrs)}, "may only hold up to 2 values")]
        found = each(cidrs, validate_cidr, path)
        families = [each_cidr.version for each_cidr in map(_network, cidrs) if each_cidr]
        if len(families) == CIDRS_MAX and len(set(families)) == 1:
            found.append(invalid(path, list(cidrs), _ONE_FAMILY))
        return found

    def validate_update(self, new: ServiceCIDR, old: ServiceCIDR, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate that a range stays; one of the other family may be added."""
        found = self.validate_metadata_update(new, old)
        after, before, path = new.spec.cidrs, old.spec.cidrs, SPEC.child("cidrs")
        if len(after) != len(before) and (len(before), len(after)) != (1, CIDRS_MAX):
            return [*found, invalid(path, list(after), _IMMUTABLE)]
        for place, (value, kept) in enumerate(zip(after, before, strict=False)):
            if value != kept:
                found.append(invalid(path.index(place), value, _IMMUTABLE))
        return found + (self.validate_fields(new) if len(after) > len(before) else [])
