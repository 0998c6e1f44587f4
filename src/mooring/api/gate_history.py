"""Which feature gates there are, and what Kubernetes says of each in each of its versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from mooring.api.inert_gates import INERT_HISTORY, INERT_NEEDS


class Gate(StrEnum):
    """A feature gate that switches something in Mooring, by Kubernetes' name."""

    ALL_ALPHA = "AllAlpha"
    ALL_BETA = "AllBeta"
    COMPOSITE_POD_GROUP = "CompositePodGroup"
    DRA_ADMIN_ACCESS = "DRAAdminAccess"
    DRA_CONSUMABLE_CAPACITY = "DRAConsumableCapacity"
    DRA_DERIVED_ATTRIBUTES = "DRADerivedAttributes"
    DRA_DEVICE_BINDING_CONDITIONS = "DRADeviceBindingConditions"
    DRA_DEVICE_COMPATIBILITY_GROUPS = "DRADeviceCompatibilityGroups"
    DRA_DEVICE_TAINT_RULES = "DRADeviceTaintRules"
    DRA_DEVICE_TAINTS = "DRADeviceTaints"
    DRA_EXTENDED_RESOURCE = "DRAExtendedResource"
    DRA_FRACTIONAL_CAPACITY_RANGE = "DRAFractionalCapacityRange"
    DRA_LIST_TYPE_ATTRIBUTES = "DRAListTypeAttributes"
    DRA_NODE_ALLOCATABLE_RESOURCES = "DRANodeAllocatableResources"
    DRA_OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
    DRA_PARTITIONABLE_DEVICES = "DRAPartitionableDevices"
    DRA_PARTITIONABLE_DEVICES_TYPE = "DRAPartitionableDevicesType"
    DRA_PRIORITIZED_LIST = "DRAPrioritizedList"
    DRA_RESOURCE_CLAIM_DEVICE_STATUS = "DRAResourceClaimDeviceStatus"
    DRA_RESOURCE_CLAIM_GRANULAR_STATUS_AUTHORIZATION = "DRAResourceClaimGranularStatusAuthorization"
    DRA_RESOURCE_POOL_STATUS = "DRAResourcePoolStatus"
    DRA_SCHEDULER_FILTER_TIMEOUT = "DRASchedulerFilterTimeout"
    DRA_WORKLOAD_RESOURCE_CLAIMS = "DRAWorkloadResourceClaims"
    DYNAMIC_RESOURCE_ALLOCATION = "DynamicResourceAllocation"
    GENERIC_WORKLOAD = "GenericWorkload"
    KUBELET_POD_RESOURCES_DYNAMIC_RESOURCES = "KubeletPodResourcesDynamicResources"
    KUBELET_POD_RESOURCES_GET = "KubeletPodResourcesGet"
    KUBELET_POD_RESOURCES_LIST_USE_ACTIVE_PODS = "KubeletPodResourcesListUseActivePods"
    NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
    POD_GROUP_PREEMPTION_POLICY = "PodGroupPreemptionPolicy"
    RESOURCE_HEALTH_STATUS = "ResourceHealthStatus"
    RESOURCE_HEALTH_STATUS_MESSAGE = "ResourceHealthStatusMessage"
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING = "TopologyAwareWorkloadScheduling"
    WORKLOAD_WITH_JOB = "WorkloadWithJob"


class Stage(StrEnum):
    """How mature a gate's feature is, in Kubernetes' words."""

    PRE_ALPHA = "PRE-ALPHA"
    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


class Spec(NamedTuple):
    """What holds for a gate from Kubernetes 1.<minor> on."""

    minor: int
    stage: Stage
    default: bool
    locked: bool = False
    # Holds only where every server of the control plane is at least 1.<this>.
    compatible_minor: int = 0


def _alpha(minor: int) -> Spec:
    return Spec(minor, Stage.ALPHA, default=False)


def _beta(minor: int, *, on: bool, compatible_minor: int = 0) -> Spec:
    return Spec(minor, Stage.BETA, default=on, compatible_minor=compatible_minor)


def _ga(minor: int, *, locked: bool) -> Spec:
    return Spec(minor, Stage.GA, default=True, locked=locked)


