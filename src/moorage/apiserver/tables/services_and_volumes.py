"""Table printers of services, volumes, budgets, revisions and autoscalers."""

from __future__ import annotations

from typing import Any

from moorage.api.apps import ControllerRevision
from moorage.api.autoscaling import HorizontalPodAutoscaler
from moorage.api.core.persistent_volume import (
    PersistentVolume,
    PersistentVolumeClaim,
    storage_class_of,
)
from moorage.api.core.service import (
    EXTERNAL_NAME,
    LOAD_BALANCER,
    Endpoints,
    Service,
    ServicePort,
)
from moorage.api.discovery import EndpointSlice
from moorage.api.policy import PodDisruptionBudget
from moorage.api.storage import StorageClass
from moorage.api.timestamp import Timestamp
from moorage.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    SELECTOR,
    Cell,
    Printer,
    age,
    labels_text,
    named_and_aged,
    number,
    text,
    wide,
)

UNSET = "<unset>"
SHOWN_MAX = 3  # endpoints in a cell

# --- services ----------------------------------------------------------------------------------


def _service(value: Service, now: Timestamp) -> list[Cell]:
    spec = value.spec
    return [
        value.metadata.name,
        spec.type,
        spec.cluster_ips[0] if spec.cluster_ips else NONE,
        _external(value),
        ",".join(map(_port, spec.ports)) or NONE,
        age(value.metadata.creation_timestamp, now),
        labels_text(spec.selector),
    ]


def _external(value: Service) -> str:
    spec = value.spec
    if spec.type == EXTERNAL_NAME:
        return spec.external_name
    found = list(spec.external_ips)
    if spec.type == LOAD_BALANCER:
        ingress = value.status.load_balancer.ingress
        found = [each.get("ip") or each.get("hostname") or "" for each in ingress] + found
        return ",".join(filter(None, found)) or "<pending>"
    return ",".join(found) or NONE


def _port(port: ServicePort) -> str:
    shown = f"{port.port}:{port.node_port}" if port.node_port else str(port.port)
    return f"{shown}/{port.protocol}"


SERVICE = Printer(
    (
        NAME,
        text("Type", "How the service is reached."),
        text("Cluster-IP", "Address within the cluster."),
        text("External-IP", "Addresses from outside."),
        text("Port(s)", "Ports of the service, and of nodes."),
        AGE,
        SELECTOR,
    ),
    _service,
)


def _some(items: list[str], none: str) -> str:
    if not items:
        return none
    more = len(items) - SHOWN_MAX
    shown = ",".join(items[:SHOWN_MAX])
    return f"{shown} + {more} more..." if more > 0 else shown


def _endpoints(value: Endpoints) -> list[Cell]:
    found: list[str] = []
    for subset in value.subsets:
        addresses = subset.get("addresses") or ()
        ports = subset.get("ports") or ()
        for port in ports:
            found += [f"{each.get('ip')}:{port.get('port')}" for each in addresses]
        if not ports:
            found += [str(each.get("ip")) for each in addresses]
    return [_some(found, NONE)]


ENDPOINTS = named_and_aged((text("Endpoints", "Addresses and ports."),), _endpoints)


def _endpoint_slice(value: EndpointSlice) -> list[Cell]:
    ports = [NONE if port.port is None else str(port.port) for port in value.ports]
    addresses = [address for each in value.endpoints for address in each.addresses]
    return [value.address_type, _some(ports, UNSET), _some(addresses, UNSET)]


ENDPOINT_SLICE = named_and_aged(
    (
        text("AddressType", "Kind of the addresses."),
        text("Ports", "Ports of all endpoints."),
        text("Endpoints", "Addresses of the endpoints."),
    ),
    _endpoint_slice,
)

# --- budgets, revisions ------------------------------------------------------------------------


def _budget(value: PodDisruptionBudget) -> list[Cell]:
    spec = value.spec
    return [
        "N/A" if spec.min_available is None else str(spec.min_available),
        "N/A" if spec.max_unavailable is None else str(spec.max_unavailable),
        value.status.disruptions_allowed,
    ]


BUDGET = named_and_aged(
    (
        text("Min Available", "Pods that must stay."),
        text("Max Unavailable", "Pods that may be missing."),
        number("Allowed Disruptions", "Pods that may be evicted now."),
    ),
    _budget,
)


def _revision(value: ControllerRevision) -> list[Cell]:
    owner = next((o for o in value.metadata.owner_references if o.controller), None)
    controller = NONE
    if owner is not None:
        group = owner.api_version.rpartition("/")[0]
        controller = f"{owner.kind.lower()}.{group}/{owner.name}"
    return [controller, value.revision]


REVISION = named_and_aged(
    (
        text("Controller", "Owner of the revision."),
        number("Revision", "Number of the revision."),
    ),
    _revision,
)

