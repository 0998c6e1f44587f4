"""The strategy of Nodes: taints, amounts of resources, addresses of pods, declared features.

Nodes are created with their status, by kubelets. The paths of errors about taints and swap begin
with `metadata`, as in Kubernetes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import Any

from msgspec.structs import replace

from moorage.api import names
from moorage.api.codec import decode_tree, to_tree
from moorage.api.core.node import Node, NodeSpec, NodeStatus
from moorage.api.core.placement import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from moorage.api.errors import DecodeError
from moorage.api.field_path import Path, root
from moorage.api.gates import Gate
from moorage.api.names import byte_length
from moorage.api.tolerant_reader import json_name
from moorage.kit.go_quote import go_quote
from moorage.validation.errors import (
    ErrorList,
    ErrorType,
    FieldError,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
)
from moorage.validation.field_rules import label_name
from moorage.validation.go_layout import internal_form
from moorage.validation.metadata import METADATA, validate_metadata_update
from moorage.validation.pod.defaults import rounded
from moorage.validation.pod.resources import validate_amount
from moorage.validation.strategy import Context, ObjectStrategy

SPEC, STATUS = root("spec"), root("status")
POD_CIDRS = SPEC.child("podCIDRs")

EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
TAINTS_ANNOTATION = "scheduler.alpha.kubernetes.io/taints"
AVOID_PODS_ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
FEATURE_NAME_MAX = 253

_is_feature = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*").fullmatch
_CIDRS_KEPT = 'node updates may not change podCIDR except from "" to valid'


class NodeStrategy(ObjectStrategy[Node]):
    """The strategy of Nodes, which kubelets create with their status."""

    namespaced = False

    def default(self, value: Node, api_version: str, context: Context) -> Node:  # noqa: ARG002
        """Make all the capacity allocatable, unless the node says how much is."""
        value = replace(value, spec=_with_both_cidrs(value.spec))
        status = value.status
        capacity = rounded(status.capacity)
        allocatable = rounded(status.allocatable) if status.allocatable else capacity
        return replace(value, status=replace(status, capacity=capacity, allocatable=allocatable))

    def prepare_for_create(self, new: Node, context: Context) -> Node:
        """Drop fields of features that are off."""
        status = _with_enabled_status(new.status, context)
        return replace(new, spec=_with_enabled_spec(new.spec), status=status)

    def validate(self, new: Node, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything."""
        return self.validate_metadata(new) + _validate_node(new)

    def prepare_for_update(self, new: Node, old: Node, context: Context) -> Node:  # noqa: ARG002
        """Keep the status; drop fields of features that are off."""
        return replace(new, spec=_with_enabled_spec(new.spec), status=old.status)

    def validate_update(self, new: Node, old: Node, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything, and that only fields that may change did."""
        found = self.validate_metadata(new) + _validate_node(new)
        return found + _validate_change(new, old)

    def prepare_for_status_update(self, new: Node, old: Node, context: Context) -> Node:  # noqa: ARG002
        """Keep the spec; unlike other kinds, nodes may change their metadata with their status."""
        return replace(new, spec=old.spec, status=replace(new.status, config=None))

    def validate_status_update(self, new: Node, old: Node, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate the status, and everything else that an update of the spec validates."""
        return _validate_change(new, old)

    def warnings_on_create(self, new: Node) -> list[str]:
        """Warn of fields without effect, and of ambiguous addresses."""
        found = []
        if new.spec.external_id:
            found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        for position, text in enumerate(new.spec.pod_cidrs):
            found += _cidr_warnings(text, POD_CIDRS.index(position))
        return found


def _with_both_cidrs(spec: NodeSpec) -> NodeSpec:
    """Return a spec whose podCIDR is the first of its podCIDRs; podCIDR decides."""
    cidrs = spec.pod_cidrs
    if spec.pod_cidr and spec.pod_cidr != next(iter(cidrs), None):
        cidrs = (spec.pod_cidr,)
    return replace(spec, pod_cidrs=cidrs, pod_cidr=cidrs[0] if cidrs else "")


def _with_enabled_spec(spec: NodeSpec) -> NodeSpec:
    """Return a spec without fields that nothing obeys: their features are gone, or not here yet."""
    return replace(spec, config_source=None, pod_preemption_policy=None)


def _with_enabled_status(status: NodeStatus, context: Context) -> NodeStatus:
    is_enabled = context.enabled(Gate.NODE_DECLARED_FEATURES)
    features = status.declared_features if is_enabled else ()
    return replace(status, config=None, declared_features=features)


def _validate_node(node: Node) -> ErrorList:
    found = _validate_annotations(node)
    found += _validate_taints(node.spec.taints, METADATA.child("taints"))
    found += _validate_resources(node.status)
    swap = node.status.node_info.swap or {}
    if (capacity := swap.get("capacity")) is not None and capacity <= 0:
        path = METADATA.child("nodeSwapStatus", "capacity")
        found.append(invalid(path, capacity, "must be greater than 0"))
    found += _validate_features(node.status.declared_features)
    return found + _validate_cidrs(node.spec.pod_cidrs)


def _validate_change(new: Node, old: Node) -> ErrorList:
    """Validate an update: the metadata, the status, and that fields stay once they are set."""
    found = validate_metadata_update(new.metadata, old.metadata)
    found += _validate_annotations(new) + _validate_resources(new.status)
    found += _validate_features(new.status.declared_features)
    found += _validate_addresses(new.status)
    before, after = old.spec.pod_cidrs, new.spec.pod_cidrs
    if before and before != after:
        found.append(forbidden(POD_CIDRS, _CIDRS_KEPT))
    if old.spec.provider_id and new.spec.provider_id != old.spec.provider_id:
        change = "modified" if new.spec.provider_id else "cleared"
        path = SPEC.child("providerID")
        found.append(invalid(path, None, f"field cannot be {change} once set"))
    found += _validate_taints(new.spec.taints, METADATA.child("taints"))
    if new.spec.external_id != old.spec.external_id:
        found.append(forbidden(SPEC.child("externalID"), "may not be updated"))
    return found


# --- taints, here or in annotations ---------------------------------------------------------


def _validate_taints(taints: Iterable[Taint], path: Path) -> ErrorList:
    found: ErrorList = []
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(taints):
        place = path.index(position)
        found += label_name(taint.key, place.child("key"))
        if messages := names.label_value(taint.value):
            found.append(invalid(place.child("value"), taint.value, ";".join(messages)))
        if not taint.effect:
            found.append(required(place.child("effect")))
        elif taint.effect not in EFFECTS:
            found.append(not_supported(place.child("effect"), taint.effect, EFFECTS))
        if (taint.key, taint.effect) in seen:
            detail = "taints must be unique by key and effect pair"
            shown = internal_form(to_tree(taint), "Taint")
            found.append(FieldError(ErrorType.DUPLICATE, place, detail, shown))
        seen.add((taint.key, taint.effect))
    return found


def _validate_annotations(node: Node) -> ErrorList:
    """Validate the annotations that held taints and avoided pods before there were fields."""
    path = METADATA.child("annotations")
    annotations = node.metadata.annotations
    found: ErrorList = []
    if text := annotations.get(TAINTS_ANNOTATION):
        try:
            taints = decode_tree(_json(text, list), tuple[Taint, ...]).value
            found += _validate_taints(taints, path.child(TAINTS_ANNOTATION))
        except DecodeError as error:
            found.append(invalid(path, TAINTS_ANNOTATION, str(error)))
    if text := annotations.get(AVOID_PODS_ANNOTATION):
        try:
            found += _validate_avoided_pods(text, path.child(AVOID_PODS_ANNOTATION))
        except DecodeError as error:
            found.append(invalid(path.child("AvoidPods"), AVOID_PODS_ANNOTATION, str(error)))
    return found


def _json(text: str, wanted: type) -> Any:
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"not valid JSON: {error}") from None
    if tree is not None and not isinstance(tree, wanted):
        raise DecodeError(f"cannot read {json_name(tree)} as {wanted.__name__}")
    return wanted() if tree is None else tree


