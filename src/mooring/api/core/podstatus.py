"""MOVED."""

from mooring.api.core.pod import CLAIM_STATUS_PREFIX as CLAIM_STATUS_PREFIX  # noqa
from mooring.api.core.pod import (
    ContainerExtendedResourceRequest as ContainerExtendedResourceRequest,
)  # noqa
from mooring.api.core.pod import ContainerState as ContainerState  # noqa
from mooring.api.core.pod import ContainerStateTerminated as ContainerStateTerminated  # noqa
from mooring.api.core.pod import ContainerStatus as ContainerStatus  # noqa
from mooring.api.core.pod import DISRUPTION_TARGET as DISRUPTION_TARGET  # noqa
from mooring.api.core.pod import FAILED as FAILED  # noqa
from mooring.api.core.pod import HEALTHY as HEALTHY  # noqa
from mooring.api.core.pod import NodeAllocatableMappedResource as NodeAllocatableMappedResource  # noqa
from mooring.api.core.pod import NodeAllocatableOverheadResource as NodeAllocatableOverheadResource  # noqa
from mooring.api.core.pod import (
    NodeAllocatableResourceClaimStatus as NodeAllocatableResourceClaimStatus,
)  # noqa
from mooring.api.core.pod import PENDING as PENDING  # noqa
from mooring.api.core.pod import POD_SCHEDULED as POD_SCHEDULED  # noqa
from mooring.api.core.pod import PodCondition as PodCondition  # noqa
from mooring.api.core.pod import PodExtendedResourceClaimStatus as PodExtendedResourceClaimStatus  # noqa
from mooring.api.core.pod import PodIP as PodIP  # noqa
from mooring.api.core.pod import PodResourceClaimStatus as PodResourceClaimStatus  # noqa
from mooring.api.core.pod import PodStatus as PodStatus  # noqa
from mooring.api.core.pod import RUNNING as RUNNING  # noqa
from mooring.api.core.pod import ResourceHealth as ResourceHealth  # noqa
from mooring.api.core.pod import ResourceStatus as ResourceStatus  # noqa
from mooring.api.core.pod import SUCCEEDED as SUCCEEDED  # noqa
from mooring.api.core.pod import UNHEALTHY as UNHEALTHY  # noqa
from mooring.api.core.pod import UNKNOWN as UNKNOWN  # noqa

__all__ = [
    "CLAIM_STATUS_PREFIX",
    "ContainerExtendedResourceRequest",
    "ContainerState",
    "ContainerStateTerminated",
    "ContainerStatus",
    "DISRUPTION_TARGET",
    "FAILED",
    "HEALTHY",
    "NodeAllocatableMappedResource",
    "NodeAllocatableOverheadResource",
    "NodeAllocatableResourceClaimStatus",
    "PENDING",
    "POD_SCHEDULED",
    "PodCondition",
    "PodExtendedResourceClaimStatus",
    "PodIP",
    "PodResourceClaimStatus",
    "PodStatus",
    "RUNNING",
    "ResourceHealth",
    "ResourceStatus",
    "SUCCEEDED",
    "UNHEALTHY",
    "UNKNOWN",
]  # noqa