# --- volumes -----------------------------------------------------------------------------------

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(modes: tuple[str, ...]) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _phase(value: PersistentVolume | PersistentVolumeClaim) -> str:
    is_going = value.metadata.deletion_timestamp is not None
    return "Terminating" if is_going else value.status.phase


def _volume(value: PersistentVolume, now: Timestamp) -> list[Cell]:
    spec, claim = value.spec, value.spec.claim_ref
    return [
        value.metadata.name,
        str(spec.capacity.get("storage", "")),
        _modes(spec.access_modes),
        spec.persistent_volume_reclaim_policy,
        _phase(value),
        "" if claim is None else f"{claim.namespace}/{claim.name}",
        storage_class_of(value),
        spec.volume_attributes_class_name or UNSET,
        value.status.reason,
        age(value.metadata.creation_timestamp, now),
        spec.volume_mode or UNSET,
    ]


VOLUME = Printer(
    (
        NAME,
        text("Capacity", "Size of the volume."),
        text("Access Modes", "How the volume can be mounted."),
        text("Reclaim Policy", "What becomes of the volume when its claim is deleted."),
        text("Status", "Whether the volume is free, bound or released."),
        text("Claim", "Claim that the volume is bound to."),
        text("StorageClass", "Class of the volume."),
        text("VolumeAttributesClass", "Class of the volume's attributes."),
        text("Reason", "Why the volume is in this state."),
        AGE,
        wide("VolumeMode", "Filesystem or Block."),
    ),
    _volume,
)


def _claim(value: PersistentVolumeClaim, now: Timestamp) -> list[Cell]:
    spec = value.spec
    capacity = modes = ""
    if spec.volume_name:
        capacity = str(value.status.capacity.get("storage", ""))
        modes = _modes(value.status.access_modes)
    return [
        value.metadata.name,
        _phase(value),
        spec.volume_name,
        capacity,
        modes,
        storage_class_of(value),
        spec.volume_attributes_class_name or UNSET,
        age(value.metadata.creation_timestamp, now),
        spec.volume_mode or UNSET,
    ]


CLAIM = Printer(
    (
        NAME,
        text("Status", "Whether the claim has a volume."),
        text("Volume", "Volume of the claim."),
        text("Capacity", "Size of the volume."),
        text("Access Modes", "How the volume can be mounted."),
        text("StorageClass", "Class of the claim."),
        text("VolumeAttributesClass", "Class of the volume's attributes."),
        AGE,
        wide("VolumeMode", "Filesystem or Block."),
    ),
    _claim,
)


def _storage_class(value: StorageClass, now: Timestamp) -> list[Cell]:
    name = value.metadata.name
    return [
        f"{name} (default)" if value.is_default else name,
        value.provisioner,
        value.reclaim_policy or "Delete",
        value.volume_binding_mode or "Immediate",
        bool(value.allow_volume_expansion),
        age(value.metadata.creation_timestamp, now),
    ]


STORAGE_CLASS = Printer(
    (
        NAME,
        text("Provisioner", "Who makes volumes."),
        text("ReclaimPolicy", "What becomes of volumes whose claims are deleted."),
        text("VolumeBindingMode", "When claims get their volumes."),
        text("AllowVolumeExpansion", "Whether volumes can grow."),
        AGE,
    ),
    _storage_class,
)

# --- autoscalers -------------------------------------------------------------------------------


def _autoscaler(value: HorizontalPodAutoscaler, now: Timestamp) -> list[Cell]:
    spec, target = value.spec, value.spec.scale_target_ref
    return [
        value.metadata.name,
        f"{target.kind}/{target.name}",
        ", ".join(map(_metric, spec.metrics)) or NONE,
        UNSET if spec.min_replicas is None else str(spec.min_replicas),
        spec.max_replicas,
        value.status.current_replicas,
        age(value.metadata.creation_timestamp, now),
    ]


def _metric(metric: Any) -> str:
    """Return the target of a metric, whose current value is unknown."""
    kind = metric.get("type", "")
    source = metric.get(f"{kind[:1].lower()}{kind[1:]}") or {}
    target = source.get("target") or {}
    percent = target.get("averageUtilization")
    if kind in ("Resource", "ContainerResource"):
        wanted = target.get("averageValue") if percent is None else f"{percent}%"
        return f"{source.get('name')}: <unknown>/{wanted}"
    average = target.get("averageValue")
    if average is None:
        return f"<unknown>/{target.get('value')}"
    return f"<unknown>/{average}" + ("" if kind == "Pods" else " (avg)")


AUTOSCALER = Printer(
    (
        NAME,
        text("Reference", "What is scaled."),
        text("Targets", "Metrics, and what they should be."),
        text("MinPods", "Least pods."),
        text("MaxPods", "Most pods."),
        text("Replicas", "Pods that there are."),
        AGE,
    ),
    _autoscaler,
)
