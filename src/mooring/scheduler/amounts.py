"""Resources in whole base units: thousandths of a CPU, bytes, pieces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from mooring.api import names
from mooring.api.core.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    ResourceList,
)
from mooring.api.quantity import Quantity

ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"
NATIVE_DOMAIN = "kubernetes.io/"


class Amounts(Struct, frozen=True, gc=False):
    """Resources in whole base units; `others` has what is neither of the three and not zero."""

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    others: Mapping[str, int] = {}


class Weights(NamedTuple):
    """CPU and memory as a score counts them."""

    milli_cpu: int
    memory: int


def amounts(totals: ResourceList) -> Amounts:
    """Return quantities in base units, rounded up; names that no node can have are left out."""
    others = {
        name: quantity.value
        for name, quantity in totals.items()
        if name not in (CPU, MEMORY, EPHEMERAL_STORAGE) and is_scalar(name)
    }
    return Amounts(
        milli_cpu=totals.get(CPU, Quantity.ZERO).milli_value,
        memory=totals.get(MEMORY, Quantity.ZERO).value,
        ephemeral_storage=totals.get(EPHEMERAL_STORAGE, Quantity.ZERO).value,
        others={name: amount for name, amount in sorted(others.items()) if amount},
    )


def weights(totals: ResourceList) -> Weights:
    """Return CPU and memory in base units."""
    return Weights(
        totals.get(CPU, Quantity.ZERO).milli_value, totals.get(MEMORY, Quantity.ZERO).value
    )


def is_scalar(name: str) -> bool:
    """Return whether nodes count the resource: huge pages, extended and Kubernetes' own names."""
    return (
        name.startswith((HUGE_PAGES_PREFIX, ATTACHABLE_VOLUMES_PREFIX))
        or NATIVE_DOMAIN in name
        or names.is_extended_resource(name)
    )
