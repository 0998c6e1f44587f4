"""Drivers by the names that operators use, and their options. A name can mean several drivers.

A driver's module is imported when it is needed, so that running one does not load them all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from moorage.api.resource.v1 import Device, ResourceSlice
from moorage.driver.driver import Driver, Pool
from moorage.drivers.cpu import CpuSettings
from moorage.drivers.host import Host, host_at
from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.errors import HardwareError
from moorage.hardware.machine import Sheet, slices_of
from moorage.hardware.numbers import parse_cpu_list

INDIVIDUAL, GROUPED = "individual", "grouped"
BY_NODE, BY_SOCKET = "numanode", "socket"
STATIC, DYNAMIC = "static", "dynamic"


class OptionError(ValueError):
    """An option is invalid; the text names it."""


class DriverOptions(Struct, frozen=True, kw_only=True):
    """Where drivers look for devices, and how they publish them."""

    node_name: str = ""
    sysfs: str = "/sys"
    proc: str = "/proc"
    form: NumaNodeForm = NumaNodeForm.SCALAR
    cpu_device_mode: str = GROUPED
    group_by: str = BY_NODE
    reserved_cpus: str = ""
    has_sriov: bool = True  # the SR-IOV driver publishes virtual functions
    mig: str = STATIC
    ignored_xids: tuple[int, ...] = ()
    profile: str = ""  # the board of `sim`

    @property
    def host(self) -> Host:
        """The machine of the drivers."""
        return host_at(self.sysfs, self.proc, self.form)

    @property
    def cpus(self) -> CpuSettings:
        """How CPUs are published; raises OptionError."""
        try:
            reserved = parse_cpu_list(self.reserved_cpus)
        except ValueError as error:
            raise OptionError(f"--reserved-cpus: {error}") from None
        if self.cpu_device_mode not in (INDIVIDUAL, GROUPED):
            raise OptionError(f"--cpu-device-mode: must be {INDIVIDUAL} or {GROUPED}")
        if self.group_by not in (BY_NODE, BY_SOCKET):
            raise OptionError(f"--group-by: must be {BY_NODE} or {BY_SOCKET}")
        is_individual = self.cpu_device_mode == INDIVIDUAL
        return CpuSettings(is_individual, self.group_by == BY_SOCKET, reserved)


class CatalogueEntry(NamedTuple):
    """A name, a summary, and a function that returns drivers or raises OptionError."""

    name: str
    summary: str
    make: Callable[[DriverOptions], tuple[Driver, ...]]


def drivers_of(name: str, options: DriverOptions) -> tuple[Driver, ...]:
    """Return the drivers of a name, or raise OptionError."""
    entry = CATALOGUE.get(name)
    if entry is None:
        raise OptionError(f"there is no driver {name[:64]!r}; there are: {', '.join(CATALOGUE)}")
    return entry.make(options)


def finds_devices(name: str, options: DriverOptions) -> bool:
    """Return whether a driver would publish devices here."""
    try:
        drivers = drivers_of(name, options)
    except OptionError:
        return False
    return any(pool.devices for driver in drivers for pool in pools_of(driver))


def pools_of(driver: Driver) -> tuple[Pool, ...]:
    """Return the current pools of one of these drivers."""
    pools: list[Pool] = []
    loose: list[Device] = []
    found = driver.devices()
    assert not hasattr(found, "__await__"), "these drivers are synchronous"
    for each in found:
        if isinstance(each, Pool):
            pools.append(each)
        else:
            loose.append(each)
    return (*pools, Pool(devices=tuple(loose))) if loose else tuple(pools)


def published(driver: Driver, node_name: str) -> tuple[ResourceSlice, ...]:
    """Return the slices that a driver would publish on a node."""
    sheets = [
        sheet
        for pool in pools_of(driver)
        for sheet in (Sheet(counters=pool.counters), Sheet(pool.devices))
    ]
    return tuple(slices_of(node_name, driver.name, sheets))


def _cpu(options: DriverOptions) -> tuple[Driver, ...]:
    from moorage.drivers.cpu import CpuDriver

    return (CpuDriver(options.host, options.cpus),)


def _memory(options: DriverOptions) -> tuple[Driver, ...]:
    from moorage.drivers.memory import MemoryDriver

    return (MemoryDriver(options.host),)


def _net(options: DriverOptions) -> tuple[Driver, ...]:
    from moorage.drivers.net import NetDriver, SriovDriver

    whole = NetDriver(options.host, with_sriov=options.has_sriov)
    return (whole, SriovDriver(options.host)) if options.has_sriov else (whole,)


def _nvme(options: DriverOptions) -> tuple[Driver, ...]:
    from moorage.drivers.nvme import NvmeDriver

    return (NvmeDriver(options.host),)


def _nvidia(options: DriverOptions) -> tuple[Driver, ...]:
    from moorage.drivers.nvidia import NvidiaDriver

    is_dynamic = options.mig == DYNAMIC
    ignored = frozenset(options.ignored_xids)
    return (NvidiaDriver(options.host, is_dynamic=is_dynamic, ignored_xids=ignored),)


def _sim(options: DriverOptions) -> tuple[Driver, ...]:
    from moorage.drivers.sim import simulated

    if not options.profile:
        raise OptionError("--profile: sim needs the name of a board: see `moor profiles`")
    try:
        return simulated(options.profile, options.node_name, options.form)
    except HardwareError as error:
        raise OptionError(f"--profile: {error}") from None


CATALOGUE = {
    entry.name: entry
    for entry in (
        CatalogueEntry("cpu", "CPUs, one by one or in groups", _cpu),
        CatalogueEntry("memory", "memory and huge pages of each NUMA node", _memory),
        CatalogueEntry("net", "network interfaces, RDMA devices, virtual functions", _net),
        CatalogueEntry("nvidia", "GPUs of NVIDIA, whole or in partitions", _nvidia),
        CatalogueEntry("nvme", "disks", _nvme),
        CatalogueEntry("sim", "the devices of any board, simulated", _sim),
    )
}
