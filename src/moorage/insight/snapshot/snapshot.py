"""A cluster at one moment: every object that decides which pod gets which device.

Objects are in their hub versions, with defaults, as an API server stores them. Objects of one kind
keep the order in which they were read; of two with the same name the later one wins.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from moorage.api.batch import Job
from moorage.api.core import Namespace, Node, Pod, ReplicationController, Service
from moorage.api.core.namespace import ResourceQuota
from moorage.api.core.persistent_volume import PersistentVolume, PersistentVolumeClaim
from moorage.api.meta import OwnerReference
from moorage.api.policy import PodDisruptionBudget
from moorage.api.resource.v1 import (
    DeviceAttribute,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from moorage.api.runtime_class import RuntimeClass
from moorage.api.scheduling import CompositePodGroup, PodGroup, PriorityClass
from moorage.api.scheduling import Workload as GroupWorkload
from moorage.api.storage import StorageClass
from moorage.insight.messages import Concern, listed, titled
from moorage.insight.snapshot.unread import NOTHING_UNREAD, Unread

Controller = DaemonSet | Deployment | Job | ReplicaSet | StatefulSet
# Objects whose selectors decide about default pod spreading.
Spreader = Service | ReplicationController | Deployment | ReplicaSet | StatefulSet


class Snapshot(Struct, frozen=True):
    """The objects of a cluster by kind, and the kinds that could not all be read."""

    nodes: tuple[Node, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    priorities: tuple[PriorityClass, ...] = ()
    runtimes: tuple[RuntimeClass, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    templates: tuple[ResourceClaimTemplate, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    group_workloads: tuple[GroupWorkload, ...] = ()
    composite_groups: tuple[CompositePodGroup, ...] = ()
    groups: tuple[PodGroup, ...] = ()
    services: tuple[Service, ...] = ()
    replication_controllers: tuple[ReplicationController, ...] = ()
    controllers: tuple[Controller, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    pods: tuple[Pod, ...] = ()
    unread: Unread = NOTHING_UNREAD

    @classmethod
    def of(cls, objects: Iterable[Any], unread: Unread = NOTHING_UNREAD) -> Snapshot:
        """Return the snapshot that has these objects; other kinds are left out."""
        found: dict[str, dict[tuple[str, str, str], Any]] = {}
        for each in objects:
            field = FIELDS.get(type(each))
            if field is not None:
                found.setdefault(field, {})[key_of(each)] = each
        fields = {field: tuple(by_key.values()) for field, by_key in found.items()}
        return cls(**fields, unread=unread)

    def objects(self) -> Iterator[Any]:
        """Yield all objects, in the order in which a cluster would need them."""
        for field in OBJECT_FIELDS:
            yield from getattr(self, field)

    def spreaders(self) -> Iterator[Spreader]:
        """Yield the objects whose selectors decide about default pod spreading."""
        yield from self.services
        yield from self.replication_controllers
        for each in self.controllers:
            if isinstance(each, Deployment | ReplicaSet | StatefulSet):
                yield each

    def with_objects(self, more: Iterable[Any]) -> Snapshot:
        """Return the snapshot with more objects, which replace those of the same name."""
        return Snapshot.of([*self.objects(), *more], self.unread)

    def without(self, objects: Iterable[Any]) -> Snapshot:
        """Return the snapshot without these objects, by kind and name."""
        gone = {key_of(each) for each in objects}
        kept = (each for each in self.objects() if key_of(each) not in gone)
        return Snapshot.of(kept, self.unread)


FIELDS: dict[type, str] = {
    Node: "nodes",
    Namespace: "namespaces",
    ResourceQuota: "quotas",
    PriorityClass: "priorities",
    RuntimeClass: "runtimes",
    StorageClass: "storage_classes",
    PersistentVolume: "volumes",
    PersistentVolumeClaim: "volume_claims",
    DeviceClass: "classes",
    ResourceSlice: "slices",
    DeviceTaintRule: "taint_rules",
    ResourceClaimTemplate: "templates",
    ResourceClaim: "claims",
    GroupWorkload: "group_workloads",
    CompositePodGroup: "composite_groups",
    PodGroup: "groups",
    Service: "services",
    ReplicationController: "replication_controllers",
    DaemonSet: "controllers",
    Deployment: "controllers",
    Job: "controllers",
    ReplicaSet: "controllers",
    StatefulSet: "controllers",
    PodDisruptionBudget: "budgets",
    Pod: "pods",
}


# In the order in which a cluster would need them.
OBJECT_FIELDS: Final = tuple(each for each in Snapshot.__struct_fields__ if each != "unread")


def key_of(value: Any) -> tuple[str, str, str]:
    """Return the kind, namespace and name of an object."""
    metadata = value.metadata
    return value.kind, metadata.namespace, metadata.name


def overlay(cluster: Snapshot, manifests: Snapshot) -> tuple[Snapshot, list[Concern]]:
    """Return the manifests as applying them would leave them in the cluster, and concerns.

    Scheduled pods and allocated claims stay unchanged: applying a file does not change them. All
    other objects are replaced but keep their uid, and so their dependents.
    """
    existing = {key_of(each): each for each in cluster.objects()}
    taken: list[Any] = []
    left: list[str] = []
    for each in manifests.objects():
        old = existing.get(key_of(each))
        if old is None or each.metadata.resource_version:
            taken.append(each)
        elif _is_settled(old):
            taken.append(old)
            left.append(titled(each))
        else:
            taken.append(_updated(each, old))
    if not left:
        return Snapshot.of(taken), []
    meaning = "what has a node or devices is not changed by applying a file"
    return Snapshot.of(taken), [
        Concern("settled", f"left as it is in the cluster: {listed(left)}", meaning)
    ]


def _is_settled(value: Any) -> bool:
    match value.kind:
        case "Pod":
            return bool(value.spec.node_name)
        case "ResourceClaim":
            return value.status.allocation is not None
    return False


def _updated(new: Any, old: Any) -> Any:
    if new.kind in ("Pod", "ResourceClaim"):
        return new  # replaced, because their specs are immutable
    new = replace(new, metadata=replace(new.metadata, uid=old.metadata.uid))
    if new.kind == "PersistentVolumeClaim":
        name = new.spec.volume_name or old.spec.volume_name
        return replace(new, spec=replace(new.spec, volume_name=name), status=old.status)
    if new.kind == "PersistentVolume":
        claim = new.spec.claim_ref or old.spec.claim_ref
        return replace(new, spec=replace(new.spec, claim_ref=claim), status=old.status)
    status = getattr(old, "status", None)
    if status is None or new.status != type(status)():
        return new
    return replace(new, status=status)


def stand_in_uid(kind: str, namespace: str, name: str) -> str:
    """Return a uid for an object that no server has seen: always the same for the same name.

    Ownership and reservations use uids, so objects without one would all own the same.
    """
    digest = hashlib.sha256("\0".join((kind, namespace, name)).encode("utf-8", "replace"))
    text = digest.hexdigest()
    # Version 8 of RFC 9562: a custom scheme.
    return f"{text[:8]}-{text[8:12]}-8{text[13:16]}-a{text[17:20]}-{text[20:32]}"


def identified(value: Any) -> Any:
    """Return the object with a uid; its own if it has one."""
    metadata = value.metadata
    if metadata.uid:
        return value
    uid = stand_in_uid(value.kind, metadata.namespace, metadata.name)
    return replace(value, metadata=replace(metadata, uid=uid))


def with_references(value: Any, uids: Mapping[tuple[str, str, str], str]) -> Any:
    """Return the object with uids in its references, where they are missing.

    `uids` has those of all objects, by kind, namespace and name.
    """
    owners: tuple[OwnerReference, ...] = value.metadata.owner_references
    if not all(owner.uid for owner in owners):
        filled = tuple(
            owner if owner.uid else replace(owner, uid=_uid(owner.kind, owner.name, value, uids))
            for owner in owners
        )
        value = replace(value, metadata=replace(value.metadata, owner_references=filled))
    if isinstance(value, ResourceClaim) and not all(c.uid for c in value.status.reserved_for):
        consumers = tuple(
            each
            if each.uid
            else replace(
                each,
                uid=_uid(
                    ("PodGroup" if each.resource == "podgroups" else "Pod"), each.name, value, uids
                ),
            )
            for each in value.status.reserved_for
        )
        value = replace(value, status=replace(value.status, reserved_for=consumers))
    return value


def _uid(kind: str, name: str, of: Any, uids: Mapping[tuple[str, str, str], str]) -> str:
    """Return the uid of a referenced object, in the same namespace or in none."""
    namespace = of.metadata.namespace
    found = uids.get((kind, namespace, name)) or uids.get((kind, "", name))
    return found or stand_in_uid(kind, namespace, name)


def is_new(value: Any) -> bool:
    """Return whether no server has seen the object: it has no uid, or a stand-in."""
    metadata = value.metadata
    if metadata.resource_version:
        return False
    return metadata.uid in ("", stand_in_uid(value.kind, metadata.namespace, metadata.name))


_NO_VALUE = DeviceAttribute()


def without_empty_attributes(published: ResourceSlice) -> ResourceSlice:
    """Return a slice without attributes whose only value had a disabled type."""
    spec = published.spec
    if not any(_NO_VALUE in device.attributes.values() for device in spec.devices or ()):
        return published
    devices = tuple(
        replace(device, attributes={k: v for k, v in device.attributes.items() if v != _NO_VALUE})
        for device in spec.devices or ()
    )
    return replace(published, spec=replace(spec, devices=devices))