# Oldest first. Versions before 1.34 are kept because they tell what 1.34 inherits.
HISTORY: Mapping[Gate, tuple[Spec, ...]] = {
    Gate.ALL_ALPHA: (_alpha(0),),
    Gate.ALL_BETA: (_beta(0, on=False),),
    Gate.COMPOSITE_POD_GROUP: (_alpha(37),),
    Gate.DRA_ADMIN_ACCESS: (_alpha(32), _beta(34, on=True), _ga(36, locked=True)),
    Gate.DRA_CONSUMABLE_CAPACITY: (_alpha(34), _beta(36, on=True)),
    Gate.DRA_DERIVED_ATTRIBUTES: (_alpha(37),),
    Gate.DRA_DEVICE_BINDING_CONDITIONS: (_alpha(34), _beta(36, on=True)),
    Gate.DRA_DEVICE_COMPATIBILITY_GROUPS: (_alpha(37),),
    Gate.DRA_DEVICE_TAINT_RULES: (_alpha(35), _beta(36, on=False), _ga(37, locked=False)),
    Gate.DRA_DEVICE_TAINTS: (_alpha(33), _beta(36, on=True), _ga(37, locked=False)),
    Gate.DRA_EXTENDED_RESOURCE: (_alpha(34), _beta(36, on=True), _ga(37, locked=True)),
    Gate.DRA_FRACTIONAL_CAPACITY_RANGE: (
        _beta(37, on=False),
        _beta(37, on=True, compatible_minor=37),
    ),
    Gate.DRA_LIST_TYPE_ATTRIBUTES: (_alpha(36),),
    Gate.DRA_NODE_ALLOCATABLE_RESOURCES: (_alpha(36),),
    Gate.DRA_OPTIONAL_NODE_OPERATIONS: (_alpha(37),),
    Gate.DRA_PARTITIONABLE_DEVICES: (_alpha(33), _beta(36, on=True)),
    Gate.DRA_PARTITIONABLE_DEVICES_TYPE: (_alpha(37),),
    Gate.DRA_PRIORITIZED_LIST: (
        _alpha(33),
        _beta(34, on=True),
        _ga(36, locked=False),
        _ga(37, locked=True),
    ),
    Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS: (_alpha(32), _beta(33, on=True), _ga(37, locked=True)),
    Gate.DRA_RESOURCE_CLAIM_GRANULAR_STATUS_AUTHORIZATION: (_beta(36, on=True),),
    Gate.DRA_RESOURCE_POOL_STATUS: (_alpha(36),),
    Gate.DRA_SCHEDULER_FILTER_TIMEOUT: (_beta(34, on=True),),
    Gate.DRA_WORKLOAD_RESOURCE_CLAIMS: (_alpha(36), _beta(37, on=False)),
    Gate.DYNAMIC_RESOURCE_ALLOCATION: (
        _alpha(26),
        _beta(32, on=False),
        _ga(34, locked=False),
        _ga(35, locked=True),
    ),
    Gate.GENERIC_WORKLOAD: (_alpha(35), _beta(37, on=False)),
    Gate.KUBELET_POD_RESOURCES_DYNAMIC_RESOURCES: (
        _alpha(27),
        _beta(34, on=True),
        _ga(36, locked=True),
    ),
    Gate.KUBELET_POD_RESOURCES_GET: (_alpha(27), _beta(34, on=True), _ga(36, locked=True)),
    Gate.KUBELET_POD_RESOURCES_LIST_USE_ACTIVE_PODS: (
        Spec(0, Stage.GA, default=False),
        Spec(34, Stage.DEPRECATED, default=True),
    ),
    Gate.NODE_DECLARED_FEATURES: (_alpha(35), _beta(36, on=True), _ga(37, locked=True)),
    Gate.POD_GROUP_PREEMPTION_POLICY: (_alpha(37),),
    Gate.RESOURCE_HEALTH_STATUS: (_alpha(31), _beta(36, on=True)),
    Gate.RESOURCE_HEALTH_STATUS_MESSAGE: (_beta(36, on=True),),
    Gate.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING: (_alpha(36),),
    Gate.WORKLOAD_WITH_JOB: (_alpha(36),),
}

_DRA = Gate.DYNAMIC_RESOURCE_ALLOCATION

