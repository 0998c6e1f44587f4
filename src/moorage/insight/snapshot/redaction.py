"""Objects without what decides nothing: texts, commands, opaque parameters.

What decides is kept: names, labels, taints, selectors with their CEL, attributes and capacities,
requests and limits, images by name (nodes that have them score higher), types of volumes, and every
status that says who has what. So every question gets the same answer before and after.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeVar

from msgspec import Raw, Struct
from msgspec.structs import replace

from moorage.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from moorage.api.batch import Job
from moorage.api.core import Namespace, Node, Pod
from moorage.api.core.node import NodeSystemInfo
from moorage.api.core.persistent_volume import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
)
from moorage.api.core.pod import (
    Container,
    ContainerState,
    ContainerStatus,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
)
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    POD_CLAIM_ANNOTATION,
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from moorage.api.storage import IS_DEFAULT_CLASS, StorageClass
from moorage.api.structs import NULL, Open
from moorage.insight.snapshot.snapshot import Snapshot

KEPT_ANNOTATIONS: Final = (
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    POD_CLAIM_ANNOTATION,
    IS_DEFAULT_CLASS,
)
EMPTY: Final = Raw(b"{}")

_NAME: Final = "redacted"
_DOMAIN: Final = "redacted.example.com"
# Required fields by type of volume: pods created from a template are validated.
_STAND_INS: Final[dict[str, dict[str, Any]]] = {
    "awsElasticBlockStore": {"volumeID": _NAME},
    "azureDisk": {"diskName": _NAME, "diskURI": f"https://{_DOMAIN}"},
    "azureFile": {"secretName": _NAME, "shareName": _NAME},
    "cephfs": {"monitors": [_NAME]},
    "cinder": {"volumeID": _NAME},
    "configMap": {"name": _NAME},
    "csi": {"driver": _DOMAIN},
    "ephemeral": {
        "volumeClaimTemplate": {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1"}},
            }
        }
    },
    "fc": {"wwids": [_NAME]},
    "flexVolume": {"driver": _DOMAIN},
    "flocker": {"datasetName": _NAME},
    "gcePersistentDisk": {"pdName": _NAME},
    "gitRepo": {"repository": _NAME},
    "glusterfs": {"endpoints": _NAME, "path": _NAME},
    "hostPath": {"path": "/"},
    "image": {"reference": _NAME},
    "iscsi": {"targetPortal": _NAME, "iqn": "iqn.2000-01.com.example:redacted"},
    "nfs": {"server": _NAME, "path": "/"},
    "persistentVolumeClaim": {"claimName": _NAME},
    "photonPersistentDisk": {"pdID": _NAME},
    "portworxVolume": {"volumeID": _NAME},
    "quobyte": {"registry": f"{_NAME}:1", "volume": _NAME},
    "rbd": {"monitors": [_NAME], "image": _NAME},
    "scaleIO": {"gateway": _NAME, "system": _NAME, "volumeName": _NAME},
    "secret": {"secretName": _NAME},
    "storageos": {"volumeName": _NAME},
    "vsphereVolume": {"volumePath": _NAME},
}

S = TypeVar("S", bound=Struct)


def redacted(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with every object redacted."""
    return Snapshot.of(map(redact, snapshot.objects()), snapshot.unread)


def redact(value: Any) -> Any:
    """Return an object without fields that decide nothing."""
    value = _plain(replace(value, metadata=_metadata(value.metadata)))
    match value:
        case Pod():
            return replace(value, spec=_pod_spec(value.spec), status=_pod_status(value.status))
        case Node():
            return _node(value)
        case Namespace():
            return replace(value, status=type(value.status)(phase=value.status.phase))
        case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet() | Job():
            return _controller(value)
        case ResourceClaim():
            spec, status = _claim_spec(value.spec), _claim_status(value.status)
            return replace(value, spec=spec, status=status)
        case ResourceClaimTemplate():
            made = value.spec
            metadata, spec = _metadata(made.metadata), _claim_spec(made.spec)
            return replace(value, spec=replace(made, metadata=metadata, spec=spec))
        case PersistentVolume():
            return _persistent_volume(value)
        case PersistentVolumeClaim():
            return _persistent_volume_claim(value)
        case StorageClass():
            return replace(value, parameters={}, mount_options=())
        case DeviceClass():
            return replace(value, spec=replace(value.spec, config=_configs(value.spec.config)))
        case DeviceTaintRule():
            conditions = _conditions(value.status.conditions)
            return replace(value, status=replace(value.status, conditions=conditions))
    return value


def _metadata(metadata: ObjectMeta) -> ObjectMeta:
    kept = {key: text for key, text in metadata.annotations.items() if key in KEPT_ANNOTATIONS}
    return replace(metadata, annotations=kept, managed_fields=(), self_link="")


def _plain(value: S) -> S:
    """Return the object without unknown fields, at any level."""
    changes = {}
    for field in value.__struct_fields__:
        member = getattr(value, field)
        if field == "extra" and isinstance(value, Open):
            kept: Any = {}
        elif isinstance(member, Struct):
            kept = _plain(member)
        elif isinstance(member, tuple):
            kept = tuple(_plain(each) if isinstance(each, Struct) else each for each in member)
        else:
            continue
        changes[field] = kept
    return replace(value, **changes)


