"""The ResourceSlices of a machine: what each driver publishes, cut to what a slice may hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from mooring.api.meta import ObjectMeta
from mooring.api.resource.v1 import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from mooring.hardware.drivers import DRIVERS
from mooring.hardware.machine import Machine, Sheet

T = TypeVar("T")

DEVICES_MAX = 128
HEAVY_DEVICES_MAX = 64  # where a device has taints, counters or a list
COUNTER_SETS_MAX = 8


def resource_slices(machine: Machine) -> Iterator[ResourceSlice]:
    """Give the slices of all drivers that have something on the machine."""
    for driver, sheets in DRIVERS.items():
        yield from slices_of(machine.node_name, driver, sheets(machine))


def slices_of(node: str, driver: str, sheets: Iterable[Sheet]) -> Iterator[ResourceSlice]:
    """Give the slices of a driver's sheets; they are one pool, that of the node."""
    pieces = [piece for sheet in sheets for piece in _pieces(sheet)]
    for index, piece in enumerate(pieces):
        yield _slice(node, driver, index, len(pieces), piece)


def _pieces(sheet: Sheet) -> Iterator[Sheet]:
    """Give a sheet in pieces that each fit into a slice; none for an empty one."""
    for counters in _cut(sheet.counters, COUNTER_SETS_MAX):
        yield Sheet(counters=tuple(counters))
    size = HEAVY_DEVICES_MAX if any(map(_is_heavy, sheet.devices)) else DEVICES_MAX
    for devices in _cut(sheet.devices, size):
        yield Sheet(tuple(devices))


def _cut(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _is_heavy(device: Device) -> bool:
    lists = (
        each.int_values or each.bool_values or each.string_values or each.version_values
        for each in device.attributes.values()
    )
    return bool(device.taints or device.consumes_counters) or any(lists)


def _slice(node: str, driver: str, index: int, count: int, piece: Sheet) -> ResourceSlice:
    # Drivers begin the names of their slices like this, which keeps them in order.
    return ResourceSlice(
        metadata=ObjectMeta(name=f"{index:05x}-{driver}-{node}"),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=node, generation=1, resource_slice_count=count),
            node_name=node,
            devices=piece.devices or None,
            shared_counters=piece.counters or None,
        ),
    )
