"""Sysfs that changes while it is read, and sysfs that lies."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.driver.driver import Driver
from moorage.drivers.catalogue import published
from moorage.drivers.cpu import CpuDriver, CpuSettings
from moorage.drivers.host import Host
from moorage.drivers.memory import MemoryDriver
from moorage.drivers.net import NetDriver, SriovDriver
from moorage.drivers.nvme import NvmeDriver
from moorage.hardware.sysfs_tree import Link, MemoryEntries, SysfsTree
from tests.drivers.machines import (
    Entries,
    admitted,
    board_entries,
    cpus,
    devices_of,
    host_of,
    nic,
    node,
    online,
)

SMALL: Entries = {
    **online("0-1", "0-1"),
    **node(0, "0", distances="10 20"),
    **node(1, "1", distances="20 10"),
    **cpus(0, range(1)),
    **cpus(1, range(1, 2), socket=1),
    **nic("eth0", "0000:05:00.0", node=1),
    "class/nvme/nvme0": Link("../../devices/pci0000:00/0000:06:00.0/nvme/nvme0"),
    "devices/pci0000:00/0000:06:00.0/nvme/nvme0/model": "Disk\n",
    "devices/pci0000:00/0000:06:00.0/nvme/nvme0/nvme0n1/size": "2048\n",
    "class/block/nvme0n1": Link("../../devices/pci0000:00/0000:06:00.0/nvme/nvme0/nvme0n1"),
    "devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages": "3\n",
}


def drivers(host: Host) -> list[Driver]:
    return [
        CpuDriver(host),
        CpuDriver(host, CpuSettings(is_individual=True)),
        CpuDriver(host, CpuSettings(by_socket=True)),
        MemoryDriver(host),
        NetDriver(host),
        NetDriver(host, with_sriov=False),
        SriovDriver(host),
        NvmeDriver(host),
    ]


class Vanishing(MemoryEntries):
    """Entries of which some are gone when they are read, after they were listed."""

    def __init__(self, entries: Entries, gone: set[str]) -> None:
        super().__init__(entries)
        self._gone = gone

    def content(self, path: str, bytes_max: int) -> bytes:
        if path in self._gone:
            raise FileNotFoundError(2, "No such file or directory")
        return super().content(path, bytes_max)

    def target(self, path: str) -> str:
        if path in self._gone:
            raise OSError(19, "No such device")
        return super().target(path)

    def names(self, path: str, names_max: int) -> list[str]:
        if path in self._gone:
            raise FileNotFoundError(2, "No such file or directory")
        return super().names(path, names_max)


@pytest.mark.parametrize("path", sorted(SMALL))
def test_any_file_may_vanish(path: str) -> None:
    host = Host(SysfsTree(Vanishing(SMALL, {path})), SysfsTree(MemoryEntries({})))
    for driver in drivers(host):
        devices_of(driver)


@settings(max_examples=50)
@given(gone=st.sets(st.sampled_from(sorted(board_entries("r7725"))), max_size=60))
def test_many_files_may_vanish(gone: set[str]) -> None:
    host = Host(SysfsTree(Vanishing(board_entries("r7725"), gone)), SysfsTree(MemoryEntries({})))
    for driver in drivers(host):
        devices_of(driver)


WORDS = st.one_of(
    st.sampled_from(
        ["", "-1\n", "0\n", "0-99999999", "99999999999999999999", "0-1,x", "NaN", "MemTotal: 9 kB"]
    ),
    st.text(max_size=200),
)


@given(changes=st.dictionaries(st.sampled_from(sorted(SMALL)), WORDS, max_size=8), said=WORDS)
def test_whatever_files_say_slices_are_valid(changes: dict[str, str], said: str) -> None:
    """What is found can be published, or nothing is found."""
    host = host_of(SMALL | changes, {"meminfo": said, "self/mountinfo": said, "net/route": said})
    for driver in drivers(host):
        for each in published(driver, "node-1"):
            assert admitted(each).errors == ()


def test_a_folder_of_a_million_names_is_not_read() -> None:
    entries: Entries = {f"class/net/e{index}": "x" for index in range(65_537)}
    assert not devices_of(NetDriver(host_of(entries)))


def test_links_that_lead_out_or_in_circles_are_no_devices() -> None:
    entries: Entries = {
        "class/net/out": Link("../../../../etc/passwd"),
        "class/net/round": Link("round"),
        "class/net/far": Link("/etc"),
        "class/nvme/nvme0": Link("nvme0"),
        "class/block/sda": Link("../../../../dev/sda"),
    }
    for driver in drivers(host_of(entries)):
        assert not devices_of(driver)
