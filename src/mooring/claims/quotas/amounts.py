"""Amounts by name, and what is done with them; nothing is changed in place."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mooring.api.core.resources import ResourceList
from mooring.api.quantity import Quantity

ZERO = Quantity.ZERO
ONE = Quantity.from_int(1)


def added(first: ResourceList, second: ResourceList) -> ResourceList:
    """Return the sum, name by name."""
    total = dict(first)
    for name, amount in second.items():
        known = total.get(name)
        total[name] = amount if known is None else known + amount
    return total


def grown(before: ResourceList, after: ResourceList) -> ResourceList:
    """Return by how much amounts have grown; those that have not are left out."""
    growth = {name: amount - before.get(name, ZERO) for name, amount in after.items()}
    return {name: amount for name, amount in growth.items() if amount.sign > 0}


def masked(amounts: ResourceList, names: Collection[str]) -> ResourceList:
    """Return the amounts of these names only."""
    return {name: amount for name, amount in amounts.items() if name in names}


def without_zeros(amounts: ResourceList) -> ResourceList:
    """Return the amounts that are something."""
    return {name: amount for name, amount in amounts.items() if not amount.is_zero}


def beyond(amounts: ResourceList, bounds: ResourceList) -> list[str]:
    """Return the names whose amounts are beyond their bounds."""
    return [name for name, amount in amounts.items() if name in bounds and bounds[name] < amount]


def told(amounts: ResourceList) -> str:
    """Return amounts as messages tell them: by name, `cpu=2,memory=1Gi`."""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))


def told_names(names: Iterable[str]) -> str:
    """Return names as messages tell them."""
    return ",".join(sorted(names))
