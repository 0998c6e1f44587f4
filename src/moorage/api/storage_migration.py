"""storagemigration.k8s.io/v1: requests to store objects again in the newest version."""

from __future__ import annotations

from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import Condition, GroupResource, ObjectMeta
from moorage.api.structs import Closed, always

GROUP = "storagemigration.k8s.io"
API_VERSION = f"{GROUP}/v1"


class StorageVersionMigrationSpec(Closed, frozen=True, gc=False):
    """The resource whose objects are stored again."""

    resource: GroupResource = always(GroupResource())


class StorageVersionMigrationStatus(Closed, frozen=True, gc=False):
    """How far the migration is."""

    conditions: tuple[Condition, ...] = ()
    resource_version: str = ""


class StorageVersionMigration(Closed, frozen=True, gc=False):
    """A request to store all objects of a resource in its newest version."""

    api_version: str = always(API_VERSION)
    kind: str = always("StorageVersionMigration")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: StorageVersionMigrationSpec = always(StorageVersionMigrationSpec())
    status: StorageVersionMigrationStatus = always(StorageVersionMigrationStatus())


KINDS: tuple[Kind, ...] = (
    declare_kind(
        StorageVersionMigration,
        "storageversionmigrations",
        namespaced=False,
        has_status=True,
    ),
)
