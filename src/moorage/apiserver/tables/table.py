"""Table and PartialObjectMetadata: the responses to clients that accept them.

Objects come as stored; a row that includes its object has it in the requested version.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from msgspec import Raw

from moorage.api.catalogue import from_hub
from moorage.api.codec import encode_json
from moorage.api.custom_resource import is_custom
from moorage.api.kinds import Kind
from moorage.api.meta import ListMeta, ObjectMeta, object_text
from moorage.api.structs import Closed, always
from moorage.api.timestamp import Timestamp
from moorage.apiserver.tables import (
    admission,
    core,
    custom,
    pods,
    resource,
    services_and_volumes,
    workloads,
)
from moorage.apiserver.tables.columns import Cell, Column, Printer, RowCondition
from moorage.apiserver.tables.data_kinds import DATA_PRINTERS
from moorage.kit.bulkhead import FAULTS

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
UNKNOWN = "<unknown>"  # as kubectl prints what nobody knows

VERSIONS = ("meta.k8s.io/v1", "meta.k8s.io/v1beta1")


class PartialObjectMetadata(Closed, frozen=True, gc=False):
    """The metadata of an object of any kind."""

    kind: str = always("PartialObjectMetadata")
    api_version: str = always(VERSIONS[0])
    metadata: ObjectMeta = always(ObjectMeta())


def metadata_of(value: Any, version: str) -> PartialObjectMetadata:
    """Return the metadata of an object."""
    return PartialObjectMetadata(api_version=version, metadata=value.metadata)


class Include(Enum):
    """How much of its object a row holds: the values of `includeObject`."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"


class Row(Closed, frozen=True, gc=False):
    """The cells of one object, and the object."""

    cells: list[Cell] = always([])
    conditions: tuple[RowCondition, ...] = ()
    object: PartialObjectMetadata | Raw | None = always(None)


class Table(Closed, frozen=True, gc=False):
    """Objects of one kind as rows."""

    kind: str = always("Table")
    api_version: str = always(VERSIONS[0])
    metadata: ListMeta = always(ListMeta())
    column_definitions: tuple[Column, ...] | None = always(None)
    rows: tuple[Row, ...] = always(())


_PRINTERS: dict[str, Printer] = {
    **DATA_PRINTERS,
    "ClusterRoleBinding": core.ROLE_BINDING,
    "CompositePodGroup": core.COMPOSITE_POD_GROUP,
    "ConfigMap": core.CONFIG_MAP,
    "CronJob": workloads.CRON_JOB,
    "CustomResourceDefinition": custom.DEFINITION,
    "DaemonSet": workloads.DAEMON_SET,
    "Deployment": workloads.DEPLOYMENT,
    "DeviceClass": core.PLAIN,
    "DeviceTaintRule": resource.DEVICE_TAINT_RULE,
    "Event": core.EVENT,
    "Job": workloads.JOB,
    "Lease": core.LEASE,
    "Namespace": core.NAMESPACE,
    "Node": core.NODE,
    "Pod": pods.POD,
    "PodGroup": core.POD_GROUP,
    "PodTemplate": workloads.POD_TEMPLATE,
    "PriorityClass": core.PRIORITY_CLASS,
    "ReplicaSet": workloads.REPLICA_SET,
    "ReplicationController": workloads.REPLICATION_CONTROLLER,
    "ResourceClaim": resource.RESOURCE_CLAIM,
    "ResourceClaimTemplate": core.PLAIN,
    "ResourcePoolStatusRequest": resource.RESOURCE_POOL_STATUS_REQUEST,
    "ResourceQuota": core.RESOURCE_QUOTA,
    "ResourceSlice": resource.RESOURCE_SLICE,
    "RoleBinding": core.ROLE_BINDING,
    "RuntimeClass": core.RUNTIME_CLASS,
    "Scale": workloads.SCALE,
    "Secret": core.SECRET,
    "ServiceAccount": core.PLAIN,
    "StatefulSet": workloads.STATEFUL_SET,
    "ControllerRevision": services_and_volumes.REVISION,
    "EndpointSlice": services_and_volumes.ENDPOINT_SLICE,
    "Endpoints": services_and_volumes.ENDPOINTS,
    "HorizontalPodAutoscaler": services_and_volumes.AUTOSCALER,
    "PersistentVolume": services_and_volumes.VOLUME,
    "PersistentVolumeClaim": services_and_volumes.CLAIM,
    "PodDisruptionBudget": services_and_volumes.BUDGET,
    "Service": services_and_volumes.SERVICE,
    "StorageClass": services_and_volumes.STORAGE_CLASS,
    "Workload": core.PLAIN,
    "MutatingAdmissionPolicy": admission.MUTATING_POLICY,
    "MutatingAdmissionPolicyBinding": admission.POLICY_BINDING,
    "MutatingWebhookConfiguration": admission.WEBHOOKS,
    "ValidatingAdmissionPolicy": admission.VALIDATING_POLICY,
    "ValidatingAdmissionPolicyBinding": admission.POLICY_BINDING,
    "ValidatingWebhookConfiguration": admission.WEBHOOKS,
}


def columns_of(kind: Kind) -> tuple[Column, ...]:
    """Return the columns of a kind's table."""
    return _printer(kind).columns


def table_of(
    kind: Kind,
    values: Iterable[Any],
    now: Timestamp,
    *,
    metadata: ListMeta | None = None,
    version: str = VERSIONS[0],
    include: Include = Include.METADATA,
    headers: bool = True,
) -> Table:
    """Return a list as a table."""
    printer = _printer(kind)
    return Table(
        api_version=version,
        metadata=metadata or ListMeta(),
        column_definitions=printer.columns if headers else None,
        rows=tuple(
            Row(
                cells=_cells(printer, value, now),
                conditions=_row_conditions(printer, value),
                object=_held(kind, value, version, include),
            )
            for value in values
        ),
    )


def _cells(printer: Printer, value: Any, now: Timestamp) -> list[Cell]:
    """Return the cells of an object; of one that cannot be printed, its name."""
    try:
        return printer.cells(value, now)
    except Exception as error:
        FAULTS.note("tables", lambda: object_text(value), error)
        return [value.metadata.name, *(UNKNOWN for _ in printer.columns[1:])]


def _row_conditions(printer: Printer, value: Any) -> tuple[RowCondition, ...]:
    try:
        return printer.conditions(value)
    except Exception as error:
        FAULTS.note("tables", lambda: object_text(value), error)
        return ()


def table_of_one(
    kind: Kind,
    value: Any,
    now: Timestamp,
    *,
    version: str = VERSIONS[0],
    include: Include = Include.METADATA,
    headers: bool = True,
) -> Table:
    """Return one object, or one event of a watch, as a table.

    Only the first event of a watch has headers. A bookmark is an empty object of the kind.
    """
    metadata = ListMeta(resource_version=value.metadata.resource_version)
    return table_of(
        kind,
        (value,),
        now,
        metadata=metadata,
        version=version,
        include=include,
        headers=headers,
    )


def _printer(kind: Kind) -> Printer:
    if is_custom(kind.struct):
        return custom.printer_of(kind)
    return _PRINTERS.get(kind.name, core.UNKNOWN_KIND)


def _held(
    kind: Kind, value: Any, version: str, include: Include
) -> PartialObjectMetadata | Raw | None:
    if include is Include.OBJECT:
        return Raw(encode_json(from_hub(value, kind.api_version)))
    if include is Include.METADATA or INITIAL_EVENTS_END in value.metadata.annotations:
        return metadata_of(value, version)
    return None
