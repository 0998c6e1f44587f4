"""How many devices are in which state: by driver, pool or node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from mooring.insight.devices.model import DeviceHolding, State

Key = tuple[str, ...]


class Counts(NamedTuple):
    """How many devices are in which state."""

    states: Counter[State]

    @property
    def total(self) -> int:
        """All devices that slices have."""
        return sum(number for state, number in self.states.items() if state is not State.MISSING)

    def of(self, state: State) -> int:
        """Return how many are in a state."""
        return self.states[state]


def by_pool(holding: DeviceHolding) -> Key:
    """Return driver and pool."""
    return holding.id.driver, holding.id.pool


def by_driver(holding: DeviceHolding) -> Key:
    """Return the driver."""
    return (holding.id.driver,)


def by_node(holding: DeviceHolding) -> Key:
    """Return the nodes that a device is for, and the driver."""
    return str(holding.place), holding.id.driver


def count(
    devices: Iterable[DeviceHolding], key: Callable[[DeviceHolding], Key]
) -> dict[Key, Counts]:
    """Return the numbers for each key, in the order of the keys."""
    found: dict[Key, Counts] = {}
    for holding in devices:
        found.setdefault(key(holding), Counts(Counter())).states[holding.state] += 1
    return dict(sorted(found.items()))
