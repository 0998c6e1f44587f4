"""How groups of pods, and the workloads they come from, are admitted."""

from mooring.validation.podgroup.group import (
    CompositePodGroupStrategy,
    PodGroupStrategy,
    default_pod_group,
    default_preemption,
    prepare_pod_group_create,
    prepare_pod_group_status_update,
    prepare_pod_group_update,
    validate_pod_group_create,
    validate_pod_group_status_update,
    validate_pod_group_update,
)
from mooring.validation.podgroup.workload import (
    WorkloadStrategy,
    prepare_workload,
    validate_workload_create,
    validate_workload_update,
)

__all__ = [
    "CompositePodGroupStrategy",
    "PodGroupStrategy",
    "WorkloadStrategy",
    "default_pod_group",
    "default_preemption",
    "prepare_pod_group_create",
    "prepare_pod_group_status_update",
    "prepare_pod_group_update",
    "prepare_workload",
    "validate_pod_group_create",
    "validate_pod_group_status_update",
    "validate_pod_group_update",
    "validate_workload_create",
    "validate_workload_update",
]
