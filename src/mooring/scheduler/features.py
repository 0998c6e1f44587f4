"""Which features decide where pods go."""

from __future__ import annotations

from typing import NamedTuple

from mooring import allocator, claims
from mooring.api.gates import Gate, Gates


class Features(NamedTuple):
    """The features of the cycle, with those of the rooms that it asks."""

    allocator: allocator.Features = allocator.ALL_FEATURES
    claims: claims.Features = claims.ALL_FEATURES
    extended_resources: bool = True
    node_allocatable: bool = True
    taint_rules: bool = True
    pod_groups: bool = True

    @classmethod
    def of(cls, gates: Gates) -> Features:
        """Return the features that the gates switch on."""
        return cls(
            allocator=allocator.Features.of(gates),
            claims=claims.Features.of(gates),
            extended_resources=gates.enabled(Gate.DRA_EXTENDED_RESOURCE),
            node_allocatable=gates.enabled(Gate.DRA_NODE_ALLOCATABLE_RESOURCES),
            taint_rules=gates.enabled(Gate.DRA_DEVICE_TAINT_RULES),
            pod_groups=gates.enabled(Gate.GENERIC_WORKLOAD),
        )


ALL_FEATURES = Features()
