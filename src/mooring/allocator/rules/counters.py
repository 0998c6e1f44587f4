"""Counters that devices share, packed into one number so that a step is one subtraction.

    # field: the bits of one counter of one counter set, and one guard bit above them
    # guard: a subtraction that takes more than there is clears the guard bit of its field

Amounts are in units of the greatest common divisor of what the devices of the pool take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd
from typing import NamedTuple

from mooring.allocator.pools import Spot
from mooring.api.resource.v1 import CounterSet, Device

CounterKey = tuple[str, str]  # counter set, counter


class Layout(NamedTuple):
    """Where the fields of a packed number are."""

    fields: Mapping[CounterKey, int]  # its place among the fields
    units: Sequence[int]
    width: int  # bits of a field, with its guard
    guards: int

    def pack(self, amounts: Mapping[CounterKey, int]) -> int:
        """Return amounts in nano as one number; each is rounded down to whole units."""
        packed = 0
        for field, amount in amounts.items():
            place = self.fields[field]
            packed += (amount // self.units[place]) << (place * self.width)
        return packed

    def unpack(self, packed: int) -> dict[CounterKey, int]:
        """Return the fields of a packed number, in units."""
        mask = (1 << self.width) - 1
        return {key: packed >> place * self.width & mask for key, place in self.fields.items()}


class Counters(NamedTuple):
    """The counters of a pool, what each of its devices takes, and what there is in all."""

    layout: Layout
    totals: Mapping[CounterKey, int]  # in nano
    takes: Mapping[int, int]  # packed, by position; only devices that take something
    consumers: int  # mask of the devices that name a counter set
    can_grow: bool  # whether some device takes less than nothing, which Kubernetes does not refuse

    def left(self, taken: Iterable[Device]) -> int | None:
        """Return what is left, packed, while these devices are taken; None if overdrawn."""
        left = dict(self.totals)
        for device in taken:
            for field, amount in amounts_of(device):
                if field in left:
                    left[field] -= amount
        if any(amount < 0 for amount in left.values()):
            return None
        return self.layout.pack(left)


def amounts_of(device: Device) -> Iterator[tuple[CounterKey, int]]:
    """Return what a device takes of each counter, in nano."""
    for consumption in device.consumes_counters:
        for name, counter in consumption.counters.items():
            yield (consumption.counter_set, name), counter.value.nano


def counters_of(
    spots: Sequence[Spot], others: Sequence[Spot], sets: Mapping[str, CounterSet]
) -> Counters:
    """Return the counters of a pool."""
    totals = {
        (name, counter_name): counter.value.nano
        for name in sorted(sets)
        for counter_name, counter in sorted(sets[name].counters.items())
    }
    fields = {field: place for place, field in enumerate(totals)}
    units = [0] * len(fields)
    sizes = {field: abs(total) for field, total in totals.items()}
    for spot in (*spots, *others):
        for field, amount in amounts_of(spot.device):
            units[fields[field]] = gcd(units[fields[field]], amount)
            sizes[field] += abs(amount)
    units = [unit or 1 for unit in units]
    largest = max((size // units[fields[field]] for field, size in sizes.items()), default=0)
    width = largest.bit_length() + 2
    guards = sum(1 << (place * width + width - 1) for place in range(len(fields)))
    layout = Layout(fields, units, width, guards)
    takes: dict[int, int] = {}
    consumers = 0
    for position, spot in enumerate(spots):
        if spot.device.consumes_counters:
            consumers |= 1 << position
            takes[position] = _packed(layout, spot.device)
    can_grow = any(amount < 0 for spot in spots for _, amount in amounts_of(spot.device))
    return Counters(layout, totals, takes, consumers, can_grow)


def _packed(layout: Layout, device: Device) -> int:
    # A device may name a set twice, so amounts are added up before they are packed.
    amounts: dict[CounterKey, int] = {}
    for field, amount in amounts_of(device):
        amounts[field] = amounts.get(field, 0) + amount
    return layout.pack(amounts)
