"""The drivers by the names that operators use. One name can stand for several drivers.

A driver's module is loaded when it is wanted: whoever runs one need not hold them all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mooring.api.resource.v1 import Device, ResourceSlice
from mooring.driver.driver import Driver, Pool
from mooring.drivers.options import DYNAMIC, OptionError, Options
from mooring.hardware.errors import HardwareError
from mooring.hardware.machine import Sheet
from mooring.hardware.slices import slices_of


class Entry(NamedTuple):
    """A name, what it is for, and what makes its drivers; OptionError if options are wrong."""

    name: str
    summary: str
    make: Callable[[Options], tuple[Driver, ...]]


def drivers_of(name: str, options: Options) -> tuple[Driver, ...]:
    """Return the drivers of a name, or raise OptionError."""
    entry = CATALOGUE.get(name)
    if entry is None:
        raise OptionError(f"there is no driver {name[:64]!r}; there are: {', '.join(CATALOGUE)}")
    return entry.make(options)


def finds_devices(name: str, options: Options) -> bool:
    """Tell whether a driver would have something to give away here."""
    try:
        drivers = drivers_of(name, options)
    except OptionError:
        return False
    return any(pool.devices for driver in drivers for pool in pools_of(driver))


def pools_of(driver: Driver) -> tuple[Pool, ...]:
    """Return what one of these drivers has now."""
    pools: list[Pool] = []
    loose: list[Device] = []
    found = driver.devices()
    assert not hasattr(found, "__await__"), "the drivers here do not wait"
    for each in found:
        if isinstance(each, Pool):
            pools.append(each)
        else:
            loose.append(each)
    return (*pools, Pool(devices=tuple(loose))) if loose else tuple(pools)


def published(driver: Driver, node_name: str) -> tuple[ResourceSlice, ...]:
    """Return the slices that a driver would have on a node."""
    sheets = [
        sheet
        for pool in pools_of(driver)
        for sheet in (Sheet(counters=pool.counters), Sheet(pool.devices))
    ]
    return tuple(slices_of(node_name, driver.name, sheets))


def _cpu(options: Options) -> tuple[Driver, ...]:
    from mooring.drivers.cpu import CpuDriver

    return (CpuDriver(options.host, options.cpus),)


def _memory(options: Options) -> tuple[Driver, ...]:
    from mooring.drivers.memory import MemoryDriver

    return (MemoryDriver(options.host),)


def _net(options: Options) -> tuple[Driver, ...]:
    from mooring.drivers.net import NetDriver, SriovDriver

    whole = NetDriver(options.host, with_sriov=options.has_sriov)
    return (whole, SriovDriver(options.host)) if options.has_sriov else (whole,)


def _nvme(options: Options) -> tuple[Driver, ...]:
    from mooring.drivers.nvme import NvmeDriver

    return (NvmeDriver(options.host),)


def _nvidia(options: Options) -> tuple[Driver, ...]:
    from mooring.drivers.nvidia import NvidiaDriver

    is_dynamic = options.mig == DYNAMIC
    ignored = frozenset(options.ignored_xids)
    return (NvidiaDriver(options.host, is_dynamic=is_dynamic, ignored_xids=ignored),)


def _sim(options: Options) -> tuple[Driver, ...]:
    from mooring.drivers.sim import simulated

    if not options.profile:
        raise OptionError("--profile: sim needs the name of a board: see `moor profiles`")
    try:
        return simulated(options.profile, options.node_name, options.form)
    except HardwareError as error:
        raise OptionError(f"--profile: {error}") from None


CATALOGUE = {
    entry.name: entry
    for entry in (
        Entry("cpu", "CPUs, one by one or in groups", _cpu),
        Entry("memory", "memory and huge pages of each NUMA node", _memory),
        Entry("net", "network interfaces, RDMA devices, virtual functions", _net),
        Entry("nvidia", "GPUs of NVIDIA, whole or in partitions", _nvidia),
        Entry("nvme", "disks", _nvme),
        Entry("sim", "the devices of any board, simulated", _sim),
    )
}
