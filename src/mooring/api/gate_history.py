"""Which feature gates there are, and what Kubernetes says of each in each of its versions.

`gates.txt` has the facts of all gates of Kubernetes. Those that switch something in Mooring are
members of `Gate`; the others are inert: `--feature-gates` takes them as Kubernetes' components do,
so that flags can be shared with a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pkgutil import get_data
from typing import NamedTuple


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
    """The state of a gate from Kubernetes 1.<minor> on."""

    minor: int
    stage: Stage
    default: bool
    locked: bool = False
    # Holds only where every server of the control plane is at least 1.<this>.
    compatible_minor: int = 0


_STAGES = {"A": Stage.ALPHA, "B": Stage.BETA, "G": Stage.GA, "D": Stage.DEPRECATED}


def _rows() -> Iterator[tuple[str, tuple[Spec, ...], tuple[str, ...]]]:
    """row = name *( " " spec ) [ " needs" *( " " name ) ]"""
    data = get_data("mooring.api", "gates.txt")
    assert data is not None
    for line in data.decode().splitlines():
        if not line.startswith("#"):
            declared, _, needs = line.partition(" needs ")
            name, *specs = declared.split()
            yield name, tuple(map(_spec, specs)), tuple(needs.split())


def _spec(text: str) -> Spec:
    """spec = stage minor ( "+" / "-" ) [ "!" ] [ "@" compatible-minor ]"""
    text, _, compatible_minor = text.partition("@")
    bare = text.removesuffix("!")
    return Spec(
        int(bare[1:-1]),
        _STAGES[bare[0]],
        default=bare[-1] == "+",
        locked=text != bare,
        compatible_minor=int(compatible_minor or 0),
    )


# By name: the history of each gate, oldest first, and the gates that must be on if it is on.
HISTORY_BY_NAME: Mapping[str, tuple[Spec, ...]] = {name: specs for name, specs, _ in _rows()}
NEEDS_BY_NAME: Mapping[str, tuple[str, ...]] = {name: needs for name, _, needs in _rows() if needs}

HISTORY: Mapping[Gate, tuple[Spec, ...]] = {gate: HISTORY_BY_NAME[gate] for gate in Gate}
NEEDS: Mapping[Gate, tuple[Gate, ...]] = {
    gate: tuple(map(Gate, NEEDS_BY_NAME[gate])) for gate in Gate if gate in NEEDS_BY_NAME
}
# The gates of Kubernetes that switch nothing in Mooring.
INERT: Mapping[str, tuple[Spec, ...]] = {
    name: specs for name, specs in HISTORY_BY_NAME.items() if name not in set(Gate)
}
