"""Feature gates that decide where pods go."""

from __future__ import annotations

from typing import NamedTuple

from moorage.allocator import ALL_FEATURES as ALLOCATOR_FEATURES
from moorage.allocator import Features as AllocatorFeatures
from moorage.api.gates import Gate, Gates
from moorage.claims import ALL_FEATURES as CLAIM_FEATURES
from moorage.claims import ClaimFeatures


class Features(NamedTuple):
    """The features of the scheduling cycle, with those of the allocator and of claims."""

    allocator: AllocatorFeatures = ALLOCATOR_FEATURES
    claims: ClaimFeatures = CLAIM_FEATURES
    extended_resources: bool = True
    node_allocatable: bool = True
    taint_rules: bool = True
    pod_groups: bool = True
    group_placements: bool = True  # groups are tried in one domain of a topology after the other
    composite_groups: bool = True  # groups of groups are scheduled together
    group_preemption_policy: bool = True  # the group decides whether it preempts, not its pods

    @classmethod
    def of(cls, gates: Gates) -> Features:
        """Return the features that the gates switch on."""
        return cls(
            allocator=AllocatorFeatures.of(gates),
            claims=ClaimFeatures.of(gates),
            extended_resources=gates.enabled(Gate.DRA_EXTENDED_RESOURCE),
            node_allocatable=gates.enabled(Gate.DRA_NODE_ALLOCATABLE_RESOURCES),
            taint_rules=gates.enabled(Gate.DRA_DEVICE_TAINT_RULES),
            pod_groups=gates.enabled(Gate.GENERIC_WORKLOAD),
            group_placements=gates.enabled(Gate.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING),
            composite_groups=gates.enabled(Gate.COMPOSITE_POD_GROUP),
            group_preemption_policy=gates.enabled(Gate.POD_GROUP_PREEMPTION_POLICY),
        )


ALL_FEATURES = Features()
