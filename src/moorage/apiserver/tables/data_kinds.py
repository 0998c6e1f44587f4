"""Table printers of networking, storage, certificates, flow control and API services."""

from __future__ import annotations

from typing import Any, Final

from moorage.api.api_registration import APIService
from moorage.api.certificates import CertificateSigningRequest
from moorage.api.csi import CSIDriver
from moorage.api.networking import Ingress, IngressClass, IPAddress
from moorage.api.storage_migration import StorageVersionMigration
from moorage.api.timestamp import Timestamp
from moorage.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    Cell,
    Column,
    Printer,
    age,
    named_and_aged,
    number,
    selector_text,
    text,
)

HOSTS_MAX = 3
DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def _flag(name: str, description: str) -> Column:
    return Column(name=name, type="boolean", description=description)


def _unaged(columns: tuple[Column, ...], cells: Any) -> Printer:
    """Return a printer with the name first and without an age."""
    return Printer((NAME, *columns), lambda value, _: [value.metadata.name, *cells(value)])


# --- networking -----------------------------------------------------------------------------------


def _ingress(value: Ingress) -> list[Cell]:
    hosts = [rule.host for rule in value.spec.rules if rule.host]
    shown = ",".join(hosts[:HOSTS_MAX]) or "*"
    if len(hosts) > HOSTS_MAX:
        shown += f" + {len(value.spec.rules) - HOSTS_MAX} more..."
    found = {each.ip or each.hostname for each in value.status.load_balancer.ingress}
    return [
        NONE if value.spec.ingress_class_name is None else value.spec.ingress_class_name,
        shown,
        ",".join(sorted(filter(None, found))),
        "80, 443" if value.spec.tls else "80",
    ]


INGRESS = named_and_aged(
    (
        text("Class", "Class of the ingress."),
        text("Hosts", "Hosts whose requests it answers."),
        text("Address", "Where the load balancer is reached."),
        text("Ports", "Ports of the load balancer."),
    ),
    _ingress,
)


def _ingress_class(value: IngressClass, now: Timestamp) -> list[Cell]:
    is_default = value.metadata.annotations.get(DEFAULT_CLASS) == "true"
    parameters, shown = value.spec.parameters, NONE
    if parameters is not None:
        group = "" if parameters.api_group is None else f".{parameters.api_group}"
        shown = f"{parameters.kind}{group}/{parameters.name}"
    name = value.metadata.name + (" (default)" if is_default else "")
    return [name, value.spec.controller, shown, age(value.metadata.creation_timestamp, now)]


INGRESS_CLASS = Printer(
    (
        NAME,
        text("Controller", "Controller that serves the class."),
        text("Parameters", "Object with parameters of the controller."),
        AGE,
    ),
    _ingress_class,
)

NETWORK_POLICY = named_and_aged(
    (text("Pod-Selector", "Pods that the policy is for."),),
    lambda value: [selector_text(value.spec.pod_selector)],
)


def _ip_address(value: IPAddress) -> list[Cell]:
    parent = value.spec.parent_ref
    if parent is None:
        return [NONE]
    resource = f"{parent.resource}.{parent.group}" if parent.group else parent.resource
    return ["/".join(filter(None, (resource.lower(), parent.namespace, parent.name)))]


IP_ADDRESS = named_and_aged((text("ParentRef", "Object that has the address."),), _ip_address)

SERVICE_CIDR = named_and_aged(
    (text("CIDRs", "Ranges of addresses."),), lambda value: [",".join(value.spec.cidrs)]
)

# --- storage --------------------------------------------------------------------------------------


def _csi_driver(value: CSIDriver) -> list[Cell]:
    spec = value.spec
    return [
        spec.attach_required is not False,
        bool(spec.pod_info_on_mount),
        bool(spec.storage_capacity),
        ",".join(each.audience for each in spec.token_requests) or "<unset>",
        bool(spec.requires_republish),
        ",".join(spec.volume_lifecycle_modes) or NONE,
    ]


CSI_DRIVER = named_and_aged(
    (
        _flag("AttachRequired", "Whether volumes must be attached to nodes."),
        _flag("PodInfoOnMount", "Whether the driver is told about the pod."),
        _flag("StorageCapacity", "Whether the driver publishes its capacity."),
        text("TokenRequests", "Audiences of the tokens that the driver gets."),
        _flag("RequiresRepublish", "Whether volumes are published again and again."),
        text("Modes", "Kinds of volumes that the driver has."),
    ),
    _csi_driver,
)

CSI_NODE = named_and_aged(
    (number("Drivers", "Drivers on the node."),), lambda value: [len(value.spec.drivers or ())]
)

CSI_STORAGE_CAPACITY = _unaged(
    (
        text("StorageClassName", "Class of the storage."),
        text("Capacity", "Storage that is left."),
    ),
    lambda value: [
        value.storage_class_name,
        "<unset>" if value.capacity is None else str(value.capacity),
    ],
)

VOLUME_ATTACHMENT = named_and_aged(
    (
        text("Attacher", "Driver that attaches the volume."),
        text("PV", "Volume that is attached."),
        text("Node", "Node that it is attached to."),
        _flag("Attached", "Whether it is attached."),
    ),
    lambda value: [
        value.spec.attacher,
        value.spec.source.persistent_volume_name or "",
        value.spec.node_name,
        value.status.attached,
    ],
)