def _validate_avoided_pods(text: str, path: Path) -> ErrorList:
    found: ErrorList = []
    entries = _json(text, dict).get("preferAvoidPods")
    for position, entry in enumerate(entries if isinstance(entries, list) else ()):
        place = path.index(position).child("PodSignature")
        match entry:
            case {"podSignature": {"podController": {"controller": False}}}:
                place = place.child("PodController", "Controller")
                found.append(invalid(place, False, "must point to a controller"))
            case {"podSignature": {"podController": {}}}:
                pass
            case _:
                found.append(required(place))
    return found


# --- the status ---------------------------------------------------------------------------


def _validate_resources(status: NodeStatus) -> ErrorList:
    found: ErrorList = []
    for field, amounts in (("capacity", status.capacity), ("allocatable", status.allocatable)):
        for name, amount in amounts.items():
            found += validate_amount(name, amount, STATUS.child(field, name), _any_name)
    return found


def _any_name(name: str, path: Path) -> ErrorList:  # noqa: ARG001
    return []


def _validate_features(features: tuple[str, ...]) -> ErrorList:
    """Validate the names of features, and that they are sorted."""
    path = STATUS.child("declaredFeatures")
    found: ErrorList = []
    for position, (feature, before) in enumerate(zip(features, (None, *features), strict=False)):
        place = path.index(position)
        if fault := _feature_fault(feature):
            detail = f"invalid feature name {go_quote(feature)}: {fault}"
            found.append(invalid(place, feature, detail))
        if before == feature:
            found.append(duplicate(place, feature))
        elif before is not None and before.encode() > feature.encode():
            found.append(invalid(place, feature, "list must be sorted alphabetically"))
    return found


