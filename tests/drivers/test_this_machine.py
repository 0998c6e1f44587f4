"""Devices that drivers publish of this machine agree with other sources."""

from __future__ import annotations

import os
import re
import socket
import stat
from pathlib import Path

import pytest

from moorage.drivers.catalogue import CATALOGUE, DriverOptions, drivers_of, finds_devices, published
from moorage.hardware.attributes import NUMA_NODE, PCI_BUS_ID
from tests.drivers.machines import admitted, devices_of

NAMES = ("cpu", "memory", "net", "nvme", "nvidia")
HERE = DriverOptions(node_name="node-1")

pytestmark = pytest.mark.skipif(
    not Path("/sys/devices/system/cpu").is_dir(), reason="there is no sysfs here"
)


@pytest.mark.parametrize("name", NAMES)
def test_slices_are_accepted(name: str) -> None:
    for driver in drivers_of(name, HERE):
        for each in published(driver, "node-1"):
            assert admitted(each).errors == ()


def test_cpus_are_those_of_the_kernel() -> None:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    listed = set(map(int, re.findall(r"^processor\s*:\s*(\d+)$", text, re.MULTILINE)))
    individual = DriverOptions(node_name="node-1", cpu_device_mode="individual")
    (driver,) = drivers_of("cpu", individual)
    found = {each.attributes["dra.cpu/cpuID"].int_value for each in devices_of(driver).values()}
    assert os.sched_getaffinity(0) <= found
    assert found == (listed or found)
    assert len(found) == os.cpu_count()


def test_groups_have_all_cpus_between_them() -> None:
    (driver,) = drivers_of("cpu", HERE)
    counts = [each.capacity["dra.cpu/cpu"].value.value for each in devices_of(driver).values()]
    assert sum(counts) == os.cpu_count()


def test_nodes_of_cpus_are_those_of_sysfs() -> None:
    (driver,) = drivers_of("cpu", DriverOptions(cpu_device_mode="individual"))
    for device in devices_of(driver).values():
        cpu = device.attributes["dra.cpu/cpuID"].int_value
        nodes = list(Path(f"/sys/devices/system/cpu/cpu{cpu}").glob("node[0-9]*"))
        said = device.attributes.get(NUMA_NODE)
        assert [f"node{said.int_value}"] == [each.name for each in nodes] if said else not nodes


def test_memory_is_no_more_than_the_machine_has() -> None:
    (driver,) = drivers_of("memory", HERE)
    sizes = [each.capacity["size"].value.value for each in devices_of(driver).values()]
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < sum(sizes) <= total * 1.01


def test_interfaces_are_those_of_the_kernel_without_loopbacks() -> None:
    named = {name for _, name in socket.if_nameindex()} - {"lo"}
    (driver,) = drivers_of("net", DriverOptions(has_sriov=False))
    found = devices_of(driver).values()
    attributes = [each.attributes.get("dra.net/ifName") for each in found]
    assert {each.string_value for each in attributes if each} == named
    for device in found:
        address = device.attributes.get(PCI_BUS_ID)
        assert address is None or Path(f"/sys/bus/pci/devices/{address.string_value}").exists()


def test_disks_are_block_devices_and_the_root_is_in_use() -> None:
    (driver,) = drivers_of("nvme", HERE)
    root = os.stat("/").st_dev
    for device in devices_of(driver).values():
        files = [Path("/dev") / device.name, *Path("/dev").glob(f"{device.name}n*")]
        there = [file.stat() for file in files if file.exists()]
        for each in there:
            if stat.S_ISBLK(each.st_mode) and each.st_rdev == root:
                assert device.attributes["dra.nvme/inUse"].bool_value
                assert device.taints


def test_drivers_that_find_nothing_say_so() -> None:
    assert finds_devices("cpu", HERE)
    assert not finds_devices("sim", HERE)
    assert not finds_devices("no-such", HERE)
    assert set(CATALOGUE) == {*NAMES, "sim"}
