"""resource.k8s.io/v1alpha3: ResourcePoolStatusRequest (its DeviceTaintRule is v1's)."""

from __future__ import annotations

from moorage.api.meta import Condition, ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.structs import Closed, Int32, Int64, always

API_VERSION = "resource.k8s.io/v1alpha3"


class PartitionTypeStatus(Closed, frozen=True, gc=False):
    """How many devices of one partition type a pool has and could still give."""

    attribute: str = ""
    type: str = ""
    total: Int32 | None = None
    allocatable: Int32 | None = None


class ShareableCapacityStatus(Closed, frozen=True, gc=False):
    """One capacity summed over the shareable devices of a pool."""

    name: str = ""
    total: Quantity | None = None
    consumed: Quantity | None = None
    available: Quantity | None = None


class ShareableSummaryStatus(Closed, frozen=True, gc=False):
    """What the shareable devices of a pool have left."""

    fully_available_devices: Int32 | None = None
    partially_available_devices: Int32 | None = None
    capacity: tuple[ShareableCapacityStatus, ...] = ()


class PoolStatus(Closed, frozen=True, gc=False):
    """The state of one pool."""

    driver: str = ""
    pool_name: str = ""
    generation: Int64 = always(0)
    resource_slice_count: Int32 | None = None
    total_devices: Int32 | None = None
    allocated_devices: Int32 | None = None
    available_devices: Int32 | None = None
    unavailable_devices: Int32 | None = None
    node_name: str | None = None
    validation_error: str | None = None
    partition_summary: tuple[PartitionTypeStatus, ...] = ()
    shareable_summary: ShareableSummaryStatus | None = None


class ResourcePoolStatusRequestSpec(Closed, frozen=True, gc=False):
    """Which pools a request is about."""

    driver: str = always("")
    pool_name: str | None = None
    limit: Int32 | None = None
    default_partition_type_attribute: str | None = None


class ResourcePoolStatusRequestStatus(Closed, frozen=True, gc=False):
    """The answer; set once."""

    pool_count: Int32 | None = None
    pools: tuple[PoolStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()


class ResourcePoolStatusRequest(Closed, frozen=True, gc=False):
    """Asks how full the pools of a driver are."""

    api_version: str = always(API_VERSION)
    kind: str = always("ResourcePoolStatusRequest")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ResourcePoolStatusRequestSpec = always(ResourcePoolStatusRequestSpec())
    status: ResourcePoolStatusRequestStatus | None = None
