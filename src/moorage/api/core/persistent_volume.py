"""PersistentVolumes and the claims that are bound to them (core/v1)."""

from __future__ import annotations

from msgspec import field

from moorage.api.core.namespace import ObjectReference
from moorage.api.core.resources import ResourceList
from moorage.api.meta import Json, LabelSelector, ObjectMeta
from moorage.api.structs import Open, always
from moorage.api.timestamp import Timestamp

API_VERSION = "v1"

AVAILABLE = "Available"  # phases of a volume
BOUND = "Bound"  # also of a claim
RELEASED = "Released"
FAILED = "Failed"
PENDING = "Pending"  # also of a claim
LOST = "Lost"  # of a claim

RETAIN = "Retain"  # what becomes of a volume whose claim is deleted
DELETE = "Delete"

FILESYSTEM = "Filesystem"  # volume modes
BLOCK = "Block"

# Annotations by which the parts that bind and provision tell each other what they did.
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"  # finalizers
VOLUME_PROTECTION = "kubernetes.io/pv-protection"


class VolumeResourceRequirements(Open, frozen=True, gc=False):
    """How much storage is requested."""

    limits: ResourceList = field(default_factory=dict)
    requests: ResourceList = field(default_factory=dict)


class PersistentVolumeClaimSpec(Open, frozen=True, gc=False):
    """The requested volume."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = always(VolumeResourceRequirements())
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: Json = None
    data_source_ref: Json = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimCondition(Open, frozen=True, gc=False):
    """One observed aspect of a claim's state."""

    type: str = always("")
    status: str = always("")
    last_probe_time: Timestamp | None = always(None)
    last_transition_time: Timestamp | None = always(None)
    reason: str = ""
    message: str = ""


class PersistentVolumeClaimStatus(Open, frozen=True, gc=False):
    """Whether the claim has a volume, and what that offers."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: ResourceList = field(default_factory=dict)
    conditions: tuple[PersistentVolumeClaimCondition, ...] = ()
    allocated_resources: ResourceList = field(default_factory=dict)
    allocated_resource_statuses: dict[str, str] = field(default_factory=dict)
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: Json = None
    health_status: Json = None


class PersistentVolumeClaim(Open, frozen=True, gc=False):
    """A request for storage in a namespace."""

    api_version: str = always(API_VERSION)
    kind: str = always("PersistentVolumeClaim")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: PersistentVolumeClaimSpec = always(PersistentVolumeClaimSpec())
    status: PersistentVolumeClaimStatus = always(PersistentVolumeClaimStatus())


class PersistentVolumeSpec(Open, frozen=True, gc=False):
    """What a volume is, and which claim it belongs to."""

    capacity: ResourceList = field(default_factory=dict)
    gce_persistent_disk: Json = None
    aws_elastic_block_store: Json = None
    host_path: Json = None
    glusterfs: Json = None
    nfs: Json = None
    rbd: Json = None
    iscsi: Json = None
    cinder: Json = None
    cephfs: Json = None
    fc: Json = None
    flocker: Json = None
    flex_volume: Json = None
    azure_file: Json = None
    vsphere_volume: Json = None
    quobyte: Json = None
    azure_disk: Json = None
    photon_persistent_disk: Json = None
    portworx_volume: Json = None
    scale_io: Json = field(default=None, name="scaleIO")
    local: Json = None
    storageos: Json = None
    csi: Json = None
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    mount_options: tuple[str, ...] = ()
    volume_mode: str | None = None
    node_affinity: Json = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(Open, frozen=True, gc=False):
    """Whether the volume is free, bound or released."""

    phase: str = ""
    message: str = ""
    reason: str = ""
    last_phase_transition_time: Timestamp | None = None


class PersistentVolume(Open, frozen=True, gc=False):
    """Storage of the cluster."""

    api_version: str = always(API_VERSION)
    kind: str = always("PersistentVolume")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: PersistentVolumeSpec = always(PersistentVolumeSpec())
    status: PersistentVolumeStatus = always(PersistentVolumeStatus())


def storage_class_of(value: PersistentVolume | PersistentVolumeClaim) -> str:
    """Return the storage class that a volume or a claim names; empty if it names none."""
    old = value.metadata.annotations.get(BETA_STORAGE_CLASS)
    return old if old is not None else value.spec.storage_class_name or ""