VOLUME_ATTRIBUTES_CLASS = named_and_aged(
    (text("DriverName", "Driver of the volumes."),), lambda value: [value.driver_name]
)

# --- certificates ---------------------------------------------------------------------------------


def _signing_state(value: CertificateSigningRequest) -> str:
    types = {each.type for each in value.status.conditions}
    decided = "Approved" if "Approved" in types else "Pending"
    words = ["Denied" if "Denied" in types else decided]
    words += ["Failed"] if "Failed" in types else []
    words += ["Issued"] if value.status.certificate else []
    return ",".join(words)


def _signing_request(value: CertificateSigningRequest, now: Timestamp) -> list[Cell]:
    spec, seconds = value.spec, value.spec.expiration_seconds
    return [
        value.metadata.name,
        age(value.metadata.creation_timestamp, now),
        spec.signer_name or NONE,
        spec.username,
        NONE if seconds is None else _duration(seconds, now),
        _signing_state(value),
    ]


def _duration(seconds: int, now: Timestamp) -> str:
    return age(now.after(-seconds), now)


CERTIFICATE_SIGNING_REQUEST = Printer(
    (
        NAME,
        AGE,
        text("SignerName", "Who signs the certificate."),
        text("Requestor", "User who made the request."),
        text("RequestedDuration", "How long the certificate should be valid."),
        text("Condition", "Whether it is approved, denied, failed or issued."),
    ),
    _signing_request,
)

CLUSTER_TRUST_BUNDLE = _unaged(
    (text("SignerName", "Signer whose certificates are trusted."),),
    lambda value: [value.spec.signer_name or NONE],
)

# --- the server -----------------------------------------------------------------------------------


def _flow_schema(value: Any, now: Timestamp) -> list[Cell]:
    spec = value.spec
    dangling = [each.status for each in value.status.conditions if each.type == "Dangling"]
    return [
        value.metadata.name,
        spec.priority_level_configuration.name,
        spec.matching_precedence,
        NONE if spec.distinguisher_method is None else spec.distinguisher_method.type,
        age(value.metadata.creation_timestamp, now),
        dangling[0] if dangling else "?",
    ]


FLOW_SCHEMA = Printer(
    (
        NAME,
        text("PriorityLevel", "Priority level of the requests."),
        text("MatchingPrecedence", "Which schema comes first; the smallest."),
        text("DistinguisherMethod", "How requests are told apart."),
        AGE,
        text("MissingPL", "Whether the priority level is missing."),
    ),
    _flow_schema,
)


def _priority_level(value: Any) -> list[Cell]:
    limited = value.spec.limited
    queuing = None if limited is None else limited.limit_response.queuing
    shares = None if limited is None else limited.nominal_concurrency_shares
    queues: list[Cell] = [NONE, NONE, NONE]
    if queuing is not None:
        queues = [queuing.queues, queuing.hand_size, queuing.queue_length_limit]
    return [value.spec.type, NONE if shares is None else shares, *queues]


PRIORITY_LEVEL = named_and_aged(
    (
        text("Type", "Whether requests are limited."),
        text("NominalConcurrencyShares", "Share of the server."),
        text("Queues", "Number of queues."),
        text("HandSize", "Queues among which a flow's requests are spread."),
        text("QueueLengthLimit", "Requests that may wait in a queue."),
    ),
    _priority_level,
)


def _api_service(value: APIService) -> list[Cell]:
    available = [each for each in value.status.conditions if each.type == "Available"]
    if not available:
        return ["Local", "Unknown"]
    status, reason = available[0].status, available[0].reason
    return ["Local", status if status == "True" else f"{status} ({reason})"]


API_SERVICE = named_and_aged(
    (
        text("Service", "Service of another server; Local for this one."),
        text("Available", "Whether the version is served."),
    ),
    _api_service,
)


def _migration(value: StorageVersionMigration) -> list[Cell]:
    resource = value.spec.resource
    state = "Unknown"
    for each in value.status.conditions:
        if each.status == "True" and each.type in ("Running", "Failed", "Succeeded"):
            state = each.type
    shown = f"{resource.resource}.{resource.group}" if resource.group else resource.resource
    return [shown, state]


STORAGE_VERSION_MIGRATION = _unaged(
    (text("Resource", "Resource that is migrated."), text("Status", "How far it is.")),
    _migration,
)

DATA_PRINTERS: Final[dict[str, Printer]] = {
    "APIService": API_SERVICE,
    "CSIDriver": CSI_DRIVER,
    "CSINode": CSI_NODE,
    "CSIStorageCapacity": CSI_STORAGE_CAPACITY,
    "CertificateSigningRequest": CERTIFICATE_SIGNING_REQUEST,
    "ClusterTrustBundle": CLUSTER_TRUST_BUNDLE,
    "FlowSchema": FLOW_SCHEMA,
    "IPAddress": IP_ADDRESS,
    "Ingress": INGRESS,
    "IngressClass": INGRESS_CLASS,
    "NetworkPolicy": NETWORK_POLICY,
    "PriorityLevelConfiguration": PRIORITY_LEVEL,
    "ServiceCIDR": SERVICE_CIDR,
    "StorageVersionMigration": STORAGE_VERSION_MIGRATION,
    "VolumeAttachment": VOLUME_ATTACHMENT,
    "VolumeAttributesClass": VOLUME_ATTRIBUTES_CLASS,
}