# A gate that is on needs all of these on. Sorted by name, as Kubernetes reports them.
NEEDS: Mapping[Gate, tuple[Gate, ...]] = {
    Gate.COMPOSITE_POD_GROUP: (Gate.GENERIC_WORKLOAD, Gate.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING),
    Gate.DRA_ADMIN_ACCESS: (_DRA,),
    Gate.DRA_CONSUMABLE_CAPACITY: (_DRA,),
    Gate.DRA_DERIVED_ATTRIBUTES: (_DRA,),
    Gate.DRA_DEVICE_BINDING_CONDITIONS: (Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS, _DRA),
    Gate.DRA_DEVICE_COMPATIBILITY_GROUPS: (Gate.DRA_PARTITIONABLE_DEVICES, _DRA),
    Gate.DRA_DEVICE_TAINT_RULES: (Gate.DRA_DEVICE_TAINTS,),
    Gate.DRA_DEVICE_TAINTS: (_DRA,),
    Gate.DRA_EXTENDED_RESOURCE: (_DRA,),
    Gate.DRA_FRACTIONAL_CAPACITY_RANGE: (Gate.DRA_CONSUMABLE_CAPACITY,),
    Gate.DRA_LIST_TYPE_ATTRIBUTES: (_DRA,),
    Gate.DRA_NODE_ALLOCATABLE_RESOURCES: (_DRA,),
    Gate.DRA_OPTIONAL_NODE_OPERATIONS: (_DRA, Gate.NODE_DECLARED_FEATURES),
    Gate.DRA_PARTITIONABLE_DEVICES: (_DRA,),
    Gate.DRA_PARTITIONABLE_DEVICES_TYPE: (
        Gate.DRA_PARTITIONABLE_DEVICES,
        Gate.DRA_RESOURCE_POOL_STATUS,
        _DRA,
    ),
    Gate.DRA_PRIORITIZED_LIST: (_DRA,),
    Gate.DRA_RESOURCE_CLAIM_GRANULAR_STATUS_AUTHORIZATION: (
        Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS,
        _DRA,
    ),
    Gate.DRA_RESOURCE_POOL_STATUS: (_DRA,),
    Gate.DRA_SCHEDULER_FILTER_TIMEOUT: (_DRA,),
    Gate.DRA_WORKLOAD_RESOURCE_CLAIMS: (_DRA, Gate.GENERIC_WORKLOAD),
    Gate.POD_GROUP_PREEMPTION_POLICY: (Gate.GENERIC_WORKLOAD,),
    Gate.RESOURCE_HEALTH_STATUS: (_DRA,),
    Gate.RESOURCE_HEALTH_STATUS_MESSAGE: (Gate.RESOURCE_HEALTH_STATUS,),
    Gate.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING: (Gate.GENERIC_WORKLOAD,),
    Gate.WORKLOAD_WITH_JOB: (Gate.GENERIC_WORKLOAD,),
}

_STAGES = {"A": Stage.ALPHA, "B": Stage.BETA, "G": Stage.GA, "D": Stage.DEPRECATED}


def _inert_history() -> Iterator[tuple[str, tuple[Spec, ...]]]:
    """row = name *( " " spec );  spec = stage minor ( "+" / "-" ) [ "!" ]"""
    for row in INERT_HISTORY.splitlines():
        name, *specs = row.split()
        yield name, tuple(map(_inert_spec, specs))


def _inert_spec(text: str) -> Spec:
    bare = text.removesuffix("!")
    default, locked = bare[-1] == "+", text.endswith("!")
    return Spec(int(bare[1:-1]), _STAGES[bare[0]], default=default, locked=locked)


# Gates of Kubernetes that switch nothing in Mooring, and all gates together, by name.
INERT: Mapping[str, tuple[Spec, ...]] = dict(_inert_history())
HISTORY_BY_NAME: Mapping[str, tuple[Spec, ...]] = {
    **{str(gate): specs for gate, specs in HISTORY.items()},
    **INERT,
}
NEEDS_BY_NAME: Mapping[str, tuple[str, ...]] = {
    **{str(gate): tuple(map(str, needs)) for gate, needs in NEEDS.items()},
    **INERT_NEEDS,
}
