"""storage.k8s.io/v1: CSI drivers, their nodes and capacity, and attachments of volumes."""

from __future__ import annotations

from msgspec import field

from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import Json, LabelSelector, ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.structs import Closed, Int32, Int64, always
from moorage.api.timestamp import Timestamp

GROUP = "storage.k8s.io"
API_VERSION = f"{GROUP}/v1"


class VolumeAttachmentSource(Closed, frozen=True, gc=False):
    """The volume that is attached."""

    persistent_volume_name: str | None = None
    inline_volume_spec: Json = None


class VolumeAttachmentSpec(Closed, frozen=True, gc=False):
    """Which volume is attached to which node, and by whom."""

    attacher: str = always("")
    source: VolumeAttachmentSource = always(VolumeAttachmentSource())
    node_name: str = always("")


class VolumeError(Closed, frozen=True, gc=False):
    """Why a volume could not be attached or detached, and when."""

    time: Timestamp | None = always(None)
    message: str = ""
    error_code: Int32 | None = None


class VolumeAttachmentStatus(Closed, frozen=True, gc=False):
    """Whether the volume is attached."""

    attached: bool = always(False)
    attachment_metadata: dict[str, str] = field(default_factory=dict)
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(Closed, frozen=True, gc=False):
    """A volume that is to be attached to a node."""

    api_version: str = always(API_VERSION)
    kind: str = always("VolumeAttachment")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: VolumeAttachmentSpec = always(VolumeAttachmentSpec())
    status: VolumeAttachmentStatus = always(VolumeAttachmentStatus())


class TokenRequest(Closed, frozen=True, gc=False):
    """A token of the pod's service account that a CSI driver gets."""

    audience: str = always("")
    expiration_seconds: Int64 | None = None


class CSIDriverSpec(Closed, frozen=True, gc=False):
    """What a CSI driver can do and what it needs."""

    attach_required: bool | None = None
    pod_info_on_mount: bool | None = None
    volume_lifecycle_modes: tuple[str, ...] = ()
    storage_capacity: bool | None = None
    fs_group_policy: str | None = None
    token_requests: tuple[TokenRequest, ...] = ()
    requires_republish: bool | None = None
    se_linux_mount: bool | None = None
    node_allocatable_update_period_seconds: Int64 | None = None
    service_account_token_in_secrets: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Closed, frozen=True, gc=False):
    """A CSI driver of the cluster."""

    api_version: str = always(API_VERSION)
    kind: str = always("CSIDriver")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: CSIDriverSpec = always(CSIDriverSpec())


class VolumeNodeResources(Closed, frozen=True, gc=False):
    """How many volumes a driver can attach to a node."""

    count: Int32 | None = None


class CSINodeDriver(Closed, frozen=True, gc=False):
    """A CSI driver on a node."""

    name: str = always("")
    node_id: str = always("", name="nodeID")
    topology_keys: tuple[str, ...] | None = always(None)
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Closed, frozen=True, gc=False):
    """The CSI drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] | None = always(None)


class StorageHealthCondition(Closed, frozen=True, gc=False):
    """One observed problem of the storage of a driver."""

    status: str = always("")
    reason: str = always("")
    message: str = ""
    access_mode: str | None = None
    volume_mode: str | None = None
    last_transition_time: Timestamp | None = always(None)


class StorageHealth(Closed, frozen=True, gc=False):
    """The health of the storage that a driver sees on a node."""

    name: str = always("")
    health_conditions: tuple[StorageHealthCondition, ...] = ()


class CSINodeStatus(Closed, frozen=True, gc=False):
    """The health of a node's storage."""

    storage_health: tuple[StorageHealth, ...] = ()


class CSINode(Closed, frozen=True, gc=False):
    """Facts about the CSI drivers of a node."""

    api_version: str = always(API_VERSION)
    kind: str = always("CSINode")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: CSINodeSpec = always(CSINodeSpec())
    status: CSINodeStatus = always(CSINodeStatus())


class CSIStorageCapacity(Closed, frozen=True, gc=False):
    """How much storage of a class is left in a part of the cluster."""

    api_version: str = always(API_VERSION)
    kind: str = always("CSIStorageCapacity")
    metadata: ObjectMeta = always(ObjectMeta())
    node_topology: LabelSelector | None = None
    storage_class_name: str = always("")
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttributesClass(Closed, frozen=True, gc=False):
    """Attributes of volumes that can change while they are in use."""

    api_version: str = always(API_VERSION)
    kind: str = always("VolumeAttributesClass")
    metadata: ObjectMeta = always(ObjectMeta())
    driver_name: str = always("")
    parameters: dict[str, str] = field(default_factory=dict)


KINDS: tuple[Kind, ...] = (
    declare_kind(CSIDriver, "csidrivers", namespaced=False),
    declare_kind(CSINode, "csinodes", namespaced=False, has_status=True),
    declare_kind(CSIStorageCapacity, "csistoragecapacities"),
    declare_kind(VolumeAttachment, "volumeattachments", namespaced=False, has_status=True),
    declare_kind(VolumeAttributesClass, "volumeattributesclasses", "vac", namespaced=False),
)
