"""Which features decide what claims a pod has and who may use them."""

from __future__ import annotations

from typing import NamedTuple

from mooring.api.gates import Gate, Gates


class Features(NamedTuple):
    """The features that this room asks about; those of allocation are the allocator's."""

    admin_access: bool = False
    prioritized_list: bool = False
    group_claims: bool = False

    @classmethod
    def of(cls, gates: Gates) -> Features:
        """Return the features that the gates switch on."""
        return cls(
            admin_access=gates.enabled(Gate.DRA_ADMIN_ACCESS),
            prioritized_list=gates.enabled(Gate.DRA_PRIORITIZED_LIST),
            group_claims=gates.enabled(Gate.DRA_WORKLOAD_RESOURCE_CLAIMS),
        )


ALL_FEATURES = Features(*(True for _ in Features._fields))
