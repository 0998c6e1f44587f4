"""scheduling.k8s.io: groups of pods, the workloads they come from, priorities.

The structs here are those of the hub version, v1beta1; `to_hub` and `from_hub` lead from the
other versions to it and back.
"""

from mooring.api.scheduling.v1 import PriorityClass
from mooring.api.scheduling.v1beta1 import (
    API_VERSION,
    GROUP,
    PROTECTION_FINALIZER,
    BasicSchedulingPolicy,
    CompositeGangSchedulingPolicy,
    CompositePodGroup,
    CompositePodGroupSchedulingPolicy,
    CompositePodGroupSpec,
    CompositePodGroupStatus,
    CompositePodGroupTemplate,
    DisruptionMode,
    EmptyMode,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupResourceClaim,
    PodGroupResourceClaimStatus,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PodGroupStatus,
    PodGroupTemplate,
    TopologyConstraint,
    TypedLocalObjectReference,
    Workload,
    WorkloadReference,
    WorkloadSpec,
)
from mooring.api.scheduling.versions import KINDS, from_hub, to_hub

__all__ = [
    "API_VERSION",
    "GROUP",
    "KINDS",
    "PROTECTION_FINALIZER",
    "BasicSchedulingPolicy",
    "CompositeGangSchedulingPolicy",
    "CompositePodGroup",
    "CompositePodGroupSchedulingPolicy",
    "CompositePodGroupSpec",
    "CompositePodGroupStatus",
    "CompositePodGroupTemplate",
    "DisruptionMode",
    "EmptyMode",
    "GangSchedulingPolicy",
    "PodGroup",
    "PodGroupResourceClaim",
    "PodGroupResourceClaimStatus",
    "PodGroupSchedulingConstraints",
    "PodGroupSchedulingPolicy",
    "PodGroupSpec",
    "PodGroupStatus",
    "PodGroupTemplate",
    "PriorityClass",
    "TopologyConstraint",
    "TypedLocalObjectReference",
    "Workload",
    "WorkloadReference",
    "WorkloadSpec",
    "from_hub",
    "to_hub",
]