def _conditions(conditions: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(replace(each, message="") for each in conditions)


# --- pods ---------------------------------------------------------------------------------


def _pod_spec(spec: PodSpec) -> PodSpec:
    return replace(
        spec,
        containers=tuple(map(_container, spec.containers)),
        init_containers=tuple(map(_container, spec.init_containers)),
        ephemeral_containers=tuple(map(_container, spec.ephemeral_containers)),
        volumes=tuple(map(_volume, spec.volumes)),
        image_pull_secrets=(),
        security_context={},
        service_account="",
        service_account_name="",
        host_aliases=(),
        dns_config=None,
        hostname="",
        subdomain="",
    )


C = TypeVar("C", bound=Container)


def _container(container: C) -> C:
    return replace(
        container,
        command=(),
        args=(),
        working_dir="",
        env=(),
        env_from=(),
        volume_mounts=tuple(_mounts(container.volume_mounts)),
        volume_devices=(),
        liveness_probe=None,
        readiness_probe=None,
        startup_probe=None,
        lifecycle=None,
        security_context=None,
    )


def _volume(volume: Any) -> Any:
    """Return the name and type of a volume, and its image reference."""
    if not isinstance(volume, dict):
        return {}
    kept: dict[str, Any] = {
        key: _STAND_INS.get(key, {}) for key, of in volume.items() if of is not None
    }
    if isinstance(name := volume.get("name"), str):
        kept["name"] = name
    match volume.get("persistentVolumeClaim"):
        case {"claimName": str(claim)}:
            kept["persistentVolumeClaim"] = {"claimName": claim}
    match volume.get("image"):
        case {"reference": str(reference)}:
            kept["image"] = {"reference": reference}
    return kept


def _mounts(mounts: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the mounts that need a declared node feature, at made-up paths."""
    for position, mount in enumerate(mounts):
        if isinstance(mount, dict) and (options := mount.get("bindMountOptions")):
            name = mount.get("name", "")
            yield {"name": name, "mountPath": f"/{position}", "bindMountOptions": options}


def _pod_status(status: PodStatus) -> PodStatus:
    return replace(
        status,
        message="",
        conditions=_conditions(status.conditions),
        host_ip="",
        host_ips=(),
        pod_ip="",
        pod_ips=(),
        container_statuses=tuple(map(_container_status, status.container_statuses)),
        init_container_statuses=tuple(map(_container_status, status.init_container_statuses)),
        ephemeral_container_statuses=(),
        volume_health=(),
    )


def _container_status(status: ContainerStatus) -> ContainerStatus:
    return replace(
        status,
        state=ContainerState(),
        last_state=ContainerState(),
        image_id="",
        container_id="",
        volume_mounts=(),
        user=None,
    )


def _controller(value: Any) -> Any:
    template: PodTemplateSpec = value.spec.template
    metadata, spec = _metadata(template.metadata), _pod_spec(template.spec)
    template = replace(template, metadata=metadata, spec=spec)
    conditions = _conditions(value.status.conditions)
    value = replace(
        value,
        spec=replace(value.spec, template=template),
        status=replace(value.status, conditions=conditions),
    )
    if isinstance(value, StatefulSet):
        claims = tuple(map(_volume_claim, value.spec.volume_claim_templates))
        value = replace(value, spec=replace(value.spec, volume_claim_templates=claims))
    return value


def _volume_claim(claim: Any) -> Any:
    match claim:
        case {"metadata": {"name": str(name)}}:
            return {"metadata": {"name": name}}
    return {}


def _persistent_volume_claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    spec = replace(claim.spec, data_source=None, data_source_ref=None)
    return replace(claim, spec=spec, status=PersistentVolumeClaimStatus(phase=claim.status.phase))


def _persistent_volume(volume: PersistentVolume) -> PersistentVolume:
    """Return a volume without its source: who may use it, and from where, is what decides."""
    spec = volume.spec
    claim = spec.claim_ref
    kept = PersistentVolumeSpec(
        capacity=spec.capacity,
        access_modes=spec.access_modes,
        claim_ref=None if claim is None else replace(claim, resource_version=""),
        storage_class_name=spec.storage_class_name,
        volume_mode=spec.volume_mode,
        node_affinity=spec.node_affinity,
        volume_attributes_class_name=spec.volume_attributes_class_name,
    )
    return replace(volume, spec=kept, status=PersistentVolumeStatus(phase=volume.status.phase))


# --- nodes and claims ---------------------------------------------------------------------


def _node(node: Node) -> Node:
    status = replace(
        node.status,
        addresses=(),
        node_info=NodeSystemInfo(),
        conditions=_conditions(node.status.conditions),
        volumes_in_use=(),
        volumes_attached=(),
        config=None,
    )
    spec = replace(
        node.spec, provider_id="", external_id="", pod_cidr="", pod_cidrs=(), config_source=None
    )
    return replace(node, spec=spec, status=status)


def _claim_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    return replace(spec, devices=replace(spec.devices, config=_configs(spec.devices.config)))


def _claim_status(status: ResourceClaimStatus) -> ResourceClaimStatus:
    devices = tuple(
        replace(
            each,
            data=NULL,
            network_data=None,
            conditions=None if each.conditions is None else _conditions(each.conditions),
        )
        for each in status.devices
    )
    allocation = status.allocation and _allocation(status.allocation)
    return replace(status, devices=devices, allocation=allocation)


def _allocation(allocation: AllocationResult) -> AllocationResult:
    config = _configs(allocation.devices.config)
    return replace(allocation, devices=replace(allocation.devices, config=config))


def _configs(configs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the configurations without opaque parameters."""
    return tuple(
        replace(each, opaque=replace(each.opaque, parameters=EMPTY)) if each.opaque else each
        for each in configs
    )
