"""Which features of allocation are on. A feature that is off has no rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from moorage.api.gates import Gate, Gates


class Features(NamedTuple):
    """The features that decide how devices are allocated."""

    admin_access: bool = False
    compatibility_groups: bool = False
    consumable_capacity: bool = False
    derived_attributes: bool = False
    device_binding_and_status: bool = False
    device_taints: bool = False
    fractional_capacity_range: bool = False
    list_type_attributes: bool = False
    optional_node_operations: bool = False
    partitionable_devices: bool = False
    prioritized_list: bool = False

    @classmethod
    def of(cls, gates: Gates) -> Features:
        """Return the features whose gates are on."""
        return cls(
            admin_access=gates.enabled(Gate.DRA_ADMIN_ACCESS),
            compatibility_groups=gates.enabled(Gate.DRA_DEVICE_COMPATIBILITY_GROUPS),
            consumable_capacity=gates.enabled(Gate.DRA_CONSUMABLE_CAPACITY),
            derived_attributes=gates.enabled(Gate.DRA_DERIVED_ATTRIBUTES),
            device_binding_and_status=gates.enabled(Gate.DRA_DEVICE_BINDING_CONDITIONS)
            and gates.enabled(Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS),
            device_taints=gates.enabled(Gate.DRA_DEVICE_TAINTS),
            fractional_capacity_range=gates.enabled(Gate.DRA_FRACTIONAL_CAPACITY_RANGE),
            list_type_attributes=gates.enabled(Gate.DRA_LIST_TYPE_ATTRIBUTES),
            optional_node_operations=gates.enabled(Gate.DRA_OPTIONAL_NODE_OPERATIONS),
            partitionable_devices=gates.enabled(Gate.DRA_PARTITIONABLE_DEVICES),
            prioritized_list=gates.enabled(Gate.DRA_PRIORITIZED_LIST),
        )

    @classmethod
    def named(cls, names: Iterable[str]) -> Features:
        """Return the features with these names, in Kubernetes' spelling: `AdminAccess`."""
        enabled = set(names)
        known = {"".join(map(str.capitalize, field.split("_"))): field for field in cls._fields}
        unknown = enabled - known.keys()
        if unknown:
            raise ValueError(f"no such feature: {', '.join(sorted(unknown))}")
        return cls(**{field: name in enabled for name, field in known.items()})

    @property
    def names(self) -> frozenset[str]:
        """The names of the enabled features, in Kubernetes' spelling."""
        return frozenset(
            "".join(map(str.capitalize, field.split("_")))
            for field, is_on in zip(self._fields, self, strict=True)
            if is_on
        )


ALL_FEATURES = Features(*(True for _ in Features._fields))
