"""A cluster at one moment: every object that decides who gets which device.

Objects are in their hub versions, with defaults, as an API server stores them. Those of one kind
are in the order in which they were given; of two with the same name the later counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from mooring.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from mooring.api.batch import Job
from mooring.api.core import Namespace, Node, Pod, ReplicationController, Service
from mooring.api.resource.v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from mooring.api.scheduling import PodGroup, PriorityClass
from mooring.api.scheduling import Workload as GroupWorkload

Controller = DaemonSet | Deployment | Job | ReplicaSet | StatefulSet
# What decides with which others pods are spread.
Spreader = Service | ReplicationController | Deployment | ReplicaSet | StatefulSet


class Snapshot(Struct, frozen=True):
    """The objects of a cluster by kind."""

    nodes: tuple[Node, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    priorities: tuple[PriorityClass, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    templates: tuple[ResourceClaimTemplate, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    group_workloads: tuple[GroupWorkload, ...] = ()
    groups: tuple[PodGroup, ...] = ()
    services: tuple[Service, ...] = ()
    replication_controllers: tuple[ReplicationController, ...] = ()
    controllers: tuple[Controller, ...] = ()
    pods: tuple[Pod, ...] = ()

    @classmethod
    def of(cls, objects: Iterable[Any]) -> Snapshot:
        """Return the snapshot that has these objects; other kinds are left out."""
        found: dict[str, dict[tuple[str, str, str], Any]] = {}
        for each in objects:
            field = FIELDS.get(type(each))
            if field is not None:
                found.setdefault(field, {})[key_of(each)] = each
        return cls(**{field: tuple(by_key.values()) for field, by_key in found.items()})

    def objects(self) -> Iterator[Any]:
        """Give all objects, in the order in which a cluster would need them."""
        for field in self.__struct_fields__:
            yield from getattr(self, field)

    def spreaders(self) -> Iterator[Spreader]:
        """Give what decides with which others pods are spread by default."""
        yield from self.services
        yield from self.replication_controllers
        for each in self.controllers:
            if isinstance(each, Deployment | ReplicaSet | StatefulSet):
                yield each

    def with_objects(self, more: Iterable[Any]) -> Snapshot:
        """Return the snapshot with objects more, instead of those of the same name."""
        return Snapshot.of([*self.objects(), *more])

    def without(self, objects: Iterable[Any]) -> Snapshot:
        """Return the snapshot without objects of the kinds and names of these."""
        gone = {key_of(each) for each in objects}
        return Snapshot.of(each for each in self.objects() if key_of(each) not in gone)


FIELDS: dict[type, str] = {
    Node: "nodes",
    Namespace: "namespaces",
    PriorityClass: "priorities",
    DeviceClass: "classes",
    ResourceSlice: "slices",
    DeviceTaintRule: "taint_rules",
    ResourceClaimTemplate: "templates",
    ResourceClaim: "claims",
    GroupWorkload: "group_workloads",
    PodGroup: "groups",
    Service: "services",
    ReplicationController: "replication_controllers",
    DaemonSet: "controllers",
    Deployment: "controllers",
    Job: "controllers",
    ReplicaSet: "controllers",
    StatefulSet: "controllers",
    Pod: "pods",
}


def key_of(value: Any) -> tuple[str, str, str]:
    """Return what tells an object from all others: its kind, namespace and name."""
    metadata = value.metadata
    return value.kind, metadata.namespace, metadata.name
