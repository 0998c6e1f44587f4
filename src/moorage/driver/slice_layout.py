"""A pool divided into slices, within the limits of slices (pure).

Counter sets and devices are in separate slices. Devices stay in their slice, so that a change of
one device changes one slice; new devices go where there is space.

Slices are filled with 64 devices, though 128 are allowed while none of them has taints, counters or
lists: the first taint in a slice of 128 would move half of its devices, and so change every slice
of the pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from moorage.api.resource.v1 import CounterSet, Device
from moorage.driver.driver import Pool
from moorage.driver.errors import InventoryError

DEVICES_MAX = 64
PLAIN_DEVICES_MAX = 128  # for devices that stay; no slice is filled so far
COUNTER_SETS_MAX = 8


class SliceContent(Struct, frozen=True):
    """The content of one slice: devices, or counters, or nothing."""

    devices: tuple[Device, ...] = ()
    counters: tuple[CounterSet, ...] = ()


def lay_out(pool: Pool, before: Mapping[int, SliceContent]) -> list[SliceContent]:
    """Return the slices of a pool; before is what slices have now, by index.

    1. Keep counters and devices where they are, in the order of the pool.
    2. Put the others into slices with space, the first first, and then into new ones.
    3. Drop empty slices at the end, and start over if there are twice as many as needed.
    """
    needed = -(-len(pool.counters) // COUNTER_SETS_MAX) - (-len(pool.devices) // DEVICES_MAX)
    count_max = 2 * max(needed, 1)
    near = {index: slot for index, slot in before.items() if index < count_max}
    kept = _Layout(near).place(pool)
    return kept if len(kept) <= count_max else _Layout({}).place(pool)


def check_pool(pool: Pool) -> None:
    """Raise InventoryError for what no server notices, as it sees one slice at a time."""
    sets: dict[str, CounterSet] = {}
    for counter_set in pool.counters:
        if counter_set.name in sets:
            raise InventoryError(
                f'found duplicate counter set "{counter_set.name}" in pool "{pool.name}"'
            )
        sets[counter_set.name] = counter_set
    names: set[str] = set()
    for device in pool.devices:
        if device.name in names:
            raise InventoryError(f'found duplicate device "{device.name}" in pool "{pool.name}"')
        names.add(device.name)
        _check_counters(device, sets)
    if selects_per_device(pool) and not all(map(_selects_nodes, pool.devices)):
        raise InventoryError(f'pool "{pool.name}": all devices say where they are, or none')


def _check_counters(device: Device, sets: Mapping[str, CounterSet]) -> None:
    for consumption in device.consumes_counters:
        found = sets.get(consumption.counter_set)
        if found is None:
            raise InventoryError(
                f'counter set "{consumption.counter_set}" referenced by device "{device.name}" '
                "not found"
            )
        for counter in consumption.counters:
            if counter not in found.counters:
                raise InventoryError(
                    f'counter "{counter}" referenced by device "{device.name}" not found '
                    f'in counter set "{found.name}"'
                )


# --- layout ---------------------------------------------------------------------------------------


class _Layout:
    def __init__(self, before: Mapping[int, SliceContent]) -> None:
        self.counters: dict[int, list[CounterSet]] = {}
        self.devices: dict[int, list[Device]] = {}
        self._index_of_set = {c.name: i for i, slot in before.items() for c in slot.counters}
        self._index_of_device = {d.name: i for i, slot in before.items() for d in slot.devices}
        self._with_devices = set(self._index_of_device.values())

    def place(self, pool: Pool) -> list[SliceContent]:
        self._place_counters(pool.counters)
        self._place_devices(pool.devices)
        count = max([*self.counters, *self.devices], default=0) + 1
        order = {device.name: number for number, device in enumerate(pool.devices)}
        for devices in self.devices.values():
            devices.sort(key=lambda device: order[device.name])
        rank = {each.name: number for number, each in enumerate(pool.counters)}
        for counters in self.counters.values():
            counters.sort(key=lambda counter_set: rank[counter_set.name])
        return [self._slot(index) for index in range(count)]

    def _place_counters(self, counters: Iterable[CounterSet]) -> None:
        new = []
        for each in counters:
            index = self._index_of_set.get(each.name)
            if index is None or len(self.counters.get(index, ())) >= COUNTER_SETS_MAX:
                new.append(each)
            else:
                self.counters.setdefault(index, []).append(each)
        index = 0
        for each in new:
            while (
                index in self._with_devices or len(self.counters.get(index, ())) >= COUNTER_SETS_MAX
            ):
                index += 1
            self.counters.setdefault(index, []).append(each)

    def _place_devices(self, devices: Sequence[Device]) -> None:
        new = self._keep(devices)
        index = 0
        for each in new:
            while index in self.counters or len(self.devices.get(index, ())) >= DEVICES_MAX:
                index += 1
            self.devices.setdefault(index, []).append(each)

    def _keep(self, devices: Sequence[Device]) -> list[Device]:
        """Keep devices that are in a slice already, and return the rest."""
        staying: dict[int, list[Device]] = {}
        new = []
        for each in devices:
            index = self._index_of_device.get(each.name)
            if index is None or index in self.counters:
                new.append(each)
            else:
                staying.setdefault(index, []).append(each)
        for index, found in staying.items():
            devices_max = DEVICES_MAX if any(map(_is_advanced, found)) else PLAIN_DEVICES_MAX
            self.devices[index] = found[:devices_max]
            new += found[devices_max:]
        return new

    def _slot(self, index: int) -> SliceContent:
        return SliceContent(tuple(self.devices.get(index, ())), tuple(self.counters.get(index, ())))


def _is_advanced(device: Device) -> bool:
    """Return whether a device lowers the limit of its slice."""
    return bool(
        device.taints
        or device.consumes_counters
        or any(
            each.int_values is not None
            or each.bool_values is not None
            or each.string_values is not None
            or each.version_values is not None
            for each in device.attributes.values()
        )
    )


def selects_per_device(pool: Pool) -> bool:
    """Return whether the pool's devices have node selectors of their own."""
    return any(map(_selects_nodes, pool.devices))


def _selects_nodes(device: Device) -> bool:
    return bool(device.node_name or device.node_selector is not None or device.all_nodes)