def _feature_fault(name: str) -> str:
    if byte_length(name) > FEATURE_NAME_MAX:
        return f"must be no more than {FEATURE_NAME_MAX} characters"
    if _is_feature(name):
        return ""
    return (
        "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
        "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters "
        "and slashes"
    )


def _validate_addresses(status: NodeStatus) -> ErrorList:
    path = STATUS.child("addresses")
    found: ErrorList = []
    seen: set[tuple[str, str]] = set()
    for position, address in enumerate(status.addresses):
        if (address.type, address.address) in seen:
            shown = internal_form(to_tree(address), "NodeAddress")
            found.append(duplicate(path.index(position), shown))
        seen.add((address.type, address.address))
    return found


# --- the spec -----------------------------------------------------------------------------


def _validate_cidrs(cidrs: tuple[str, ...]) -> ErrorList:
    """Validate the addresses of pods: one network for each IP family."""
    found: ErrorList = []
    for position, text in enumerate(cidrs):
        place = POD_CIDRS.index(position)
        network = read_cidr(text)
        if network is None:
            detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            found.append(invalid(place, text, detail))
        elif fault := _cidr_fault(text, network):
            found.append(invalid(place, text, fault))
    if len(cidrs) < 2:
        return found
    networks = [read_cidr(text) for text in cidrs]
    if None in networks:
        position = networks.index(None)
        why = f"invalid CIDR[{position}]: <nil> (invalid CIDR address: {cidrs[position]})"
        detail = f"invalid PodCIDRs. failed to check with dual stack with error:{why}"
        found.append(internal(POD_CIDRS, detail))
    families = {network.version for network in networks if network}
    if None in networks or len(families) < 2 or len(cidrs) > 2:
        detail = "may specify no more than one CIDR for each IP family"
        found.append(invalid(POD_CIDRS, cidrs, detail))
    return found


# --- addresses, read as generously as Go once did ------------------------------------------

Interface = IPv4Interface | IPv6Interface

_SPARE_ZEROS = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9a-fA-F])")
_is_length = re.compile(r"[0-9]{1,9}", re.ASCII).fullmatch


def read_cidr(text: str) -> Interface | None:
    """Return an address with the length of its prefix; spare zeros are allowed."""
    address, slash, length = text.partition("/")
    if not slash or not _is_length(length) or "%" in address:
        return None
    try:
        return ip_interface(f"{_SPARE_ZEROS.sub('', address)}/{int(length)}")
    except ValueError:
        return None


def _cidr_fault(text: str, interface: Interface) -> str:
    """Return what is ambiguous about an address that can be read; "" if nothing is."""
    address, _, length = text.partition("/")
    is_padded = "." in address and _SPARE_ZEROS.search(address)
    if is_padded or (len(length) > 1 and length.startswith("0")):
        return "must not have leading 0s in IP or prefix length"
    if isinstance(interface, IPv6Interface) and interface.ip.ipv4_mapped is not None:
        return "must not have an IPv4-mapped IPv6 address"
    if interface.ip != interface.network.network_address:
        return "must not have bits set beyond the prefix length"
    return ""


def _cidr_warnings(text: str, path: Path) -> list[str]:
    interface = read_cidr(text)
    if interface is None:
        return []
    network, shown = interface.network, go_quote(text)
    found = []
    if interface.ip != network.network_address:
        single = go_quote(f"{interface.ip}/{interface.max_prefixlen}")
        found.append(
            f"{path}: CIDR value {shown} is ambiguous in this context "
            f"(should be {go_quote(str(network))} or {single}?)"
        )
    fault = _cidr_fault(text, interface)
    if "leading" in fault or "mapped" in fault:
        found.append(
            f"{path}: non-standard CIDR value {shown} is invalid: use {go_quote(str(network))}"
        )
    if not found and interface.version == 6 and str(network) != text:
        found.append(
            f"{path}: IPv6 CIDR value {shown} should be in RFC 5952 canonical format "
            f"({go_quote(str(network))})"
        )
    return found
